//! Lines of source code of the operators in a dump of a static graph.
//!
//! ```text
//! graph.ir --ir--> nodes (scope, lines of code) --scopes--> Scopes: what a name of an operator stands for
//! *.npy         --files--> names --\
//! statistic.csv --table--> names ---+--Scopes--> code_mapping_TIME.csv, or two columns more in each table
//! ```
//!
//! The graph is read before anything is written, so nothing is touched where it cannot be read.

mod files;
mod ir;
mod run;
mod scopes;
mod table;

pub use self::ir::{Node, parse};
pub use self::run::{Mapped, map_code};
pub use self::scopes::{Scopes, Source};
