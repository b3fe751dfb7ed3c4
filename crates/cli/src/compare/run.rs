//! From flags to results.

use std::path::Path;

use anyhow::Result;
use msprobe_compare::verdict::{Allowed, Tolerances};
use msprobe_report::Formats;
use msprobe_report::Visible;
use msprobe_report::answer::Habit;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_tables::common_dir::compare_common_dirs;
use msprobe_tables::merge_result::merge_result;
use msprobe_tables::run::{
    DataMapping, Form, MappingChoice, Mappings, Options, Outcome, StackSource, compare_dumps, compare_ranks,
    find_dump,
};
use msprobe_tables::static_graph::compare_graphs;

use super::args::{CompareArgs, MergeResultArgs};
use super::config::CompareConfig;
use crate::args::{FormatName, FrameworkName};
use crate::console::{Terminal, refuse};
use crate::output::print_answer;
use crate::{Exit, WithHint};

pub(crate) fn run(framework: Option<FrameworkName>, args: &CompareArgs) -> Result<Exit> {
    let console = Terminal::default();
    let target = args.target.as_ref().or(args.target_path.as_ref());
    let golden = args.golden.as_ref().or(args.golden_path.as_ref());
    let result = match (&args.input_path, target, golden) {
        (Some(input), None, None) => older(framework, input, args, &console),
        (None, Some(target), Some(golden)) => newer(target, golden, args, &console),
        _ => {
            return Err(WithHint {
                message: "give two dumps to compare, or -i compare.json".to_owned(),
                hint: "msprobe compare TARGET GOLDEN; msprobe compare --help shows all forms".to_owned(),
            }
            .into());
        }
    };
    console.end();
    Ok(result.unwrap_or_else(|error| refuse(&error, &console)))
}

pub(crate) fn merge(args: &MergeResultArgs) -> Exit {
    let console = Terminal::default();
    match merge_result(&args.input_dir, &args.output_dir, &args.config_path, &console) {
        Ok(merged) => {
            say(&format!("merged into {}", merged.path.display()));
            if merged.left_out.is_empty() {
                return Exit::Ok;
            }
            let ranks: Vec<String> = merged.left_out.iter().map(u64::to_string).collect();
            say(&format!("not complete: the tables of rank {} could not be read", ranks.join(", ")));
            Exit::Failed
        }
        Err(error) => refuse(&error, &console),
    }
}

fn options(args: &CompareArgs, form: Form) -> Result<Options, CompareError> {
    let choice = |mapping: &Option<Option<std::path::PathBuf>>| {
        mapping.as_ref().map(|file| match file {
            Some(path) => MappingChoice::File(path.clone()),
            None => MappingChoice::BuiltIn,
        })
    };
    let asked = |name| args.format.contains(&name);
    // The first difference has files of its own.
    let default = args.format.is_empty() && !args.diff_analyze;
    let xlsx_by_default = form == Form::Old || args.xlsx;
    let tolerances = match &args.tolerance {
        Some(text) => Tolerances::default().with(text)?,
        None => Tolerances::default(),
    };
    Ok(Options {
        form,
        output: args.output_path.clone(),
        formats: Formats {
            xlsx: asked(FormatName::Xlsx) || args.xlsx || default && xlsx_by_default,
            csv: asked(FormatName::Csv) || default && !xlsx_by_default,
            json: asked(FormatName::Json),
            html: asked(FormatName::Html),
        },
        stack: StackSource::Detect,
        advisor: form == Form::Old && !args.compare_only,
        fuzzy: args.fuzzy_match,
        mappings: Mappings {
            api: choice(&args.api_mapping),
            cell: choice(&args.cell_mapping),
            layer: choice(&args.layer_mapping),
            data: args.data_mapping.clone().map(DataMapping::File),
        },
        log_rows: args.log_rows,
        first_difference: args.diff_analyze,
        tolerances,
        noise: args.noise.clone(),
        allowed: Allowed::parse(args.allow_incomplete.as_deref().unwrap_or_default())?,
    })
}

fn older(
    framework: Option<FrameworkName>,
    input: &Path,
    args: &CompareArgs,
    console: &Terminal,
) -> Result<Exit, CompareError> {
    let usage = |message: &str| CompareError::new(Code::InvalidParam, message);
    let Some(framework) = framework else {
        return Err(usage("the older form needs the framework first")
            .with_hint("msprobe -f pytorch compare -i compare.json -o out"));
    };
    if framework == FrameworkName::Pytorch && (args.cell_mapping.is_some() || args.api_mapping.is_some()) {
        return Err(usage("Argument -cm or -am is not supported in PyTorch framework"));
    }
    let config = CompareConfig::read(input)?;
    let (target, golden) = (&find_dump(&config.npu_path, console)?, &find_dump(&config.bench_path, console)?);
    if target.is_file() != golden.is_file() {
        let message = "The npu_path and bench_path need to be of the same type.";
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint("give two dump.json files, or two directories"));
    }
    let mut options = options(args, Form::Old)?;
    if framework == FrameworkName::Pytorch {
        options.mappings.layer = None;
    }
    let mindspore_only = |what: &str| {
        if framework == FrameworkName::Pytorch {
            return Err(usage(&format!("{what} is for MindSpore only"))
                .with_hint("msprobe -f mindspore compare -i compare.json -o out"));
        }
        Ok(())
    };
    let outcome = if target.is_file() {
        options.stack = match config.stack_path {
            Some(path) if args.stack_mode => StackSource::File(path),
            Some(_) => StackSource::Off,
            None => {
                console.warning(
                    "Missing stack_path in the configuration file. Automatically detecting stack.json to determine \
                     whether to display NPU_Stack_Info.",
                );
                StackSource::Detect
            }
        };
        options.log_rows |= config.log_rows.unwrap_or(false);
        compare_dumps(target, golden, &options, console)?
    } else if let Some(ranks) = &config.rank_id {
        mindspore_only("rank_id")?;
        let steps = config.step_id.unwrap_or_default();
        let files = compare_graphs(target, golden, ranks, &steps, &options.output, console)?;
        return Ok(finish_files(&files, console));
    } else if config.common {
        mindspore_only("common")?;
        let files = compare_common_dirs(target, golden, &config.map_dict, &options.output, console)?;
        return Ok(finish_files(&files, console));
    } else {
        options.log_rows |= config.log_rows.unwrap_or(true);
        compare_ranks(target, golden, &options, console)?
    };
    finish(&outcome, &options, console)?;
    let status = outcome.status();
    Ok(if args.fail_on_difference {
        status.exit()
    } else {
        status.exit_by_habit(Habit::OlderCompare, outcome.failures.is_empty())
    })
}

fn newer(target: &Path, golden: &Path, args: &CompareArgs, console: &Terminal) -> Result<Exit, CompareError> {
    if !matches!(args.mode.as_str(), "auto" | "offline_data") {
        let message = format!("mode {} needs Ascend products and is not part of this tool", args.mode);
        return Err(CompareError::new(Code::InvalidParam, message).with_hint("leave -m out"));
    }
    let (target, golden) = (&find_dump(target, console)?, &find_dump(golden, console)?);
    let options = options(args, Form::Newest)?;
    if args.rank.is_some() || args.step.is_some() {
        let ranks = args.rank.clone().unwrap_or_default();
        let steps = args.step.clone().unwrap_or_default();
        let files = compare_graphs(target, golden, &ranks, &steps, &options.output, console)?;
        return Ok(finish_files(&files, console));
    }
    let outcome = compare_dumps(target, golden, &options, console)?;
    finish(&outcome, &options, console)?;
    Ok(outcome.status().exit())
}

/// The straight answer, and where the tables are.
fn finish(outcome: &Outcome, options: &Options, console: &dyn Console) -> Result<(), CompareError> {
    outcome.write_verdict(&options.output, &options.tolerances, console)?;
    console.end();
    // Whoever closed it has seen enough.
    let _ = print_answer(&outcome.answer(&options.output), &outcome.sections(terminal_width()));
    announce_end(console);
    Ok(())
}

/// Columns of the terminal, or of a page where there is none.
pub(crate) fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}

/// Where the tables of a static graph are. What could not be compared is in the log.
fn finish_files(files: &[std::path::PathBuf], console: &Terminal) -> Exit {
    announce_end(console);
    for file in files {
        say(&file.display().to_string());
    }
    if console.errors() > 0 { Exit::Failed } else { Exit::Ok }
}

/// The box users know as the end of a comparison.
fn announce_end(console: &dyn Console) {
    let text = "msprobe compare ends successfully.";
    let width = text.len() + 50;
    console.info(&"*".repeat(width));
    console.info(&format!("*{text:^width$}*", width = width - 2));
    console.info(&"*".repeat(width));
}

/// A line on stdout, with what names could do to a terminal made visible. Whoever closed it has seen enough.
fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{}", Visible(text));
}
