//! Flags of the pre-check.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Compare two checks of operators: the tested device against a reference device, by the standard of each operator.
///
/// Both files are the accuracy_checking_details_TIME.csv of run_ut on the same dump. Whatever the arguments are called, -npu is
/// the device in question and -gpu the one it is held against.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  done, whatever was found; with --fail-on-error: every operator passed\n  \
    1  with --fail-on-error: an operator failed or could not be compared\n  \
    2  wrong usage, a file cannot be read; with --fail-on-error also: nothing could be compared\n\n\
    Files:\n  \
    OUT/api_precision_compare_result_TIME.csv   a row per operator\n  \
    OUT/api_precision_compare_details_TIME.csv  a row per output\n\n\
    Examples:\n  \
    msprobe -f pytorch api_precision_compare -npu npu.csv -gpu gpu.csv -o out\n  \
    msprobe api_precision_compare -npu npu.csv -gpu gpu.csv --strict --fail-on-error")]
pub(crate) struct ApiPrecisionCompareArgs {
    /// Details of the tested device (also -npu).
    #[arg(long = "npu_csv_path", visible_alias = "npu-csv-path", value_name = "CSV")]
    pub(crate) npu: PathBuf,

    /// Details of the reference device (also -gpu).
    #[arg(long = "gpu_csv_path", visible_alias = "gpu-csv-path", value_name = "CSV")]
    pub(crate) gpu: PathBuf,

    /// Directory for results; made if it is not there.
    #[arg(
        short = 'o',
        long = "out_path",
        visible_alias = "out-path",
        value_name = "OUT",
        default_value = "./"
    )]
    pub(crate) output: PathBuf,

    /// Without the mistakes of the reference tool: no row hides another, none is lost, and one-sided errors count.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Exit code 1 when an operator fails or cannot be compared.
    #[arg(long = "fail-on-error")]
    pub(crate) fail_on_error: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PropagationName {
    Forward,
    Backward,
}

/// Write a script that runs one recorded operator by itself, on a device and on the CPU, and tells how far they are apart.
///
/// The script needs PyTorch (or MindSpore and PyTorch) and nothing else. What it runs stands in a JSON file of the same name
/// beside it. It prints the metrics of the operator's standard and a verdict, and with --shrink looks for smaller inputs that
/// fail as well.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  the script was written; its path is printed\n  \
    2  wrong usage, or there is no such operator\n\n\
    Examples:\n  \
    msprobe -f pytorch op_generate -i config_op.json -o scripts\n  \
    msprobe op_generate --from out/accuracy_checking_details_TIME.csv --api Torch.matmul.0 -api_info dump.json -o scripts\n  \
    python scripts/Torch.matmul.0.forward.py --device cuda --shrink")]
pub(crate) struct OpGenerateArgs {
    /// Configuration: dump_json_path, api_name, extract_api_path, propagation, data_mode, random_seed, iter_times.
    #[arg(
        short = 'i',
        long = "config_input",
        visible_alias = "config-input",
        value_name = "JSON",
        conflicts_with = "from"
    )]
    pub(crate) config: Option<PathBuf>,

    /// Directory for the script.
    #[arg(
        short = 'o',
        long = "api_output_path",
        visible_alias = "api-output-path",
        value_name = "DIR",
        default_value = "./"
    )]
    pub(crate) output: PathBuf,

    /// Result or details of a check, of which an operator is taken.
    #[arg(long, value_name = "CSV", requires = "api")]
    pub(crate) from: Option<PathBuf>,

    /// The operator in that table: Torch.matmul.0.
    #[arg(long, value_name = "NAME")]
    pub(crate) api: Option<String>,

    /// The dump.json that was checked (also -api_info).
    #[arg(long = "api_info_file", visible_alias = "api-info-file", value_name = "JSON")]
    pub(crate) api_info: Option<PathBuf>,

    /// Forward or backward; by default what failed.
    #[arg(long, value_enum, value_name = "DIRECTION")]
    pub(crate) propagation: Option<PropagationName>,

    /// Inputs as they were recorded, where the dump has them, and not random ones.
    #[arg(long = "real-data")]
    pub(crate) real_data: bool,
}

/// What is handed over to Python as it is.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct PythonArgs {
    /// Flags of the command: see its own help.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}
