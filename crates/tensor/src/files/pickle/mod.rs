//! A pickle decoder that decodes and never runs: protocols 0 to 5 into a flat [`Arena`], with an allow-list of
//! names that stand for data. Anything else a pickle could import is refused by name.

mod calls;
mod globals;
mod input;
mod machine;
mod memo;
mod opcodes;
#[cfg(test)]
mod tests;
mod text;
mod value;

pub(crate) use globals::{Global, GlobalId};
pub(crate) use machine::{Decoded, decode};
pub(crate) use value::{Arena, Node, NodeId};
