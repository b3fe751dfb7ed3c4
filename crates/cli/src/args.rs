//! Every flag, defined once: parsing, help and documentation come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use crate::code_mapping::CodeMappingArgs;
pub(crate) use crate::compare::{CompareArgs, MergeResultArgs};
pub(crate) use crate::grad::GradArgs;
pub(crate) use crate::graph::{GraphArgs, GraphVisualizeArgs};
pub(crate) use crate::overflow::{NanAnalyzeArgs, OverflowCheckArgs};
pub(crate) use crate::precheck::{ApiPrecisionCompareArgs, OpGenerateArgs, PythonArgs};
pub(crate) use crate::rl::RlArgs;
pub(crate) use crate::view::ViewArgs;

/// Numerical-accuracy debugger for deep-learning training.
#[derive(Debug, Parser)]
#[command(
    name = "msprobe",
    version,
    arg_required_else_help = true,
    after_help = "Environment:\n  \
        MSPROBE_LOG_LEVEL  0 debug, 1 info (default), 2 warning, 3 error, 4 silent; logs go to stderr\n  \
        NO_COLOR           no colours\n  \
        RAYON_NUM_THREADS  threads for large tensors (default: all cores; results never depend on it)"
)]
pub(crate) struct Cli {
    /// Framework of the dumps, as the first two arguments; the newer form of `compare` finds it out itself.
    #[arg(short, long, value_enum)]
    pub(crate) framework: Option<FrameworkName>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct OutputDir {
    /// Directory for results; made if it is not there.
    #[arg(
        id = "output_path",
        short = 'o',
        long = "output_path",
        visible_alias = "output-path",
        value_name = "DIR",
        default_value = "./output"
    )]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Box<CompareArgs>),
    #[command(name = "merge_result", visible_alias = "merge-result")]
    MergeResult(MergeResultArgs),
    Grad(GradArgs),
    Graph(GraphArgs),
    #[command(name = "graph_visualize", visible_alias = "graph-visualize")]
    GraphVisualize(Box<GraphVisualizeArgs>),
    Rl(RlArgs),
    #[command(name = "nan_analyze", visible_alias = "nan-analyze")]
    NanAnalyze(NanAnalyzeArgs),
    #[command(name = "overflow_check", visible_alias = "overflow-check")]
    OverflowCheck(OverflowCheckArgs),
    #[command(name = "code_mapping", visible_alias = "code-mapping")]
    CodeMapping(CodeMappingArgs),
    #[command(name = "api_precision_compare", visible_alias = "api-precision-compare")]
    ApiPrecisionCompare(ApiPrecisionCompareArgs),
    #[command(name = "op_generate", visible_alias = "op-generate")]
    OpGenerate(OpGenerateArgs),
    /// Check the operators of a dump one by one on this machine's device (needs Python and the framework).
    #[command(name = "run_ut", visible_alias = "acc_check")]
    RunUt(PythonArgs),
    /// The same with several processes (needs Python and the framework).
    #[command(name = "multi_run_ut", visible_alias = "multi_acc_check")]
    MultiRunUt(PythonArgs),
    /// Tell overflows that a device makes from those that the CPU makes too (needs Python and PyTorch).
    #[command(name = "run_overflow_check")]
    RunOverflowCheck(PythonArgs),
    Inspect(InspectArgs),
    Diff(DiffArgs),
    View(ViewArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FrameworkName {
    Pytorch,
    Mindspore,
    Msadapter,
}

/// Show what is in a tensor file: name, dtype, shape, statistics and checksum of every tensor.
///
/// Reads .npy, .pt/.pth/.bin (zip and legacy format, nothing in them is executed) and .safetensors,
/// recognised by content. Statistics are exact: sums are kept in 64 bits whatever the dtype. The checksum is
/// the CRC-32 that dumps keep under "md5".
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  every tensor was read\n  \
    2  wrong usage, or a file or tensor could not be read (the others are still shown)\n\n\
    Examples:\n  \
    msprobe inspect model.pt\n  \
    msprobe inspect model.safetensors --tensor lm_head.weight\n  \
    msprobe inspect ckpt.pth --format csv > tensors.csv")]
pub(crate) struct InspectArgs {
    /// The tensor file.
    pub(crate) file: PathBuf,

    /// Only this tensor (can be given several times).
    #[arg(long = "tensor", value_name = "NAME")]
    pub(crate) tensors: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Compare two tensor files: all error metrics of every tensor they share, worst first.
///
/// A and B may be of different formats and dtypes; B is the side to be measured against. Tensors are paired
/// by name; two files with one tensor each are paired whatever the names.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  identical: the same tensors with the same dtypes, shapes and values (NaN equals NaN)\n  \
    1  something differs, is in one file only or could not be read\n  \
    2  wrong usage, or nothing could be read\n\n\
    Columns:\n  \
    rel dist   Euclidean distance divided by the norm of B; the table is sorted by it\n  \
    max rel    largest |a-b|/|b|\n  \
    <1/1000    share of elements with a relative error below 1/1000 (likewise 5/1000, 1/100)\n  \
    equal      share of elements that are equal\n  \
    first at   index of the first element that differs\n\n\
    Examples:\n  \
    msprobe diff gpu.pt npu.pt\n  \
    msprobe diff a.safetensors b.pt --tensor lm_head.weight\n  \
    msprobe diff a.npy b.npy --format json | jq .status")]
pub(crate) struct DiffArgs {
    /// The file in question.
    pub(crate) a: PathBuf,

    /// The file to measure against.
    pub(crate) b: PathBuf,

    /// Only this tensor (can be given several times).
    #[arg(long = "tensor", value_name = "NAME")]
    pub(crate) tensors: Vec<String>,

    /// Show at most this many rows, the worst ones; the verdict still covers all.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) top: Option<usize>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Text for people; csv and json keep every digit (json: NaN and infinities as strings).
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    Csv,
}

/// Formats of the tables a comparison leaves in its output directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Xlsx,
    Csv,
    Json,
    Html,
}
