//! The values of one record by itself, each with what was written of it: for those who show a dump, and compare what they show.

use msprobe_dump::model::{walk_text, walk_text_as_value};
use msprobe_dump::read::PullError;

use super::rows::{Rows, ValuesOf};
use super::texts::Texts;
use super::{FileKind, Leaf};
use crate::error::CompareError;

/// A value, and its text.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenValue {
    /// What it is. It has no digest: whoever has its text needs none.
    pub leaf: Leaf,
    /// What the dump says of it, as JSON.
    pub written: Box<[u8]>,
}

/// The values of a record.
#[derive(Debug, Default)]
pub struct RecordValues {
    /// Arguments, results, parameters, each in order, as far as they can be compared.
    pub values: Vec<WrittenValue>,
    /// Whether a checksum was recorded where a comparison looks for one.
    pub has_md5: bool,
    /// Why a comparison would refuse the record; values behind it are not there.
    pub fault: Option<CompareError>,
}

/// Reads records one by one. Texts that come again are kept once.
#[derive(Default)]
pub struct ValueReader {
    texts: Texts,
}

impl ValueReader {
    /// The values of the record of this name and text.
    pub fn read(&mut self, name: &str, text: &[u8]) -> Result<RecordValues, PullError> {
        let values_of = ValuesOf::of(name, FileKind::Dump);
        let mut rows = Rows::new(name, FileKind::Dump, values_of, &mut self.texts).keeping_written();
        match values_of {
            ValuesOf::Call => walk_text(text, &mut rows)?,
            ValuesOf::Saved | ValuesOf::Gradients => walk_text_as_value(text, &mut rows)?,
        }
        let (has_md5, fault) = (rows.has_md5, rows.fault.take());
        let value = |found: super::rows::Found| WrittenValue { leaf: found.leaf, written: found.written };
        Ok(RecordValues { values: rows.by_section().into_iter().map(value).collect(), has_md5, fault })
    }
}
