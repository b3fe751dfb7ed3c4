//! Everything a person would rather look at, in a browser: `msprobe view`.
//!
//! One process serves what it finds below some paths: dumps, graphs, and the answers of commands. It reads by index and keeps
//! no selection of anybody's; it writes nothing unless pairs are saved or a graph is made of dumps.

mod app;
mod assets;
mod catalogue;
mod convert;
mod edits;
mod export;
mod fault;
mod graphs;
mod http;
mod json_text;
mod prepare;
mod store;
mod trend;
mod wire;

pub use self::export::{ExportScope, export};
pub use self::fault::Fault;
pub use self::http::{Options, Server, Stop};
