//! One side of a comparison: a dump reduced to rows, one per value, in the order of the tables.

mod checks;
mod described;
mod digest;
mod parse;
mod repeats;
mod rows;
mod shape;
mod stacks;
#[cfg(test)]
mod tests;
mod texts;
mod values;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::CompareError;
use msprobe_dump::hash::FastMap;
use msprobe_tensor::{DType, Sketch};

pub use self::parse::{FileKind, RecordPlaces, read_side, read_side_and_places};
pub use self::repeats::Earlier;
pub use self::shape::ValueShape;
pub use self::stacks::{Stack, Stacks, read_construct};
pub use self::values::{RecordValues, ValueReader, WrittenValue};
pub use msprobe_dump::model::Construct;

/// Which side of a comparison something is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The data under test; `NPU` in tables.
    Target,
    /// What it is measured against; `Bench` in tables.
    Golden,
}

impl Which {
    /// Its name in messages and reports for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Which::Target => "npu",
            Which::Golden => "bench",
        }
    }
}

impl fmt::Display for Which {
    /// As tables and answers call it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Which::Target => "NPU",
            Which::Golden => "bench",
        })
    }
}

/// The framework a dump was written under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framework {
    /// PyTorch.
    PyTorch,
    /// MindSpore.
    MindSpore,
}

/// What a row is of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// An argument, or in backward the gradient of an output.
    Input,
    /// A parameter of a module.
    Parameters,
    /// A result, or in backward the gradient of an argument.
    Output,
    /// The gradient of a parameter.
    ParametersGrad,
}

/// A statistic, or a value that stands in its place.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// Not there, or `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number beyond that.
    Large(Box<i128>),
    /// Any other number.
    Float(f64),
    /// Words.
    Text(Arc<str>),
}

impl Scalar {
    /// The number it is. A bool is none.
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::Int(value) => Some(*value as f64),
            Scalar::Large(value) => Some(**value as f64),
            Scalar::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The whole number it was written as.
    pub fn whole(&self) -> Option<i128> {
        match self {
            Scalar::Int(value) => Some(i128::from(*value)),
            Scalar::Large(value) => Some(**value),
            _ => None,
        }
    }
}

/// What kind of value a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Elements of one type.
    Tensor,
    /// An argument of a plain type: its class stands in the dtype cell.
    Plain,
    /// A shape.
    Size,
    /// A group of processes.
    Group,
    /// A slice.
    Slice,
    /// `...`
    Ellipsis,
    /// Nothing.
    None,
}

/// One value of a dump.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Its name in tables: `Torch.add.0.forward.input.0`, or that of its file. It is shown; which value it is, `record` and
    /// `place` say.
    pub name: Box<str>,
    /// Index of its record.
    pub record: u32,
    /// What it is of its record.
    pub role: Role,
    /// What kind of value it is.
    pub kind: ValueKind,
    /// What it says of its type, where it is an object that does.
    pub type_name: Option<Arc<str>>,
    /// What the dtype cell shows: how its framework calls the type of its elements, or the class of an argument.
    pub dtype: Arc<str>,
    /// The type of its elements, if it is a tensor of one we know.
    pub element: Option<DType>,
    /// The dtype its data has where that is another one: that of a quantised tensor is dequantised.
    pub stored_dtype: Option<Arc<str>>,
    /// Its shape, or what stands for it.
    pub shape: ValueShape,
    /// Largest, smallest, mean, L2 norm.
    pub statistics: [Scalar; 4],
    /// Checksum; none for `null`.
    pub md5: Option<Arc<str>>,
    /// Its sketch; none if none was recorded, or one that cannot be read.
    pub sketch: Option<Box<Sketch>>,
    /// Tensor file, without directory.
    pub data_name: Option<Box<str>>,
    /// Whether autograd follows it, where that was recorded.
    pub requires_grad: Option<bool>,
    /// What is done with it, if it is part of a batch of sends and receives.
    pub p2p: Option<Box<P2pOperation>>,
    /// Where it stands in its record: `input.0`. Unlike the name, it does not depend on files.
    pub place: Arc<str>,
    /// Digest of everything that was recorded of it.
    pub digest: u64,
    /// Whether a checksum was recorded.
    pub has_checksum: bool,
    /// Why collection could not measure it, or could not write its data.
    pub unmeasured: Option<Arc<str>>,
    /// Whether it is a shape without data, as frameworks make them to plan with.
    pub is_meta: bool,
    /// Whether it is an array of numpy, of which no collection records a checksum.
    pub is_array: bool,
}

/// One element of a batch of sends and receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct P2pOperation {
    /// `isend` or `irecv`.
    pub operation: Box<str>,
    /// The rank at the other end; none if that was not recorded.
    pub peer: Option<i64>,
}

impl Leaf {
    /// Whether it is a tensor, not an argument of another kind.
    pub fn is_tensor(&self) -> bool {
        self.kind == ValueKind::Tensor
    }

    /// Whether it is a tensor that has no elements.
    pub fn is_empty(&self) -> bool {
        self.is_tensor() && self.shape.sizes().is_some_and(|sizes| sizes.contains(&0))
    }

    /// Whether the elements of both are of one type. Types nobody knows are told apart by what they are called.
    pub fn has_dtype_of(&self, other: &Leaf) -> bool {
        match (self.element, other.element) {
            (None, None) => self.dtype == other.dtype,
            (own, other) => own == other,
        }
    }

    /// Whether both are the same value of one side.
    pub fn is_same_value_as(&self, other: &Leaf) -> bool {
        self.record == other.record && self.place == other.place
    }
}

/// An API call, a module call, a module's parameter gradients or a saved variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key in the dump.
    pub name: Arc<str>,
    /// Its rows in [`Side::rows`].
    pub rows: Range<usize>,
    /// Digest of what it is apart from its rows.
    pub rest: u64,
    /// What stands under its name besides.
    pub earlier: Earlier,
}

/// A dump, reduced to rows.
#[derive(Debug)]
pub struct Side {
    /// The dump file.
    pub path: PathBuf,
    /// Dump or debug.
    pub kind: FileKind,
    /// Task it was collected with.
    pub task: String,
    /// Level it was collected at, if that was recorded.
    pub level: Option<String>,
    /// Framework it was written under, if that was recorded.
    pub framework: Option<Framework>,
    /// Whether checksums were collected.
    pub has_md5: bool,
    /// Records in the order of the file.
    pub records: Vec<Record>,
    /// Rows of all records, in order.
    pub rows: Vec<Leaf>,
    /// What was odd about the records, to be said when it is their turn.
    pub notices: Vec<String>,
    /// The first record that cannot be compared; none after it were read.
    pub fault: Option<CompareError>,
}

impl Side {
    /// Directory of the tensor files.
    pub fn tensor_dir(&self) -> PathBuf {
        self.directory().join("dump_tensor_data")
    }

    /// Directory of the dump file.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Whether this is of MindSpore and the other side is not.
    pub fn is_of_other_framework_than(&self, golden: &Side) -> bool {
        self.framework == Some(Framework::MindSpore) && golden.framework != Some(Framework::MindSpore)
    }

    /// Rows of a record.
    pub fn rows_of(&self, record: usize) -> &[Leaf] {
        self.records.get(record).and_then(|record| self.rows.get(record.rows.clone())).unwrap_or_default()
    }

    /// Records by name.
    pub(crate) fn records_by_name(&self) -> FastMap<&str, usize> {
        self.records.iter().enumerate().map(|(index, record)| (&*record.name, index)).collect()
    }
}
