//! One JSON value, borrowed from its text where it has no escapes.

use std::borrow::Cow;

use super::BYTE_ORDER_MARK;
use super::text::text_of;

/// Deeper nesting is refused: nothing that was collected needs it, and recursion must end.
const MAX_DEPTH: usize = 128;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A number without point and exponent.
    Int(i128),
    /// Any other number, `NaN` and infinities included; also whole numbers too long for [`Json::Int`].
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Json<'a>>),
    /// An object, in order. A repeated key is there as often as it was written.
    Map(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Parses a text that is one value. The error says what is wrong at which byte.
    pub fn parse(text: &'a [u8]) -> Result<Json<'a>, (&'static str, usize)> {
        let mut parser = Parser { text, position: 0 };
        parser.skip_blanks();
        let value = parser.value(0).map_err(|what| (what, parser.position))?;
        parser.skip_blanks();
        if parser.position < text.len() {
            return Err(("text after the value", parser.position));
        }
        Ok(value)
    }

    /// Parses a whole file: the same, after a byte order mark if there is one.
    pub fn parse_file(text: &'a [u8]) -> Result<Json<'a>, (&'static str, usize)> {
        match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => Json::parse(rest).map_err(|(what, at)| (what, at + BYTE_ORDER_MARK.len())),
            None => Json::parse(text),
        }
    }

    /// The value of a key of an object: the last one, as for Python.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Json::Map(members) => members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn as_list(&self) -> Option<&[Json<'a>]> {
        match self {
            Json::List(elements) => Some(elements),
            _ => None,
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.position += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, &'static str> {
        if depth > MAX_DEPTH {
            return Err("nested too deeply");
        }
        match self.peek() {
            Some(b'"') => self.string().map(Json::Text),
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'N') => self.word("NaN", Json::Float(f64::NAN)),
            Some(b'I') => self.word("Infinity", Json::Float(f64::INFINITY)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err("not a value"),
            None => Err("end of text"),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, &'static str> {
        if !self.text[self.position..].starts_with(word.as_bytes()) {
            return Err("not a value");
        }
        self.position += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Json<'a>, &'static str> {
        let start = self.position;
        if self.peek() == Some(b'-') {
            self.position += 1;
            if self.peek() == Some(b'I') {
                return self.word("Infinity", Json::Float(f64::NEG_INFINITY));
            }
        }
        let mut whole = true;
        while let Some(byte) = self.peek() {
            match byte {
                b'0'..=b'9' => {}
                b'.' | b'e' | b'E' | b'+' | b'-' => whole = false,
                _ => break,
            }
            self.position += 1;
        }
        let text = std::str::from_utf8(&self.text[start..self.position]).map_err(|_| "not a number")?;
        if whole && let Ok(value) = text.parse() {
            return Ok(Json::Int(value));
        }
        // Rust also reads forms such as `1.` that no writer of JSON produces; they do no harm.
        text.parse().map(Json::Float).map_err(|_| "not a number")
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, &'static str> {
        self.position += 1;
        let mut elements = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(Json::List(elements));
        }
        loop {
            self.skip_blanks();
            elements.push(self.value(depth + 1)?);
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b']') => {
                    self.position += 1;
                    return Ok(Json::List(elements));
                }
                _ => return Err("no comma or ] after an element"),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Json<'a>, &'static str> {
        self.position += 1;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(Json::Map(Vec::new()));
        }
        // What describes a tensor has about as many.
        let mut members = Vec::with_capacity(9);
        loop {
            self.skip_blanks();
            let key = self.string()?;
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return Err("no colon after a key");
            }
            self.position += 1;
            self.skip_blanks();
            members.push((key, self.value(depth + 1)?));
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b'}') => {
                    self.position += 1;
                    return Ok(Json::Map(members));
                }
                _ => return Err("no comma or } after a member"),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, &'static str> {
        if self.peek() != Some(b'"') {
            return Err("not a string");
        }
        self.position += 1;
        let start = self.position;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let text = text_of(&self.text[start..self.position]);
                    self.position += 1;
                    return Ok(text);
                }
                Some(b'\\') => return self.escaped(start).map(Cow::Owned),
                Some(_) => self.position += 1,
                None => return Err("end of text in a string"),
            }
        }
    }

    /// The rest of a string from its first escape on.
    fn escaped(&mut self, start: usize) -> Result<String, &'static str> {
        let mut text = String::from_utf8_lossy(&self.text[start..self.position]).into_owned();
        loop {
            let plain = self.position;
            while !matches!(self.peek(), Some(b'"' | b'\\') | None) {
                self.position += 1;
            }
            text.push_str(&String::from_utf8_lossy(&self.text[plain..self.position]));
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(text);
                }
                Some(_) => {
                    self.position += 1;
                    text.push(self.escape()?);
                }
                None => return Err("end of text in a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, &'static str> {
        let letter = self.peek().ok_or("end of text in a string")?;
        self.position += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => letter.into(),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return self.unicode(),
            _ => return Err("unknown escape in a string"),
        })
    }

    fn unicode(&mut self) -> Result<char, &'static str> {
        let first = self.four_digits()?;
        if (0xd800..0xdc00).contains(&first) && self.text[self.position..].starts_with(b"\\u") {
            let back = self.position;
            self.position += 2;
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.position = back;
        }
        // Half of a pair stands for nothing.
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self) -> Result<u32, &'static str> {
        let digits = self.text.get(self.position..self.position + 4).ok_or("end of text in a string")?;
        self.position += 4;
        digits.iter().try_fold(0, |code, &digit| {
            char::from(digit).to_digit(16).map(|digit| code * 16 + digit).ok_or("unknown escape in a string")
        })
    }
}
