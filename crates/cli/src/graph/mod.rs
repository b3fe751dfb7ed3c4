//! `msprobe graph` and `msprobe graph_visualize`: dumps as hierarchies, one or two of them.

mod args;
mod config;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use msprobe_graph::merge::classes::Classes;
use msprobe_graph::merge::{Strategies, Strategy};
use msprobe_graph::names::Generation;
use msprobe_graph::run::{GraphOutcome, LayerMapping, Options, run};
use msprobe_report::answer::Habit;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};

use self::args::FileType;
pub(crate) use self::args::{GraphArgs, GraphVisualizeArgs};
use self::config::GraphConfig;
use crate::Exit;
use crate::args::FrameworkName;
use crate::compare::{spell_flags, terminal_width};
use crate::console::{Terminal, refuse};
use crate::output::print_answer;

const SPELLINGS: [(&str, &str); 7] = [
    ("-tp", "--target_path"),
    ("-gp", "--golden_path"),
    ("-fm", "--fuzzy_match"),
    ("-lm", "--layer_mapping"),
    ("-oc", "--overflow_check"),
    ("-tensor_log", "--is_print_compare_log"),
    ("-progress_log", "--is_print_progress_log"),
];

/// Writes flags of several letters behind one dash out.
pub(crate) fn spell_out(args: Vec<OsString>) -> Vec<OsString> {
    let older = [SPELLINGS[3], SPELLINGS[4], ("-cs", "--complete_stack")];
    let args = spell_flags(args, &["graph"], &older);
    spell_flags(args, &["graph_visualize", "graph-visualize"], &SPELLINGS)
}

pub(crate) fn graph(framework: Option<FrameworkName>, args: &GraphArgs) -> Exit {
    let console = Terminal::default();
    let asked = || {
        if framework.is_none() {
            return Err(CompareError::new(Code::InvalidParam, "this command needs the framework first")
                .with_hint("msprobe -f pytorch graph -i compare.json -o out"));
        }
        older_options(args)
    };
    let outcome = asked().and_then(|options| run(&options, &console, &|_| {}));
    finish(outcome, &console, |outcome| {
        let status = outcome.status();
        if args.fail_on_difference {
            status.exit()
        } else {
            status.exit_by_habit(Habit::OlderGraph, outcome.is_all_read())
        }
    })
}

pub(crate) fn graph_visualize(args: &GraphVisualizeArgs) -> Exit {
    let console = Terminal::default();
    let shows_progress = args.is_print_progress_log;
    let progress = |percent: u8| {
        if shows_progress {
            print_progress(percent, percent < 100, None);
        }
    };
    let outcome = newer_options(args, &console).and_then(|options| run(&options, &console, &progress));
    if let Err(error) = &outcome
        && shows_progress
    {
        print_progress(0, false, Some(&error.message));
    }
    finish(outcome, &console, |outcome| outcome.status().exit())
}

/// A line for those who watch the conversion.
fn print_progress(percent: u8, is_running: bool, error: Option<&str>) {
    let errors: Vec<&str> = error.into_iter().collect();
    let line = serde_json::json!({
        "current_progress": percent,
        "process_running": is_running,
        "error_msg": errors,
    });
    // Whoever closed it has seen enough.
    let _ = writeln!(std::io::stdout(), "PROGRESS: {line}");
}

fn finish(
    outcome: Result<GraphOutcome, CompareError>,
    console: &Terminal,
    exit: impl Fn(&GraphOutcome) -> Exit,
) -> Exit {
    console.end();
    match outcome {
        Ok(outcome) => {
            // Whoever closed it has seen enough.
            let _ = print_answer(&outcome.answer(), &outcome.sections(terminal_width()));
            exit(&outcome)
        }
        Err(error) => refuse(&error, console),
    }
}

fn layer_mapping(choice: Option<&Option<PathBuf>>) -> Option<LayerMapping> {
    choice.map(|file| match file {
        Some(file) => LayerMapping::File(file.clone()),
        None => LayerMapping::Names,
    })
}

fn older_options(args: &GraphArgs) -> Result<Options, CompareError> {
    let config = GraphConfig::read(&args.input_path)?;
    // What merges ranks came with the newer form of file.
    let generation = if config.merge.is_some() { Generation::Third } else { Generation::First };
    Ok(Options {
        golden: config.bench_path,
        layer_mapping: layer_mapping(args.layer_mapping.as_ref()),
        fuzzy: args.fuzzy_match,
        overflow_check: args.overflow_check,
        complete_stacks: args.complete_stack,
        merge: config.merge,
        ..Options::new(generation, &config.npu_path, &args.output_path)
    })
}

fn newer_options(args: &GraphVisualizeArgs, console: &dyn Console) -> Result<Options, CompareError> {
    let wrong =
        |message: &str, hint: &str| Err(CompareError::new(Code::InvalidParam, message).with_hint(hint));
    let merge = strategies(args)?;
    let mut as_dump = args.file_type == FileType::Json;
    if as_dump && args.golden_path.is_some() {
        return wrong(
            "--file_type json writes one merged dump, not a comparison",
            "leave out -gp, or use --file_type db",
        );
    }
    if as_dump && merge.is_none() {
        console.warning("--file_type json is for merged ranks; without --rank_size a .vis.db is written");
        as_dump = false;
    }
    Ok(Options {
        golden: args.golden_path.clone(),
        layer_mapping: layer_mapping(args.layer_mapping.as_ref()),
        fuzzy: args.fuzzy_match,
        overflow_check: args.overflow_check,
        merge,
        as_dump,
        ..Options::new(Generation::Third, &args.target_path, &args.output_path)
    })
}

/// How ranks share the work, if the user says so: one number of each kind to build, two to compare.
fn strategies(args: &GraphVisualizeArgs) -> Result<Option<Strategies>, CompareError> {
    let required = [("--rank_size", &args.rank_size), ("--tp", &args.tp), ("--pp", &args.pp)];
    let given = required.iter().filter(|(_, values)| !values.is_empty()).count();
    let optional = [("--vpp", &args.vpp), ("--cp", &args.cp), ("--ep", &args.ep)];
    let hint = "give --rank_size, --tp and --pp together: one number each to build, two (target and golden) to compare";
    let wrong = |message: String| CompareError::new(Code::InvalidParam, message).with_hint(hint);
    if given == 0 {
        let alone = optional.iter().find(|(_, values)| !values.is_empty());
        let order = (!args.order.is_empty()).then_some("--order");
        return match alone.map(|(flag, _)| *flag).or(order) {
            Some(flag) => Err(wrong(format!("{flag} needs --rank_size, --tp and --pp"))),
            None => Ok(None),
        };
    }
    let sides = if args.golden_path.is_some() { 2 } else { 1 };
    for (flag, values) in required {
        if values.len() != sides {
            return Err(wrong(format!("{flag} has {} of {sides} numbers", values.len())));
        }
    }
    for (flag, values) in optional {
        if !values.is_empty() && values.len() != sides {
            return Err(wrong(format!("{flag} has {} of {sides} numbers", values.len())));
        }
    }
    if !args.order.is_empty() && args.order.len() != sides {
        return Err(wrong(format!("--order has {} of {sides} texts", args.order.len())));
    }
    let strategy = |side: usize| Strategy {
        rank_size: args.rank_size.get(side).copied().unwrap_or(0),
        tp: args.tp.get(side).copied().unwrap_or(0),
        pp: args.pp.get(side).copied().unwrap_or(0),
        vpp: args.vpp.get(side).copied().unwrap_or(1),
        cp: args.cp.get(side).copied().unwrap_or(1),
        ep: args.ep.get(side).copied().unwrap_or(1),
        order: args
            .order
            .get(side)
            .cloned()
            .unwrap_or_else(|| msprobe_graph::merge::DEFAULT_ORDER.to_owned()),
    };
    let classes = match &args.class_table {
        Some(path) => Classes::read(path)?,
        None => Classes::default(),
    };
    let golden = (sides == 2).then(|| strategy(1));
    Ok(Some(Strategies { target: strategy(0), golden, classes }))
}
