//! Flags of `msprobe rl`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::FormatName;

/// Reinforcement learning: key data of two runs.
#[derive(Debug, Args)]
pub(crate) struct RlArgs {
    #[command(subcommand)]
    pub(crate) command: RlCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RlCommand {
    Compare(RlCompareArgs),
}

/// Compare the key data of two runs: which key parted first, at which step, rank and micro step.
///
/// DIR1 and DIR2 are the dump paths of two runs that saved key data (prompts, responses, log probabilities, losses, with
/// `SingleSave` or `RLProbe`). A table per key is written, and a summary that says where to look: earlier steps first,
/// within a step in the order in which data flows, prompts, responses, values, old_log_prob and ref_log_prob, advantages,
/// log_prob, kl_loss, loss, then any other key. NaN against NaN is no difference. Nothing is written to DIR1 and DIR2.
///
/// Runs that repeat each other bit by bit, be it in one array a model made, are compared exactly. Where all arrays of
/// models differ, as between two kinds of devices, rounding is tolerated, and more of it after each update; --noise
/// measures it, --tolerance sets it.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  identical, or within tolerance\n  \
    1  differences found, or not everything could be compared: one run has more, a file cannot be read\n  \
    2  wrong usage, or nothing could be compared\n\n\
    Files:\n  \
    KEY.xlsx       a row per step, rank, micro step and element of a list\n  \
    summary.xlsx   a row per key, tokens at which samples part, what was left out\n  \
    summary.json   the same for scripts, with the verdict; always written\n\n\
    Examples:\n  \
    msprobe rl compare run_a run_b -o out\n  \
    msprobe rl compare run_a run_b -o out --format html,csv\n  \
    msprobe rl compare npu gpu -o out --noise gpu_again --noise gpu_other_batch\n  \
    msprobe rl compare run_a run_b -o out --tolerance 0")]
pub(crate) struct RlCompareArgs {
    /// Dump path of the first run.
    #[arg(value_name = "DIR1")]
    pub(crate) target: PathBuf,

    /// Dump path of the second run.
    #[arg(value_name = "DIR2")]
    pub(crate) golden: PathBuf,

    /// Directory for results; made if it is not there.
    #[arg(
        short,
        long = "output_path",
        visible_alias = "output-path",
        value_name = "DIR",
        default_value = "./msprobe_compare_output"
    )]
    pub(crate) output_path: PathBuf,

    /// A further run that should agree with DIR2; how far it is from it is noise. May be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) noise: Vec<PathBuf>,

    /// What may differ, as a share of the norm of an array: one number, or float32=1e-4,bfloat16=0.02; 0 for runs that
    /// should be the same to the last bit.
    #[arg(long, value_name = "LIST")]
    pub(crate) tolerance: Option<String>,

    /// Formats of the tables: xlsx, csv, json, html, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", default_value = "xlsx")]
    pub(crate) format: Vec<FormatName>,
}
