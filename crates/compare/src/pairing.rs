//! Rows that were put next to each other, how that came, and why one stands alone.

/// How a row found its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchMethod {
    /// By its own name.
    Exact,
    /// By its name without call numbers.
    Fuzzy,
    /// By its place in the sequence of calls.
    Aligned,
    /// By a mapping the user gave or asked for.
    Mapped,
    /// By its name without the wrappers one side puts around its modules.
    Unwrapped,
}

impl MatchMethod {
    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchMethod::Exact => "exact",
            MatchMethod::Fuzzy => "fuzzy",
            MatchMethod::Aligned => "aligned",
            MatchMethod::Mapped => "mapped",
            MatchMethod::Unwrapped => "without wrappers",
        }
    }
}

/// Why a row has no partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unmatched {
    /// Nothing on the other side has its name.
    Missing,
    /// What has its name has another shape.
    Shape,
    /// What has its name has a dtype that cannot be compared with its own.
    Dtype,
}

impl Unmatched {
    /// The words in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Unmatched::Missing => "missing on the bench side",
            Unmatched::Shape => "shape differs",
            Unmatched::Dtype => "dtype differs",
        }
    }
}

/// A row of the table: a target row and its golden partner, both as indexes into the rows of their sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPair {
    /// The row of the target.
    pub target: usize,
    /// Its partner, or why there is none.
    pub golden: Result<usize, Unmatched>,
    /// How the partner was found, or looked for.
    pub method: MatchMethod,
}
