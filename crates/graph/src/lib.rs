//! The hierarchy of a dump: built of one rank, compared with another, linked and merged across ranks, and stored for the
//! viewers of both generations.

pub mod compare;
pub mod graph;
pub mod hierarchy;
pub mod links;
pub mod matching;
pub mod merge;
pub mod names;
pub mod overflow;
pub mod run;
pub mod source;
pub mod stacks;
pub mod store;
pub mod values;
pub mod verdict;
pub mod walk;
