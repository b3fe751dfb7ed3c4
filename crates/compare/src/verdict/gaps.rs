//! What could not be compared: counted by kind, the first ones by name. Two runs are identical only where there is no gap.

use std::fmt::Write;

use crate::error::{Code, CompareError};
use crate::side::Which;

/// Why something could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapKind {
    /// A record or a value that only one side has.
    Unpaired,
    /// A value without the numbers to compare it by.
    Unmeasured,
    /// Values of kinds that cannot be put next to each other.
    Dtype,
    /// A tensor file that is missing, cannot be read, or is not what its record says.
    Files,
    /// A rank that only one side has, or whose dump cannot be read.
    Ranks,
    /// A step that only one side has.
    Steps,
}

impl GapKind {
    /// All of them, in the order of reports.
    pub const ALL: [GapKind; 6] = [
        GapKind::Steps,
        GapKind::Ranks,
        GapKind::Unpaired,
        GapKind::Files,
        GapKind::Unmeasured,
        GapKind::Dtype,
    ];

    /// The name in flags and in verdict.json.
    pub fn as_str(self) -> &'static str {
        match self {
            GapKind::Unpaired => "unpaired",
            GapKind::Unmeasured => "unmeasured",
            GapKind::Dtype => "dtype",
            GapKind::Files => "files",
            GapKind::Ranks => "ranks",
            GapKind::Steps => "steps",
        }
    }

    /// What so many of them are, for people.
    pub fn describe(self, count: usize) -> String {
        let (one, many) = match self {
            GapKind::Unpaired => {
                ("record or value is on one side only", "records or values are on one side only")
            }
            GapKind::Unmeasured => ("value has no numbers to compare", "values have no numbers to compare"),
            GapKind::Dtype => (
                "value is of a kind that cannot be compared with its partner",
                "values are of kinds that cannot be compared with their partners",
            ),
            GapKind::Files => ("tensor file cannot be compared", "tensor files cannot be compared"),
            GapKind::Ranks => ("rank cannot be compared", "ranks cannot be compared"),
            GapKind::Steps => ("step cannot be compared", "steps cannot be compared"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }
}

/// One thing that could not be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What kind of thing.
    pub kind: GapKind,
    /// Its name: a record, a value, a rank, a step.
    pub name: String,
    /// The only side that has it, if that is why.
    pub only: Option<Which>,
    /// Why it could not be compared.
    pub reason: String,
}

impl Gap {
    /// Something that only one side has.
    pub fn only_on(which: Which, kind: GapKind, name: &str) -> Gap {
        let reason = format!("only on the {} side", which);
        Gap { kind, name: name.to_owned(), only: Some(which), reason }
    }
}

/// So many of each kind are kept by name.
const NAMED: usize = 10;

/// Everything that could not be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps {
    counts: [usize; GapKind::ALL.len()],
    named: Vec<Gap>,
}

impl Gaps {
    /// Counts one, and keeps it by name if it is one of the first. `gap` is made only then.
    pub fn add(&mut self, kind: GapKind, gap: impl FnOnce() -> Gap) {
        self.counts[kind as usize] += 1;
        if self.counts[kind as usize] <= NAMED {
            self.named.push(gap());
        }
    }

    /// Takes in what was found elsewhere; `place` is put before the names.
    pub fn extend(&mut self, other: &Gaps, place: &str) {
        for gap in &other.named {
            if self.named.iter().filter(|known| known.kind == gap.kind).count() < NAMED {
                let name = if place.is_empty() { gap.name.clone() } else { format!("{place}: {}", gap.name) };
                self.named.push(Gap { name, ..gap.clone() });
            }
        }
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// How many there are of a kind.
    pub fn count(&self, kind: GapKind) -> usize {
        self.counts[kind as usize]
    }

    /// How many there are.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Whether everything was compared.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Kinds there are some of, in the order of reports.
    pub fn kinds(&self) -> impl Iterator<Item = GapKind> {
        GapKind::ALL.into_iter().filter(|kind| self.count(*kind) > 0)
    }

    /// The first ones of a kind.
    pub fn first(&self, kind: GapKind) -> impl Iterator<Item = &Gap> {
        self.named.iter().filter(move |gap| gap.kind == kind)
    }

    /// Whether there are gaps that nobody expects.
    pub fn is_blocked(&self, allowed: Allowed) -> bool {
        self.kinds().any(|kind| !allowed.has(kind))
    }
}

/// Kinds of gaps the user expects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowed([bool; GapKind::ALL.len()]);

impl Allowed {
    /// Whether gaps of a kind are expected.
    pub fn has(self, kind: GapKind) -> bool {
        self.0[kind as usize]
    }

    /// Reads `unpaired,dtype` or `all`.
    pub fn parse(text: &str) -> Result<Allowed, CompareError> {
        let mut allowed = Allowed::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match GapKind::ALL.into_iter().find(|kind| kind.as_str() == part) {
                Some(kind) => allowed.0[kind as usize] = true,
                None if part == "all" => allowed.0.fill(true),
                None => {
                    let mut names = String::new();
                    for kind in GapKind::ALL {
                        let _ = write!(names, "{}, ", kind.as_str());
                    }
                    return Err(CompareError::new(
                        Code::InvalidParam,
                        format!("{part:?} is no kind of gap that --allow-incomplete knows"),
                    )
                    .with_hint(format!("kinds are {names}or all, separated by commas")));
                }
            }
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_and_the_first_are_named() {
        let mut gaps = Gaps::default();
        for index in 0..25 {
            gaps.add(GapKind::Unpaired, || {
                Gap::only_on(Which::Target, GapKind::Unpaired, &format!("Torch.add.{index}.forward"))
            });
        }
        assert_eq!(gaps.count(GapKind::Unpaired), 25);
        assert_eq!(gaps.first(GapKind::Unpaired).count(), NAMED);
        let mut all = Gaps::default();
        all.extend(&gaps, "rank 1");
        all.extend(&gaps, "rank 2");
        assert_eq!(all.total(), 50);
        assert_eq!(all.first(GapKind::Unpaired).next().unwrap().name, "rank 1: Torch.add.0.forward");
        assert!(all.is_blocked(Allowed::default()));
        assert!(all.is_blocked(Allowed::parse("dtype, ranks").unwrap()));
        assert!(!all.is_blocked(Allowed::parse("dtype,unpaired").unwrap()));
        assert!(!all.is_blocked(Allowed::parse("all").unwrap()));
    }

    #[test]
    fn unknown_kinds_are_refused_with_those_there_are() {
        let error = Allowed::parse("unpaired,shape").unwrap_err();
        assert!(error.message.contains("\"shape\"") && error.hint.unwrap().contains("unmeasured"));
    }
}
