//! Searching names over all steps, ranks and sides.
//!
//! Names are looked for in memory (`names.rs`), or in the index that has them with step, rank and side; of those that fit, so many as
//! are told are looked up. Everything else of a search counts among them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use regex::{Regex, RegexBuilder};
use rusqlite::functions::FunctionFlags;
use rusqlite::params;

use super::detail::dtypes_of;
use super::open::{number, text};
use super::{Asking, Raw, Scope, Wanted};
use crate::fault::Fault;
use crate::wire::{Facet, FacetValue, Group, Hit, SearchResult, Side};

/// Nodes that are looked up for one search.
const MOST_LOOKED_UP: usize = 1000;
/// The same where something else than a name has to fit.
const MOST_TRIED: usize = 60_000;
/// Hits given at once.
const MOST_HITS: usize = 500;
/// A pattern that needs more memory is refused.
const PATTERN_BYTES: usize = 1 << 20;

/// What names have to hold.
#[derive(Debug, Clone)]
pub(crate) enum Needle {
    Text { text: String, case: bool },
    Pattern(Arc<Regex>),
}

impl Needle {
    /// Of what was typed; nothing if that is empty.
    pub(crate) fn new(query: &str, is_regex: bool, case: bool) -> Result<Option<Needle>, Fault> {
        if query.is_empty() {
            return Ok(None);
        }
        if query.len() > 4096 {
            return Err(Fault::bad("what is searched for is too long"));
        }
        if !is_regex {
            return Ok(Some(Needle::Text { text: query.to_owned(), case }));
        }
        let built = RegexBuilder::new(query).case_insensitive(!case).size_limit(PATTERN_BYTES).build();
        match built {
            Ok(regex) => Ok(Some(Needle::Pattern(Arc::new(regex)))),
            Err(error) => Err(Fault::bad(format!("this is no pattern: {error}"))
                .with_hint("write a regular expression, such as layers\\.(3|4)\\..*forward")),
        }
    }

    /// As the index is searched: cases of letters beyond ASCII count.
    pub(crate) fn fits(&self, name: &str) -> bool {
        match self {
            Needle::Pattern(regex) => regex.is_match(name),
            Needle::Text { text, case: true } => name.contains(text.as_str()),
            Needle::Text { text, case: false } => {
                let (name, text) = (name.as_bytes(), text.as_bytes());
                name.len() >= text.len()
                    && name.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text))
            }
        }
    }

    /// A condition on `node_name` with `?4`, and what stands there.
    fn condition(&self, asking: &Asking<'_>) -> Result<(&'static str, String), Fault> {
        Ok(match self {
            Needle::Text { text, case: true } => ("AND instr(node_name, ?4) > 0", text.clone()),
            Needle::Text { text, case: false } => {
                let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
                ("AND node_name LIKE ?4 ESCAPE '\\'", format!("%{escaped}%"))
            }
            Needle::Pattern(regex) => {
                let regex = regex.clone();
                let flags = FunctionFlags::SQLITE_UTF8
                    | FunctionFlags::SQLITE_DETERMINISTIC
                    | FunctionFlags::SQLITE_DIRECTONLY;
                asking.connection.create_scalar_function("fits_pattern", 1, flags, move |context| {
                    let bytes = context.get_raw(0).as_bytes().unwrap_or_default();
                    Ok(std::str::from_utf8(bytes).is_ok_and(|name| regex.is_match(name)))
                })?;
                ("AND fits_pattern(node_name) AND ?4 IS NOT NULL", String::new())
            }
        })
    }
}

/// What is searched for, and where.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchAsked {
    pub(crate) needle: Option<Needle>,
    pub(crate) step: Option<i64>,
    pub(crate) rank: Option<i64>,
    pub(crate) micro: Option<i64>,
    /// Values of facets, by name; none means all.
    pub(crate) filters: BTreeMap<&'static str, Vec<String>>,
    pub(crate) limit: usize,
}

/// The facets there are.
pub(crate) const FACETS: [&str; 5] = ["side", "type", "verdict", "overflow", "dtype"];

/// What a node is in each facet; several dtypes.
struct Facets {
    values: [Vec<String>; 5],
}

impl Facets {
    fn fits(&self, filters: &BTreeMap<&'static str, Vec<String>>, but: Option<&str>) -> bool {
        FACETS.iter().zip(&self.values).all(|(facet, values)| {
            Some(*facet) == but
                || filters.get(facet).is_none_or(|wanted| wanted.iter().any(|wanted| values.contains(wanted)))
        })
    }
}

impl Asking<'_> {
    pub(crate) fn search(&self, asked: &SearchAsked) -> Result<SearchResult, Fault> {
        let began = Instant::now();
        let has_filters = asked.filters.keys().any(|facet| *facet != "side") || asked.micro.is_some();
        let most = if has_filters { MOST_TRIED } else { MOST_LOOKED_UP };
        let limit = asked.limit.clamp(1, MOST_HITS);
        let (mut hits, mut groups): (Vec<Hit>, BTreeMap<(i64, i64), u64>) = Default::default();
        let mut facets: [BTreeMap<String, u64>; 5] = Default::default();
        let (mut total, mut looked_up, mut is_capped) = (0, 0, false);
        let is_wanted = |side: Side| {
            asked.filters.get("side").is_none_or(|sides| sides.iter().any(|wanted| wanted == side.as_str()))
        };
        let scopes = self.store.scopes().filter(|scope| {
            asked.step.is_none_or(|step| step == scope.step)
                && asked.rank.is_none_or(|rank| rank == scope.rank)
        });
        for scope in scopes {
            let rows = self.fitting(scope, asked.needle.as_ref())?;
            let room = most - looked_up;
            // Beyond that nothing is looked up: only counted, if names alone decide.
            if rows.len() > room {
                is_capped = true;
                if is_wanted(scope.side) && !has_filters {
                    let more = (rows.len() - room) as u64;
                    total += more;
                    *groups.entry((scope.step, scope.rank)).or_default() += more;
                }
            }
            for row in rows.into_iter().take(room) {
                looked_up += 1;
                let Some(raw) = self.raw(scope, Wanted::Row(row))? else { continue };
                if asked.micro.is_some_and(|micro| raw.micro_step != micro) {
                    continue;
                }
                let of = self.facets_of(scope, &raw, row)?;
                for (at, facet) in FACETS.iter().enumerate() {
                    if of.fits(&asked.filters, Some(facet)) {
                        for value in &of.values[at] {
                            *facets[at].entry(value.clone()).or_default() += 1;
                        }
                    }
                }
                if !of.fits(&asked.filters, None) {
                    continue;
                }
                total += 1;
                *groups.entry((scope.step, scope.rank)).or_default() += 1;
                if hits.len() < limit {
                    hits.push(Hit {
                        step: scope.step,
                        rank: scope.rank,
                        side: scope.side,
                        kind: raw.kind.as_str(),
                        tone: self.tone_of(&raw),
                        verdict: self.verdict_of(&raw).map(super::Verdict::as_str),
                        index: raw.index.filter(|index| index.is_finite()),
                        overflow: raw.overflow.map(super::Overflow::as_str),
                        name: raw.name,
                    });
                }
            }
        }
        groups.retain(|_, count| *count > 0);
        let facets = FACETS.into_iter().zip(facets).map(|(name, counts)| {
            let mut values: Vec<FacetValue> =
                counts.into_iter().map(|(value, count)| FacetValue { value, count }).collect();
            values
                .sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.value.cmp(&other.value)));
            Facet { name, values }
        });
        Ok(SearchResult {
            total,
            is_capped,
            hits,
            groups: groups.into_iter().map(|((step, rank), count)| Group { step, rank, count }).collect(),
            facets: facets.collect(),
            elapsed_ms: began.elapsed().as_secs_f64() * 1e3,
        })
    }

    /// Rows whose names fit: looked for in memory, or by the index where that is too small.
    fn fitting(&self, scope: Scope, needle: Option<&Needle>) -> Result<Vec<i64>, Fault> {
        if let Some(names) = self.store.names.get(self, scope)? {
            return names.fitting(needle);
        }
        let (condition, parameter) = match needle {
            Some(needle) => needle.condition(self)?,
            None => ("AND ?4 IS NOT NULL", String::new()),
        };
        let mut statement = self.connection.prepare(&format!(
            "SELECT rowid FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 {condition}"
        ))?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source(), parameter])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.extend(number(row, 0)?);
        }
        Ok(found)
    }

    fn facets_of(&self, scope: Scope, raw: &Raw, row: i64) -> Result<Facets, Fault> {
        let one = |word: &str| vec![word.to_owned()];
        let mut statement = self
            .connection
            .prepare_cached("SELECT output_data, input_data FROM tb_nodes WHERE rowid = ?1")?;
        let mut rows = statement.query(params![row])?;
        let mut dtypes = Vec::new();
        if let Some(row) = rows.next()? {
            for column in 0..2 {
                dtypes_of(&text(row, column)?, &mut dtypes);
            }
        }
        Ok(Facets {
            values: [
                one(scope.side.as_str()),
                one(raw.kind.as_str()),
                one(self.verdict_of(raw).map_or("none", super::Verdict::as_str)),
                one(raw.overflow.map_or("none", super::Overflow::as_str)),
                dtypes,
            ],
        })
    }
}
