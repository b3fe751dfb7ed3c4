//! The command, run as users run it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, stdout, stderr.
pub(crate) fn msprobe(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_msprobe"))
        .args(args)
        .current_dir(directory)
        .env_remove("MSPROBE_LOG_LEVEL")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
