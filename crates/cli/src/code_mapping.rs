//! `msprobe code_mapping`: lines of source code of the operators in a dump of a static graph.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use msprobe_codemap::{Mapped, map_code};
use msprobe_report::console::Console;
use msprobe_report::counted;

use crate::Exit;
use crate::console::{Terminal, refuse};

/// Look up which lines of source code the operators of a static-graph dump come from (MindSpore, O0, O1, O2).
///
/// FILE is the text of the graph; anf_after_graph_build is the one to take, and every .ir text will do. Where DATA has .npy
/// files, a table of them is written; where it has none, each statistic.csv in it is written again with the columns "Code
/// Stack" and "Scope Name". All scopes that are part of an operator's name are told. Nothing is changed when FILE cannot be
/// read.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  everything was looked up, or there was nothing to look up\n  \
    1  a file was left out: see the messages\n  \
    2  wrong usage, or the graph cannot be read\n\n\
    Files:\n  \
    OUT/code_mapping_TIME.csv  a row per .npy file: File Path, Code Stack, Scope Name\n\n\
    Examples:\n  \
    msprobe code_mapping --ir anf_after_graph_build_0001.ir --dump_data dump_path/rank_0/Net/0/0\n  \
    msprobe -f mindspore code_mapping --ir graph.ir --dump_data dump_path --output out")]
pub(crate) struct CodeMappingArgs {
    /// The text of the graph.
    #[arg(long, value_name = "FILE")]
    pub(crate) ir: PathBuf,

    /// The dump: a directory that is searched, a .npy file or a statistic.csv.
    #[arg(long = "dump_data", visible_alias = "dump-data", value_name = "DATA")]
    pub(crate) dump_data: PathBuf,

    /// Directory for the table of .npy files; made if it is not there.
    #[arg(short, long, value_name = "OUT", default_value = "./")]
    pub(crate) output: PathBuf,
}

pub(crate) fn run(args: &CodeMappingArgs) -> Result<Exit> {
    let console = Terminal::default();
    let mapped = match map_code(&args.ir, &args.dump_data, &args.output, &console) {
        Ok(mapped) => mapped,
        Err(error) => return Ok(refuse(&error, &console)),
    };
    console.end();
    let mut out = io::stdout().lock();
    match &mapped {
        Mapped::Arrays { path, files, with_scope, .. } => {
            writeln!(out, "{with_scope} of {} have lines of code", counted(*files, "file"))?;
            writeln!(out, "{}", path.display())?;
        }
        Mapped::Tables { paths, with_scope, .. } => {
            let rows = counted(*with_scope, "row");
            writeln!(out, "{rows} of {} have lines of code", counted(paths.len(), "table"))?;
            for path in paths {
                writeln!(out, "{}", path.display())?;
            }
        }
        Mapped::Nothing => {}
    }
    Ok(if console.errors() > 0 { Exit::Differs } else { Exit::Ok })
}
