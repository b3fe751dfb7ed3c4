//! Flags of the comparison commands.

use std::path::PathBuf;

use clap::Args;

use crate::args::FormatName;

/// Compare two dumps: the tables, and which operation made the difference.
///
/// Two forms. The newer one takes two paths, each a dump.json, a rank directory, a step directory or a whole dump:
/// `msprobe compare TARGET GOLDEN`, or `-tp TARGET -gp GOLDEN`. The older one takes a compare.json: `msprobe -f pytorch
/// compare -i compare.json -o out`. Both end with a verdict, also written to verdict.json beside the tables.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  identical, or all within tolerance (older form: also when differences were found, see --fail-on-difference)\n  \
    1  differences found, or incomplete: something could not be compared (see --allow-incomplete)\n  \
    2  wrong usage, or nothing could be compared\n\n\
    Tolerances (share of the size of the values; --tolerance changes them):\n  \
    float64 1e-9, float32 3e-5, float16 2e-3, bfloat16 8e-3, float8 6.25e-2, integer 0\n\n\
    compare.json (older form):\n  \
    {\"npu_path\": \"npu/dump.json\", \"bench_path\": \"bench/dump.json\", \"stack_path\": \"npu/stack.json\",\n   \
    \"is_print_compare_log\": true}\n\n\
    Examples:\n  \
    msprobe compare run_npu run_gpu -o out --format html,xlsx\n  \
    msprobe compare -tp a/dump.json -gp b/dump.json --tolerance float32=1e-3\n  \
    msprobe -f pytorch compare -i compare.json -o out -s")]
pub(crate) struct CompareArgs {
    /// The dump under test: dump.json or a directory (newer form).
    #[arg(value_name = "TARGET", requires = "golden", conflicts_with_all = ["input_path", "target_path", "golden_path"])]
    pub(crate) target: Option<PathBuf>,

    /// The dump to measure against.
    #[arg(value_name = "GOLDEN")]
    pub(crate) golden: Option<PathBuf>,

    /// compare.json with the paths of both sides (older form).
    #[arg(
        short,
        long = "input_path",
        visible_alias = "input-path",
        value_name = "FILE",
        help_heading = "Input"
    )]
    pub(crate) input_path: Option<PathBuf>,

    /// -tp: dump under test: dump.json or a directory (newer form).
    #[arg(long = "target_path", visible_alias = "target-path", value_name = "PATH", help_heading = "Input")]
    pub(crate) target_path: Option<PathBuf>,

    /// -gp: dump to measure against.
    #[arg(long = "golden_path", visible_alias = "golden-path", value_name = "PATH", help_heading = "Input")]
    pub(crate) golden_path: Option<PathBuf>,

    /// Directory for results; made if it is not there.
    #[arg(short, long = "output_path", visible_alias = "output-path", value_name = "DIR", num_args = 0..=1,
          default_value = "./output", default_missing_value = "./output")]
    pub(crate) output_path: PathBuf,

    /// Formats of the tables: xlsx, csv, json, html, separated by commas [older form: xlsx, newer: csv].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub(crate) format: Vec<FormatName>,

    /// The newer form's table as xlsx instead of csv.
    #[arg(long)]
    pub(crate) xlsx: bool,

    /// What the verdict tolerates: float32=1e-3,bfloat16=0.02 or one number for all floats.
    #[arg(long, value_name = "LIST")]
    pub(crate) tolerance: Option<String>,

    /// A further run of the golden side, which should agree with it: with other threads, other kernels, or last bits
    /// changed (msprobe.pytorch.perturbed). What it shows is tolerated, three times over. May be given several times.
    #[arg(long, value_name = "PATH")]
    pub(crate) noise: Vec<PathBuf>,

    /// What may be left out of the comparison without making it incomplete: unpaired, unmeasured, dtype, files, ranks,
    /// steps, or all, separated by commas. The answer still counts it.
    #[arg(long = "allow-incomplete", value_name = "LIST")]
    pub(crate) allow_incomplete: Option<String>,

    /// Exit with 1 when differences are found, in the older form too.
    #[arg(long = "fail-on-difference")]
    pub(crate) fail_on_difference: bool,

    /// Add the call stacks of the stack.json named by stack_path (older form; without stack_path they are added
    /// whenever stack.json lies beside the dump).
    #[arg(short, long = "stack_mode", visible_alias = "stack-mode")]
    pub(crate) stack_mode: bool,

    /// No advisor file (older form).
    #[arg(short, long = "compare_only", visible_alias = "compare-only")]
    pub(crate) compare_only: bool,

    /// -fm: match names without their call numbers.
    #[arg(short, long = "fuzzy_match", visible_alias = "fuzzy-match", help_heading = "Matching")]
    pub(crate) fuzzy_match: bool,

    /// -dm: yaml of row names: `npu row: bench row`.
    #[arg(
        long = "data_mapping",
        visible_alias = "data-mapping",
        value_name = "FILE",
        help_heading = "Matching"
    )]
    pub(crate) data_mapping: Option<PathBuf>,

    /// -am: map MindSpore APIs to PyTorch ones, by built-in rules and those of a yaml.
    #[arg(long = "api_mapping", visible_alias = "api-mapping", value_name = "FILE", num_args = 0..=1,
          help_heading = "Matching")]
    // Not given, given, given with a file.
    #[allow(clippy::option_option)]
    pub(crate) api_mapping: Option<Option<PathBuf>>,

    /// -cm: map cells to modules, by built-in rules and those of a yaml.
    #[arg(long = "cell_mapping", visible_alias = "cell-mapping", value_name = "FILE", num_args = 0..=1,
          help_heading = "Matching")]
    #[allow(clippy::option_option)]
    pub(crate) cell_mapping: Option<Option<PathBuf>>,

    /// -lm: map layers by their place in the model, by built-in rules and those of a yaml.
    #[arg(long = "layer_mapping", visible_alias = "layer-mapping", value_name = "FILE", num_args = 0..=1,
          help_heading = "Matching")]
    #[allow(clippy::option_option)]
    pub(crate) layer_mapping: Option<Option<PathBuf>>,

    /// -da: first difference across ranks, as json (newer form, directories).
    #[arg(long = "diff_analyze", visible_alias = "diff-analyze")]
    pub(crate) diff_analyze: bool,

    /// -tensor_log: log each row of real data.
    #[arg(long = "is_print_compare_log", visible_alias = "is-print-compare-log")]
    pub(crate) log_rows: bool,

    /// What is compared; the other modes of the newest tool need Ascend products.
    #[arg(short, long, value_name = "MODE", default_value = "auto")]
    pub(crate) mode: String,

    /// Ranks of a static-graph dump (newer form): 0,1.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) rank: Option<Vec<i64>>,

    /// Steps of a static-graph dump (newer form): 0,1.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) step: Option<Vec<i64>>,
}

/// Put chosen figures of the result tables of several ranks next to each other.
#[derive(Debug, Args)]
#[command(after_help = "Config file:\n  \
    api:            APIs to show, by a part of their name\n    \
    - Torch.matmul.0.forward\n  \
    compare_index:  columns to show; all if missing\n    \
    - Max diff\n\n\
    Example:\n  \
    msprobe -f pytorch merge_result -i out -o merged -config config.yaml")]
pub(crate) struct MergeResultArgs {
    /// Directory with compare_result_rank*.xlsx.
    #[arg(short, long = "input_dir", visible_alias = "input-dir", value_name = "DIR")]
    pub(crate) input_dir: PathBuf,

    /// Directory for the merged workbook.
    #[arg(short, long = "output_dir", visible_alias = "output-dir", value_name = "DIR")]
    pub(crate) output_dir: PathBuf,

    /// -config: which APIs and columns.
    #[arg(long = "config-path", value_name = "FILE")]
    pub(crate) config_path: PathBuf,
}
