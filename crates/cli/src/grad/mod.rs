//! `msprobe grad`: what the gradient probe collected.

mod args;

use std::io::{self, Write};

use anyhow::Result;
use msprobe_compare::console::Console;
use msprobe_compare::gradients::{Options, Outcome, Status as RunStatus, Thresholds, compare_either};

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
        thresholds: Thresholds { first: args.first, fall: args.fall },
        pictures: args.pictures,
        html: !args.no_html,
    };
    let compared = compare_either([&args.dir1, &args.dir2], &options, &console);
    console.end();
    match compared {
        Ok(outcome) => {
            print(&outcome, &options)?;
            Ok(match outcome.status() {
                _ if !outcome.failures.is_empty() => Status::Failed,
                RunStatus::Suspect => Status::Differs,
                RunStatus::Ok | RunStatus::Incomplete => Status::Ok,
            })
        }
        Err(error) => Ok(refuse(&error, &console)),
    }
}

/// The answer, and where the files are.
fn print(outcome: &Outcome, options: &Options) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in outcome.lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "\nResults are in {}:", options.output.display())?;
    for file in &outcome.files {
        writeln!(out, "  {}", file.strip_prefix(&options.output).unwrap_or(file).display())?;
    }
    out.flush()
}
