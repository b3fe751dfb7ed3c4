//! Nodes worth a look, in the order of calls.

use super::marks::Mark;
use super::words::{Overflow, Verdict};
use super::{Asking, Scope, Wanted};
use crate::fault::Fault;
use crate::wire::{Findings, NodeBrief};
use msprobe_report::Tone;

/// Findings given at once.
const MOST: usize = 5000;

/// What makes a node worth a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FindingKind {
    /// What the answer says.
    Verdict(Verdict),
    /// What the colours of the file say.
    Pass,
    Warning,
    Error,
    /// Any level, or one.
    Overflow(Option<Overflow>),
    /// A range of the reference's index: from the first number on, below the second one, or with it.
    Index(f32, f32, bool),
}

/// `index:0.2:0.6`, or `index:0.6:1:closed`. Marks keep the index in four bytes, so that borders are rounded like it.
fn range_of(word: &str) -> Option<FindingKind> {
    let mut parts = word.strip_prefix("index:")?.split(':');
    let mut border = || parts.next()?.parse::<f64>().ok().filter(|border| border.is_finite());
    let (low, high) = (border()? as f32, border()? as f32);
    let is_closed = match parts.next() {
        None => false,
        Some("closed") => true,
        Some(_) => return None,
    };
    parts.next().is_none().then_some(FindingKind::Index(low, high, is_closed))
}

impl FindingKind {
    pub(crate) fn of(word: &str) -> Option<FindingKind> {
        match word {
            "pass" => Some(FindingKind::Pass),
            "warning" => Some(FindingKind::Warning),
            "error" => Some(FindingKind::Error),
            "overflow" => Some(FindingKind::Overflow(None)),
            _ => {
                let level = Overflow::of(word).map(|level| FindingKind::Overflow(Some(level)));
                let verdict = || Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == word);
                level.or_else(|| verdict().map(FindingKind::Verdict)).or_else(|| range_of(word))
            }
        }
    }

    fn holds(self, mark: &Mark, by_index: Option<Tone>) -> bool {
        match self {
            FindingKind::Index(low, high, is_closed) => {
                mark.index.filter(|_| !mark.is_alone).is_some_and(|index| {
                    let index = index as f32;
                    // A range may be a single number.
                    index == low || index >= low && (index < high || is_closed && index == high)
                })
            }
            FindingKind::Verdict(verdict) => mark.verdict == Some(verdict),
            FindingKind::Pass => by_index == Some(Tone::Good),
            FindingKind::Warning => by_index == Some(Tone::Warning),
            FindingKind::Error => by_index == Some(Tone::Bad),
            FindingKind::Overflow(None) => mark.overflow.is_some(),
            FindingKind::Overflow(level) => mark.overflow == level,
        }
    }
}

/// Which findings are wanted.
#[derive(Debug, Clone)]
pub(crate) struct FindingsAsked {
    pub(crate) kinds: Vec<FindingKind>,
    pub(crate) leaves: bool,
    pub(crate) micro: Option<i64>,
    pub(crate) after: Option<i64>,
    pub(crate) limit: usize,
}

impl Asking<'_> {
    pub(crate) fn findings(&self, scope: Scope, asked: &FindingsAsked) -> Result<Findings, Fault> {
        let marks = self.store.marks.require(self, scope)?;
        let facts = &self.store.facts;
        let is_one = |mark: &Mark| {
            // Between two nodes without a partner there is nothing to grade.
            let by_index = mark.index.filter(|_| !mark.is_alone).map(|index| facts.tone_of_index(index));
            !mark.kind.is_collection()
                && !mark.is_root
                && (mark.is_leaf || !asked.leaves)
                && asked.micro.is_none_or(|micro| mark.micro_step == micro)
                && asked.kinds.iter().any(|kind| kind.holds(mark, by_index))
        };
        let mut total = 0;
        let mut orders = Vec::new();
        for mark in marks.iter().filter(is_one) {
            total += 1;
            if asked.after.is_none_or(|after| mark.order > after) && orders.len() < asked.limit.clamp(1, MOST)
            {
                orders.push(mark.order);
            }
        }
        Ok(Findings { total, findings: self.briefs(scope, &orders)? })
    }

    /// What is shown of nodes of these orders. What is worst below them is not looked up.
    pub(crate) fn briefs(&self, scope: Scope, orders: &[i64]) -> Result<Vec<NodeBrief>, Fault> {
        let mut found = Vec::with_capacity(orders.len());
        for &order in orders {
            if let Some(raw) = self.raw(scope, Wanted::Order(order))? {
                found.push(self.brief(scope, raw, None)?);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_the_index_are_read() {
        assert_eq!(FindingKind::of("index:0.2:0.6"), Some(FindingKind::Index(0.2, 0.6, false)));
        assert_eq!(FindingKind::of("index:0.6:1:closed"), Some(FindingKind::Index(0.6, 1.0, true)));
        for word in [
            "index",
            "index:",
            "index:0.2",
            "index:a:1",
            "index:0:inf",
            "index:0:1:open",
            "index:0:1:closed:x",
        ] {
            assert_eq!(FindingKind::of(word), None, "{word}");
        }
    }
}
