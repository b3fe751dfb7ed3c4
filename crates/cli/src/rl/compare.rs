//! `msprobe rl compare`: key data of two runs.

use anyhow::Result;
use msprobe_compare::verdict::Tolerances;
use msprobe_keydata::{Judging, compare_key_data};
use msprobe_report::Formats;
use msprobe_report::console::Console;

use super::args::RlCompareArgs;
use crate::Exit;
use crate::args::FormatName;
use crate::console::{Terminal, refuse};
use crate::output::print_answer;

pub(super) fn run(args: &RlCompareArgs) -> Result<Exit> {
    let console = Terminal::default();
    let asked = |name| args.format.contains(&name);
    let formats = Formats {
        xlsx: asked(FormatName::Xlsx),
        csv: asked(FormatName::Csv),
        json: asked(FormatName::Json),
        html: asked(FormatName::Html),
    };
    let tolerances = args.tolerance.as_deref().map(|text| Tolerances::default().with(text)).transpose();
    let compared = tolerances.and_then(|tolerances| {
        let judging = Judging { tolerances, noise: args.noise.clone() };
        compare_key_data([&args.target, &args.golden], &judging, &args.output_path, formats, &console)
    });
    console.end();
    match compared {
        Ok(outcome) => {
            print_answer(&outcome.answer, &outcome.sections)?;
            Ok(outcome.answer.status.exit())
        }
        Err(error) => Ok(refuse(&error, &console)),
    }
}
