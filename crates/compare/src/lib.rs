//! Two sides next to each other: pairing, metrics, verdicts.

pub mod advisor;
mod array;
pub mod common_dir;
mod directories;
pub mod error;
pub mod gradients;
pub mod highlight;
pub mod key_data;
pub mod mapping;
pub mod matching;
pub mod merge_result;
pub mod newest;
pub mod output;
pub mod python_text;
pub mod run;
pub mod side;
pub mod static_graph;
pub mod table;
pub mod tensor_pair;
pub mod verdict;
mod yaml;

pub use msprobe_report::console;
