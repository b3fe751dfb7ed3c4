//! Call stacks in `stack.json`, `{"0": [[names…], [frames…]], "1": …}`: each stack once, with the names of all
//! records that it leads to.
//!
//! A group gets names long after it was written, so its list of names has blanks behind it to grow into. When they
//! are used up, the whole group is written again at the end under the same key, with twice the room; readers of
//! JSON take the last value of a repeated key and leave it where it first stood. What a group holds is read back
//! from the file for that, not kept in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::json::{push_blanks, push_string};
use super::stream::StreamFile;

const TAIL_EMPTY: &str = "}";
const TAIL: &str = "\n}";
/// The least room of a list of names.
const LEAST_ROOM: usize = 128;
/// What closes the list of names, and what opens the list of frames.
const BETWEEN: &str = "\n  ],\n  ";

/// New names of groups, and the frames of new groups.
#[derive(Debug, Default)]
pub(super) struct GroupNews {
    /// By the group's number: its frames if it is new, and names to add to its list, as JSON text.
    groups: BTreeMap<usize, (Option<Vec<String>>, String)>,
}

impl GroupNews {
    /// Notes a name, and tells how many bytes that takes.
    pub(super) fn add(&mut self, group: usize, name: &str, frames: Option<Vec<String>>) -> usize {
        let (known, names) = self.groups.entry(group).or_default();
        let before = names.len();
        names.push_str(",\n   ");
        push_string(names, name);
        let mut bytes = names.len() - before;
        if let Some(frames) = frames {
            bytes += frames.iter().map(String::len).sum::<usize>();
            *known = Some(frames);
        }
        bytes
    }
}

/// Where the parts of a group are in the file.
#[derive(Debug, Clone, Copy)]
struct Group {
    names_at: u64,
    names_len: usize,
    room: usize,
    frames_len: usize,
}

/// The file.
#[derive(Debug)]
pub(super) struct GroupFile {
    file: StreamFile,
    groups: Vec<Group>,
    text: String,
}

impl GroupFile {
    pub(super) fn create(path: &Path) -> io::Result<GroupFile> {
        let file = StreamFile::create(path, "{", TAIL_EMPTY)?;
        Ok(GroupFile { file, groups: Vec::new(), text: String::new() })
    }

    pub(super) fn file(&mut self) -> &mut StreamFile {
        &mut self.file
    }

    /// Writes what is new. Must be followed by a commit before it is called again: groups are read back.
    pub(super) fn write(&mut self, news: GroupNews) -> io::Result<()> {
        for (number, (frames, names)) in news.groups {
            match (self.groups.get(number).copied(), frames) {
                (Some(group), _) => self.extend(number, group, &names)?,
                (None, frames) => {
                    // The list's first name has no comma before it.
                    let names = names.strip_prefix(',').unwrap_or(&names);
                    let group = self.write_group(number, names, &frames_text(&frames.unwrap_or_default()));
                    self.groups.push(group);
                }
            }
        }
        Ok(())
    }

    fn extend(&mut self, number: usize, group: Group, names: &str) -> io::Result<()> {
        if group.names_len + names.len() <= group.room {
            self.file.patch(group.names_at + group.names_len as u64, names.as_bytes());
            self.groups[number].names_len += names.len();
            return Ok(());
        }
        let mut all = self.read(group.names_at, group.names_len)?;
        all.push_str(names);
        let frames_at = group.names_at + (group.room + BETWEEN.len()) as u64;
        let frames = self.read(frames_at, group.frames_len)?;
        self.groups[number] = self.write_group(number, &all, &frames);
        Ok(())
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<String> {
        String::from_utf8(self.file.read_committed(offset, len)?)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file was changed by someone else"))
    }

    fn write_group(&mut self, number: usize, names: &str, frames: &str) -> Group {
        // The frames are written again when the room is used up, so long ones call for more of it.
        let room = (2 * names.len()).max(names.len() + frames.len() / 2).max(LEAST_ROOM);
        self.file.set_tail(TAIL);
        let text = &mut self.text;
        text.clear();
        text.push_str(if self.groups.is_empty() { "\n " } else { ",\n " });
        push_string(text, &number.to_string());
        text.push_str(": [\n  [");
        let before = text.len() as u64;
        text.push_str(names);
        push_blanks(text, room - names.len());
        text.push_str(BETWEEN);
        text.push_str(frames);
        text.push_str("\n ]");
        let start = self.file.append(text);
        text.shrink_to(1 << 20);
        Group { names_at: start + before, names_len: names.len(), room, frames_len: frames.len() }
    }
}

/// The list of frames, as it stands in a group.
fn frames_text(frames: &[String]) -> String {
    if frames.is_empty() {
        return "[]".to_owned();
    }
    let mut text = String::from("[");
    for (position, frame) in frames.iter().enumerate() {
        text.push_str(if position > 0 { ",\n   " } else { "\n   " });
        push_string(&mut text, frame);
    }
    text.push_str("\n  ]");
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    fn seen(file: &mut GroupFile) -> String {
        file.file().commit().unwrap();
        fs::read_to_string(file.file().path()).unwrap()
    }

    #[test]
    fn text_is_pythons_but_for_blanks() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = GroupFile::create(&dir.path().join("stack.json")).unwrap();
        assert_eq!(seen(&mut file), "{}");
        let mut news = GroupNews::default();
        assert_eq!(news.add(0, "a", Some(vec!["File x,\n y".into(), "é".into()])), 20);
        news.add(1, "b", Some(vec![]));
        news.add(0, "c", None);
        file.write(news).unwrap();
        let text = seen(&mut file);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let expected = [
            "{",
            " \"0\": [",
            "  [",
            "   \"a\",",
            "   \"c\"",
            "  ],",
            "  [",
            "   \"File x,\\n y\",",
            "   \"\\u00e9\"",
            "  ]",
            " ],",
            " \"1\": [",
            "  [",
            "   \"b\"",
            "  ],",
            "  []",
            " ]",
            "}",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn groups_grow_at_constant_cost() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = GroupFile::create(&dir.path().join("stack.json")).unwrap();
        let frames: Vec<String> = (0..20).map(|n| format!("File model.py, line {n}, in forward")).collect();
        let mut content = 0;
        for call in 0..5000usize {
            let mut news = GroupNews::default();
            for group in 0..3 {
                let new = (call == 0).then(|| frames.clone());
                content += news.add(group, &format!("Tensor.add.{}.forward", 3 * call + group), new) as u64;
            }
            file.write(news).unwrap();
            file.file().commit().unwrap();
        }
        let value: Value = serde_json::from_str(&seen(&mut file)).unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["0", "1", "2"]);
        for group in 0..3usize {
            let names = value[group.to_string()][0].as_array().unwrap();
            assert_eq!(names.len(), 5000);
            assert!(
                names
                    .iter()
                    .enumerate()
                    .all(|(call, name)| { name == &format!("Tensor.add.{}.forward", 3 * call + group) })
            );
            assert_eq!(value[group.to_string()][1], json!(frames));
        }
        // Two files, and a group that doubles has been written once more in all, with as much room again.
        let written = file.file().bytes_written();
        assert!(written < 10 * content, "{written} for {content}");
        let size = fs::metadata(file.file().path()).unwrap().len();
        assert!(size < 4 * content, "{size} for {content}");
    }
}
