//! Named key data of a run (prompts, responses, log probabilities, losses) on its way to disk.
//!
//! A value is an [`Entry`]: a directory with one `.npy` file per tensor and a JSON file of their figures. Whoever
//! saves waits for directories and for one copy of the elements; one thread converts, measures and writes, in the
//! order of the calls, the JSON file of an entry after its arrays.

mod record;
mod writer;

pub use self::record::Grouping;
pub use self::writer::{AddError, Elements, Entry, KeyDataWriter};
