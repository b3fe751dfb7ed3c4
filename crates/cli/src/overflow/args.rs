//! Flags of `msprobe nan_analyze` and `msprobe overflow_check`: the same but for the exit code, since scripts written for the
//! reference expect 0 from the former.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use msprobe_analyze::range::AsDtype;
use msprobe_analyze::rules::Rule;

use crate::args::OutputDir;

macro_rules! files_and_examples {
    ($exit_codes:literal, $command:literal) => {
        concat!(
            "Exit codes:\n",
            $exit_codes,
            "  2  wrong usage, or no rank could be read\n\n\
             Files (TIME is in nanoseconds; none are written when there is nothing to report):\n  \
             anomaly_analyze_TIME.json  what the reference tool names, in its format\n  \
             overflow_report_TIME.json  the report for scripts\n  \
             overflow_report_TIME.html  the report with the timeline of all ranks\n\n\
             Examples:\n  ",
            $command,
            " -i dump/step0 -o out\n  ",
            $command,
            " -i dump -o out          the first step of a dump that has something\n  ",
            $command,
            " -i dump/step0 --as-dtype float16\n  ",
            $command,
            " -i dump/step0 --format json | jq .culprit"
        )
    };
}

/// Find the operation that made the first NaN or Inf, across all ranks of a step.
///
/// Reads the dumps of all ranks (statistics or tensor, level L0, L1 or mix), links their communication, and names the first
/// operation whose inputs and parameters are finite and whose output is not: with its call stack, the statistics of its
/// inputs, and the way it spread from there to every other rank. Values that are not finite and mean no harm (masks,
/// memory that was only allocated) are left out by rules, which --list-rules shows. Ranks that are missing and dumps that
/// end early are reported, the others are analysed all the same. Nothing is written to the dump.
#[derive(Debug, Args)]
#[command(after_help = files_and_examples!(
    "  0  done, whatever was found; with --fail-on-anomaly: no NaN and no Inf\n  \
       1  a rank is missing or could not be read (the others are still analysed); with --fail-on-anomaly also: something \
          is not finite, or was not measured\n",
    "msprobe -f pytorch nan_analyze"
))]
pub(crate) struct NanAnalyzeArgs {
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,

    /// Exit code 1 when something is not finite, as `overflow_check` has it.
    #[arg(long = "fail-on-anomaly")]
    pub(crate) fail_on_anomaly: bool,
}

/// Find the operation that made the first NaN or Inf, across all ranks of a step (newer form of nan_analyze).
///
/// Reads the dumps of all ranks (statistics or tensor, level L0, L1 or mix), links their communication, and names the first
/// operation whose inputs and parameters are finite and whose output is not: with its call stack, the statistics of its
/// inputs, and the way it spread from there to every other rank. Values that are not finite and mean no harm (masks,
/// memory that was only allocated) are left out by rules, which --list-rules shows. Ranks that are missing and dumps that
/// end early are reported, the others are analysed all the same. Nothing is written to the dump.
#[derive(Debug, Args)]
#[command(after_help = files_and_examples!(
    "  0  everything was measured: no NaN and no Inf (early warnings may be there)\n  \
       1  something is not finite, was not measured or could not be read, see the report\n",
    "msprobe overflow_check"
))]
pub(crate) struct OverflowCheckArgs {
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AnalysisArgs {
    /// Directory of a step (with rank0, rank1, …), of one rank, or of a dump with several steps.
    #[arg(
        short,
        long = "input_path",
        visible_alias = "input-path",
        value_name = "DIR",
        required_unless_present = "list_rules"
    )]
    pub(crate) input_path: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: OutputDir,

    /// Text for people, or json for scripts (numbers that are not finite as strings).
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,

    /// Would values overflow or vanish in this dtype: float16, bfloat16, float8_e4m3fn, float8_e5m2, float32.
    #[arg(long = "as-dtype", value_name = "DTYPE", value_parser = as_dtype)]
    pub(crate) as_dtype: Option<AsDtype>,

    /// Warn of finite values beyond this share of the largest number of their dtype.
    #[arg(long = "near-max", value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    pub(crate) near_max: f64,

    /// Count what this rule takes for harmless (can be given several times; `all` for all rules).
    #[arg(long = "no-rule", value_name = "NAME", value_parser = rules)]
    pub(crate) no_rule: Vec<RuleChoice>,

    /// Show the rules by which values that are not finite are taken for harmless, and nothing else.
    #[arg(long = "list-rules")]
    pub(crate) list_rules: bool,

    /// No overflow_report_TIME.html.
    #[arg(long = "no-html")]
    pub(crate) no_html: bool,
}

/// One rule, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleChoice {
    All,
    One(Rule),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}

fn as_dtype(text: &str) -> Result<AsDtype, String> {
    text.parse()
}

fn rules(text: &str) -> Result<RuleChoice, String> {
    if text == "all" {
        return Ok(RuleChoice::All);
    }
    Rule::named(text).map(RuleChoice::One).ok_or_else(|| {
        let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
        format!("give one of {}, or all", names.join(", "))
    })
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("give a number above 0, up to 1".to_owned()),
    }
}
