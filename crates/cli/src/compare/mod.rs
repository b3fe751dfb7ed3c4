//! `msprobe compare` in both generations, and `msprobe merge_result`.

mod args;
mod config;
mod run;
mod spelling;

pub(crate) use self::args::{CompareArgs, MergeResultArgs};
pub(crate) use self::config::read_config;
pub(crate) use self::run::{merge, run, terminal_width};
pub(crate) use self::spelling::{spell_flags, spell_out};
