//! `msprobe grad`: what the gradient probe collected.

mod args;

use anyhow::Result;
use msprobe_gradients::{Options, Thresholds, compare_either};
use msprobe_report::console::Console;

pub(crate) use self::args::GradArgs;
use self::args::{GradCommand, GradCompareArgs};
use crate::Exit;
use crate::console::{Terminal, refuse};
use crate::output::print_answer;

pub(crate) fn run(args: &GradArgs) -> Result<Exit> {
    match &args.command {
        GradCommand::Compare(args) => compare(args),
    }
}

fn compare(args: &GradCompareArgs) -> Result<Exit> {
    let console = Terminal::default();
    let options = Options {
        output: args.output.dir.clone(),
        thresholds: Thresholds::new(args.first, args.fall, args.floor, args.total_fall),
        noise: args.noise.clone(),
        pictures: args.pictures,
        html: !args.no_html,
    };
    let compared = compare_either([&args.target, &args.golden], &options, &console);
    console.end();
    match compared {
        Ok(outcome) => {
            let answer = outcome.answer();
            print_answer(&answer, &outcome.sections())?;
            Ok(answer.status.exit())
        }
        Err(error) => Ok(refuse(&error, &console)),
    }
}
