//! One dump, as everything that looks at it sees it: which directories there are ([`RunDir`]), the records of a file with their
//! values ([`DumpFile`], [`Visitor`]), the modules around them ([`Construct`]) and the lines that made them ([`read_stacks`]).
//!
//! A file is read front to back, one record at a time, and nothing is copied: memory follows the largest record. A value is handed
//! on with what was written of it ([`Value`]); numbers and texts become what they are when they are asked for ([`Written`]).
//!
//! # What is damaged
//!
//! There is one rule: **what was written counts as it stands, what cannot be understood is told and guessed by nobody.**
//!
//! - A file that ends early, or is no JSON from some byte on, gives what came before and a [`Damage::Ends`].
//! - A record that cannot be read is left out with a [`Damage::Record`]; those behind it are read.
//! - Of a name, and of a member of a value, that is written twice the last one counts, in the place of the first. A value tells
//!   ([`Value::repeated`]); names are told apart by those who keep them.
//! - Anything at a place where something else should stand is handed on as it is written ([`Visitor::stray`]), and so is what
//!   is nested too deeply ([`Visitor::too_deep`]).
//!
//! Whether a damaged dump is refused, or used as far as it goes, is up to the reader: both are right, for different questions.

mod construct;
mod file;
mod layout;
mod record;
mod stacks;
#[cfg(test)]
mod tests;
mod value;
mod written;

pub use self::construct::{Construct, parent_of, read_construct};
pub use self::file::{Damage, DumpFile, Header, RecordText, walk_text, walk_text_as_value};
pub(crate) use self::layout::is_directory;
pub use self::layout::{Dir, DirKind, RunDir, dir_kind, directories_in};
pub use self::record::{Place, Role, Section, Segment, Visitor};
pub use self::stacks::{StackEntry, find_stacks, read_stacks};
pub use self::value::{Group, P2pOperation, Statistic, Value};
pub use self::written::Written;
