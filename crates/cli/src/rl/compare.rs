//! `msprobe rl compare`: key data of two runs.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use msprobe_keydata::{Outcome, Status as RunStatus, compare_key_data};
use msprobe_report::Formats;
use msprobe_report::console::Console;
use msprobe_report::{Visible, write_text, write_visible_lines};

use super::args::RlCompareArgs;
use crate::Status;
use crate::args::FormatName;
use crate::console::{Terminal, refuse};
use crate::logging::use_color;

pub(super) fn run(args: &RlCompareArgs) -> Result<Status> {
    let console = Terminal::default();
    let asked = |name| args.format.contains(&name);
    let formats = Formats {
        xlsx: asked(FormatName::Xlsx),
        csv: asked(FormatName::Csv),
        json: asked(FormatName::Json),
        html: asked(FormatName::Html),
    };
    let compared = compare_key_data([&args.dir1, &args.dir2], &args.output_path, formats, &console);
    console.end();
    match compared {
        Ok(outcome) => {
            print(&outcome, args)?;
            Ok(match outcome.status {
                RunStatus::Identical => Status::Ok,
                RunStatus::Incomplete | RunStatus::Diverged => Status::Differs,
                RunStatus::Failed => Status::Failed,
            })
        }
        Err(error) => Ok(refuse(&error, &console)),
    }
}

/// A row per key, the answer, and where the tables are.
fn print(outcome: &Outcome, args: &RlCompareArgs) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let color = io::stdout().is_terminal() && use_color();
    if !outcome.table.rows.is_empty() {
        write_text(&outcome.table, color, &mut out)?;
        writeln!(out)?;
    }
    write_visible_lines(outcome.lines.iter().map(String::as_str), &mut out)?;
    let names: Vec<_> =
        outcome.summaries.iter().map(|file| file.file_name().unwrap_or_default().to_string_lossy()).collect();
    let place = format!("{}: {}", args.output_path.display(), names.join(", "));
    write!(out, "\nResults are in {}", Visible(&place))?;
    match outcome.tables.len() {
        0 => writeln!(out)?,
        1 => writeln!(out, " and 1 table of a key")?,
        count => writeln!(out, " and {count} tables of single keys")?,
    }
    out.flush()
}
