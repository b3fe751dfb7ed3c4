//! `msprobe rl`: what runs of reinforcement learning need.

mod args;
mod compare;

use anyhow::Result;

pub(crate) use self::args::RlArgs;
use self::args::RlCommand;
use crate::Exit;

pub(crate) fn run(args: &RlArgs) -> Result<Exit> {
    match &args.command {
        RlCommand::Compare(args) => compare::run(args),
    }
}
