//! What is kept of one record of a dump: whether its values are finite, and what tells the others apart.
//!
//! A dump of a long step has tens of thousands of records per rank, nearly all of them finite. So a record keeps its
//! name, a few flags and where its text stands in the file; only values that are not finite keep more.

use std::ops::BitOr;

pub use msprobe_dump::model::Role;
use msprobe_dump::names::{Direction, RecordName};
use msprobe_tensor::DType;

use crate::communication::Communication;

/// Which kinds of non-finite numbers a tensor holds, as far as its largest and smallest value tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// All finite.
    pub const NONE: Kinds = Kinds(0);
    /// NaN; what else there is cannot be told.
    pub const NAN: Kinds = Kinds(1);
    /// +Inf.
    pub const POSITIVE: Kinds = Kinds(2);
    /// -Inf.
    pub const NEGATIVE: Kinds = Kinds(4);

    /// The kind of one number.
    pub fn of(number: f64) -> Kinds {
        if number.is_nan() {
            Kinds::NAN
        } else if number == f64::INFINITY {
            Kinds::POSITIVE
        } else if number == f64::NEG_INFINITY {
            Kinds::NEGATIVE
        } else {
            Kinds::NONE
        }
    }

    /// What the figures of a tensor tell of it: largest, smallest, mean, norm. Mean and norm count where the others are
    /// finite: not every device lets NaN through to the largest value.
    pub(crate) fn of_figures(
        figures: &[Option<f64>; 4],
        dtype: Option<DType>,
        elements: Option<u64>,
    ) -> Kinds {
        let [max, min, ..] = figures;
        let extremes = max.map_or(Kinds::NONE, Kinds::of) | min.map_or(Kinds::NONE, Kinds::of);
        match Sums::of(figures, dtype, elements) {
            Sums::Bad(kinds) if extremes.is_finite() => kinds,
            _ => extremes,
        }
    }

    /// Whether there is nothing but finite numbers.
    pub fn is_finite(self) -> bool {
        self == Kinds::NONE
    }

    /// Whether all of `other` are among them.
    pub fn contains(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// Their names: `nan`, `inf`, `-inf`.
    pub fn names(self) -> Vec<&'static str> {
        [(Kinds::NAN, "nan"), (Kinds::POSITIVE, "inf"), (Kinds::NEGATIVE, "-inf")]
            .into_iter()
            .filter(|(kind, _)| self.contains(*kind))
            .map(|(_, name)| name)
            .collect()
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// What mean and norm of a tensor say of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sums {
    /// Nothing.
    Finite,
    /// The elements are so large that their sum, or that of their squares, does not fit into the dtype it is computed in.
    Overflowed,
    /// Finite elements cannot have them.
    Bad(Kinds),
}

impl Sums {
    /// `figures` are largest, smallest, mean and norm. Sums are computed in float32 at least, the norm of float16 is float16.
    pub(crate) fn of(figures: &[Option<f64>; 4], dtype: Option<DType>, elements: Option<u64>) -> Sums {
        let [max, min, mean, norm] = *figures;
        let is_bad = |figure: Option<f64>| figure.is_some_and(|figure| !figure.is_finite());
        if elements == Some(0) || !(is_bad(mean) || is_bad(norm)) {
            return Sums::Finite;
        }
        let largest = match (max, min) {
            (Some(max), Some(min)) => max.abs().max(min.abs()),
            _ => 0.0,
        };
        let count = elements.unwrap_or(1) as f64;
        let largest_norm = if dtype == Some(DType::F16) { 65504.0 } else { f64::from(f32::MAX).sqrt() };
        let mean_overflows = mean.is_some_and(f64::is_infinite) && count * largest > f64::from(f32::MAX);
        let norm_overflows = norm == Some(f64::INFINITY) && count.sqrt() * largest > largest_norm;
        if (!is_bad(mean) || mean_overflows) && (!is_bad(norm) || norm_overflows) {
            return Sums::Overflowed;
        }
        let is_nan = [mean, norm].iter().flatten().any(|figure| figure.is_nan());
        Sums::Bad(if is_nan { Kinds::NAN } else { Kinds::POSITIVE })
    }
}

/// Which argument of a call a value is, or is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Argument {
    /// By its place.
    Position(u16),
    /// By one of the names in [`KEYWORDS`], as index.
    Keyword(u8),
    /// By another name; or it is no argument.
    Other,
}

impl Argument {
    /// The argument of this name.
    pub fn named(name: &str) -> Argument {
        match KEYWORDS.iter().position(|keyword| *keyword == name) {
            Some(index) => Argument::Keyword(index as u8),
            None => Argument::Other,
        }
    }
}

/// Names of arguments of communication calls that hold tensors.
pub const KEYWORDS: [&str; 13] = [
    "tensor",
    "tensor_list",
    "output",
    "output_tensor",
    "output_tensor_list",
    "output_list",
    "input",
    "input_tensor",
    "input_tensor_list",
    "input_list",
    "scatter_list",
    "gather_list",
    "p2p_op_list",
];

/// A tensor that is not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadTensor {
    /// A number made of dtype, shape and statistics: the same tensor has the same one wherever it appears.
    pub fingerprint: u64,
    /// What it is of its record.
    pub role: Role,
    /// Which argument.
    pub argument: Argument,
    /// What it holds.
    pub kinds: Kinds,
    /// Whether autograd follows it.
    pub requires_grad: bool,
    /// In a batch of sends and receives: which of them.
    pub batch_item: Option<u16>,
}

/// The sections of a record that the reference looks at, and whether a tensor directly in them is not finite.
/// Tensors inside of nested lists do not count there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlainFindings {
    /// `input`, as records of backward have it.
    pub input: bool,
    /// `input_args`.
    pub input_args: bool,
    /// `input_kwargs`.
    pub input_kwargs: bool,
    /// `output`.
    pub output: bool,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// Its key in the dump.
    pub name: Box<str>,
    /// Where its text begins in the file.
    pub offset: u64,
    /// Length of its text.
    pub length: u32,
    /// What the reference would see.
    pub plain: PlainFindings,
    /// Whether it has inputs at all; without them nobody can say that they were finite.
    pub has_input: bool,
    /// Whether it has outputs at all.
    pub has_output: bool,
    /// Whether it repeats an earlier call, to save memory.
    pub is_recompute: bool,
    /// Whether a plain number among its arguments is NaN or infinite.
    pub has_bad_number: bool,
    /// Its tensors that are not finite, in the order of the text; most records have none.
    pub bad: Box<[BadTensor]>,
    /// What there is to know of a communication call.
    pub communication: Option<Box<Communication>>,
    /// Of a module's forward call: what tells its parameters apart, as [`BadTensor::fingerprint`] does.
    pub parameters: Box<[u64]>,
}

impl Record {
    /// The kinds of its tensors of one role, all together.
    pub fn kinds(&self, role: Role) -> Kinds {
        self.bad_of(role).fold(Kinds::NONE, |kinds, tensor| kinds | tensor.kinds)
    }

    /// Its tensors of one role that are not finite.
    pub fn bad_of(&self, role: Role) -> impl Iterator<Item = &BadTensor> {
        self.bad.iter().filter(move |tensor| tensor.role == role)
    }

    /// Its name, taken apart.
    pub fn parts(&self) -> RecordName<'_> {
        RecordName::parse(&self.name)
    }

    /// The function: `exp` of `Torch.exp.0.forward`.
    pub fn function(&self) -> &str {
        self.parts().function()
    }

    /// Whether it is of the backward pass.
    pub fn is_backward(&self) -> bool {
        self.parts().direction() == Some(Direction::Backward)
    }

    /// Whether it is the call of a module, not of a function.
    pub fn is_module(&self) -> bool {
        self.parts().module().is_some()
    }

    /// Whether it holds the gradients of a module's parameters.
    pub fn is_parameter_gradient(&self) -> bool {
        self.parts().is_parameter_gradient()
    }
}
