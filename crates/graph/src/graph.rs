//! One rank as a graph: its hierarchy, and the values of its nodes.

use std::path::PathBuf;
use std::sync::Arc;

use msprobe_compare::side::{RecordPlaces, ValueReader};
use msprobe_dump::hash::FastMap;

use crate::hierarchy::{Form, Hierarchy, NodeIndex, build};
use crate::source::{RankFiles, SourceError, Span};
use crate::values::{SharedValues, read_values};

/// The graph of one rank, or of several that were merged.
#[derive(Debug)]
pub struct Graph {
    /// Its nodes.
    pub hierarchy: Hierarchy,
    /// Its files; of merged ranks, those of the first.
    pub files: RankFiles,
    /// Values that are not those of a record of the same name.
    pub changed: FastMap<NodeIndex, SharedValues>,
    /// What merging says of a node.
    pub merge_info: FastMap<NodeIndex, Vec<String>>,
}

/// Reads values of nodes. Each thread has its own.
#[derive(Default)]
pub struct NodeReader {
    values: ValueReader,
    text: Vec<u8>,
}

impl Graph {
    /// Reads and builds the graph of a rank, of whose `dump.json` the places of records may be known.
    pub fn read(
        dir: &std::path::Path,
        known: Option<RecordPlaces>,
        form: Form,
    ) -> Result<Graph, SourceError> {
        let files = RankFiles::read(dir, known)?;
        let hierarchy = build(&files, form);
        Ok(Graph { hierarchy, files, changed: FastMap::default(), merge_info: FastMap::default() })
    }

    /// Where the record of a node stands. The root has none, whatever records are called.
    pub fn span(&self, index: NodeIndex) -> Option<Span> {
        if index == Hierarchy::ROOT { None } else { self.files.span(&self.hierarchy.node(index).name) }
    }

    /// The values of a node. A record that cannot be read has none.
    pub fn values(&self, index: NodeIndex, reader: &mut NodeReader) -> SharedValues {
        if let Some(changed) = self.changed.get(&index) {
            return changed.clone();
        }
        let values = self.span(index).and_then(|span| {
            self.files.read_text(span, &mut reader.text).ok()?;
            read_values(&mut reader.values, &self.hierarchy.node(index).name, &reader.text).ok()
        });
        Arc::new(values.unwrap_or_default())
    }

    /// The text of the record of a node.
    pub fn text<'r>(&self, index: NodeIndex, reader: &'r mut NodeReader) -> Option<&'r [u8]> {
        self.files.read_text(self.span(index)?, &mut reader.text).ok()?;
        Some(&reader.text)
    }

    /// Directory of the tensor files.
    pub fn tensor_dir(&self) -> PathBuf {
        self.files.dir.join("dump_tensor_data")
    }

    /// Whether a checksum was recorded anywhere a comparison looks for one.
    pub fn has_checksums(&self) -> bool {
        let mut reader = NodeReader::default();
        self.files.names.iter().any(|name| {
            let Some(span) = self.files.span(name) else { return false };
            let is_read = self.files.read_text(span, &mut reader.text).is_ok();
            is_read && reader.values.read(name, &reader.text).is_ok_and(|read| read.has_md5)
        })
    }
}
