//! The names of a hierarchy in one piece of memory, to be searched at the speed of memory. Made of the index of names, once; where
//! names would need too much, the index is searched itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex::bytes::{Regex, RegexBuilder};
use rusqlite::params;

use super::open::number;
use super::search::Needle;
use super::{Asking, Scope};
use crate::fault::Fault;

/// Memory for names of all hierarchies of a graph.
const MOST_BYTES: usize = 110 << 20;

/// All names, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Names {
    text: Vec<u8>,
    /// Where each name ends.
    ends: Vec<u32>,
    rows: Vec<i64>,
}

impl Names {
    fn bytes(&self) -> usize {
        self.text.len() + self.ends.len() * 12
    }

    fn read(asking: &Asking<'_>, scope: Scope, most_bytes: usize) -> Result<Option<Names>, Fault> {
        let mut statement = asking.connection.prepare_cached(
            "SELECT node_name, rowid FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3",
        )?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source()])?;
        let mut names = Names::default();
        while let Some(row) = rows.next()? {
            let name = row.get_ref(0)?;
            names.text.extend_from_slice(name.as_bytes().unwrap_or_default());
            names.ends.push(u32::try_from(names.text.len()).unwrap_or(u32::MAX));
            names.rows.push(number(row, 1)?.unwrap_or(0));
            if names.bytes() > most_bytes {
                return Ok(None);
            }
        }
        Ok(Some(names))
    }

    fn name(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    /// Rows whose names fit.
    pub(super) fn fitting(&self, needle: Option<&Needle>) -> Result<Vec<i64>, Fault> {
        let (text, case) = match needle {
            None => return Ok(self.rows.clone()),
            Some(Needle::Text { text, case }) => (text, *case),
            Some(Needle::Pattern(regex)) => {
                let fits =
                    |at: &usize| std::str::from_utf8(self.name(*at)).is_ok_and(|name| regex.is_match(name));
                return Ok((0..self.rows.len()).filter(fits).map(|at| self.rows[at]).collect());
            }
        };
        let finder: Regex = RegexBuilder::new(&regex::escape(text))
            .case_insensitive(!case)
            .unicode(false)
            .build()
            .map_err(|error| Fault::bad(error.to_string()))?;
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(hit) = finder.find_at(&self.text, from) {
            let at = self.ends.partition_point(|end| (*end as usize) <= hit.start());
            let Some(&end) = self.ends.get(at) else { break };
            if hit.end() <= end as usize {
                found.push(self.rows[at]);
                from = end as usize;
            } else {
                // It is in no name, but where two of them meet.
                from = hit.start() + 1;
            }
        }
        Ok(found)
    }
}

/// Names of the hierarchies that were searched.
#[derive(Debug, Default)]
pub(crate) struct NamesCache {
    known: Mutex<HashMap<Scope, Option<Arc<Names>>>>,
    reading: Mutex<()>,
}

impl NamesCache {
    /// The names of a hierarchy, if there is room for them.
    pub(crate) fn get(&self, asking: &Asking<'_>, scope: Scope) -> Result<Option<Arc<Names>>, Fault> {
        if let Some(names) = self.lock().get(&scope) {
            return Ok(names.clone());
        }
        // Read once: who comes second waits for the first.
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let used = {
            let known = self.lock();
            if let Some(names) = known.get(&scope) {
                return Ok(names.clone());
            }
            known.values().flatten().map(|names| names.bytes()).sum::<usize>()
        };
        let names = Names::read(asking, scope, MOST_BYTES.saturating_sub(used))?.map(Arc::new);
        self.lock().insert(scope, names.clone());
        Ok(names)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Option<Arc<Names>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitting(names: &[&str], needle: &Needle) -> Vec<i64> {
        let mut all = Names::default();
        for (row, name) in names.iter().enumerate() {
            all.text.extend_from_slice(name.as_bytes());
            all.ends.push(all.text.len() as u32);
            all.rows.push(row as i64);
        }
        all.fitting(Some(needle)).unwrap()
    }

    #[test]
    fn names_that_meet_do_not_make_a_hit() {
        let names = ["ab", "cd", "", "xabcx", "AB"];
        for (query, case) in
            [("bc", false), ("ab", false), ("ab", true), ("", true), ("d", false), ("x", true), ("(", false)]
        {
            let needle = Needle::Text { text: query.to_owned(), case };
            let expected: Vec<i64> =
                (0..names.len() as i64).filter(|&row| needle.fits(names[row as usize])).collect();
            let found = fitting(&names, &needle);
            // What is empty is in everything; nobody asks for it.
            assert!(found == expected || query.is_empty(), "{query}: {found:?}");
        }
    }
}
