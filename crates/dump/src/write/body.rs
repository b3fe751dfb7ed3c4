//! The text of a record, and the tensor files it names.

use super::json::push_string;
use super::saved_file::SavedFile;

/// What a mention of a file costs beyond the text.
const MENTION_BYTES: usize = 128;

/// The body of a record, encoded for depth 2. It is not shown before it is known what became of every file that it
/// names; a file that could not be written is not named: `"data_name": null, "unwritten": "the reason"`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordBody {
    text: String,
    files: Vec<Mention>,
    /// So many of the files in front are settled.
    settled: usize,
}

/// Where a file is named.
#[derive(Debug, Clone, PartialEq)]
struct Mention {
    /// The name in the text, with its quotes.
    at: usize,
    len: usize,
    file: SavedFile,
}

impl From<String> for RecordBody {
    fn from(text: String) -> RecordBody {
        RecordBody { text, ..RecordBody::default() }
    }
}

impl From<&str> for RecordBody {
    fn from(text: &str) -> RecordBody {
        text.to_owned().into()
    }
}

impl RecordBody {
    /// The text as it is if all files get written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Notes that `len` bytes of the text from `at` on are the name of this file, in quotes. In order of the text.
    pub fn name_file(&mut self, at: usize, len: usize, file: SavedFile) {
        // What is there already needs no watching.
        if !file.is_written() {
            self.files.push(Mention { at, len, file });
        }
    }

    /// The files whose fate matters: where they are named, and what they are.
    pub fn files(&self) -> impl Iterator<Item = (usize, usize, &SavedFile)> {
        self.files.iter().map(|mention| (mention.at, mention.len, &mention.file))
    }

    /// Memory it holds.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.files.len() * MENTION_BYTES
    }

    /// The first file whose fate is not known. None: the text can be shown.
    pub(super) fn unsettled(&mut self) -> Option<&SavedFile> {
        while self.files.get(self.settled).is_some_and(|mention| mention.file.is_settled()) {
            self.settled += 1;
        }
        self.files.get(self.settled).map(|mention| &mention.file)
    }

    /// The text as it is shown: files that are not there are not named.
    pub(super) fn into_text(self) -> String {
        if self.files.iter().all(|mention| mention.file.is_written()) {
            return self.text;
        }
        let mut text = String::with_capacity(self.text.len() + self.files.len() * 64);
        let mut from = 0;
        for Mention { at, len, file } in &self.files {
            if file.is_written() {
                continue;
            }
            text.push_str(&self.text[from..*at]);
            from = at + len;
            push_unwritten(&mut text, file.reason().unwrap_or("it was given up"));
        }
        text.push_str(&self.text[from..]);
        text
    }
}

/// Ends the member `data_name`, whose key stands at the end of `text`, and adds the member that says why.
fn push_unwritten(text: &mut String, reason: &str) {
    let line = text.rfind('\n').map_or(0, |line| line + 1);
    let blanks = text[line..].bytes().take_while(|&byte| byte == b' ').count();
    text.push_str("null,\n");
    text.extend(std::iter::repeat_n(' ', blanks));
    text.push_str("\"unwritten\": ");
    push_string(text, reason);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEXT: &str =
        "[\n   {\n    \"data_name\": \"a.pt\"\n   },\n   {\n    \"data_name\": \"b.pt\"\n   }\n  ]";

    fn body(files: [SavedFile; 2]) -> RecordBody {
        let mut body = RecordBody::from(TEXT);
        for (name, file) in ["\"a.pt\"", "\"b.pt\""].into_iter().zip(files) {
            body.name_file(TEXT.find(name).unwrap(), name.len(), file);
        }
        body
    }

    #[test]
    fn files_that_are_there_are_named() {
        let ((a, a_promise), (b, b_promise)) = (SavedFile::promised(), SavedFile::promised());
        let mut body = body([a.clone(), b.clone()]);
        assert!(body.bytes() > TEXT.len());
        b_promise.settle(None);
        assert_eq!(body.unsettled(), Some(&a));
        a_promise.settle(None);
        assert_eq!(body.unsettled(), None);
        assert_eq!(body.into_text(), TEXT);
    }

    #[test]
    fn files_that_are_not_there_say_why() {
        let (a, promise) = SavedFile::promised();
        let mut body = body([a, SavedFile::unwritten("no \"room\"")]);
        promise.settle(None);
        assert_eq!(body.unsettled(), None);
        let text = body.into_text();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[0], json!({"data_name": "a.pt"}));
        assert_eq!(value[1], json!({"data_name": null, "unwritten": "no \"room\""}));
        assert!(text.contains("\n    \"data_name\": null,\n    \"unwritten\": \"no"), "{text}");
    }
}
