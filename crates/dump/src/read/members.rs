//! The members of a JSON object on disk, one at a time: memory for the largest of them, not for the file.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Json, ReadError, ReadErrorKind};

/// What is read at a time.
const CHUNK: usize = 1 << 18;

/// Bytes that begin or end a value.
const DECIDES: [bool; 256] = {
    let mut decides = [false; 256];
    let bytes = b"\"{}[],";
    let mut index = 0;
    while index < bytes.len() {
        decides[bytes[index] as usize] = true;
        index += 1;
    }
    decides
};

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// Whether it is a member of the object that was entered, not of the file's own.
    pub inner: bool,
    /// The key.
    pub key: Cow<'a, str>,
    /// The value.
    pub value: Json<'a>,
}

/// A key and the text of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberText<'a> {
    /// Whether it is a member of the object that was entered, not of the file's own.
    pub inner: bool,
    /// The key.
    pub key: Cow<'a, str>,
    /// The text of the value.
    pub text: &'a [u8],
    /// Where in the file that text begins.
    pub offset: u64,
}

/// Reads a file that is an object. The members of one of its members, itself an object, can be had one by one too.
pub struct Members {
    path: PathBuf,
    file: File,
    /// What was read and not yet used is `window[position..]`.
    window: Vec<u8>,
    position: usize,
    /// Bytes of the file before the window.
    before: u64,
    at_end: bool,
    /// Key of the member whose members are wanted.
    entered: &'static str,
    has_entered: bool,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first brace.
    Start,
    /// In the object of the file; true if a member came before.
    Outer(bool),
    /// In the entered object.
    Inner(bool),
    /// After the last brace.
    End,
}

impl Members {
    /// Opens a file. If its member `entered` is an object, that object's members are given instead of it.
    pub fn open(path: &Path, entered: &'static str) -> Result<Members, ReadError> {
        let path = path.to_owned();
        match File::open(&path) {
            Ok(file) => Ok(Members {
                path,
                file,
                window: Vec::new(),
                position: 0,
                before: 0,
                at_end: false,
                entered,
                has_entered: false,
                place: Place::Start,
            }),
            Err(error) => Err(ReadError { path, kind: error.into() }),
        }
    }

    /// The next member, or nothing after the last one.
    pub fn next_member(&mut self) -> Result<Option<Member<'_>>, ReadError> {
        let path = self.path.clone();
        let Some(MemberText { inner, key, text, offset }) = self.next_text()? else { return Ok(None) };
        match Json::parse(text) {
            Ok(value) => Ok(Some(Member { inner, key, value })),
            Err((what, at)) => {
                let kind = ReadErrorKind::Syntax { what, offset: offset + at as u64 };
                Err(ReadError { path, kind })
            }
        }
    }

    /// The next member with its value as text, which may be no JSON inside of its brackets.
    pub fn next_text(&mut self) -> Result<Option<MemberText<'_>>, ReadError> {
        match self.find_next() {
            Ok(None) => Ok(None),
            Ok(Some((inner, key, value))) => match Json::parse(&self.window[key.0..key.1]) {
                Ok(Json::Text(key)) => {
                    let offset = self.before + value.0 as u64;
                    Ok(Some(MemberText { inner, key, text: &self.window[value.0..value.1], offset }))
                }
                Ok(_) => Err(self.error("not a string", key.0)),
                Err((what, at)) => Err(self.error(what, key.0 + at)),
            },
            Err(kind) => Err(ReadError { path: self.path.clone(), kind }),
        }
    }

    /// Bytes of the file that were gone through.
    pub fn offset(&self) -> u64 {
        self.before + self.position as u64
    }

    /// Whether the member to enter was met and is an object, be it empty.
    pub fn has_entered(&self) -> bool {
        self.has_entered
    }

    /// Where the next key and value stand in the window.
    #[allow(clippy::type_complexity)]
    fn find_next(&mut self) -> Result<Option<(bool, (usize, usize), (usize, usize))>, ReadErrorKind> {
        self.discard_used();
        loop {
            let byte = self.next_byte()?;
            match (self.place, byte) {
                (Place::Start, Some(b'{')) => {
                    self.position += 1;
                    self.place = Place::Outer(false);
                }
                (Place::Start, Some(_)) => return Err(self.syntax("no object")),
                (Place::Start, None) => return Err(self.syntax("an empty file")),
                (Place::End, None) => return Ok(None),
                (Place::End, Some(_)) => return Err(self.syntax("text after the object")),
                (_, None) => return Err(self.syntax("end of file in an object")),
                (Place::Outer(_), Some(b'}')) => {
                    self.position += 1;
                    self.place = Place::End;
                }
                (Place::Inner(_), Some(b'}')) => {
                    self.position += 1;
                    self.place = Place::Outer(true);
                }
                (Place::Outer(true), Some(b',')) => {
                    self.position += 1;
                    self.place = Place::Outer(false);
                }
                (Place::Inner(true), Some(b',')) => {
                    self.position += 1;
                    self.place = Place::Inner(false);
                }
                (Place::Outer(false) | Place::Inner(false), Some(b'"')) => {
                    if let Some(found) = self.member()? {
                        return Ok(Some(found));
                    }
                }
                (_, Some(_)) => return Err(self.syntax("no member")),
            }
        }
    }

    /// The member at the position; nothing if it was entered.
    #[allow(clippy::type_complexity)]
    fn member(&mut self) -> Result<Option<(bool, (usize, usize), (usize, usize))>, ReadErrorKind> {
        let key_start = self.position;
        self.skip_value()?;
        let key_end = self.position;
        if self.next_byte()? != Some(b':') {
            return Err(self.syntax("no colon after a key"));
        }
        self.position += 1;
        let inner = matches!(self.place, Place::Inner(_));
        let opens = self.next_byte()? == Some(b'{');
        let wanted = self.window.get(key_start + 1..key_end - 1) == Some(self.entered.as_bytes());
        if !inner && opens && wanted {
            self.position += 1;
            self.place = Place::Inner(false);
            self.has_entered = true;
            self.discard_used();
            return Ok(None);
        }
        let value_start = self.position;
        self.skip_value()?;
        self.place = if inner { Place::Inner(true) } else { Place::Outer(true) };
        Ok(Some((inner, (key_start, key_end), (value_start, self.position))))
    }

    /// Moves behind the value at the position, which is wholly in the window then.
    fn skip_value(&mut self) -> Result<(), ReadErrorKind> {
        let mut depth = 0_u32;
        loop {
            // Most bytes of a value neither open nor close anything.
            let rest = &self.window[self.position..];
            self.position += rest.iter().position(|&byte| DECIDES[usize::from(byte)]).unwrap_or(rest.len());
            if self.position == self.window.len() {
                if self.fill()? {
                    continue;
                }
                return if depth == 0 { Ok(()) } else { Err(self.syntax("end of file in a value")) };
            }
            match self.window[self.position] {
                b'"' => {
                    self.skip_string()?;
                    if depth == 0 {
                        return Ok(());
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => {
                    // A closing bracket that does not belong to the value ends it.
                    self.position += usize::from(depth == 1);
                    return Ok(());
                }
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => return Ok(()),
                _ => {}
            }
            self.position += 1;
        }
    }

    fn skip_string(&mut self) -> Result<(), ReadErrorKind> {
        self.position += 1;
        loop {
            let rest = &self.window[self.position..];
            match rest.iter().position(|&byte| byte == b'"' || byte == b'\\') {
                Some(at) if rest[at] == b'"' => {
                    self.position += at + 1;
                    return Ok(());
                }
                // The character after a backslash may be in the next chunk.
                Some(at) if at + 1 < rest.len() => self.position += at + 2,
                Some(at) => {
                    self.position += at;
                    if !self.fill()? {
                        return Err(self.syntax("end of file in a string"));
                    }
                }
                None => {
                    self.position = self.window.len();
                    if !self.fill()? {
                        return Err(self.syntax("end of file in a string"));
                    }
                }
            }
        }
    }

    /// The next byte that is not blank, left where it is.
    fn next_byte(&mut self) -> Result<Option<u8>, ReadErrorKind> {
        loop {
            let rest = &self.window[self.position..];
            match rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
                Some(at) => {
                    self.position += at;
                    return Ok(self.window.get(self.position).copied());
                }
                None => {
                    self.position = self.window.len();
                    if !self.fill()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn fill(&mut self) -> Result<bool, ReadErrorKind> {
        if self.at_end {
            return Ok(false);
        }
        let read = (&mut self.file).take(CHUNK as u64).read_to_end(&mut self.window)?;
        self.at_end = read == 0;
        Ok(read > 0)
    }

    fn discard_used(&mut self) {
        // Moving the rest is worth it only when there is little of it.
        if self.position >= self.window.len() / 2 {
            self.before += self.position as u64;
            self.window.drain(..self.position);
            self.position = 0;
        }
    }

    fn syntax(&self, what: &'static str) -> ReadErrorKind {
        ReadErrorKind::Syntax { what, offset: self.before + self.position as u64 }
    }

    fn error(&self, what: &'static str, at: usize) -> ReadError {
        let kind = ReadErrorKind::Syntax { what, offset: self.before + at as u64 };
        ReadError { path: self.path.clone(), kind }
    }
}
