//! `msprobe compare` in both generations, and `msprobe merge_result`.

mod args;
mod config;
mod console;
mod run;
mod spelling;

pub(crate) use self::args::{CompareArgs, MergeResultArgs};
pub(crate) use self::console::Terminal;
pub(crate) use self::run::{merge, refuse, run};
pub(crate) use self::spelling::spell_out;
