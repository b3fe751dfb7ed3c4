//! How bad a node is by some of the statistics of its results: what a reader chooses in place of the index of the file. The choice
//! comes with each question, so that windows are independent.

use super::detail::{cell_text, values_of};
use super::series::number_of;
use super::{Asking, Raw, Verdict};
use crate::fault::Fault;
use crate::wire::Side;
use msprobe_compare::Mode;
use msprobe_graph::compare::Task;

/// Statistics with the members of values that hold their relative errors.
const ERRORS: [(&str, &str); 4] = [
    ("Max", "MaxRelativeErr"),
    ("Min", "MinRelativeErr"),
    ("Mean", "MeanRelativeErr"),
    ("Norm", "NormRelativeErr"),
];

/// A choice among the four statistics; none means the index of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Statistics(u8);

impl Statistics {
    /// Of names, in any order.
    pub(crate) fn of<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Statistics, Fault> {
        let mut chosen = 0;
        for word in words {
            let at = ERRORS.iter().position(|(name, _)| *name == word).ok_or_else(|| {
                Fault::bad(format!("{word} is no statistic")).with_hint("there are Max, Min, Mean and Norm")
            })?;
            chosen |= 1 << at;
        }
        Ok(Statistics(chosen))
    }

    /// Whether the index of the file counts.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The largest relative error of a result, at most 1; 1 where a result is not finite.
    fn index_of(self, outputs: &str) -> f64 {
        let mut index: f64 = 0.0;
        for (_, members) in values_of(outputs) {
            let number = |member: &str| members.get(member).and_then(|value| number_of(&cell_text(value)));
            if ["Max", "Min"].iter().any(|name| number(name).is_some_and(|value| !value.is_finite())) {
                return 1.0;
            }
            for (at, (_, member)) in ERRORS.iter().enumerate() {
                // What is no number is no error.
                if self.0 & 1 << at != 0 {
                    index = index.max(number(member).filter(|error| !error.is_nan()).unwrap_or(0.0));
                }
            }
        }
        index.min(1.0)
    }

    /// The index of a node that counts, of the one that is stored and the values of its results.
    pub(super) fn index(self, stored: Option<f64>, is_collection: bool, outputs: &str) -> Option<f64> {
        match stored {
            Some(_) if !self.is_empty() && !is_collection => Some(self.index_of(outputs)),
            Some(_) if !self.is_empty() => None,
            stored => stored,
        }
    }

    /// The verdict that colours a node: who chooses statistics wants to see those.
    pub(super) fn verdict(self, verdict: Option<Verdict>) -> Option<Verdict> {
        verdict.filter(|verdict| self.is_empty() || *verdict == Verdict::Unmatched)
    }
}

impl<'s> Asking<'s> {
    /// The same question with indexes by some statistics.
    pub(crate) fn by(&self, statistics: Statistics) -> Result<Asking<'s>, Fault> {
        let facts = &self.store.facts;
        let has_errors = facts.is_comparison && facts.task == Task::Values(Mode::Summary).as_str();
        if !statistics.is_empty() && !has_errors {
            return Err(Fault::conflict("this graph has no errors of statistics to choose among")
                .with_hint("only comparisons of statistics have them"));
        }
        Ok(Asking { statistics, ..*self })
    }
}

impl Raw {
    /// Has the index of some statistics in place of its own.
    pub(super) fn judge_by(&mut self, statistics: Statistics, side: Side, outputs: &str) {
        if side == Side::Target {
            self.index = statistics.index(self.index, self.kind.is_collection(), outputs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUTS: &str = r#"{"a.output.0": {"Max": "1.0", "Min": "0.0", "MaxRelativeErr": "25.0%", "MinRelativeErr": "N/A",
        "MeanRelativeErr": "Nan", "NormRelativeErr": "300.0%"}, "a.output.1": {"value": "null"}}"#;

    fn index(words: &[&str], outputs: &str) -> Option<f64> {
        Statistics::of(words.iter().copied()).unwrap().index(Some(0.5), false, outputs)
    }

    #[test]
    fn the_largest_of_the_chosen_errors_counts() {
        assert_eq!(index(&["Max"], OUTPUTS), Some(0.25));
        assert_eq!(index(&["Norm", "Max"], OUTPUTS), Some(1.0), "never above 1");
        assert_eq!(index(&["Min", "Mean"], OUTPUTS), Some(0.0), "what is no number is no error");
        assert_eq!(index(&[], OUTPUTS), Some(0.5), "nothing chosen: that of the file");
        assert_eq!(index(&["Mean"], r#"{"a": {"Max": "nan", "MeanRelativeErr": "Nan"}}"#), Some(1.0));
        assert_eq!(index(&["Mean"], "nonsense"), Some(0.0));
        let max = Statistics::of(["Max"]).unwrap();
        assert_eq!(max.index(None, false, OUTPUTS), None, "what was not compared stays so");
        assert_eq!(max.index(Some(1.0), true, OUTPUTS), None, "a collection has no results");
        assert!(Statistics::of(["max"]).is_err() && Statistics::of([""]).is_err());
    }
}
