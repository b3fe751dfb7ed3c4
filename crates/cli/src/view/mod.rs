//! `msprobe view`: a page in a browser, or one file.

mod args;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use msprobe_viewer::{ExportScope, Fault, Options, Server, export};

pub(crate) use self::args::ViewArgs;
use crate::output::human_size;
use crate::{Exit, WithHint, signals};

fn refused(fault: Fault) -> anyhow::Error {
    match fault.hint {
        Some(hint) => WithHint { message: fault.message, hint }.into(),
        None => anyhow::Error::msg(fault.message),
    }
}

pub(crate) fn run(args: &ViewArgs) -> Result<Exit> {
    if let Some(file) = &args.export {
        return write_page(args, file);
    }
    let options = Options {
        paths: args.paths.clone(),
        bind: args.bind,
        port: args.port,
        allow_remote: args.allow_remote,
    };
    let server = Server::bind(&options).map_err(refused)?;
    let stop = server.stop();
    signals::end_by(move || stop.now());
    let url = server.url().to_owned();
    let mut out = io::stdout().lock();
    writeln!(out, "{url}")?;
    out.flush()?;
    drop(out);
    if args.allow_remote && !args.bind.is_loopback() {
        tracing::warn!("everybody who has this address can see what is below the given paths");
    }
    tracing::info!("serving until Ctrl-C");
    if !args.no_open {
        open_browser(&url);
    }
    server.run()?;
    Ok(Exit::Ok)
}

fn write_page(args: &ViewArgs, file: &Path) -> Result<Exit> {
    let scope = ExportScope { step: args.step, rank: args.rank, only: None };
    let bytes = export(&args.paths, &scope, file).map_err(refused)?;
    writeln!(io::stdout(), "{}", file.display())?;
    tracing::info!("{} written", human_size(bytes as u64));
    Ok(Exit::Ok)
}

/// Opens a browser where there is one to be seen. Where there is none, the address was printed.
fn open_browser(url: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if has_screen {
        "xdg-open"
    } else {
        return;
    };
    let quiet = || Stdio::null();
    let started = Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    match started {
        // It is waited for, so that nothing is left of it.
        Ok(mut child) => _ = std::thread::Builder::new().spawn(move || child.wait()),
        Err(_) => tracing::info!("open the address in a browser"),
    }
}
