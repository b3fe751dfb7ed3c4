//! `msprobe grad`: what the gradient probe collected.

mod args;

use std::io::{self, Write};

use anyhow::Result;
use msprobe_gradients::{Options, Outcome, Status as RunStatus, Thresholds, compare_either};
use msprobe_report::console::Console;
use msprobe_report::{Visible, write_visible_lines};

pub(crate) use self::args::GradArgs;
use self::args::{GradCommand, GradCompareArgs};
use crate::Status;
use crate::console::{Terminal, refuse};

pub(crate) fn run(args: &GradArgs) -> Result<Status> {
    match &args.command {
        GradCommand::Compare(args) => compare(args),
    }
}

fn compare(args: &GradCompareArgs) -> Result<Status> {
    let console = Terminal::default();
    let options = Options {
        output: args.output_path.clone(),
        thresholds: Thresholds::new(args.first, args.fall, args.floor, args.total_fall),
        pictures: args.pictures,
        html: !args.no_html,
    };
    let compared = compare_either([&args.dir1, &args.dir2], &options, &console);
    console.end();
    match compared {
        Ok(outcome) => {
            print(&outcome, &options)?;
            Ok(match outcome.status() {
                RunStatus::Identical | RunStatus::WithinTolerance => Status::Ok,
                RunStatus::Incomplete | RunStatus::Diverged => Status::Differs,
                RunStatus::Failed => Status::Failed,
            })
        }
        Err(error) => Ok(refuse(&error, &console)),
    }
}

/// The answer, and where the files are.
fn print(outcome: &Outcome, options: &Options) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_visible_lines(outcome.lines().iter().map(String::as_str), &mut out)?;
    writeln!(out, "\nResults are in {}:", Visible(&options.output.to_string_lossy()))?;
    for file in &outcome.files {
        let file = file.strip_prefix(&options.output).unwrap_or(file).to_string_lossy();
        writeln!(out, "  {}", Visible(&file))?;
    }
    out.flush()
}
