//! All there is to know of one node: its values beside those of its partner, where it was called, whom it speaks with.

use rusqlite::params;
use serde_json::{Map, Value};

use super::brief::is_nothing;
use super::open::{some_text, text};
use super::{Asking, Scope, Wanted};
use crate::fault::Fault;
use crate::wire::{Frame, MergedShape, NodeDetail, Peer, Side, Stack, ValueRow, Values};

/// Values of one node that are shown.
const MOST_VALUES: usize = 2000;
/// Lines of one stack that are shown.
const MOST_FRAMES: usize = 500;
/// Peers of one node that are shown.
const MOST_PEERS: usize = 4096;

/// Where lines come from that are nobody's own code.
const LIBRARIES: [&str; 9] = [
    "/torch/",
    "/torch_npu/",
    "/mindspore/",
    "/mindtorch/",
    "/msadapter/",
    "/msprobe/",
    "/torchvision/",
    "/runpy.py",
    "<frozen ",
];

/// What the store holds of a node in long texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    pub(crate) inputs: String,
    pub(crate) outputs: String,
    pub(crate) link: String,
    pub(crate) data_dir: Option<String>,
    pub(crate) id: String,
    stack_id: String,
    merge_info: String,
    peers: String,
}

/// The values of one direction, in order.
pub(crate) fn values_of(json: &str) -> Vec<(String, Map<String, Value>)> {
    let Ok(Value::Object(values)) = serde_json::from_str(json) else { return Vec::new() };
    let value = |(name, value): (String, Value)| match value {
        Value::Object(members) => Some((name, members)),
        _ => None,
    };
    values.into_iter().take(MOST_VALUES).filter_map(value).collect()
}

/// The types of numbers among values.
pub(crate) fn dtypes_of(json: &str, dtypes: &mut Vec<String>) {
    for (_, members) in values_of(json) {
        if let Some(Value::String(dtype)) = members.get("dtype")
            && !dtypes.contains(dtype)
            && dtypes.len() < 16
        {
            dtypes.push(dtype.clone());
        }
    }
}

pub(crate) fn cell_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The peers of a communication call.
pub(crate) fn peers_of(json: &str) -> Vec<Peer> {
    if is_nothing(json) {
        return Vec::new();
    }
    let links = match serde_json::from_str(json) {
        Ok(Value::Array(links)) => links,
        Ok(link @ Value::Object(_)) => vec![link],
        _ => return Vec::new(),
    };
    let mut peers = Vec::new();
    for link in links {
        let way = link.get("communications_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        for (rank, about) in link.get("nodes_info").and_then(Value::as_object).into_iter().flatten() {
            let part = |at: usize| about.get(at).map(cell_text);
            if let (Ok(rank), Some(index), Some(node)) = (rank.parse(), part(0), part(1))
                && peers.len() < MOST_PEERS
            {
                peers.push(Peer { rank, node, way: way.clone(), index });
            }
        }
    }
    peers
}

impl Asking<'_> {
    /// The long texts of a node, with what was changed by hand.
    pub(crate) fn stored(&self, scope: Scope, name: &str) -> Result<Stored, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT input_data, output_data, matched_node_link, dump_data_dir, stack_id, parallel_merge_info, \
             matched_distributed, id FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4 LIMIT 1",
        )?;
        let mut rows = statement.query(params![scope.step, scope.rank, scope.side.source(), name])?;
        let Some(row) = rows.next()? else { return Err(Fault::missing(format!("there is no node {name}"))) };
        let mut stored = Stored {
            inputs: text(row, 0)?,
            outputs: text(row, 1)?,
            link: text(row, 2)?,
            data_dir: some_text(row, 3)?,
            stack_id: text(row, 4)?,
            merge_info: text(row, 5)?,
            peers: text(row, 6)?,
            id: text(row, 7)?,
        };
        if let Some(state) = self.overlay.get(scope, name) {
            stored.inputs.clone_from(&state.inputs);
            stored.outputs.clone_from(&state.outputs);
            stored.link = state.link_json();
        }
        Ok(stored)
    }

    pub(crate) fn detail(&self, scope: Scope, name: &str) -> Result<NodeDetail, Fault> {
        let raw = self.named(scope, name)?;
        let own = self.stored(scope, name)?;
        let there = Scope { side: scope.side.other(), ..scope };
        let partner = match raw.partner.as_deref().filter(|_| self.store.facts.is_comparison) {
            Some(partner) => self.raw(there, Wanted::Name(partner))?,
            None => None,
        };
        let other = match &partner {
            Some(partner) => Some(self.stored(there, &partner.name)?),
            None => None,
        };
        let marks = self.store.marks.get(self, scope)?;
        let sides = match scope.side {
            Side::Target => [Some(&own), other.as_ref()],
            Side::Golden => [other.as_ref(), Some(&own)],
        };
        let texts = |pick: fn(&Stored) -> &str| sides.map(|side| side.map_or("", pick));
        let mut stacks = Vec::new();
        for (side, stored) in [Side::Target, Side::Golden].into_iter().zip(sides) {
            if let Some(stored) = stored {
                stacks.push(Stack { side, frames: self.frames(&stored.stack_id)? });
            }
        }
        let merge_info = match serde_json::from_str(&own.merge_info) {
            Ok(Value::Array(sentences)) => sentences.iter().take(MOST_VALUES).map(cell_text).collect(),
            _ => Vec::new(),
        };
        Ok(NodeDetail {
            brief: self.brief(scope, raw, marks.as_deref())?,
            partner: match partner {
                Some(partner) => Some(self.brief(there, partner, None)?),
                None => None,
            },
            values: vec![
                interleaved("input", texts(|stored| &stored.inputs)),
                interleaved("output", texts(|stored| &stored.outputs)),
            ],
            stacks,
            merge_info,
            merged_shapes: self.merged_shapes(&own.id)?,
            peers: peers_of(&own.peers),
            data_dir: own.data_dir,
        })
    }

    fn frames(&self, id: &str) -> Result<Vec<Frame>, Fault> {
        let mut statement =
            self.connection.prepare_cached("SELECT stack_info FROM tb_stack WHERE id = ?1 LIMIT 1")?;
        let mut rows = statement.query([id])?;
        let Some(row) = rows.next()? else { return Ok(Vec::new()) };
        let Ok(Value::Array(frames)) = serde_json::from_str(&text(row, 0)?) else { return Ok(Vec::new()) };
        let frame = |frame: &Value| {
            let text = cell_text(frame);
            let is_user = !LIBRARIES.iter().any(|library| text.contains(library));
            Frame { text, is_user }
        };
        Ok(frames.iter().take(MOST_FRAMES).map(frame).collect())
    }

    fn merged_shapes(&self, id: &str) -> Result<Vec<MergedShape>, Fault> {
        if !self.store.schema.shapes {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT value, shape, note FROM msprobe_merged_shapes WHERE id = ?1 LIMIT 1000",
        )?;
        let mut rows = statement.query([id])?;
        let mut shapes = Vec::new();
        while let Some(row) = rows.next()? {
            shapes.push(MergedShape { value: text(row, 0)?, shape: text(row, 1)?, note: some_text(row, 2)? });
        }
        Ok(shapes)
    }
}

/// Rows of both sides by position: one of the target, one of the golden side, and so on.
fn interleaved(direction: &'static str, [target, golden]: [&str; 2]) -> Values {
    let sides = [(Side::Target, values_of(target)), (Side::Golden, values_of(golden))];
    let mut columns: Vec<String> = Vec::new();
    for (_, values) in &sides {
        for key in values.iter().flat_map(|(_, members)| members.keys()) {
            if !columns.contains(key) && columns.len() < 64 {
                columns.push(key.clone());
            }
        }
    }
    let most = sides.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let mut rows = Vec::new();
    for at in 0..most {
        let is_matched = sides.iter().all(|(_, values)| values.len() > at);
        for (side, values) in &sides {
            if let Some((name, members)) = values.get(at) {
                let cells = columns.iter().map(|column| members.get(column).map(cell_text)).collect();
                rows.push(ValueRow { side: *side, name: name.clone(), is_matched, cells });
            }
        }
    }
    Values { direction, columns, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_two_sides_take_turns() {
        let values = interleaved(
            "input",
            [r#"{"a": {"Max": "1", "x": "2"}, "b": {"Max": "3"}}"#, r#"{"c": {"Max": "5", "y": "6"}}"#],
        );
        assert_eq!(values.columns, ["Max", "x", "y"]);
        let rows: Vec<(&str, bool)> =
            values.rows.iter().map(|row| (row.name.as_str(), row.is_matched)).collect();
        assert_eq!(rows, [("a", true), ("c", true), ("b", false)]);
        assert_eq!(values.rows[1].cells, [Some("5".to_owned()), None, Some("6".to_owned())]);
    }

    #[test]
    fn peers_are_one_object_or_a_list_of_them() {
        let one =
            r#"{"communications_type": "send", "nodes_info": {"1": ["0.5", "Distributed.recv.0.forward"]}}"#;
        let peer = Peer {
            rank: 1,
            node: "Distributed.recv.0.forward".to_owned(),
            way: "send".to_owned(),
            index: "0.5".to_owned(),
        };
        assert_eq!(peers_of(one), std::slice::from_ref(&peer));
        assert_eq!(peers_of(&format!("[{one}, {one}]")).len(), 2);
        for nothing in ["{}", "[]", "", "x", r#"{"nodes_info": {"x": 1}}"#] {
            assert!(peers_of(nothing).is_empty(), "{nothing}");
        }
    }
}
