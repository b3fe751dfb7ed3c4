//! Files in which commands left their answers, and the pages beside them.

use std::path::{Path, PathBuf};

use msprobe_dump::read::Members;
use serde_json::Value;

use super::scan::{Entries, has_ending, name_of};
use super::{Finding, Source, id_of, status_of, tone_of};
use crate::wire::{Cell, ItemKind};

/// Members that are longer are left out of the list.
const LONGEST_MEMBER: usize = 8 << 20;
/// Parts of one answer that are shown.
const MOST_CELLS: usize = 100_000;

/// Whether a file of this name may hold an answer.
fn may_hold_answer(name: &str) -> bool {
    let is_stamped = |stem: &str| name.starts_with(stem) && has_ending(name, ".json");
    is_stamped("verdict") || is_stamped("summary") || is_stamped("overflow_report_")
}

/// The kind of item a command leaves.
fn kind_of(command: &str) -> Option<ItemKind> {
    match command {
        "compare" | "graph" | "diff" => Some(ItemKind::Comparison),
        "rl compare" => Some(ItemKind::Keydata),
        "grad compare" => Some(ItemKind::Gradients),
        "overflow_check" => Some(ItemKind::Overflow),
        _ => None,
    }
}

/// Some members of the object of a file, one at a time: the file may be long.
pub(super) fn members_of(path: &Path, wanted: &[&str]) -> Result<serde_json::Map<String, Value>, String> {
    let mut found = serde_json::Map::new();
    let mut members = Members::open(path, "").map_err(|error| error.to_string())?;
    loop {
        let member = members
            .next_pulled(|start, pull| {
                let begin = pull.position();
                pull.skip()?;
                let text = pull.since(begin);
                let is_wanted = wanted.contains(&start.key.as_ref()) && text.len() <= LONGEST_MEMBER;
                Ok(is_wanted.then(|| (start.key.clone().into_owned(), text.to_vec())))
            })
            .map_err(|error| error.to_string())?;
        let Some(member) = member else { return Ok(found) };
        if let Ok(Some((key, text))) = member.result
            && let Ok(value) = serde_json::from_slice(&text)
        {
            found.insert(key, value);
        }
    }
}

/// The answer for people who have not asked yet: no list of everything.
fn shortened(mut answer: Value) -> Value {
    for (list, most) in [("evidence", 20), ("not_compared", 20), ("files", 50)] {
        if let Some(list) = answer.get_mut(list).and_then(Value::as_array_mut) {
            list.truncate(most);
        }
    }
    answer
}

impl Finding<'_> {
    /// Adds what the files of a directory are.
    pub(super) fn add_files(&mut self, entries: &Entries) {
        let mut opened = 0;
        let mut vis = Vec::new();
        let pages: Vec<PathBuf> =
            entries.files.iter().filter(|path| has_ending(name_of(path), ".html")).cloned().collect();
        for path in &entries.files {
            let name = name_of(path);
            if has_ending(name, ".vis.db") {
                self.add_store(path, &mut opened);
            } else if has_ending(name, ".trend.db") {
                self.add_trend(path, &mut opened);
            } else if has_ending(name, ".vis") {
                vis.push(path.clone());
            } else if may_hold_answer(name) {
                self.add_answer(path, &pages);
            }
        }
        self.add_vis(&vis);
    }

    fn add_answer(&mut self, path: &Path, pages: &[PathBuf]) {
        let read = members_of(path, &["answer", "dumps", "ranks"]);
        let members = match read {
            Ok(members) => members,
            Err(error) => return self.note(path, format!("it cannot be read: {error}")),
        };
        // Something else that is called so.
        let Some(answer) = members.get("answer").filter(|answer| answer.is_object()) else { return };
        let Some(kind) = answer.get("command").and_then(Value::as_str).and_then(kind_of) else { return };
        let mut item = self.item(kind, path);
        item.tone = tone_of(Some(answer));
        item.cells = cells_of(kind, &members, answer);
        for (list, pick) in [
            (&mut item.steps, (|cell: &Cell| cell.step) as fn(&Cell) -> i64),
            (&mut item.ranks, |cell: &Cell| cell.rank),
        ] {
            list.extend(item.cells.iter().map(pick));
            list.sort_unstable();
            list.dedup();
        }
        item.answer = Some(shortened(answer.clone()));
        if let Some(page) = page_of(kind, path, pages) {
            let id = id_of(&self.root.path, page);
            self.found.pages.insert(id.clone(), page.clone());
            item.report = Some(id);
        }
        self.add(path, Source::Report(path.to_owned()), item);
    }
}

/// The parts of an answer: one for each step and rank.
fn cells_of(kind: ItemKind, members: &serde_json::Map<String, Value>, answer: &Value) -> Vec<Cell> {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_i64);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let cell = |step: i64, rank: i64, status: String, culprit: Option<String>| Cell {
        step,
        rank,
        tone: status_of(&status).map_or(msprobe_report::Tone::Plain, msprobe_report::answer::Status::tone),
        status,
        culprit,
    };
    if let Some(parts) =
        members.get("dumps").and_then(Value::as_array).filter(|_| kind == ItemKind::Comparison)
    {
        let part = |part: &Value| {
            let status = text(part, "status")?;
            Some(cell(
                number(part, "step").unwrap_or(0),
                number(part, "rank").unwrap_or(0),
                status,
                text(part, "culprit"),
            ))
        };
        return parts.iter().take(MOST_CELLS).filter_map(part).collect();
    }
    let scope = answer.get("scope").unwrap_or(&Value::Null);
    let (Some(status), Some(step)) = (text(answer, "status"), number(scope, "step")) else {
        return Vec::new();
    };
    let culprit = answer.get("culprit").and_then(|culprit| text(culprit, "name"));
    vec![cell(step, number(scope, "rank").unwrap_or(0), status, culprit)]
}

/// The page of the same command: of the same time, or of the name it always has.
fn page_of<'p>(kind: ItemKind, path: &Path, pages: &'p [PathBuf]) -> Option<&'p PathBuf> {
    let stem = name_of(path).strip_suffix(".json").unwrap_or_default();
    let same = pages.iter().find(|page| name_of(page).strip_suffix(".html") == Some(stem));
    let begins = match kind {
        ItemKind::Comparison => "compare_result",
        ItemKind::Gradients => "similarities",
        ItemKind::Overflow => "overflow_report_",
        ItemKind::Keydata => "summary",
        ItemKind::Graph | ItemKind::Dump | ItemKind::Trend => return None,
    };
    // The newest has the latest time in its name.
    same.or_else(|| pages.iter().rev().find(|page| name_of(page).starts_with(begins)))
}
