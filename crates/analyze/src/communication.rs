//! What a record of a communication call says of its peers.

pub use msprobe_dump::model::Group;
use msprobe_dump::names::is_of_communication;

/// Functions the reference takes for communication, wherever in a name beginning with `Distributed.` they appear.
const KEYWORDS: [&str; 6] = ["send", "recv", "broadcast", "reduce", "gather", "scatter"];

/// Whether a record of this name is a communication call. `barrier` moves no data and is none.
pub fn is_communication(name: &str) -> bool {
    is_of_communication(name)
        && (KEYWORDS.iter().any(|keyword| name.contains(keyword)) || name.contains("all_to_all"))
}

/// An argument that names a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RankArgument {
    /// Not given by name.
    #[default]
    Absent,
    /// Given, but not as a number.
    Unknown,
    /// Given.
    Known(i64),
}

impl RankArgument {
    /// The number, if it is known.
    pub fn known(self) -> Option<i64> {
        match self {
            RankArgument::Known(rank) => Some(rank),
            _ => None,
        }
    }
}

/// One of a batch of sends and receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchItem {
    /// Whether it sends.
    pub is_send: bool,
    /// The rank at the other end.
    pub peer: Option<i64>,
    /// What tells messages between the same two ranks apart.
    pub tag: i64,
}

/// What there is to know of a communication call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Communication {
    /// Keyword arguments `src`, `src_group`, `dst`, `dst_group` of the call, in the order the reference asks for them.
    pub src: RankArgument,
    /// See `src`.
    pub src_group: RankArgument,
    /// See `src`.
    pub dst: RankArgument,
    /// See `src`.
    pub dst_group: RankArgument,
    /// Ranks within the group: `group_src`.
    pub group_src: RankArgument,
    /// Ranks within the group: `group_dst`.
    pub group_dst: RankArgument,
    /// Whole numbers among the positional arguments, in order.
    pub ints: Vec<i64>,
    /// Whether an argument among those was a list. The reference cannot go on then for calls that have a direction.
    pub has_list_argument: bool,
    /// What tells messages between the same two ranks apart, given by name.
    pub tag: RankArgument,
    /// The group given by name (`group=`).
    pub group: Option<Group>,
    /// A group given by place.
    pub positional_group: Option<Group>,
    /// Elements of `batch_isend_irecv`.
    pub batch: Vec<BatchItem>,
}
