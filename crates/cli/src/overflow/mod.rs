//! `msprobe nan_analyze` and `msprobe overflow_check`: where NaN and Inf began.

mod args;

use std::io::{self, Write};

use anyhow::Result;
use msprobe_analyze::outcome::{Outcome, Status as Answer};
use msprobe_analyze::range::RangeOptions;
use msprobe_analyze::rules::{Rule, Rules};
use msprobe_analyze::run::{Options, analyze};
use msprobe_report::console::Console;
use msprobe_report::{Visible, write_visible_lines};

use self::args::{AnalysisArgs, ReportFormat, RuleChoice};
pub(crate) use self::args::{NanAnalyzeArgs, OverflowCheckArgs};
use crate::args::FrameworkName;
use crate::console::Terminal;
use crate::{Status, WithHint};

pub(crate) fn nan_analyze(framework: Option<FrameworkName>, args: &NanAnalyzeArgs) -> Result<Status> {
    let (answer, has_all_ranks) = run(framework, &args.analysis)?;
    // Scripts of the reference take anything but 0 for a failure: what was found is none, what was not looked at is.
    let is_told = answer == Answer::Anomaly && has_all_ranks && !args.fail_on_anomaly;
    Ok(if is_told { Status::Ok } else { exit_status(answer) })
}

pub(crate) fn overflow_check(framework: Option<FrameworkName>, args: &OverflowCheckArgs) -> Result<Status> {
    Ok(exit_status(run(framework, &args.analysis)?.0))
}

fn exit_status(answer: Answer) -> Status {
    match answer {
        Answer::Anomaly | Answer::Incomplete => Status::Differs,
        Answer::Warning | Answer::Clean => Status::Ok,
    }
}

/// The answer, and whether there is one for every rank.
fn run(framework: Option<FrameworkName>, args: &AnalysisArgs) -> Result<(Answer, bool)> {
    if args.list_rules {
        print_rules()?;
        return Ok((Answer::Clean, true));
    }
    if matches!(framework, Some(FrameworkName::Mindspore)) {
        return Err(WithHint {
            message: "this analysis reads dumps of PyTorch only".to_owned(),
            hint: "leave out -f mindspore if the dump is one of PyTorch or MSAdapter".to_owned(),
        }
        .into());
    }
    let options = Options {
        output: Some(args.output_path.clone()),
        rules: chosen_rules(&args.no_rule),
        range: RangeOptions { near_max_share: args.near_max, as_dtype: args.as_dtype },
        no_html: args.no_html,
    };
    let console = Terminal::default();
    let input = args.input_path.clone().unwrap_or_default();
    let answer = analyze(&input, &options, &console);
    console.end();
    let outcome = answer.map_err(|error| WithHint { message: error.message, hint: error.hint })?;
    match args.format {
        ReportFormat::Text => print(&outcome, &options)?,
        ReportFormat::Json => io::stdout().lock().write_all(outcome.json().as_bytes())?,
    }
    Ok((outcome.status(), outcome.has_all_ranks()))
}

fn chosen_rules(switched_off: &[RuleChoice]) -> Rules {
    let is_off = |rule: &Rule| {
        switched_off.contains(&RuleChoice::All) || switched_off.contains(&RuleChoice::One(*rule))
    };
    Rules::without(&Rule::ALL.into_iter().filter(is_off).collect::<Vec<Rule>>())
}

fn print_rules() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for rule in Rule::ALL {
        writeln!(out, "{:<15} {}", rule.name(), rule.description())?;
    }
    Ok(())
}

/// The answer, and where the files are.
fn print(outcome: &Outcome, options: &Options) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_visible_lines(outcome.lines().iter().map(String::as_str), &mut out)?;
    if let Some(output) = options.output.as_ref().filter(|_| !outcome.files.is_empty()) {
        writeln!(out, "\nResults are in {}:", Visible(&output.to_string_lossy()))?;
        for file in &outcome.files {
            writeln!(out, "  {}", Visible(&file.strip_prefix(output).unwrap_or(file).to_string_lossy()))?;
        }
    }
    out.flush()
}
