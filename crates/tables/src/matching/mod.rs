//! Which row of the golden side belongs to each row of the target, and why not where none does: the pairs of the
//! reference, value by value, which its tables have to show. The verdict pairs whole records.

mod dtype;
mod exact;
mod fuzzy;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use self::dtype::{dtypes_agree, fold_to_family};
pub(crate) use self::exact::compatible;
pub use self::exact::{match_by_key, match_by_key_and_shape};
pub use self::fuzzy::match_fuzzily;

/// Where the golden name of each target row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keys {
    /// Its own name.
    #[default]
    OwnName,
    /// One name per row; `None` for rows that must not match. Shape and dtype are tested (api and cell mapping).
    PerRow(Vec<Option<String>>),
    /// Mapped names; others keep their own, unless they map to `N/A`. Neither shape nor dtype is tested.
    Mapping(HashMap<String, String>),
}
