//! Pieces of a record while they are put together: encoded values with holes for what is not known yet.

use std::collections::HashMap;

use msprobe_dump::write::{JsonText, RecordBody, SavedFile};
use msprobe_tensor::{SketchText, Statistics};

use crate::health::Part;
use crate::measure::{NumberStyle, write_statistics};

/// An encoded value. Holes are places where text goes that is known later, or only if it is needed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fragment {
    text: String,
    holes: Vec<Hole>,
}

#[derive(Debug, Clone, PartialEq)]
struct Hole {
    /// Byte position in the text.
    at: usize,
    kind: HoleKind,
}

#[derive(Debug, Clone, PartialEq)]
enum HoleKind {
    /// Statistics that an accelerator is still computing, as members of an object `depth` levels deep.
    Statistics { ticket: usize, depth: usize, part: Part },
    /// The member `sketch` that goes with them, if sketches are wanted.
    Sketch { ticket: usize, depth: usize },
    /// The member `data_name`, if the tensors of the record are saved after all.
    DataName { name: String, depth: usize },
    /// Nothing is missing: so many bytes from here on name a file that is being written.
    File { len: usize, file: SavedFile },
    /// A whole value; `null` until it is filled.
    Leaf { index: usize },
}

/// What goes into the holes.
pub(crate) trait Fill {
    /// The statistics behind a ticket.
    fn statistics(&self, ticket: usize) -> Statistics {
        let _ = ticket;
        Statistics::default()
    }
    /// The sketch behind a ticket, if it was asked for.
    fn sketch(&self, ticket: usize) -> Option<SketchText> {
        let _ = ticket;
        None
    }
    /// What became of a tensor's file. `None`: tensors are not saved, and their names do not belong into the record.
    fn file(&self, name: &str) -> Option<SavedFile> {
        let _ = name;
        None
    }
    /// The value of a leaf.
    fn leaf(&self, index: usize) -> Option<&RecordBody> {
        let _ = index;
        None
    }
}

/// Leaves everything open at its default.
pub(crate) struct Nothing;

impl Fill for Nothing {}

/// Fills in the names of saved tensors.
pub(crate) struct Saved<'a>(pub(crate) &'a HashMap<String, SavedFile>);

impl Fill for Saved<'_> {
    fn file(&self, name: &str) -> Option<SavedFile> {
        let file = self.0.get(name).cloned();
        Some(
            file.unwrap_or_else(|| {
                SavedFile::unwritten("the tensor was gone before it was known to be wanted")
            }),
        )
    }
}

impl Fragment {
    pub(crate) fn plain(text: String) -> Fragment {
        Fragment { text, holes: Vec::new() }
    }

    pub(crate) fn push_statistics_hole(&mut self, at: usize, ticket: usize, depth: usize, part: Part) {
        self.holes.push(Hole { at, kind: HoleKind::Statistics { ticket, depth, part } });
    }

    pub(crate) fn push_sketch_hole(&mut self, at: usize, ticket: usize, depth: usize) {
        self.holes.push(Hole { at, kind: HoleKind::Sketch { ticket, depth } });
    }

    pub(crate) fn push_name_hole(&mut self, at: usize, name: String, depth: usize) {
        self.holes.push(Hole { at, kind: HoleKind::DataName { name, depth } });
    }

    pub(crate) fn push_file(&mut self, at: usize, len: usize, file: SavedFile) {
        self.holes.push(Hole { at, kind: HoleKind::File { len, file } });
    }

    pub(crate) fn push_leaf_hole(&mut self, at: usize, index: usize) {
        self.holes.push(Hole { at, kind: HoleKind::Leaf { index } });
    }

    pub(crate) fn with_text(mut self, text: String) -> Fragment {
        self.text = text;
        self
    }

    /// Whether an accelerator still has to answer.
    pub(crate) fn is_deferred(&self) -> bool {
        self.holes.iter().any(|hole| matches!(hole.kind, HoleKind::Statistics { .. }))
    }

    /// The figures an accelerator owes to some parts of the value.
    pub(crate) fn tickets<'a>(&'a self, parts: &'a [Part]) -> impl Iterator<Item = usize> + 'a {
        self.holes.iter().filter_map(|hole| match hole.kind {
            HoleKind::Statistics { ticket, part, .. } if parts.contains(&part) => Some(ticket),
            _ => None,
        })
    }

    /// The same with the figures of an accelerator in it, for good.
    pub(crate) fn settled(&self, fill: &impl Fill) -> Fragment {
        let body = self.render(fill);
        let mut settled = Fragment::plain(body.text().to_owned());
        for (at, len, file) in body.files() {
            settled.push_file(at, len, file.clone());
        }
        settled
    }

    /// The text with every hole filled.
    pub(crate) fn render(&self, fill: &impl Fill) -> RecordBody {
        if self.holes.is_empty() {
            return self.text.clone().into();
        }
        let mut out = Rendered::with_capacity(self.text.len() + self.holes.len() * 64);
        let mut from = 0;
        for hole in &self.holes {
            out.text.push_str(&self.text[from..hole.at]);
            from = hole.at;
            match &hole.kind {
                HoleKind::Statistics { ticket, depth, .. } => {
                    out.text.push_str(&members(*depth, |json| {
                        write_statistics(json, &fill.statistics(*ticket), NumberStyle::Tensor, false);
                    }));
                }
                HoleKind::Sketch { ticket, depth } => {
                    let Some(sketch) = fill.sketch(*ticket) else { continue };
                    out.text.push_str(&members(*depth, |json| {
                        json.key("sketch");
                        json.string(sketch.as_str());
                    }));
                }
                HoleKind::DataName { name, depth } => {
                    let Some(file) = fill.file(name) else { continue };
                    let mut len = 0;
                    out.text.push_str(&members(*depth, |json| {
                        json.key("data_name");
                        let before = json.len();
                        json.string(name);
                        len = json.len() - before;
                    }));
                    out.files.push((out.text.len() - len, len, file));
                }
                HoleKind::File { len, file } => out.files.push((out.text.len(), *len, file.clone())),
                HoleKind::Leaf { index } => match fill.leaf(*index) {
                    Some(leaf) => out.push(leaf),
                    None => out.text.push_str("null"),
                },
            }
        }
        out.text.push_str(&self.text[from..]);
        out.finish()
    }
}

/// Text as it is put together, and the files it names.
struct Rendered {
    text: String,
    files: Vec<(usize, usize, SavedFile)>,
}

impl Rendered {
    fn with_capacity(bytes: usize) -> Rendered {
        Rendered { text: String::with_capacity(bytes), files: Vec::new() }
    }

    fn push(&mut self, part: &RecordBody) {
        let start = self.text.len();
        self.text.push_str(part.text());
        self.files.extend(part.files().map(|(at, len, file)| (start + at, len, file.clone())));
    }

    fn finish(self) -> RecordBody {
        let mut body = RecordBody::from(self.text);
        for (at, len, file) in self.files {
            body.name_file(at, len, file);
        }
        body
    }
}

/// Members of an object that has others before them: `,` and a new line, then `"key": value`, as often as needed.
fn members(depth: usize, write: impl FnOnce(&mut JsonText)) -> String {
    let mut json = JsonText::new(depth);
    json.begin_object();
    write(&mut json);
    json.end_object();
    let text = json.finish();
    let inner = text.strip_prefix('{').unwrap_or(&text);
    let end = inner.rfind('\n').unwrap_or(0);
    format!(",{}", &inner[..end])
}

/// A record's members in order, of which some may have holes.
#[derive(Debug, Default)]
pub(crate) struct Body {
    members: Vec<(&'static str, Fragment)>,
}

impl Body {
    pub(crate) fn with(mut self, key: &'static str, value: Fragment) -> Body {
        self.members.push((key, value));
        self
    }

    /// Says whether the call recomputes, if that is told at all.
    pub(crate) fn with_recompute(self, is_recompute: Option<bool>) -> Body {
        match is_recompute {
            Some(is_recompute) => self.with("is_recompute", Fragment::plain(is_recompute.to_string())),
            None => self,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.members.iter().any(|(_, value)| value.is_deferred())
    }

    /// The record's value, encoded for its place in the file.
    pub(crate) fn render(&self, fill: &impl Fill) -> RecordBody {
        let bytes = self.members.iter().map(|(key, value)| key.len() + value.text.len() + 16).sum::<usize>();
        let mut json = JsonText::with_capacity(RECORD_DEPTH, bytes + 16);
        let mut files = Vec::new();
        json.begin_object();
        for (key, value) in &self.members {
            json.key(key);
            if value.holes.is_empty() {
                json.raw(&value.text);
            } else {
                let member = value.render(fill);
                json.raw(member.text());
                let start = json.len() - member.text().len();
                files.extend(member.files().map(|(at, len, file)| (start + at, len, file.clone())));
            }
        }
        json.end_object();
        Rendered { text: json.finish(), files }.finish()
    }
}

/// How deep a record lies in the file, and its members in it.
pub(crate) const RECORD_DEPTH: usize = 2;
/// See [`RECORD_DEPTH`].
pub(crate) const MEMBER_DEPTH: usize = RECORD_DEPTH + 1;

/// A list of values, with `null` for those that are missing. As a member of a record.
pub(crate) fn list(values: impl Iterator<Item = Option<Fragment>>) -> Fragment {
    let mut joined = Joined::new(MEMBER_DEPTH);
    joined.json.begin_array();
    for value in values {
        joined.push(value.as_ref());
    }
    joined.json.end_array();
    joined.finish()
}

/// The value of a `parameters_grad` record: a list of one gradient, or of `null`, for each parameter.
pub(crate) fn gradients<'a>(members: impl Iterator<Item = (&'a str, Option<&'a Fragment>)>) -> Fragment {
    let mut joined = Joined::new(RECORD_DEPTH);
    joined.json.begin_object();
    for (name, gradient) in members {
        joined.json.key(name);
        joined.json.begin_array();
        joined.push(gradient);
        joined.json.end_array();
    }
    joined.json.end_object();
    joined.finish()
}

/// A value put together from others, whose holes it inherits.
struct Joined {
    json: JsonText,
    holes: Vec<Hole>,
}

impl Joined {
    fn new(depth: usize) -> Joined {
        Joined { json: JsonText::new(depth), holes: Vec::new() }
    }

    fn push(&mut self, value: Option<&Fragment>) {
        let Some(value) = value else { return self.json.null() };
        self.json.raw(&value.text);
        let start = self.json.len() - value.text.len();
        self.holes
            .extend(value.holes.iter().map(|hole| Hole { at: start + hole.at, kind: hole.kind.clone() }));
    }

    fn finish(self) -> Fragment {
        Fragment { text: self.json.finish(), holes: self.holes }
    }
}
