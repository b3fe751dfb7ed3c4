//! Records of `dump.json` or `debug.json` in their file, in the order in which they were opened.
//!
//! A record that may still change is written with room behind its body, filled with blanks, and is rewritten in
//! place. **When it outgrows the room it is written again at the end, under the same name.** Readers of JSON take
//! the last value of a repeated key, and those that keep the order of keys (Python's `dict`, serde_json's
//! `preserve_order`) leave it where it first stood: so the new value appears in the old place.
//!
//! A record that is removed is overwritten with blanks, with the comma before it. The first one has no comma: then
//! the comma of the one behind it goes, which is why the file's first records are remembered until one of them is
//! sure to stay. Records that are closed are forgotten; memory follows the number of open ones.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;

use super::body::RecordBody;
use super::json::{JsonText, push_blanks, push_string};
use super::saved_file::SavedFile;
use super::stream::StreamFile;

/// What a step's main file begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `statistics`, `tensor`, …
    pub task: String,
    /// The level that is in effect.
    pub level: String,
    /// The framework, as it calls itself.
    pub framework: String,
    /// The directory of the tensor files, if there are any.
    pub dump_data_dir: Option<String>,
}

impl Header {
    /// The document up to its first record.
    fn text(&self) -> String {
        let mut text = JsonText::new(0);
        text.begin_object();
        for (key, value) in [("task", &self.task), ("level", &self.level), ("framework", &self.framework)] {
            text.key(key);
            text.string(value);
        }
        text.key("dump_data_dir");
        match &self.dump_data_dir {
            Some(dir) => text.string(dir),
            None => text.null(),
        }
        text.key("data");
        text.raw("{");
        text.finish()
    }
}

const TAIL_EMPTY: &str = "}\n}";
const TAIL: &str = "\n }\n}";
/// Room for a record that had to be written before it had a body.
const PLACEHOLDER_ROOM: usize = 4096;

/// What becomes of a record.
#[derive(Debug)]
pub(super) enum Change {
    /// A body that may change, and the room to keep for it.
    Set { body: RecordBody, room: usize },
    /// The final body.
    Close { body: RecordBody },
    /// The record is to vanish.
    Remove,
    /// The last body is final; without one the record vanishes.
    Abandon,
}

impl Change {
    /// Memory it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Change::Set { body, .. } | Change::Close { body } => body.bytes(),
            Change::Remove | Change::Abandon => 0,
        }
    }

    /// The first file in its body whose fate is not known.
    pub(super) fn unsettled(&mut self) -> Option<&SavedFile> {
        match self {
            Change::Set { body, .. } | Change::Close { body } => body.unsettled(),
            Change::Remove | Change::Abandon => None,
        }
    }
}

/// A stretch of the file that belongs to one record.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where its comma is, or would be.
    start: u64,
    end: u64,
}

/// An open record that has been written.
#[derive(Debug)]
struct Placed {
    name: String,
    /// The first place, and those it moved to since.
    pieces: Vec<Piece>,
    body_at: u64,
    body_len: usize,
    room: usize,
    has_body: bool,
}

/// A record at the front of the file.
#[derive(Debug)]
struct Front {
    /// `None`: it stays for good.
    open: Option<u64>,
    start: u64,
}

/// The file.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: StreamFile,
    placed: HashMap<u64, Placed>,
    /// The records that are first in the file, up to one that stays.
    front: VecDeque<Front>,
    text: String,
}

impl RecordFile {
    pub(super) fn create(path: &Path, header: &Header) -> io::Result<RecordFile> {
        let file = StreamFile::create(path, &header.text(), TAIL_EMPTY)?;
        Ok(RecordFile { file, placed: HashMap::new(), front: VecDeque::new(), text: String::new() })
    }

    pub(super) fn file(&mut self) -> &mut StreamFile {
        &mut self.file
    }

    /// Writes a record that is final.
    pub(super) fn write_closed(&mut self, name: &str, body: &str) {
        self.write_piece(None, name, body, body.len());
    }

    /// Writes a record that may change; without a body, an empty object stands for it.
    pub(super) fn write_open(&mut self, id: u64, name: String, body: Option<(&str, usize)>) {
        let (text, room) = body.unwrap_or(("{}", PLACEHOLDER_ROOM));
        let room = room.max(text.len());
        let (piece, body_at) = self.write_piece(Some(id), &name, text, room);
        let (body_len, has_body) = (text.len(), body.is_some());
        let pieces = vec![piece];
        self.placed.insert(id, Placed { name, pieces, body_at, body_len, room, has_body });
    }

    /// Changes a record that was written open. One that is not known was closed before: nothing happens.
    pub(super) fn change(&mut self, id: u64, change: Change) {
        let Some(mut placed) = self.placed.remove(&id) else { return };
        match change {
            Change::Set { body, room } => {
                let body = body.into_text();
                self.rewrite(id, &mut placed, &body, room.max(2 * body.len()));
                self.placed.insert(id, placed);
            }
            Change::Close { body } => {
                let body = body.into_text();
                self.rewrite(id, &mut placed, &body, body.len());
                self.settle(id);
            }
            Change::Abandon if placed.has_body => self.settle(id),
            Change::Remove | Change::Abandon => self.erase(id, &placed),
        }
    }

    /// Every record that is still open keeps what it has, or vanishes.
    pub(super) fn abandon_all(&mut self) {
        let mut ids: Vec<u64> = self.placed.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.change(id, Change::Abandon);
        }
    }

    fn write_piece(&mut self, open: Option<u64>, name: &str, body: &str, room: usize) -> (Piece, u64) {
        self.file.set_tail(TAIL);
        let text = &mut self.text;
        text.clear();
        text.push_str(if self.front.is_empty() { "\n  " } else { ",\n  " });
        push_string(text, name);
        text.push_str(": ");
        let before = text.len() as u64;
        text.push_str(body);
        push_blanks(text, room - body.len());
        let start = self.file.append(text);
        if self.front.back().is_none_or(|last| last.open.is_some()) {
            self.front.push_back(Front { open, start });
        }
        (Piece { start, end: start + text.len() as u64 }, start + before)
    }

    fn rewrite(&mut self, id: u64, placed: &mut Placed, body: &str, room_elsewhere: usize) {
        placed.has_body = true;
        if body.len() <= placed.room {
            self.text.clear();
            self.text.push_str(body);
            push_blanks(&mut self.text, placed.body_len.saturating_sub(body.len()));
            self.file.patch(placed.body_at, self.text.as_bytes());
        } else {
            let (piece, body_at) = self.write_piece(Some(id), &placed.name, body, room_elsewhere);
            placed.pieces.push(piece);
            (placed.body_at, placed.room) = (body_at, room_elsewhere);
        }
        placed.body_len = body.len();
    }

    /// The record stays for good.
    fn settle(&mut self, id: u64) {
        if let Some(at) = self.front.iter().position(|front| front.open == Some(id)) {
            self.front[at].open = None;
            self.front.truncate(at + 1);
        }
    }

    fn erase(&mut self, id: u64, placed: &Placed) {
        for piece in &placed.pieces {
            self.text.clear();
            push_blanks(&mut self.text, (piece.end - piece.start) as usize);
            self.file.patch(piece.start, self.text.as_bytes());
        }
        let was_first = self.front.front().is_some_and(|front| front.open == Some(id));
        self.front.retain(|front| front.open != Some(id));
        if was_first && let Some(first) = self.front.front() {
            self.file.patch(first.start, b" ");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn header() -> Header {
        Header {
            task: "statistics".into(),
            level: "L1".into(),
            framework: "pytorch".into(),
            dump_data_dir: None,
        }
    }

    fn file(dir: &Path) -> RecordFile {
        RecordFile::create(&dir.join("dump.json"), &header()).unwrap()
    }

    fn seen(file: &mut RecordFile) -> String {
        file.file().commit().unwrap();
        fs::read_to_string(file.file().path()).unwrap()
    }

    /// Names and bodies in the order a reader of JSON sees them.
    fn data(text: &str) -> Vec<(String, Value)> {
        let mut value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let Value::Object(data) = value["data"].take() else { panic!("{text}") };
        data.into_iter().collect()
    }

    fn set(body: &str, room: usize) -> Change {
        Change::Set { body: body.into(), room }
    }

    #[test]
    fn text_is_pythons() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = file(dir.path());
        let head = "{\n \"task\": \"statistics\",\n \"level\": \"L1\",\n \"framework\": \"pytorch\",\n \"dump_data_dir\": null,\n \"data\": {";
        assert_eq!(seen(&mut file), format!("{head}}}\n}}"));
        file.write_closed("a\n", "{}");
        assert_eq!(seen(&mut file), format!("{head}\n  \"a\\n\": {{}}\n }}\n}}"));
        file.write_closed("b", "[]");
        assert_eq!(seen(&mut file), format!("{head}\n  \"a\\n\": {{}},\n  \"b\": []\n }}\n}}"));
        let header = Header { dump_data_dir: Some("./d".into()), ..header() };
        assert!(header.text().contains("\"dump_data_dir\": \"./d\","));
    }

    #[test]
    fn what_outgrows_its_room_keeps_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = file(dir.path());
        file.write_open(0, "a".into(), Some(("[1]", 6)));
        file.write_closed("b", "[2]");
        file.change(0, set("[1, 1]", 0));
        let text = seen(&mut file);
        assert_eq!(text.matches("\"a\"").count(), 1);
        assert_eq!(data(&text)[0].1, serde_json::json!([1, 1]));
        file.change(0, set("[1, 1, 1]", 0));
        let text = seen(&mut file);
        assert_eq!(text.matches("\"a\"").count(), 2);
        file.change(0, Change::Close { body: "[3, 3, 3, 3]".into() });
        file.change(0, Change::Remove);
        let text = seen(&mut file);
        assert_eq!(text.matches("\"a\"").count(), 2, "it moved with room to spare");
        let expected = [("a".into(), serde_json::json!([3, 3, 3, 3])), ("b".into(), serde_json::json!([2]))];
        assert_eq!(data(&text), expected);
        assert!(file.placed.is_empty());
    }

    #[test]
    fn what_never_had_a_body_vanishes() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = file(dir.path());
        file.write_open(0, "a".into(), None);
        file.write_open(1, "b".into(), None);
        file.write_open(2, "c".into(), None);
        assert_eq!(data(&seen(&mut file)).len(), 3);
        file.change(1, set("{\"x\": 1}", 0));
        file.abandon_all();
        assert_eq!(data(&seen(&mut file)), [("b".to_owned(), serde_json::json!({"x": 1}))]);
    }

    proptest! {
        /// Any history against a list of records, after every commit.
        #[test]
        fn histories_end_as_they_should(
            steps in prop::collection::vec((0u8..7, 0usize..8, 0usize..40, 0usize..60), 1..60),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut file = file(dir.path());
            let mut model: Vec<(u64, Option<usize>, bool)> = Vec::new();
            for (id, (what, pick, size, room)) in (0u64..).zip(steps) {
                let body = format!("\"{}\"", "x".repeat(size));
                let open: Vec<usize> = (0..model.len()).filter(|&at| model[at].2).collect();
                let picked = if open.is_empty() { None } else { open.get(pick % open.len()).copied() };
                match (what, picked) {
                    (0, _) => {
                        file.write_closed(&id.to_string(), &body);
                        model.push((id, Some(size), false));
                    }
                    (1, _) => {
                        file.write_open(id, id.to_string(), None);
                        model.push((id, None, true));
                    }
                    (2, _) => {
                        file.write_open(id, id.to_string(), Some((&body, room)));
                        model.push((id, Some(size), true));
                    }
                    (3, Some(at)) => {
                        file.change(model[at].0, set(&body, room));
                        model[at].1 = Some(size);
                    }
                    (4, Some(at)) => {
                        file.change(model[at].0, Change::Close { body: body.into() });
                        (model[at].1, model[at].2) = (Some(size), false);
                    }
                    (5, Some(at)) => {
                        file.change(model[at].0, Change::Remove);
                        model.remove(at);
                    }
                    (6, Some(at)) => {
                        file.change(model[at].0, Change::Abandon);
                        model[at].2 = false;
                        if model[at].1.is_none() {
                            model.remove(at);
                        }
                    }
                    _ => {}
                }
                let text = if pick % 2 == 0 { seen(&mut file) } else { continue };
                let expected: Vec<(String, Value)> = model
                    .iter()
                    .map(|(id, size, _)| {
                        let body = size.map_or(serde_json::json!({}), |size| "x".repeat(size).into());
                        (id.to_string(), body)
                    })
                    .collect();
                prop_assert_eq!(data(&text), expected);
            }
        }
    }
}
