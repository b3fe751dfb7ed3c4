//! Where inside a module an error is made, if none of the calls recorded of it makes it.

use super::origin::{Cause, Origin};
use super::records::Judged;
use crate::side::Side;

/// The calls directly in a module between which an error is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    /// The last call that gives what it should; none if the error is there before the first one.
    pub after: Option<String>,
    /// The first call that gets something else; none if the error is made after the last one.
    pub before: Option<String>,
}

impl Inside {
    /// Looks between the parts of the module an origin names.
    pub(super) fn of(
        target: &Side,
        judged: &[Judged],
        origin: Origin,
        parents: &[Option<usize>],
    ) -> Option<Inside> {
        let Cause::Call(whole) = origin.cause else { return None };
        let whole = &judged[whole];
        let is_part = |one: &&Judged| {
            one.pass == whole.pass && parents.get(one.pair.target) == Some(&Some(whole.pair.target))
        };
        let parts: Vec<&Judged> = judged.iter().filter(is_part).collect();
        // One that makes an error of its own, if not enough to be named, is no landmark.
        let first = parts.iter().position(|part| part.incoming().differs() || part.output.differs());
        let first = first.unwrap_or(parts.len());
        if parts.get(first).is_some_and(|part| !part.incoming().differs()) {
            return None;
        }
        let name = |part: &&Judged| target.records[part.pair.target].name.to_string();
        let after = first.checked_sub(1).and_then(|last| parts.get(last)).map(name);
        let before = parts.get(first).map(name);
        (after.is_some() || before.is_some()).then_some(Inside { after, before })
    }
}

impl std::fmt::Display for Inside {
    /// `between A and B`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.after, &self.before) {
            (Some(after), Some(before)) => write!(f, "between {after} and {before}"),
            (Some(after), None) => write!(f, "after {after}, the last call recorded there"),
            (None, Some(before)) => write!(f, "before {before}, the first call recorded there"),
            (None, None) => Ok(()),
        }
    }
}
