//! Key data of reinforcement-learning runs: saving it.

mod writer;

pub(crate) use self::writer::{KeyDataEntry, KeyDataWriter, make_directory};
