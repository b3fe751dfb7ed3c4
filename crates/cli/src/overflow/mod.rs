//! `msprobe nan_analyze` and `msprobe overflow_check`: where NaN and Inf began.

mod args;

use std::io::{self, Write};

use anyhow::Result;
use msprobe_analyze::outcome::Outcome;
use msprobe_analyze::range::RangeOptions;
use msprobe_analyze::rules::{Rule, Rules};
use msprobe_analyze::run::{Options, analyze};
use msprobe_report::answer::{Answer, Habit};
use msprobe_report::console::Console;

use self::args::{AnalysisArgs, ReportFormat, RuleChoice};
pub(crate) use self::args::{NanAnalyzeArgs, OverflowCheckArgs};
use crate::args::FrameworkName;
use crate::console::Terminal;
use crate::output::print_answer;
use crate::{Exit, WithHint};

pub(crate) fn nan_analyze(framework: Option<FrameworkName>, args: &NanAnalyzeArgs) -> Result<Exit> {
    let Some(outcome) = run(framework, &args.analysis)? else { return Ok(Exit::Ok) };
    let status = outcome.status();
    Ok(if args.fail_on_anomaly {
        status.exit()
    } else {
        status.exit_by_habit(Habit::NanAnalyze, outcome.has_all_ranks())
    })
}

pub(crate) fn overflow_check(framework: Option<FrameworkName>, args: &OverflowCheckArgs) -> Result<Exit> {
    let outcome = run(framework, &args.analysis)?;
    Ok(outcome.map_or(Exit::Ok, |outcome| outcome.status().exit()))
}

/// What was found, and told; nothing if something else was asked for.
fn run(framework: Option<FrameworkName>, args: &AnalysisArgs) -> Result<Option<Outcome>> {
    if args.list_rules {
        print_rules()?;
        return Ok(None);
    }
    if matches!(framework, Some(FrameworkName::Mindspore)) {
        return Err(WithHint {
            message: "this analysis reads dumps of PyTorch only".to_owned(),
            hint: "leave out -f mindspore if the dump is one of PyTorch or MSAdapter".to_owned(),
        }
        .into());
    }
    let options = Options {
        output: Some(args.output.dir.clone()),
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
        ReportFormat::Text => {
            let answer = Answer { output: options.output, ..outcome.answer() };
            print_answer(&answer, &outcome.sections())?;
        }
        ReportFormat::Json => io::stdout().lock().write_all(outcome.json().as_bytes())?,
    }
    Ok(Some(outcome))
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
        writeln!(out, "{:<15} {}", rule.as_str(), rule.description())?;
    }
    Ok(())
}
