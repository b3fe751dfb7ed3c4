//! Flags of `msprobe graph` and `msprobe graph_visualize`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Show the hierarchy of a dump, or compare two, as .vis files for the viewer of the older form.
///
/// Reads the dump that compare.json names: the directory of one rank, of a step with its ranks, or of several steps. Each rank
/// needs dump.json, construct.json and stack.json (level L0 or mix). With one path the hierarchy is built, with two they are
/// compared node by node; ranks of a step are linked by their communication. A rank that cannot be read costs itself.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  done (also when differences were found, see --fail-on-difference)\n  \
    1  done, but a rank or a step was left out; with --fail-on-difference also: something differs\n  \
    2  wrong usage, or nothing could be read\n\n\
    compare.json:\n  \
    {\"npu_path\": \"npu/step0\", \"bench_path\": \"bench/step0\", \"is_print_compare_log\": true}\n  \
    Without bench_path the hierarchy is only built. With \"parallel_merge\": {\"npu\": {\"rank_size\": 8, \"tp\": 2,\n  \
    \"pp\": 1}, \"bench\": {…}} ranks are merged, into a .vis.db.\n\n\
    Examples:\n  \
    msprobe -f pytorch graph -i compare.json -o out\n  \
    msprobe -f pytorch graph -i compare.json -o out -f -oc\n  \
    msprobe -f mindspore graph -i compare.json -o out -lm mapping.yaml")]
pub(crate) struct GraphArgs {
    /// compare.json with the paths.
    #[arg(short, long = "input_path", visible_alias = "input-path", value_name = "FILE")]
    pub(crate) input_path: PathBuf,

    /// Directory for results; made if it is not there.
    #[arg(short, long = "output_path", visible_alias = "output-path", value_name = "DIR")]
    pub(crate) output_path: PathBuf,

    /// -lm: match nodes by a mapping of layers, or without a file by their names alone.
    #[arg(long = "layer_mapping", visible_alias = "layer-mapping", value_name = "FILE", num_args = 0..=1)]
    #[allow(clippy::option_option)] // Not given, alone, or with a file.
    pub(crate) layer_mapping: Option<Option<PathBuf>>,

    /// -oc: mark nodes with NaN, Inf or a norm that grows a hundredfold.
    #[arg(long = "overflow_check", visible_alias = "overflow-check")]
    pub(crate) overflow_check: bool,

    /// Match functions by their order in their module, whatever their call numbers.
    #[arg(short, long = "fuzzy_match", visible_alias = "fuzzy-match")]
    pub(crate) fuzzy_match: bool,

    /// -cs: show all lines of call stacks, not only the one that tells most.
    #[arg(long = "complete_stack", visible_alias = "complete-stack")]
    pub(crate) complete_stack: bool,

    /// Exit code 1 when something differs.
    #[arg(long = "fail-on-difference")]
    pub(crate) fail_on_difference: bool,
}

/// Show the hierarchy of a dump, or compare two, as one .vis.db for the viewer of the newer form.
///
/// All steps and ranks go into one SQLite file, with the verdict of each node, the links of communication between ranks, and
/// the answer: which operation made the difference. Ranks that one side lacks are left out and named. With --rank_size, --tp
/// and --pp the ranks of one model are merged into one graph for each replica.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  built, identical, or all within tolerance\n  \
    1  differences found, or a rank was left out\n  \
    2  wrong usage, or nothing could be read\n\n\
    Examples:\n  \
    msprobe graph_visualize -tp npu/step0 -o out\n  \
    msprobe graph_visualize -tp npu -gp gpu -o out -fm\n  \
    msprobe graph_visualize -tp npu/step0 -gp gpu/step0 -o out --rank_size 8 1 --tp 8 1 --pp 1 1")]
pub(crate) struct GraphVisualizeArgs {
    /// -tp: the dump in question: the directory of a rank, of a step, or of several steps.
    #[arg(long = "target_path", visible_alias = "target-path", value_name = "DIR")]
    pub(crate) target_path: PathBuf,

    /// -gp: the dump to compare it with.
    #[arg(long = "golden_path", visible_alias = "golden-path", value_name = "DIR")]
    pub(crate) golden_path: Option<PathBuf>,

    /// Directory for results; made if it is not there.
    #[arg(short, long = "output_path", visible_alias = "output-path", value_name = "DIR")]
    pub(crate) output_path: PathBuf,

    /// -lm: match nodes by a mapping of layers, or without a file by their names alone.
    #[arg(long = "layer_mapping", visible_alias = "layer-mapping", value_name = "FILE", num_args = 0..=1)]
    #[allow(clippy::option_option)] // Not given, alone, or with a file.
    pub(crate) layer_mapping: Option<Option<PathBuf>>,

    /// -oc: mark nodes with NaN, Inf or a norm that grows a hundredfold.
    #[arg(long = "overflow_check", visible_alias = "overflow-check")]
    pub(crate) overflow_check: bool,

    /// -fm: match functions by their order in their module, whatever their call numbers.
    #[arg(long = "fuzzy_match", visible_alias = "fuzzy-match")]
    pub(crate) fuzzy_match: bool,

    /// -tensor_log: accepted, and without effect: every metric is in the file.
    #[arg(long = "is_print_compare_log", visible_alias = "is-print-compare-log")]
    pub(crate) is_print_compare_log: bool,

    /// -progress_log: print a line `PROGRESS: {…}` whenever a rank is done.
    #[arg(long = "is_print_progress_log", visible_alias = "is-print-progress-log")]
    pub(crate) is_print_progress_log: bool,

    /// How many ranks there are: one number to build, two to compare (likewise below).
    #[arg(long = "rank_size", visible_alias = "rank-size", value_name = "N", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) rank_size: Vec<u32>,

    /// Ranks that share each tensor.
    #[arg(long, value_name = "N", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) tp: Vec<u32>,

    /// Stages of layers.
    #[arg(long, value_name = "N", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) pp: Vec<u32>,

    /// Chunks of layers on each stage [default: 1].
    #[arg(long, value_name = "N", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) vpp: Vec<u32>,

    /// Ranks that share each sequence [default: 1].
    #[arg(long, value_name = "N", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) cp: Vec<u32>,

    /// Ranks that share the experts [default: 1].
    #[arg(long, value_name = "N", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) ep: Vec<u32>,

    /// The order in which ranks are numbered, the fastest first [default: tp-cp-ep-dp-pp].
    #[arg(long, value_name = "ORDER", num_args = 1.., help_heading = "Merging ranks")]
    pub(crate) order: Vec<String>,

    /// Further classes of modules that share tensors: a YAML file with lists under column, row, vocabulary, gated,
    /// layers, experts.
    #[arg(long = "class-table", value_name = "FILE", help_heading = "Merging ranks")]
    pub(crate) class_table: Option<PathBuf>,

    /// One .vis.db, or merged ranks as a dump (only to build).
    #[arg(long = "file_type", visible_alias = "file-type", value_enum, default_value_t = FileType::Db)]
    pub(crate) file_type: FileType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileType {
    Db,
    Json,
}
