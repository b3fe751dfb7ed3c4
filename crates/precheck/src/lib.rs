//! Is this operator on this device right by itself? Standards, verdicts, tables and answers of the pre-check. Operators are run
//! elsewhere; here is what was recorded of them and what came out.

mod cells;
mod csv_file;
pub mod final_compare;
pub mod generate;
pub mod mindspore;
mod names;
mod outcome;
pub mod overflow;
pub mod plan;
mod standards;
mod status;
pub mod summary;
pub mod tables;
mod verdict;

pub use cells::Number;
pub use names::Call;
pub use outcome::{Notes, Outcome, Picture, Worst};
pub use standards::Standard;
pub use status::Status;
pub use verdict::{DETAILS, Decision, Judging, Leaf, Plain, RESULT, Sides, TooFewOutputs, compare, skip};
