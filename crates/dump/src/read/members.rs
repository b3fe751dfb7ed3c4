//! The members of a JSON object on disk, one at a time: memory for the largest of them, not for the file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use msprobe_tensor::files::{Links, open_regular};

use super::{BYTE_ORDER_MARK, Json, Pull, PullError, ReadError, ReadErrorKind};

/// What is read at a time.
const CHUNK: usize = 1 << 18;
/// Values shorter than this are whole in the window when they are read from their place.
const LOOK_AHEAD: usize = 1 << 14;

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

/// What is known of a member before its value is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStart<'a> {
    /// Whether it is a member of the object that was entered, not of the file's own.
    pub inner: bool,
    /// The key.
    pub key: Cow<'a, str>,
    /// Where in the file the value begins.
    pub offset: u64,
}

/// A member that was read from its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled<T> {
    /// What the reader made of it.
    pub result: Result<T, PullError>,
    /// Where in the file the value ends.
    pub end: u64,
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
    place: Position,
    /// Whether more than the object may stand in the file.
    is_part: bool,
}

/// A member in the window.
struct Found {
    inner: bool,
    /// From where to where its key stands.
    key: (usize, usize),
    /// Where its value begins.
    start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
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
    /// Opens a file of a dump; links are not followed. If its member `entered` is an object, that object's members are given instead of it.
    pub fn open(path: &Path, entered: &'static str) -> Result<Members, ReadError> {
        let path = path.to_owned();
        match open_regular(&path, Links::Refuse) {
            Ok(file) => Ok(Members {
                path,
                file,
                window: Vec::new(),
                position: 0,
                before: 0,
                at_end: false,
                entered,
                has_entered: false,
                place: Position::Start,
                is_part: false,
            }),
            Err(error) => Err(ReadError { path, kind: error.into() }),
        }
    }

    /// The same for an object inside of the file, which begins at this byte. What comes behind it is left alone.
    pub fn open_at(path: &Path, entered: &'static str, offset: u64) -> Result<Members, ReadError> {
        let mut members = Members::open(path, entered)?;
        if let Err(error) = members.file.seek(SeekFrom::Start(offset)) {
            return Err(ReadError { path: members.path, kind: error.into() });
        }
        (members.before, members.is_part) = (offset, true);
        Ok(members)
    }

    /// The next member, or nothing after the last one.
    pub fn next_member(&mut self) -> Result<Option<Member<'_>>, ReadError> {
        match self.find_next() {
            Ok(None) => Ok(None),
            Ok(Some((Found { inner, key, start }, end))) => {
                let window = &self.window;
                let parse = |(start, end): (usize, usize)| {
                    Json::parse(&window[start..end]).map_err(|(what, at)| (what, start + at))
                };
                let parsed = parse(key).and_then(|key| Ok((key, parse((start, end))?)));
                match parsed {
                    Ok((Json::Text(key), value)) => Ok(Some(Member { inner, key, value })),
                    Ok(_) => Err(self.error("not a string", key.0)),
                    Err((what, at)) => Err(self.error(what, at)),
                }
            }
            Err(kind) => Err(ReadError { path: self.path.clone(), kind }),
        }
    }

    /// The next member, read by `read` from its place in the file, without looking for its end first. `read` may be called
    /// again for the same member, with more of its text. What it could not read is in the answer; the next member is
    /// found all the same.
    pub fn next_pulled<T>(
        &mut self,
        mut read: impl FnMut(&MemberStart<'_>, &mut Pull<'_>) -> Result<T, PullError>,
    ) -> Result<Option<Pulled<T>>, ReadError> {
        match self.pull_next(&mut read) {
            Ok(pulled) => Ok(pulled),
            Err(kind) => Err(ReadError { path: self.path.clone(), kind }),
        }
    }

    fn pull_next<T>(
        &mut self,
        read: &mut impl FnMut(&MemberStart<'_>, &mut Pull<'_>) -> Result<T, PullError>,
    ) -> Result<Option<Pulled<T>>, ReadErrorKind> {
        let Some(Found { inner, key, start }) = self.find_start()? else { return Ok(None) };
        while self.window.len() - start < LOOK_AHEAD && self.fill()? {}
        let offset = self.before + start as u64;
        let mut attempt = |text: &[u8], key: &[u8]| {
            let Ok(Json::Text(key)) = Json::parse(key) else { return (Err(("not a string", 0)), 0) };
            let mut pull = Pull::new(text);
            let result = read(&MemberStart { inner, key, offset }, &mut pull);
            (result, pull.position())
        };
        let (mut result, mut length) = attempt(&self.window[start..], &self.window[key.0..key.1]);
        // It may go on behind the window; and after an error nobody knows where it ends.
        if result.is_err() || start + length == self.window.len() {
            self.position = start;
            self.skip_value()?;
            length = self.position - start;
            result = attempt(&self.window[start..self.position], &self.window[key.0..key.1]).0;
        }
        self.position = start + length;
        self.leave_value(inner);
        Ok(Some(Pulled { result, end: offset + length as u64 }))
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
    fn find_next(&mut self) -> Result<Option<(Found, usize)>, ReadErrorKind> {
        let Some(found) = self.find_start()? else { return Ok(None) };
        self.skip_value()?;
        self.leave_value(found.inner);
        Ok(Some((found, self.position)))
    }

    /// Where the next key stands in the window, and where its value begins: there the position is.
    fn find_start(&mut self) -> Result<Option<Found>, ReadErrorKind> {
        self.discard_used();
        loop {
            let byte = self.next_byte()?;
            match (self.place, byte) {
                (Position::Start, Some(b'{')) => {
                    self.position += 1;
                    self.place = Position::Outer(false);
                }
                // A mark that some editors put before everything.
                (Position::Start, Some(first)) if first == BYTE_ORDER_MARK[0] && self.offset() == 0 => {
                    while self.window.len() < BYTE_ORDER_MARK.len() && self.fill()? {}
                    if !self.window.starts_with(BYTE_ORDER_MARK) {
                        return Err(self.syntax("no object"));
                    }
                    self.position += BYTE_ORDER_MARK.len();
                }
                (Position::Start, Some(_)) => return Err(self.syntax("no object")),
                (Position::Start, None) => return Err(self.syntax("an empty file")),
                (Position::End, None) => return Ok(None),
                (Position::End, Some(_)) if self.is_part => return Ok(None),
                (Position::End, Some(_)) => return Err(self.syntax("text after the object")),
                (_, None) => return Err(self.syntax("end of file in an object")),
                (Position::Outer(_), Some(b'}')) => {
                    self.position += 1;
                    self.place = Position::End;
                }
                (Position::Inner(_), Some(b'}')) => {
                    self.position += 1;
                    self.place = Position::Outer(true);
                }
                (Position::Outer(true), Some(b',')) => {
                    self.position += 1;
                    self.place = Position::Outer(false);
                }
                (Position::Inner(true), Some(b',')) => {
                    self.position += 1;
                    self.place = Position::Inner(false);
                }
                (Position::Outer(false) | Position::Inner(false), Some(b'"')) => {
                    if let Some(found) = self.key()? {
                        return Ok(Some(found));
                    }
                }
                (_, Some(_)) => return Err(self.syntax("no member")),
            }
        }
    }

    /// The key at the position and where its value begins; nothing if the value was entered.
    fn key(&mut self) -> Result<Option<Found>, ReadErrorKind> {
        let key_start = self.position;
        self.skip_value()?;
        let key_end = self.position;
        if self.next_byte()? != Some(b':') {
            return Err(self.syntax("no colon after a key"));
        }
        self.position += 1;
        let inner = matches!(self.place, Position::Inner(_));
        let opens = self.next_byte()? == Some(b'{');
        let wanted = self.window.get(key_start + 1..key_end - 1) == Some(self.entered.as_bytes());
        if !inner && opens && wanted {
            self.position += 1;
            self.place = Position::Inner(false);
            self.has_entered = true;
            self.discard_used();
            return Ok(None);
        }
        Ok(Some(Found { inner, key: (key_start, key_end), start: self.position }))
    }

    /// The position is behind a value.
    fn leave_value(&mut self, inner: bool) {
        self.place = if inner { Position::Inner(true) } else { Position::Outer(true) };
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
