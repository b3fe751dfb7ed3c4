//! Flags of `msprobe grad`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use msprobe_gradients::Pictures;

use crate::args::OutputDir;

/// Gradient probe: directions of gradients of two runs.
#[derive(Debug, Args)]
pub(crate) struct GradArgs {
    #[command(subcommand)]
    pub(crate) command: GradCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GradCommand {
    Compare(GradCompareArgs),
}

/// Compare the directions of gradients of two runs: at which step they parted, and which parameter was first.
///
/// DIR1 and DIR2 are the dump paths of two runs that were collected with task grad_probe at level L1 or L2 (directories
/// with rank0, rank1, …), or one rank directory of each (with step0, step1, …). The similarity of a parameter at a step is
/// the share of its elements whose gradient has the same sign in both runs; of runs that keep sketches of gradients
/// (grad_probe.sketch) it is 1 - angle / 180°, estimated. Suspicious is a parameter that begins below --first, falls by
/// more than --fall from one step to the next, sinks by more than --total-fall since its first steps, or comes below
/// --floor. Gradients are computed from the last layer back, so of the parameters that are suspicious at the
/// first such step, the one named is the last in the order of the model. A file that is missing or cannot be read costs its
/// own cell and makes the answer incomplete. Nothing is written to DIR1 and DIR2.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  everything was compared and nothing is suspicious\n  \
    1  suspicious, or not everything could be compared: see the verdict\n  \
    2  wrong usage, or nothing could be compared\n\n\
    Files (similarities.csv and pictures of dump paths are in OUT/rank0, OUT/rank1, …):\n  \
    similarities.csv        a row per parameter, a column per step, all parameters together in the last row\n  \
    cosines.csv             of sketches: the same with cosines; step_cosines.csv those from one step to the next\n  \
    similarities_picture/   a curve per parameter, and of all together\n  \
    similarities.html       all curves on a page, worst first\n  \
    verdict.json            the verdict for scripts: status identical, within_tolerance, incomplete, diverged\n\n\
    Examples:\n  \
    msprobe grad compare run_npu run_gpu -o out\n  \
    msprobe grad compare run_npu/rank0 run_gpu/rank0 -o out --pictures worst:20\n  \
    msprobe grad compare run_npu run_gpu -o out --noise run_gpu_again\n  \
    msprobe grad compare run_npu run_gpu -o out --first 0.9 --fall 0.1 --pictures none")]
pub(crate) struct GradCompareArgs {
    /// Dump path, or rank directory, of the first run; its tables give the order of parameters.
    #[arg(value_name = "DIR1")]
    pub(crate) target: PathBuf,

    /// Dump path, or rank directory, of the second run.
    #[arg(value_name = "DIR2")]
    pub(crate) golden: PathBuf,

    #[command(flatten)]
    pub(crate) output: OutputDir,

    /// Which parameters get a picture: all, worst:N (the N worst), none.
    #[arg(long, value_name = "WHICH", default_value = "all", value_parser = pictures)]
    pub(crate) pictures: Pictures,

    /// Suspicious below this at the first step.
    #[arg(long, value_name = "SHARE", default_value_t = 0.97, value_parser = share)]
    pub(crate) first: f64,

    /// Suspicious when it falls by more than this from one step to the next.
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = share)]
    pub(crate) fall: f64,

    /// Suspicious when it sinks by more than this since its first steps, however slowly (default: 0.1, or --fall if that is
    /// more).
    #[arg(long = "total-fall", value_name = "SHARE", value_parser = share)]
    pub(crate) total_fall: Option<f64>,

    /// Suspicious when it comes below this; signs that have nothing to do with each other agree in 0.5 (default: 0.8, or
    /// --first if that is less).
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) floor: Option<f64>,

    /// A further run that should agree with DIR2; how far it is from it is noise, and nothing is suspicious that is within
    /// three times it. May be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) noise: Vec<PathBuf>,

    /// No similarities.html.
    #[arg(long = "no-html")]
    pub(crate) no_html: bool,
}

fn pictures(text: &str) -> Result<Pictures, String> {
    text.parse()
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("give a number from 0 to 1".to_owned()),
    }
}
