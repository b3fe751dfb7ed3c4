//! One value of a record: what was written of it.

use std::borrow::Cow;

use msprobe_tensor::DType;

use super::Written;

/// The four statistics of a tensor, in the order of [`Value::statistics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Largest value.
    Max,
    /// Smallest value.
    Min,
    /// Mean.
    Mean,
    /// L2 norm.
    Norm,
}

impl Statistic {
    /// All of them, in order.
    pub const ALL: [Statistic; 4] = [Statistic::Max, Statistic::Min, Statistic::Mean, Statistic::Norm];

    /// Its name in dumps.
    pub fn as_str(self) -> &'static str {
        ["Max", "Min", "Mean", "Norm"][self as usize]
    }
}

/// A group of processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// Its ranks, as written.
    pub ranks: Vec<i64>,
    /// Its id, as written.
    pub id: Box<str>,
}

/// One of a batch of sends and receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct P2pOperation<'a> {
    /// `isend` or `irecv`; none if that was not recorded.
    pub operation: Option<Cow<'a, str>>,
    /// The rank at the other end.
    pub peer: Option<i64>,
    /// What tells messages between the same two ranks apart.
    pub tag: Option<i64>,
}

/// An object in a record, as it is written: a tensor, another argument, or a dictionary that has members of such a name.
/// Of a member that is repeated the last one is there.
#[derive(Debug, Clone, Default)]
pub struct Value<'a> {
    /// All of it.
    pub written: &'a [u8],
    /// What it is: `torch.Tensor`, `int`.
    pub type_name: Option<Written<'a>>,
    /// The class of what has no type, as one of a batch of sends and receives.
    pub class_name: Option<Written<'a>>,
    /// Type of its elements.
    pub dtype: Option<Written<'a>>,
    /// Type of the elements in its file, where that is another one: that of a quantised tensor is dequantised.
    pub stored_dtype: Option<Written<'a>>,
    /// Its shape as it is written.
    pub shape: Option<Written<'a>>,
    /// The sizes of its shape, if they are whole numbers that are not negative.
    pub sizes: Option<&'a [u64]>,
    /// In the order of [`Statistic`].
    pub statistics: [Option<Written<'a>>; 4],
    /// Checksum.
    pub checksum: Option<Written<'a>>,
    /// Its sketch, as text.
    pub sketch: Option<Written<'a>>,
    /// The name of its file.
    pub file: Option<Written<'a>>,
    /// Whether autograd follows it.
    pub requires_grad: Option<Written<'a>>,
    /// How it is stored, where that is not the usual way.
    pub layout: Option<Written<'a>>,
    /// Why it could not be measured.
    pub unmeasured: Option<Written<'a>>,
    /// Why its data could not be written.
    pub unwritten: Option<Written<'a>>,
    /// The content of a plain argument.
    pub value: Option<Written<'a>>,
    /// The ranks of a group.
    pub group_ranks: Option<Written<'a>>,
    /// The id of a group.
    pub group_id: Option<Written<'a>>,
    /// What is done in a send or receive.
    pub operation: Option<Written<'a>>,
    /// The rank at the other end.
    pub peer: Option<Written<'a>>,
    /// The tag of a send or receive.
    pub tag: Option<Written<'a>>,
    /// One of the members that describe it which is written more than once: readers may take different ones.
    pub repeated: Option<&'static str>,
}

impl<'a> Value<'a> {
    /// How many elements it has, if its shape tells.
    pub fn elements(&self) -> Option<u64> {
        self.sizes?.iter().try_fold(1_u64, |count, size| count.checked_mul(*size))
    }

    /// The type of its elements, if it is one we know.
    pub fn known_dtype(&self) -> Option<DType> {
        DType::parse(&self.dtype?.text()?)
    }

    /// A statistic as a number; of bool tensors, whether any or all are true.
    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        let written = self.statistics[statistic as usize]?;
        written.number_or_word().or_else(|| Some(f64::from(u8::from(written.flag()?))))
    }

    /// Whether it describes a send or receive.
    pub fn is_p2p(&self) -> bool {
        self.class_name.is_some_and(is_p2p_class)
    }

    /// The send or receive it describes.
    pub fn p2p(&self) -> Option<P2pOperation<'a>> {
        let whole =
            |written: Option<Written<'a>>| written.and_then(Written::number).map(|number| number as i64);
        self.is_p2p().then(|| P2pOperation {
            operation: self.operation.and_then(Written::text),
            peer: whole(self.peer),
            tag: whole(self.tag),
        })
    }

    /// The group it describes.
    pub fn group(&self) -> Option<Group> {
        let id = self.group_id.and_then(Written::text).filter(|_| !self.is_p2p());
        let ranks = self.group_ranks.filter(|ranks| ranks.bytes().first() == Some(&b'['));
        (id.is_some() || ranks.is_some()).then(|| Group {
            ranks: ranks.map_or_else(Vec::new, Written::whole_numbers),
            id: id.unwrap_or_default().into(),
        })
    }
}

/// Whether a class is that of sends and receives.
pub(super) fn is_p2p_class(class: Written<'_>) -> bool {
    class.text().is_some_and(|class| class.contains("P2POp"))
}
