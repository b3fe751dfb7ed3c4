//! The `msprobe` binary: everything is in the library, so that the Python package runs the same command.

fn main() -> std::process::ExitCode {
    msprobe_cli::run_process(std::env::args_os()).into()
}
