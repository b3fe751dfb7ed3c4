//! The hierarchy of a dump: built of one rank, compared with another, linked and merged across ranks, and stored for the
//! viewers of both generations.

pub mod hierarchy;
pub mod names;
pub mod source;
pub mod stacks;
pub mod values;
