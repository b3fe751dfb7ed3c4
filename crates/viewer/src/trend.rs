//! How training went: one statistic of one metric of many targets over steps and ranks, as the newest reference leaves it
//! (`*.trend.db`). Read by the key of its one long table; never all of it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use crate::fault::Fault;
use crate::store::{FileKind, LOOK_AFTER, Patience, columns, number, open_to_read, real, text};
use crate::wire::{Num, Series, SeriesPoint};

const KIND: FileKind = FileKind {
    what: "a database of trends",
    hint: "make it again with the tool that wrote it; ask for fewer targets if it is intact",
};
/// Names of the file that are listed: metrics, statistics, tags.
const MOST_NAMES: usize = 5000;
/// Steps or ranks that are gone through one by one.
const MOST_PLACES: usize = 200_000;
/// What one picture holds.
const MOST_ROWS: usize = 300;
const MOST_COLUMNS: usize = 1000;
const MOST_CELLS: usize = 100_000;
const MOST_POINTS: usize = 20_000;
const MOST_TAGS: usize = 8;
/// Larger numbers stand for infinity in these files.
const INFINITE: f64 = 1e9;

const TABLES: [(&str, &[&str]); 6] = [
    ("monitoring_targets", &["target_id", "target_name", "vpp_stage", "micro_step"]),
    ("monitoring_metrics", &["metric_id", "metric_name"]),
    ("monitoring_tags", &["tag_id", "tag_name", "category", "metric_id"]),
    ("tag_target_mapping", &["tag_id", "target_id"]),
    ("trend_data", &KEY),
    ("global_stats", &["min_step", "max_step", "max_rank"]),
];
const KEY: [&str; 4] = ["rank", "step", "target_id", "metric_id"];

/// What can be chosen.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrendInfo {
    metrics: Vec<TrendMetric>,
    tags: Vec<TrendTag>,
    ranks: Vec<i64>,
    targets: i64,
}

/// A metric, with the statistics it has numbers of.
#[derive(Debug, Serialize)]
struct TrendMetric {
    name: String,
    statistics: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TrendTag {
    name: String,
    category: String,
    metric: String,
}

/// A statistic of targets over the steps of a rank.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrendMap {
    rows: Vec<TrendTarget>,
    columns: Vec<i64>,
    cells: Vec<(usize, usize, Num)>,
    /// There are more targets than rows.
    is_cut: bool,
    /// Only each so many-th step is shown.
    every: usize,
}

#[derive(Debug, Clone, Serialize)]
struct TrendTarget {
    id: i64,
    label: String,
}

/// Which numbers are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrendAsked {
    pub(crate) metric: String,
    pub(crate) statistic: String,
    pub(crate) rank: Option<i64>,
    pub(crate) tags: Vec<String>,
    pub(crate) text: String,
}

/// A file that is open.
pub(crate) struct Trend {
    connection: Connection,
    statistics: Vec<String>,
}

/// First and last step, and the largest rank.
pub(crate) struct Extent {
    pub(crate) steps: (i64, i64),
    pub(crate) last_rank: i64,
}

fn number_of(stored: f64) -> f64 {
    if stored.abs() <= INFINITE { stored } else { f64::INFINITY.copysign(stored) }
}

/// Some of many, evenly, the first among them.
fn thinned(all: &[i64], most: usize) -> (Vec<i64>, usize) {
    let every = all.len().div_ceil(most.max(1)).max(1);
    (all.iter().step_by(every).copied().collect(), every)
}

impl Trend {
    pub(crate) fn open(path: &Path, patience: &Patience) -> Result<Trend, Fault> {
        let mut connection = open_to_read(path, &KIND)?;
        let mut statistics = Vec::new();
        for (table, needed) in TABLES {
            let found = columns(&connection, table)?;
            if let Some(missing) = needed.iter().find(|needed| !found.iter().any(|column| column == *needed))
            {
                return Err(Fault::unreadable(format!(
                    "this is no database of trends: the table {table} has no column {missing}"
                ))
                .with_hint(KIND.hint));
            }
            if table == "trend_data" {
                statistics = found.into_iter().filter(|name| !KEY.contains(&name.as_str())).collect();
            }
        }
        let asked = patience.clone();
        connection.progress_handler(LOOK_AFTER, Some(move || asked.is_over()))?;
        Ok(Trend { connection, statistics })
    }

    pub(crate) fn extent(&self) -> Result<Extent, Fault> {
        let found = self
            .connection
            .query_row("SELECT min_step, max_step, max_rank FROM global_stats LIMIT 1", [], |row| {
                Ok((number(row, 0)?, number(row, 1)?, number(row, 2)?))
            })
            .optional()?;
        let (first, last, rank) = found.unwrap_or_default();
        Ok(Extent { steps: (first.unwrap_or(0), last.unwrap_or(0)), last_rank: rank.unwrap_or(0) })
    }

    /// The values of a part of the key, one after the other: each is looked up by the key.
    fn places(&self, sql: &str, rank: Option<i64>) -> Result<Vec<i64>, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut places: Vec<i64> = Vec::new();
        while places.len() < MOST_PLACES {
            let after = places.last().copied().unwrap_or(i64::MIN);
            let next = statement.query_row(params![after, rank], |row| number(row, 0))?;
            match next {
                Some(next) if next > after => places.push(next),
                _ => break,
            }
        }
        Ok(places)
    }

    fn ranks(&self) -> Result<Vec<i64>, Fault> {
        self.places("SELECT min(rank) FROM trend_data WHERE rank > ?1 AND ?2 IS NULL", None)
    }

    fn steps(&self, rank: i64) -> Result<Vec<i64>, Fault> {
        self.places("SELECT min(step) FROM trend_data WHERE rank = ?2 AND step > ?1", Some(rank))
    }

    pub(crate) fn info(&self) -> Result<TrendInfo, Fault> {
        let mut metrics = Vec::new();
        let mut statement =
            self.connection.prepare("SELECT metric_name FROM monitoring_metrics ORDER BY metric_id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if metrics.len() >= MOST_NAMES {
                break;
            }
            let name = text(row, 0)?;
            metrics.push(TrendMetric { statistics: self.statistics_of(&name)?, name });
        }
        let mut tags = Vec::new();
        let mut statement = self.connection.prepare(
            "SELECT g.tag_name, g.category, m.metric_name FROM monitoring_tags g \
             JOIN monitoring_metrics m ON m.metric_id = g.metric_id ORDER BY g.category, g.tag_name LIMIT ?1",
        )?;
        let mut rows = statement.query([MOST_NAMES as i64])?;
        while let Some(row) = rows.next()? {
            tags.push(TrendTag { name: text(row, 0)?, category: text(row, 1)?, metric: text(row, 2)? });
        }
        let targets = self
            .connection
            .query_row("SELECT count(*) FROM monitoring_targets", [], |row| number(row, 0))?
            .unwrap_or(0);
        Ok(TrendInfo { metrics, tags, ranks: self.ranks()?, targets })
    }

    /// As the file lists them; all that there are where it does not.
    fn statistics_of(&self, metric: &str) -> Result<Vec<String>, Fault> {
        let known = columns(&self.connection, "global_stats")?;
        let listed = if known.iter().any(|column| column == metric) {
            let sql = format!("SELECT {} FROM global_stats LIMIT 1", quoted(metric));
            self.connection.query_row(&sql, [], |row| text(row, 0)).optional()?.unwrap_or_default()
        } else {
            String::new()
        };
        let listed: Vec<&str> = listed.split(',').map(str::trim).collect();
        let is_listed = |name: &&String| listed.contains(&name.as_str());
        let own: Vec<String> = self.statistics.iter().filter(is_listed).cloned().collect();
        Ok(if own.is_empty() { self.statistics.clone() } else { own })
    }

    fn metric(&self, name: &str) -> Result<i64, Fault> {
        self.connection
            .query_row("SELECT metric_id FROM monitoring_metrics WHERE metric_name = ?1", [name], |row| {
                number(row, 0)
            })
            .optional()?
            .flatten()
            .ok_or_else(|| Fault::missing(format!("there is no metric {name}")))
    }

    /// The question for one number, by rank, step, target and metric.
    fn sql(&self, statistic: &str) -> Result<String, Fault> {
        if !self.statistics.iter().any(|name| name == statistic) {
            return Err(Fault::missing(format!("there is no statistic {statistic}")));
        }
        Ok(format!(
            "SELECT {} FROM trend_data WHERE rank = ?1 AND step = ?2 AND target_id = ?3 AND metric_id = ?4",
            quoted(statistic)
        ))
    }

    pub(crate) fn map(&self, asked: &TrendAsked) -> Result<TrendMap, Fault> {
        let (metric, sql) = (self.metric(&asked.metric)?, self.sql(&asked.statistic)?);
        let rank = asked.rank.or_else(|| self.ranks().ok()?.first().copied()).unwrap_or(0);
        let (steps, every) = thinned(&self.steps(rank)?, MOST_COLUMNS);
        let mut map = TrendMap { rows: Vec::new(), columns: steps, cells: Vec::new(), is_cut: false, every };
        let mut read = self.connection.prepare_cached(&sql)?;
        let mut statement = self.connection.prepare_cached(
            "SELECT target_id, target_name, vpp_stage, micro_step FROM monitoring_targets \
             WHERE ?1 = '' OR instr(lower(target_name), lower(?1)) > 0 ORDER BY target_id",
        )?;
        let mut targets = statement.query([&asked.text])?;
        while let Some(row) = targets.next()? {
            let target = target_of(row)?;
            if !self.has_tags(target.id, metric, &asked.tags)? {
                continue;
            }
            let at = map.rows.len();
            let before = map.cells.len();
            for (column, step) in map.columns.iter().enumerate() {
                let found = read
                    .query_row(params![rank, step, target.id, metric], |row| real(row, 0))
                    .optional()?
                    .flatten();
                if let Some(found) = found {
                    map.cells.push((at, column, Num(number_of(found))));
                }
            }
            if map.cells.len() == before {
                continue;
            }
            if at >= MOST_ROWS || map.cells.len() > MOST_CELLS {
                map.cells.truncate(before);
                map.is_cut = true;
                break;
            }
            map.rows.push(target);
        }
        Ok(map)
    }

    /// Several tags are all meant.
    fn has_tags(&self, target: i64, metric: i64, tags: &[String]) -> Result<bool, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT count(*) FROM monitoring_tags g JOIN tag_target_mapping m ON m.tag_id = g.tag_id \
             WHERE g.tag_name = ?1 AND g.metric_id = ?2 AND m.target_id = ?3",
        )?;
        for tag in tags.iter().take(MOST_TAGS) {
            if statement.query_row(params![tag, metric, target], |row| number(row, 0))?.unwrap_or(0) == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One target over steps and ranks.
    pub(crate) fn lines(&self, asked: &TrendAsked, target: i64) -> Result<Series, Fault> {
        let (metric, sql) = (self.metric(&asked.metric)?, self.sql(&asked.statistic)?);
        let node = self
            .connection
            .query_row(
                "SELECT target_id, target_name, vpp_stage, micro_step FROM monitoring_targets WHERE target_id = ?1",
                [target],
                target_of,
            )
            .optional()?
            .ok_or_else(|| Fault::missing("there is no such target"))?;
        let mut series =
            Series { node: node.label, values: Vec::new(), measures: Vec::new(), points: Vec::new() };
        let mut read = self.connection.prepare_cached(&sql)?;
        let ranks = self.ranks()?;
        for &rank in &ranks {
            let (steps, _) = thinned(&self.steps(rank)?, (MOST_POINTS / ranks.len()).clamp(2, MOST_COLUMNS));
            for step in steps {
                let found = read
                    .query_row(params![rank, step, target, metric], |row| real(row, 0))
                    .optional()?
                    .flatten();
                let number = found.map(|found| Num(number_of(found)));
                series.points.push(SeriesPoint { step, rank, number });
            }
            if series.points.len() >= MOST_POINTS {
                break;
            }
        }
        Ok(series)
    }
}

fn target_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<TrendTarget> {
    let mut label = text(row, 1)?;
    for (word, value) in [("stage", number(row, 2)?), ("micro step", number(row, 3)?)] {
        if let Some(value) = value.filter(|value| *value != 0) {
            label = format!("{label} ({word} {value})");
        }
    }
    Ok(TrendTarget { id: number(row, 0)?.unwrap_or(0), label })
}

/// A name of the file as a name of a column, whatever it holds.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_limit_are_infinite() {
        assert_eq!(number_of(1e9), 1e9);
        assert_eq!(number_of(1e9 + 1.0), f64::INFINITY);
        assert_eq!(number_of(-1e9 - 1.0), f64::NEG_INFINITY);
    }

    #[test]
    fn steps_are_thinned_evenly() {
        let all: Vec<i64> = (0..2500).collect();
        let (some, every) = thinned(&all, 1000);
        assert_eq!((some.len(), every, some[1]), (834, 3, 3));
        assert_eq!(thinned(&[], 10), (Vec::new(), 1));
        assert_eq!(thinned(&[4, 9], 10), (vec![4, 9], 1));
    }
}
