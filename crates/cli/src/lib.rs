//! The `msprobe` command: flags, messages, progress, exit codes.

mod args;
mod code_mapping;
mod compare;
mod console;
mod diff;
mod grad;
mod graph;
mod inspect;
mod logging;
mod missing;
mod output;
mod overflow;
mod precheck;
mod progress;
mod rl;
mod signals;
mod view;

use std::ffi::OsString;
use std::io;

use clap::{CommandFactory, Parser};
use msprobe_tensor::files::FileError;

use args::{Cli, Command};

pub use msprobe_report::answer::Exit;

/// Runs a command line as [`run`] does in a process that does nothing else: a signal that ends it takes unfinished files
/// along.
pub fn run_process(args: impl IntoIterator<Item = OsString>) -> Exit {
    signals::end_tidily();
    run(args)
}

/// Runs a command line as [`run_process`] does in a process without Python: what needs one becomes that.
pub fn run_binary(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(refusal) = precheck::hand_over(&args) {
        report(&refusal.into());
        return Exit::Failed;
    }
    run_process(args)
}

/// Runs a command line, the first argument being the program's name. Reports errors itself.
pub fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    if has_no_command(&args) {
        let _ = Cli::command().print_help();
        return Exit::Ok;
    }
    if let Some(answer) = missing::answer(&args) {
        report(&answer.into());
        return Exit::Failed;
    }
    let cli = match Cli::try_parse_from(precheck::spell_out(graph::spell_out(compare::spell_out(args)))) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version arrive here too, with exit code 0. A closed pipe is no failure.
            let _ = error.print();
            return if error.use_stderr() { Exit::Failed } else { Exit::Ok };
        }
    };
    logging::init();
    let result = match cli.command {
        Command::Compare(args) => compare::run(cli.framework, &args),
        Command::CodeMapping(args) => code_mapping::run(&args),
        Command::MergeResult(args) => Ok(compare::merge(&args)),
        Command::Grad(args) => grad::run(&args),
        Command::Graph(args) => Ok(graph::graph(cli.framework, &args)),
        Command::GraphVisualize(args) => Ok(graph::graph_visualize(&args)),
        Command::Rl(args) => rl::run(&args),
        Command::NanAnalyze(args) => overflow::nan_analyze(cli.framework, &args),
        Command::OverflowCheck(args) => overflow::overflow_check(cli.framework, &args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::View(args) => view::run(&args),
        Command::ApiPrecisionCompare(args) => precheck::api_precision_compare(&args),
        Command::OpGenerate(args) => precheck::op_generate(cli.framework, &args),
        Command::RunUt(args) | Command::MultiRunUt(args) | Command::RunOverflowCheck(args) => {
            Err(precheck::in_python_only(&args))
        }
    };
    match result {
        Ok(exit) => exit,
        Err(error) if is_broken_pipe(&error) => Exit::Ok,
        Err(error) => {
            report(&error);
            Exit::Failed
        }
    }
}

/// `msprobe`, and `msprobe -f pytorch` without a command.
fn has_no_command(args: &[OsString]) -> bool {
    match args {
        [_] => true,
        [_, flag, _] => flag == "-f" || flag == "--framework",
        _ => false,
    }
}

/// The reader of our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error and, where there is one, what to do about it.
fn report(error: &anyhow::Error) {
    let hint = match error.downcast_ref::<FileError>() {
        Some(file_error) => file_error.hint().map(str::to_owned),
        None => error.downcast_ref::<WithHint>().map(|error| error.hint.clone()),
    };
    // Commands meet bare I/O errors only where they print; what they read fails as `FileError`.
    let message = match error.downcast_ref::<io::Error>() {
        Some(cause) => format!("cannot write the results: {cause}"),
        None => error.to_string(),
    };
    logging::print_error(&message, hint.as_deref());
}

/// An error of usage that knows what to do next.
#[derive(Debug)]
struct WithHint {
    message: String,
    hint: String,
}

impl std::fmt::Display for WithHint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WithHint {}
