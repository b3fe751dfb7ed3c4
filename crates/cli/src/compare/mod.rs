//! `msprobe compare` in both generations, and `msprobe merge_result`.

mod args;
mod config;
mod run;
mod spelling;

pub(crate) use self::args::{CompareArgs, MergeResultArgs};
pub(crate) use self::run::{merge, run};
pub(crate) use self::spelling::spell_out;
