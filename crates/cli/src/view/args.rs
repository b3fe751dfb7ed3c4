//! Flags of `msprobe view`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

/// Look at dumps, graphs and comparisons in a browser.
///
/// Serves a page on this machine and prints where it is. The page shows whatever is found below the given paths: dumps (of which a
/// graph is built when it is opened), .vis and .vis.db files of msprobe and of the reference tool, and the answers of compare,
/// rl compare, grad compare and overflow_check. Nothing is written unless pairs of nodes are matched by hand and saved, or
/// a graph is made of dumps.
/// Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  \
    0  ended by Ctrl-C, or the file was written\n  \
    2  wrong usage, or a path or port cannot be used\n\n\
    Examples:\n  \
    msprobe view output\n  \
    msprobe view dump output --port 6006 --no-open\n  \
    msprobe view output/compare_20261118093007.vis.db --export report.html --step 0 --rank 1\n  \
    msprobe view output --bind 0.0.0.0 --allow-remote")]
pub(crate) struct ViewArgs {
    /// Directories to look through, or single files.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Port to listen on; 0 for any that is free.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,

    /// Address to listen on. Others than those of this machine itself need --allow-remote.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,

    /// Serve other machines too. The address that is printed then holds a token, which a browser needs once.
    #[arg(long = "allow-remote")]
    pub(crate) allow_remote: bool,

    /// Do not open a browser.
    #[arg(long = "no-open")]
    pub(crate) no_open: bool,

    /// Write one self-contained page to FILE instead of serving; one that is there is replaced. At most 60 MB.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["port", "bind", "allow_remote", "no_open"])]
    pub(crate) export: Option<PathBuf>,

    /// Only this step in the page.
    #[arg(long, value_name = "N", requires = "export")]
    pub(crate) step: Option<i64>,

    /// Only this rank in the page.
    #[arg(long, value_name = "N", requires = "export")]
    pub(crate) rank: Option<i64>,
}
