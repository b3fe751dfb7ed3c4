//! What the reference shows of a comparison: tables of both generations with their pairing of rows, colours, advice,
//! mapping files, merged results, kernel dumps of static graphs and single arrays; and the way from paths to these files.

pub mod advisor;
mod array;
pub mod common_dir;
mod directories;
pub mod highlight;
pub mod mapping;
pub mod matching;
pub mod merge_result;
pub mod metrics;
mod names;
pub mod newest;
pub mod run;
pub mod static_graph;
pub mod table;
pub mod yaml;
