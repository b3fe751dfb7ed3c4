//! All nodes of a hierarchy as a table to sort and filter, and as a curve along the order of calls.

use std::collections::HashSet;

use msprobe_report::Tone;
use rusqlite::params;

use super::marks::Mark;
use super::open::{number, text};
use super::search::Needle;
use super::words::weight;
use super::{Asking, Scope, Verdict};
use crate::fault::Fault;
use crate::wire::{NodeBrief, Num, Pairs, Point, Profile, Side};

/// Rows given at once.
const MOST_ROWS: usize = 2000;
/// Rows of a file for spreadsheets.
const MOST_CSV_ROWS: usize = 1_000_000;
/// Points of a curve; of more, the worst of each stretch is kept.
const MOST_POINTS: usize = 2000;

/// Which rows are wanted, and in which order.
#[derive(Debug, Clone)]
pub(crate) struct PairsAsked {
    pub(crate) needle: Option<Needle>,
    /// All, if empty.
    pub(crate) tones: Vec<String>,
    pub(crate) sort: String,
    pub(crate) descending: bool,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    /// A node whose place among the rows is asked for.
    pub(crate) node: Option<String>,
}

/// Something to sort by; what is not there comes last.
fn sort_key(mark: &Mark, by: &str) -> Option<f64> {
    let [error_in, error_out, tolerated] = mark.errors;
    match by {
        "errorOut" => error_out,
        "errorIn" => error_in,
        "tolerated" => tolerated,
        "index" => mark.index,
        "overflow" => mark.overflow.map(|level| level as u8 as f64),
        "verdict" => mark.verdict.map(|verdict| verdict as u8 as f64),
        "tone" => Some(weight(mark.tone).into()),
        "type" => Some(mark.kind as u8 as f64),
        "microStep" => Some(mark.micro_step as f64),
        _ => Some(mark.order as f64),
    }
}

impl Asking<'_> {
    /// The orders of the rows that are wanted, sorted.
    fn pair_orders(&self, scope: Scope, asked: &PairsAsked) -> Result<Vec<i64>, Fault> {
        let marks = self.store.marks.require(self, scope)?;
        let tones: Vec<&str> = asked.tones.iter().map(String::as_str).collect();
        let by_name = matches!(asked.sort.as_str(), "name" | "label" | "partner");
        // Names are not among the marks.
        let named: Option<Vec<i64>> = match &asked.needle {
            None if !by_name => None,
            needle => Some(self.orders_by_name(scope, needle.as_ref())?),
        };
        let among: Option<HashSet<i64>> = named.as_ref().map(|orders| orders.iter().copied().collect());
        let is_row = |mark: &Mark| {
            !mark.is_root
                && (tones.is_empty() || tones.contains(&mark.tone.as_str()))
                && among.as_ref().is_none_or(|among| among.contains(&mark.order))
        };
        if let Some(mut orders) = named.filter(|_| by_name) {
            let rows: HashSet<i64> = marks.iter().filter(is_row).map(|mark| mark.order).collect();
            orders.retain(|order| rows.contains(order));
            if asked.descending {
                orders.reverse();
            }
            return Ok(orders);
        }
        let mut rows: Vec<(Option<f64>, i64)> =
            marks.iter().filter(is_row).map(|mark| (sort_key(&mark, &asked.sort), mark.order)).collect();
        rows.sort_by(|(one, at), (other, there)| {
            let compared = match (one, other) {
                (Some(one), Some(other)) if asked.descending => other.total_cmp(one),
                (Some(one), Some(other)) => one.total_cmp(other),
                (one, other) => other.is_some().cmp(&one.is_some()),
            };
            compared.then(at.cmp(there))
        });
        Ok(rows.into_iter().map(|(_, order)| order).collect())
    }

    /// Orders of nodes whose names fit, in the order of names.
    fn orders_by_name(&self, scope: Scope, needle: Option<&Needle>) -> Result<Vec<i64>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT node_name, node_order FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 ORDER BY node_name",
        )?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source()])?;
        let mut orders = Vec::new();
        while let Some(row) = rows.next()? {
            if needle.is_none_or(|needle| text(row, 0).is_ok_and(|name| needle.fits(&name))) {
                orders.extend(number(row, 1)?);
            }
        }
        Ok(orders)
    }

    pub(crate) fn pairs(&self, scope: Scope, asked: &PairsAsked) -> Result<Pairs, Fault> {
        let orders = self.pair_orders(scope, asked)?;
        let rows: Vec<i64> =
            orders.iter().skip(asked.offset).take(asked.limit.clamp(1, MOST_ROWS)).copied().collect();
        let place = match &asked.node {
            Some(name) => self
                .raw(scope, super::Wanted::Name(name))?
                .and_then(|raw| orders.iter().position(|order| *order == raw.order)),
            None => None,
        };
        Ok(Pairs { total: orders.len() as u64, rows: self.briefs(scope, &rows)?, place })
    }

    /// The same rows as a file for spreadsheets.
    pub(crate) fn pairs_csv(&self, scope: Scope, asked: &PairsAsked) -> Result<String, Fault> {
        let mut csv = String::from(
            "order,name,type,partner,verdict,colour,index,error_in,error_out,tolerated,overflow,micro_step,modified\n",
        );
        let orders = self.pair_orders(scope, asked)?;
        for portion in orders[..orders.len().min(MOST_CSV_ROWS)].chunks(512) {
            if self.patience.is_over() {
                return Err(
                    Fault::bad("the table is too long to be written in time").with_hint("filter it first")
                );
            }
            for brief in self.briefs(scope, portion)? {
                push_csv(&mut csv, &brief);
            }
        }
        Ok(csv)
    }

    /// Errors along the order of calls.
    pub(crate) fn profile(&self, step: i64, rank: i64) -> Result<Profile, Fault> {
        let scope = Scope { step, rank, side: Side::Target };
        let marks = self.store.marks.require(self, scope)?;
        let has_verdicts = self.store.facts.has_verdicts;
        let is_point = |mark: &Mark| {
            !mark.is_root
                && !mark.kind.is_collection()
                && if has_verdicts { mark.errors[1].is_some() } else { mark.index.is_some() }
        };
        let badness = |mark: &Mark| mark.errors[1].or(mark.index).unwrap_or(-1.0);
        let points: Vec<Mark> = marks.iter().filter(is_point).collect();
        let stretch = points.len().div_ceil(MOST_POINTS).max(1);
        let worst = |stretch: &[Mark]| {
            let mut worst: Option<Mark> = None;
            for mark in stretch {
                let is_introduced = mark.verdict == Some(Verdict::Introduced);
                let key = (is_introduced, badness(mark));
                if worst.is_none_or(|known| {
                    let known = (known.verdict == Some(Verdict::Introduced), badness(&known));
                    key.0 && !known.0 || key.0 == known.0 && key.1 > known.1
                }) {
                    worst = Some(*mark);
                }
            }
            worst
        };
        let mut shown = Vec::new();
        for mark in points.chunks(stretch).filter_map(worst) {
            let name = self
                .connection
                .prepare_cached(
                    "SELECT node_name FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_order = ?4 LIMIT 1",
                )?
                .query_row(params![step, rank, scope.side.source(), mark.order], |row| text(row, 0))?;
            let [error_in, error_out, tolerated] = mark.errors.map(|error| error.map(Num));
            shown.push(Point {
                order: mark.order,
                name,
                error_in,
                error_out,
                tolerated,
                index: mark.index,
                tone: mark.tone,
            });
        }
        let answers = &self.store.facts.answers;
        let culprit = answers.iter().find(|answer| answer.step == step && answer.rank == rank);
        let culprit = culprit.and_then(|answer| answer.node.clone());
        let first_bad = || shown.iter().find(|point| point.tone == Tone::Bad).map(|point| point.name.clone());
        let culprit = culprit.or_else(|| if has_verdicts { None } else { first_bad() });
        Ok(Profile { culprit, is_thinned: stretch > 1, points: shown })
    }
}

fn push_csv(csv: &mut String, brief: &NodeBrief) {
    let number = |number: Option<Num>| number.map_or_else(String::new, |Num(number)| number.to_string());
    let cells = [
        brief.order.to_string(),
        brief.name.clone(),
        brief.kind.to_owned(),
        brief.partner.clone().unwrap_or_default(),
        brief.verdict.unwrap_or_default().to_owned(),
        brief.tone.as_str().to_owned(),
        brief.index.map_or_else(String::new, |index| index.to_string()),
        number(brief.error_in),
        number(brief.error_out),
        number(brief.tolerated),
        brief.overflow.unwrap_or_default().to_owned(),
        brief.micro_step.to_string(),
        brief.modified.to_string(),
    ];
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            csv.push(',');
        }
        // A spreadsheet takes such beginnings for formulas.
        let is_formula = cell.starts_with(['=', '+', '@', '\t', '\r'])
            || cell.starts_with('-') && cell.parse::<f64>().is_err();
        let cell = if is_formula { format!("'{cell}") } else { cell.clone() };
        if cell.contains([',', '"', '\n', '\r']) {
            csv.push('"');
            csv.push_str(&cell.replace('"', "\"\""));
            csv.push('"');
        } else {
            csv.push_str(&cell);
        }
    }
    csv.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_no_formulas() {
        let brief = NodeBrief {
            name: "=1+1,\"x\"".to_owned(),
            label: String::new(),
            kind: "api",
            order: -3,
            children: 0,
            parent: None,
            micro_step: 0,
            index: Some(0.5),
            verdict: None,
            tone: Tone::Bad,
            error_in: None,
            error_out: Some(Num(f64::INFINITY)),
            tolerated: None,
            overflow: None,
            partner: Some("-x".to_owned()),
            worst: None,
            orphan: None,
            has_peers: false,
            modified: false,
        };
        let mut csv = String::new();
        push_csv(&mut csv, &brief);
        assert_eq!(csv, "-3,\"'=1+1,\"\"x\"\"\",api,'-x,,bad,0.5,,inf,,,0,false\n");
    }
}
