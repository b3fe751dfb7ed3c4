//! Saving pairs where the reference's plugin finds them: rows of a `.vis.db` in one transaction, a `.vis` written anew and put
//! in the place of the old one. Whole, or not at all.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use msprobe_dump::read::{Json, Members};
use msprobe_dump::write::JsonText;
use msprobe_tensor::files::{Links, open_regular};
use rusqlite::params;

use super::{Journal, NodeState};
use crate::fault::Fault;
use crate::json_text::write_json;
use crate::prepare::outline;
use crate::store::{Scope, open_for_writing};
use crate::wire::Side;

/// Saves into a store. `modified` tells the plugin of the reference what was done by hand.
pub(crate) fn save_store(path: &Path, journal: &Journal) -> Result<u64, Fault> {
    let mut connection = open_for_writing(path)?;
    let transaction = connection.transaction()?;
    let mut written = 0;
    {
        let mut update = transaction.prepare(
            "UPDATE tb_nodes SET matched_node_link = ?5, precision_index = ?6, input_data = ?7, output_data = ?8, modified = 1 \
             WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4",
        )?;
        for (scope, name, state) in journal.unsaved() {
            let Scope { step, rank, side } = scope;
            let rows = update.execute(params![
                step,
                rank,
                side.source(),
                name,
                state.link_json(),
                state.index,
                state.inputs,
                state.outputs
            ])?;
            if rows != 1 {
                return Err(Fault::conflict(format!("{name} is no longer in the file as it was"))
                    .with_hint("open the file again"));
            }
            written += 1;
        }
    }
    transaction.commit()?;
    Ok(written)
}

/// Where the value of a node stands in a `.vis` file.
type Span = (u64, u64);

/// Saves into the `.vis` of one rank.
pub(crate) fn save_vis(path: &Path, step: i64, rank: i64, journal: &Journal) -> Result<u64, Fault> {
    let mut changed: HashMap<(Side, &str), &NodeState> = HashMap::new();
    for (scope, name, state) in journal.unsaved() {
        if (scope.step, scope.rank) == (step, rank) {
            changed.insert((scope.side, name), state);
        }
    }
    if changed.is_empty() {
        return Ok(0);
    }
    let mut spans: Vec<(Span, String)> = Vec::new();
    let outline = outline(path)?;
    for (side, offset) in outline.sides {
        let depth = if outline.is_comparison { 3 } else { 2 };
        let mut members = Members::open_at(path, "node", offset).map_err(|error| unreadable(&error))?;
        loop {
            let found = members
                .next_pulled(|start, pull| {
                    let state = if start.inner { changed.get(&(side, start.key.as_ref())) } else { None };
                    let begin = pull.position();
                    pull.skip()?;
                    let text = state.map(|state| rewritten(pull.since(begin), state, depth));
                    Ok((start.offset, text.transpose()?))
                })
                .map_err(|error| unreadable(&error))?;
            let Some(found) = found else { break };
            let (offset, text) = found.result.map_err(|(what, at)| {
                Fault::unreadable(format!("{}: {what} at byte {at} of a node", path.display()))
            })?;
            if let Some(text) = text {
                spans.push(((offset, found.end), text));
            }
        }
    }
    if spans.len() != changed.len() {
        return Err(Fault::conflict(format!("{} is not the file it was", path.display()))
            .with_hint("open the file again"));
    }
    spans.sort();
    let mut source = open_regular(path, Links::Refuse)?;
    msprobe_report::output::save(path, |out| splice(&mut source, out, &spans))?;
    Ok(spans.len() as u64)
}

/// Copies a file with other texts at some places.
fn splice(source: &mut File, out: &mut File, spans: &[(Span, String)]) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let mut at = 0;
    source.seek(SeekFrom::Start(0))?;
    for ((start, end), text) in spans {
        io::copy(&mut source.take(start.saturating_sub(at)), &mut out)?;
        out.write_all(text.as_bytes())?;
        at = *end;
        source.seek(SeekFrom::Start(at))?;
    }
    io::copy(source, &mut out)?;
    out.flush()
}

fn unreadable(error: &msprobe_dump::read::ReadError) -> Fault {
    Fault::unreadable(error.to_string())
}

/// A node of a `.vis` file with another link, index and values.
fn rewritten(text: &[u8], state: &NodeState, depth: usize) -> Result<String, (&'static str, usize)> {
    let Json::Map(members) = Json::parse(text)? else { return Err(("no object", 0)) };
    let mut json = JsonText::indented(4);
    json.begin_object();
    for (key, value) in &members {
        json.key(key);
        match key.as_ref() {
            "matched_node_link" => {
                json.begin_array();
                state.link.iter().for_each(|name| json.string(name));
                json.end_array();
            }
            "input_data" => write_json(&mut json, &Json::parse(state.inputs.as_bytes())?),
            "output_data" => write_json(&mut json, &Json::parse(state.outputs.as_bytes())?),
            "data" => write_data(&mut json, value, state),
            _ => write_json(&mut json, value),
        }
    }
    json.end_object();
    // No text of JSON has a line break in it.
    Ok(json.finish().replace('\n', &format!("\n{}", "    ".repeat(depth))))
}

fn write_data(json: &mut JsonText, data: &Json<'_>, state: &NodeState) {
    json.begin_object();
    if let Some(index) = state.index {
        json.key("precision_index");
        if index.fract() == 0.0 { json.int(index as i128) } else { json.float(index) }
    }
    if let Some(agree) = state.checksums_agree {
        json.key("Result");
        json.string(if agree { "pass" } else { "Different" });
    }
    if let Json::Map(members) = data {
        for (key, value) in members {
            let is_golden_result =
                key == "Result" && state.index.is_some() && state.checksums_agree.is_none();
            if !matches!(key.as_ref(), "precision_index" | "Result") || is_golden_result {
                json.key(key);
                write_json(json, value);
            }
        }
    }
    json.end_object();
}
