//! What is shown of a node in a list or a picture, and whom it has below and above.

use msprobe_report::Tone;
use rusqlite::{Row, ToSql, params};
use serde_json::Value;

use super::marks::Marks;
use super::open::{number, real, some_text, text};
use super::words::{Kind, Overflow, Verdict};
use super::{Asking, Scope};
use crate::edits::NodeState;
use crate::fault::Fault;
use crate::wire::{Children, NodeBrief, Num, PathTo, Worst};

/// No hierarchy is deeper; one that is leads into itself.
const DEEPEST: usize = 4096;
/// Children that are given at once.
pub(crate) const MOST_CHILDREN: u64 = 5000;

/// A node as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) order: i64,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) parent: Option<String>,
    pub(crate) index: Option<f64>,
    pub(crate) overflow: Option<Overflow>,
    pub(crate) micro_step: i64,
    pub(crate) partner: Option<String>,
    pub(crate) has_peers: bool,
    pub(crate) modified: bool,
    pub(crate) children: u64,
    pub(crate) verdict: Option<Verdict>,
    errors: [Option<f64>; 3],
    orphan: Option<String>,
}

/// How a row is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'w> {
    Name(&'w str),
    Order(i64),
    Row(i64),
}

/// The last of a list of names, which is the partner.
pub(crate) fn last_name(list: &str) -> Option<String> {
    if matches!(list, "" | "[]" | "null") {
        return None;
    }
    match serde_json::from_str(list) {
        Ok(Value::Array(mut names)) => match names.pop() {
            Some(Value::String(name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text of JSON holds nothing.
pub(crate) fn is_nothing(json: &str) -> bool {
    matches!(json.trim(), "" | "[]" | "{}" | "null")
}

/// A name without what it shares with its parent: `relu.ReLU.forward.0`.
pub(crate) fn short_label(name: &str, parent: Option<&str>) -> String {
    let path = parent.and_then(|parent| {
        // Class, direction and number of the parent say nothing of what is in it.
        let mut parts = parent.rsplitn(4, '.');
        let last = [parts.next()?, parts.next()?, parts.next()?];
        let path = parts.next()?;
        last[0].bytes().all(|digit| digit.is_ascii_digit()).then_some(path)
    });
    let rest = path.and_then(|path| name.strip_prefix(path)?.strip_prefix('.'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name).to_owned()
}

impl Raw {
    fn of(row: &Row<'_>) -> rusqlite::Result<Raw> {
        Ok(Raw {
            order: number(row, 0)?.unwrap_or(0),
            name: text(row, 1)?,
            kind: Kind::of(&text(row, 2)?),
            parent: some_text(row, 3)?,
            index: real(row, 4)?,
            overflow: Overflow::of(&text(row, 5)?),
            micro_step: number(row, 6)?.unwrap_or(0),
            partner: last_name(&text(row, 7)?),
            has_peers: !is_nothing(&text(row, 8)?),
            modified: number(row, 9)?.unwrap_or(0) != 0,
            children: number(row, 10)?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
            verdict: some_text(row, 11)?.and_then(|words| Verdict::of(&words)),
            errors: [real(row, 12)?, real(row, 13)?, real(row, 14)?],
            orphan: some_text(row, 15)?,
        })
    }

    /// What was changed by hand counts in place of what was stored.
    fn change(&mut self, state: &NodeState) {
        self.partner = state.link.last().cloned();
        self.index = state.index;
        self.modified = state.modified;
    }
}

impl Asking<'_> {
    /// Columns and tables of a [`Raw`] node, `n` being the node.
    fn raw_sql(&self) -> String {
        let (verdict, join) = if self.store.schema.verdicts {
            (
                "v.verdict, v.error_in, v.error_out, v.tolerated, v.orphan",
                " LEFT JOIN msprobe_verdicts v ON v.id = n.id",
            )
        } else {
            ("NULL, NULL, NULL, NULL, NULL", "")
        };
        let outputs = if self.statistics.is_empty() { "NULL" } else { "n.output_data" };
        format!(
            "SELECT n.node_order, n.node_name, n.node_type, n.up_node, n.precision_index, n.overflow_level, n.micro_step_id, \
             n.matched_node_link, n.matched_distributed, n.modified, (SELECT count(*) FROM tb_nodes c WHERE c.step = n.step \
             AND c.rank = n.rank AND c.data_source = n.data_source AND c.up_node = n.node_name), {verdict}, {outputs} \
             FROM tb_nodes n{join} WHERE "
        )
    }

    pub(crate) fn raws(&self, scope: Scope, rest: &str, params: &[&dyn ToSql]) -> Result<Vec<Raw>, Fault> {
        let mut statement = self.connection.prepare_cached(&format!("{}{rest}", self.raw_sql()))?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let mut raw = Raw::of(row)?;
            let state = self.overlay.get(scope, &raw.name);
            if let Some(state) = state {
                raw.change(state);
            }
            if !self.statistics.is_empty() {
                let stored = text(row, 16)?;
                raw.judge_by(self.statistics, scope.side, state.map_or(&stored, |state| &state.outputs));
            }
            found.push(raw);
        }
        Ok(found)
    }

    /// One node.
    pub(crate) fn raw(&self, scope: Scope, wanted: Wanted<'_>) -> Result<Option<Raw>, Fault> {
        let Scope { step, rank, side } = scope;
        let source = side.source();
        let place = "n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 AND ";
        let found = match wanted {
            Wanted::Name(name) => {
                let rest = format!("{place} n.node_name = ?4 LIMIT 1");
                self.raws(scope, &rest, params![step, rank, source, name])?
            }
            Wanted::Order(order) => {
                let rest = format!("{place} n.node_order = ?4 LIMIT 1");
                self.raws(scope, &rest, params![step, rank, source, order])?
            }
            Wanted::Row(row) => self.raws(scope, "n.rowid = ?1", params![row])?,
        };
        Ok(found.into_iter().next())
    }

    /// The node on top.
    pub(crate) fn root(&self, scope: Scope) -> Result<Raw, Fault> {
        if let Some(root) = self.raw(scope, Wanted::Name(msprobe_graph::names::ROOT))? {
            return Ok(root);
        }
        let Scope { step, rank, side } = scope;
        let rest = "n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 AND n.up_node = '' ORDER BY n.node_order DESC LIMIT 1";
        let found = self.raws(scope, rest, params![step, rank, side.source()])?;
        found.into_iter().next().ok_or_else(|| {
            Fault::missing(format!("there is no {} graph of step {step}, rank {rank}", side.as_str()))
        })
    }

    pub(crate) fn named(&self, scope: Scope, name: &str) -> Result<Raw, Fault> {
        let found = self.raw(scope, Wanted::Name(name))?;
        found.ok_or_else(|| {
            Fault::missing(format!("there is no node {name} in step {}, rank {}", scope.step, scope.rank))
        })
    }

    /// The verdict of a node that counts: none of what was changed since it was judged.
    pub(crate) fn verdict_of(&self, raw: &Raw) -> Option<Verdict> {
        if !self.store.facts.is_comparison {
            return None;
        }
        let is_alone = raw.partner.is_none() && !raw.kind.is_collection();
        let judged = raw.verdict.filter(|_| !raw.modified);
        counted(judged, is_alone, raw.parent.is_none())
    }

    pub(crate) fn tone_of(&self, raw: &Raw) -> Tone {
        tone(&self.store.facts, self.statistics.verdict(self.verdict_of(raw)), raw.index, raw.overflow)
    }

    /// What is shown of a node.
    pub(crate) fn brief(&self, scope: Scope, raw: Raw, marks: Option<&Marks>) -> Result<NodeBrief, Fault> {
        let verdict = self.verdict_of(&raw);
        let is_judged = verdict.is_some_and(|verdict| verdict != Verdict::Unmatched);
        let [error_in, error_out, tolerated] = raw.errors.map(|error| error.filter(|_| is_judged).map(Num));
        let worst = match marks {
            Some(marks) => match marks.worst_below(raw.order) {
                Some((order, overflow)) => self.raw(scope, Wanted::Order(order))?.map(|below| Worst {
                    tone: self.tone_of(&below),
                    index: below.index,
                    verdict: self.verdict_of(&below).map(Verdict::as_str),
                    overflow: overflow.map(Overflow::as_str),
                    name: below.name,
                }),
                None => None,
            },
            None => None,
        };
        Ok(NodeBrief {
            label: short_label(&raw.name, raw.parent.as_deref()),
            kind: raw.kind.as_str(),
            order: raw.order,
            children: raw.children,
            micro_step: raw.micro_step,
            index: raw.index.filter(|index| index.is_finite()),
            verdict: verdict.map(Verdict::as_str),
            tone: self.tone_of(&raw),
            error_in,
            error_out,
            tolerated,
            overflow: raw.overflow.map(Overflow::as_str),
            worst,
            has_peers: raw.has_peers,
            modified: raw.modified,
            name: raw.name,
            parent: raw.parent,
            partner: raw.partner,
            orphan: raw.orphan,
        })
    }

    /// A node and what is in it. Of the first level those of one micro step, if one is asked for.
    pub(crate) fn children(
        &self,
        scope: Scope,
        name: Option<&str>,
        micro: Option<i64>,
        offset: u64,
        limit: u64,
    ) -> Result<Children, Fault> {
        let node = match name {
            Some(name) => self.named(scope, name)?,
            None => self.root(scope)?,
        };
        let is_root = node.parent.is_none() && node.name == self.root(scope)?.name;
        let marks = self.store.marks.get(self, scope)?;
        let Scope { step, rank, side } = scope;
        let source = side.source();
        let below = "n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 AND n.up_node ";
        // What has no parent hangs below the root, or nobody would see it.
        let lost = if is_root { "IN (?4, '') AND n.node_name <> ?4" } else { "= ?4" };
        let one_step =
            if is_root && micro.is_some() { "AND n.micro_step_id = ?5" } else { "AND ?5 IS NOT NULL" };
        let (micro, limit) = (micro.unwrap_or(0), limit.clamp(1, MOST_CHILDREN) as i64);
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        let total = self
            .connection
            .prepare_cached(&format!("SELECT count(*) FROM tb_nodes n WHERE {below}{lost} {one_step}"))?
            .query_row(params![step, rank, source, node.name, micro], |row| number(row, 0))?
            .unwrap_or(0);
        let rest = format!("{below}{lost} {one_step} ORDER BY n.node_order LIMIT ?6 OFFSET ?7");
        let found = self.raws(scope, &rest, params![step, rank, source, node.name, micro, limit, offset])?;
        let children = found
            .into_iter()
            .map(|raw| self.brief(scope, raw, marks.as_deref()))
            .collect::<Result<Vec<NodeBrief>, Fault>>()?;
        let mut node = self.brief(scope, node, marks.as_deref())?;
        node.children = u64::try_from(total).unwrap_or(0);
        Ok(Children { total: node.children, node, children })
    }

    /// Names from the root down to a node.
    pub(crate) fn path_to(&self, scope: Scope, name: &str) -> Result<PathTo, Fault> {
        let mut path = vec![name.to_owned()];
        let mut at = self.named(scope, name)?;
        let root = self.root(scope)?.name;
        while let Some(parent) = at.parent.take() {
            if path.len() > DEEPEST || path.contains(&parent) {
                break;
            }
            path.push(parent.clone());
            match self.raw(scope, Wanted::Name(&parent))? {
                Some(raw) => at = raw,
                None => break,
            }
        }
        if path.last() != Some(&root) {
            path.push(root);
        }
        path.reverse();
        Ok(PathTo { path })
    }
}

/// The verdict that counts. The answer pairs more than the graph does: what has no partner in the graph is without one, unless it
/// made or got an error.
pub(super) fn counted(judged: Option<Verdict>, is_alone: bool, is_root: bool) -> Option<Verdict> {
    let is_error = judged.is_some_and(|verdict| verdict >= Verdict::Inherited);
    if is_alone && !is_error { (!is_root).then_some(Verdict::Unmatched) } else { judged }
}

/// The colour of a node: by the verdict, else by the colours of the file, else by how alarming it is.
pub(super) fn tone(
    facts: &super::Facts,
    verdict: Option<Verdict>,
    index: Option<f64>,
    overflow: Option<Overflow>,
) -> Tone {
    match (verdict, index) {
        (Some(verdict), _) => verdict.tone(),
        (None, Some(index)) if facts.is_comparison => facts.tone_of_index(index),
        _ if facts.is_comparison => Tone::Plain,
        _ => overflow.map_or(Tone::Plain, Overflow::tone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_drop_the_path_of_the_parent() {
        let label = |name, parent| short_label(name, Some(parent));
        assert_eq!(
            label("Module.l1.0.relu.ReLU.forward.0", "Module.l1.0.Block.forward.0"),
            "relu.ReLU.forward.0"
        );
        assert_eq!(label("Torch.add.0.forward", "Module.l1.0.Block.forward.0"), "Torch.add.0.forward");
        assert_eq!(label("Module.net.Net.forward.0", "DefaultModel"), "Module.net.Net.forward.0");
        assert_eq!(short_label("x", None), "x");
        assert_eq!(label("Module.l10.A.forward.0", "Module.l1.B.forward.0"), "Module.l10.A.forward.0");
    }

    #[test]
    fn the_last_name_of_a_way_is_the_partner() {
        assert_eq!(last_name(r#"["DefaultModel", "a"]"#).as_deref(), Some("a"));
        for nothing in ["[]", "", "null", "[1]", "{", "{}"] {
            assert_eq!(last_name(nothing), None, "{nothing}");
        }
    }
}
