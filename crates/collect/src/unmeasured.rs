//! Values of a step that could not be measured: counted, and the first ones named, for the line at its end.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::collector::Collector;
use crate::encoder::Encoded;

/// So many are named; more would hide them.
const NAMED: usize = 3;

/// The values of one step that have no figures.
#[derive(Debug, Default)]
pub(crate) struct Unmeasured {
    /// Hashes of names: a value that is encoded again is the same value.
    names: HashSet<u64>,
    first: Vec<(String, String)>,
    told: usize,
}

impl Unmeasured {
    fn add(&mut self, name: &str, reason: &str) {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        if self.names.insert(hasher.finish()) && self.first.len() < NAMED {
            self.first.push((name.to_owned(), reason.to_owned()));
        }
    }

    /// The line, unless it has been told and nothing is new.
    fn take_text(&mut self) -> Option<String> {
        let count = self.names.len();
        if count == self.told {
            return None;
        }
        self.told = count;
        let named: Vec<String> =
            self.first.iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
        let rest = count - named.len();
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        let values = if count == 1 { "1 value".to_owned() } else { format!("{count} values") };
        Some(format!("{values} of this step could not be measured: {}{more}.", named.join(", ")))
    }
}

impl Collector {
    /// Counts what of an encoded value was not measured.
    pub fn note_unmeasured(&self, encoded: &Encoded) {
        if !encoded.unmeasured.is_empty() {
            let mut state = self.state();
            for (name, reason) in &encoded.unmeasured {
                state.unmeasured.add(name, reason);
            }
        }
    }

    /// What of this step could not be measured, in one line; `None` if there is nothing, or nothing new.
    pub fn take_unmeasured(&self) -> Option<String> {
        self.state().unmeasured.take_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_counts_once_and_is_told_once() {
        let mut unmeasured = Unmeasured::default();
        assert_eq!(unmeasured.take_text(), None);
        unmeasured.add("a.input.0", "no memory");
        unmeasured.add("a.input.0", "no memory");
        let one = "1 value of this step could not be measured: a.input.0 (no memory).";
        assert_eq!(unmeasured.take_text().as_deref(), Some(one));
        assert_eq!(unmeasured.take_text(), None);
        for name in ["b", "c", "d", "e"] {
            unmeasured.add(name, "why");
        }
        let five = "5 values of this step could not be measured: a.input.0 (no memory), b (why), c (why) and 2 more.";
        assert_eq!(unmeasured.take_text().as_deref(), Some(five));
    }
}
