//! The tensors of one record as its text describes them: what a reader of a finding wants to see.

use std::borrow::Cow;
use std::io;

use msprobe_dump::model::{self, Place, Section, Statistic, Visitor, Written, walk_text};
use msprobe_dump::read::Shape;
use msprobe_tensor::DType;

use crate::rank::RankDump;
use crate::record::{Kinds, Record, Role};

/// More tensors than that are not listed.
const MAX_TENSORS: usize = 64;
const MAX_DEPTH: usize = 16;

/// A tensor of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Where in the record: `input.0`, `parameters.weight`, `output.1`.
    pub place: String,
    /// What it is of the record.
    pub role: Role,
    /// `torch.float32`.
    pub dtype: String,
    /// Its sizes.
    pub shape: Vec<i64>,
    /// `Max`, `Min`, `Mean`, `Norm`, where they were recorded.
    pub figures: [Option<f64>; 4],
    /// The name of its file.
    pub data_name: Option<String>,
}

impl Value {
    /// What it holds that is not finite.
    pub fn kinds(&self) -> Kinds {
        let size = |size: &i64| u64::try_from(*size).ok();
        let elements = self.shape.iter().map(size).try_fold(1_u64, |count, size| count.checked_mul(size?));
        Kinds::of_figures(&self.figures, DType::parse(&self.dtype), elements)
    }
}

/// The tensors of a record, read again from its file.
pub fn values_of(dump: &RankDump, record: &Record) -> io::Result<Vec<Value>> {
    let text = dump.read_again(record)?;
    let mut list = List { is_left_out: false, values: Vec::new() };
    walk_text(&text, &mut list).map_err(|(what, at)| {
        io::Error::other(format!(
            "{} of dump.json: {what} at byte {}",
            record.name,
            record.offset + at as u64
        ))
    })?;
    Ok(list.values)
}

struct List {
    /// Whether the section is none that holds values.
    is_left_out: bool,
    values: Vec<Value>,
}

impl Visitor for List {
    fn section(&mut self, section: Section<'_>, shape: Shape) {
        self.is_left_out = matches!(section, Section::Other(_)) && shape != Shape::List;
    }

    fn value(&mut self, at: &Place<'_>, value: &model::Value<'_>) {
        if self.is_left_out || self.values.len() >= MAX_TENSORS || at.depth() > MAX_DEPTH {
            return;
        }
        let Some(dtype) = value.dtype.and_then(Written::text) else { return };
        let Some(shape) = value.shape else { return };
        self.values.push(Value {
            place: at.to_string(),
            role: at.section.role(),
            dtype: dtype.into_owned(),
            shape: shape.whole_numbers(),
            figures: Statistic::ALL.map(|statistic| value.statistic(statistic)),
            data_name: value.file.and_then(Written::text).map(Cow::into_owned),
        });
    }
}
