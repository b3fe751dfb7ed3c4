//! How flight recorders of several processes tell each other, and how they are asked from outside: by files in the
//! directory of the dump. Nobody waits for anybody; each looks from time to time.
//!
//! `flight_recorder.json` is left by the rank that wrote because something went wrong. `flight_recorder.request` is made
//! or touched by whoever wants to have what is held; it is never removed, so that every rank sees it. Files that are
//! there when a run begins belong to an earlier one.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::partial::PartialFile;

const MARKER: &str = "flight_recorder.json";
const REQUEST: &str = "flight_recorder.request";
/// Longer ones are not ours.
const MAX_MARKER_BYTES: u64 = 64 << 10;

/// What a rank says when it has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The rank; `None` where training is not distributed.
    pub rank: Option<u32>,
    /// The step in which it happened.
    pub step: u64,
    /// The first step that was written.
    pub first_step: u64,
    /// The record that was not finite.
    pub record: String,
}

impl Marker {
    fn text(&self) -> String {
        let Marker { rank, step, first_step, record } = self;
        let value = json!({ "rank": rank, "step": step, "first_step": first_step, "record": record });
        format!("{value:#}\n")
    }

    fn parse(text: &str) -> Option<Marker> {
        let value: Value = serde_json::from_str(text).ok()?;
        let step = value.get("step")?.as_u64()?;
        Some(Marker {
            rank: value.get("rank").and_then(Value::as_u64).and_then(|rank| u32::try_from(rank).ok()),
            step,
            first_step: value.get("first_step").and_then(Value::as_u64).unwrap_or(step),
            record: value.get("record").and_then(Value::as_str).unwrap_or("a record").to_owned(),
        })
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signature {
    inode: u64,
    changed: (i64, i64),
}

impl Signature {
    fn of(meta: &Metadata) -> Signature {
        Signature { inode: meta.ino(), changed: (meta.mtime(), meta.mtime_nsec()) }
    }
}

/// What is new since the last look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Another rank has written.
    pub marker: Option<Marker>,
    /// Somebody asks for what is held.
    pub is_requested: bool,
}

/// The two files of a dump, as they were last seen.
#[derive(Debug, Default)]
pub struct Signals {
    dump_path: PathBuf,
    marker: Option<Signature>,
    request: Option<Signature>,
}

impl Signals {
    /// From now on those of this directory. What is there already is old.
    pub fn watch(&mut self, dump_path: &Path) {
        if self.dump_path != dump_path {
            self.marker = signature(&dump_path.join(MARKER));
            self.request = signature(&dump_path.join(REQUEST));
            dump_path.clone_into(&mut self.dump_path);
        }
    }

    /// What is new: one question to the system for each file.
    pub fn look(&mut self) -> Seen {
        let mut seen = Seen::default();
        let path = self.dump_path.join(MARKER);
        let marker = signature(&path);
        if marker.is_some() && marker != self.marker {
            seen.marker = read(&path).and_then(|text| Marker::parse(&text));
            self.marker = marker;
        }
        let request = signature(&self.dump_path.join(REQUEST));
        seen.is_requested = request.is_some() && request != self.request;
        if request.is_some() {
            self.request = request;
        }
        seen
    }

    /// Tells the other ranks. Does not count as new here.
    pub fn tell(&mut self, marker: &Marker) -> io::Result<()> {
        let mut partial = PartialFile::create(&self.dump_path)?;
        partial.file().write_all(marker.text().as_bytes())?;
        let own = Signature::of(&partial.file().metadata()?);
        partial.rename(&self.dump_path.join(MARKER))?;
        self.marker = Some(own);
        Ok(())
    }
}

fn signature(path: &Path) -> Option<Signature> {
    let meta = fs::symlink_metadata(path).ok()?;
    meta.is_file().then(|| Signature::of(&meta))
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_MARKER_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watching(dir: &Path) -> Signals {
        let mut signals = Signals::default();
        signals.watch(dir);
        signals
    }

    fn marker(step: u64) -> Marker {
        Marker { rank: Some(1), step, first_step: step - 1, record: "Torch.log.3.forward".to_owned() }
    }

    #[test]
    fn ranks_tell_each_other_once() {
        let dir = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (watching(dir.path()), watching(dir.path()));
        assert_eq!(second.look(), Seen::default());
        first.tell(&marker(5)).unwrap();
        assert_eq!(first.look(), Seen::default());
        assert_eq!(second.look().marker, Some(marker(5)));
        assert_eq!(second.look(), Seen::default());
        second.tell(&marker(9)).unwrap();
        assert_eq!(first.look().marker, Some(marker(9)));
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, [MARKER]);
    }

    #[test]
    fn what_was_there_before_is_old() {
        let dir = tempfile::tempdir().unwrap();
        watching(dir.path()).tell(&marker(5)).unwrap();
        fs::write(dir.path().join(REQUEST), "").unwrap();
        let mut late = watching(dir.path());
        assert_eq!(late.look(), Seen::default());
        fs::remove_file(dir.path().join(REQUEST)).unwrap();
        assert_eq!(late.look(), Seen::default());
        fs::write(dir.path().join("new"), "").unwrap();
        fs::rename(dir.path().join("new"), dir.path().join(REQUEST)).unwrap();
        assert!(late.look().is_requested);
        assert!(!late.look().is_requested);
    }

    #[test]
    fn what_is_no_marker_says_nothing() {
        for text in ["", "[", "[]", "{}", "{\"step\": -1}", "{\"step\": \"x\"}", "\u{0}"] {
            assert_eq!(Marker::parse(text), None, "{text}");
        }
        let poor = Marker::parse("{\"step\": 3, \"rank\": null}").unwrap();
        assert_eq!((poor.rank, poor.first_step), (None, 3));
        let dir = tempfile::tempdir().unwrap();
        let mut signals = watching(dir.path());
        fs::write(dir.path().join(MARKER), [0xff_u8; 9]).unwrap();
        fs::create_dir(dir.path().join(REQUEST)).unwrap();
        assert_eq!(signals.look(), Seen::default());
        let mut nowhere = watching(&dir.path().join("missing"));
        assert_eq!(nowhere.look(), Seen::default());
        assert!(nowhere.tell(&marker(1)).is_err());
    }
}
