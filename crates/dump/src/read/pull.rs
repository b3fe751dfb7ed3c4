//! JSON read front to back without a tree: for those who want few of many values.
//!
//! The caller keeps the grammar: an object is entered, then keys are asked for until there is none, and each value is
//! taken or skipped before the next key.

use std::borrow::Cow;

use super::text::text_of;

/// Deeper nesting is refused when values are skipped.
const MAX_DEPTH: usize = 128;

/// What is wrong at which byte.
pub type PullError = (&'static str, usize);

/// A place in a text.
#[derive(Debug, Clone)]
pub struct Pull<'a> {
    text: &'a [u8],
    position: usize,
    /// Right behind the bracket of an object or a list: what comes first has no comma before it.
    is_first: bool,
}

/// What a value begins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{`
    Object,
    /// `[`
    List,
    /// `"`
    Text,
    /// A number, `NaN` and infinities included.
    Number,
    /// `null`, `true`, `false`.
    Word,
}

impl<'a> Pull<'a> {
    /// The beginning of a text.
    pub fn new(text: &'a [u8]) -> Pull<'a> {
        Pull { text, position: 0, is_first: false }
    }

    /// Bytes gone through.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What was gone through since an earlier [`Pull::position`].
    pub fn since(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.position).unwrap_or_default()
    }

    /// What comes next, left where it is.
    pub fn shape(&mut self) -> Result<Shape, PullError> {
        match self.peek() {
            Some(b'{') => Ok(Shape::Object),
            Some(b'[') => Ok(Shape::List),
            Some(b'"') => Ok(Shape::Text),
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => Ok(Shape::Number),
            Some(b't' | b'f' | b'n') => Ok(Shape::Word),
            Some(_) => self.error("not a value"),
            None => self.error("end of text"),
        }
    }

    /// Goes into an object or a list.
    pub fn enter(&mut self) -> Result<(), PullError> {
        match self.peek() {
            Some(b'{' | b'[') => {
                self.position += 1;
                self.is_first = true;
                Ok(())
            }
            _ => self.error("neither an object nor a list"),
        }
    }

    /// The next key of the object, or nothing and behind the object.
    pub fn key(&mut self) -> Result<Option<Cow<'a, str>>, PullError> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return self.error("no key");
        }
        let key = self.text()?;
        if self.peek() != Some(b':') {
            return self.error("no colon after a key");
        }
        self.position += 1;
        Ok(Some(key))
    }

    /// Whether the list has another element; if not, the place is behind the list.
    pub fn element(&mut self) -> Result<bool, PullError> {
        self.has_next(b']')
    }

    /// Goes behind the comma before what is next, or behind the end.
    fn has_next(&mut self, end: u8) -> Result<bool, PullError> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.peek() {
            Some(byte) if byte == end => {
                self.position += 1;
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.position += 1;
                if self.peek() == Some(end) { self.error("a comma before the end") } else { Ok(true) }
            }
            Some(_) if is_first => Ok(true),
            Some(_) => self.error("no comma"),
            None => self.error("end of text in an object or a list"),
        }
    }

    /// A string.
    pub fn text(&mut self) -> Result<Cow<'a, str>, PullError> {
        if self.peek() != Some(b'"') {
            return self.error("not a string");
        }
        let start = self.position;
        if !self.skip_text()? {
            return Ok(text_of(&self.text[start + 1..self.position - 1]));
        }
        match super::Json::parse(&self.text[start..self.position]) {
            Ok(super::Json::Text(text)) => Ok(text),
            Ok(_) => Err(("not a string", start)),
            Err((what, at)) => Err((what, start + at)),
        }
    }

    /// A number.
    pub fn number(&mut self) -> Result<f64, PullError> {
        let start = self.start_of_word();
        let word = &self.text[start..self.position];
        match word {
            b"NaN" => Ok(f64::NAN),
            b"Infinity" => Ok(f64::INFINITY),
            b"-Infinity" => Ok(f64::NEG_INFINITY),
            _ => {
                let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
                number.ok_or(("not a number", start))
            }
        }
    }

    /// `null`, `true` or `false`: nothing for `null`.
    pub fn word(&mut self) -> Result<Option<bool>, PullError> {
        let start = self.start_of_word();
        match &self.text[start..self.position] {
            b"null" => Ok(None),
            b"true" => Ok(Some(true)),
            b"false" => Ok(Some(false)),
            _ => Err(("not a value", start)),
        }
    }

    /// Behind the next value.
    pub fn skip(&mut self) -> Result<(), PullError> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_text()?;
                }
                Some(b'{' | b'[') => {
                    self.position += 1;
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return self.error("nested too deeply");
                    }
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    self.position += 1;
                    depth -= 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.position += 1;
                    continue;
                }
                Some(_) => {
                    if self.start_of_word() == self.position {
                        return self.error("not a value");
                    }
                }
                None => return self.error("end of text"),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Goes behind a word or number and tells where it began.
    fn start_of_word(&mut self) -> usize {
        self.peek();
        let start = self.position;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let rest = &self.text[start..];
        self.position += rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        start
    }

    /// Goes behind a string and tells whether there is an escape in it.
    fn skip_text(&mut self) -> Result<bool, PullError> {
        self.position += 1;
        let mut has_escapes = false;
        loop {
            let rest = &self.text[self.position..];
            match rest.iter().position(|&byte| byte == b'"' || byte == b'\\') {
                Some(at) if rest[at] == b'"' => {
                    self.position += at + 1;
                    return Ok(has_escapes);
                }
                Some(at) if at + 1 < rest.len() => {
                    has_escapes = true;
                    self.position += at + 2;
                }
                _ => return self.error("end of text in a string"),
            }
        }
    }

    /// The next byte that is not blank, left where it is.
    fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.position) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.position += 1;
        }
        None
    }

    fn error<T>(&self, what: &'static str) -> Result<T, PullError> {
        Err((what, self.position))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::read::Json;

    /// The same tree as [`Json::parse`] makes, pulled; numbers as floats.
    fn tree(pull: &mut Pull<'_>) -> Result<Json<'static>, PullError> {
        Ok(match pull.shape()? {
            Shape::Object => {
                pull.enter()?;
                let mut members = Vec::new();
                while let Some(key) = pull.key()? {
                    members.push((Cow::Owned(key.into_owned()), tree(pull)?));
                }
                Json::Map(members)
            }
            Shape::List => {
                pull.enter()?;
                let mut elements = Vec::new();
                while pull.element()? {
                    elements.push(tree(pull)?);
                }
                Json::List(elements)
            }
            Shape::Text => Json::Text(Cow::Owned(pull.text()?.into_owned())),
            Shape::Number => Json::Float(pull.number()?),
            Shape::Word => pull.word()?.map_or(Json::Null, Json::Bool),
        })
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            (-1e9..1e9_f64).prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            "\\PC*".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map("\\PC*", inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn of_serde(value: &serde_json::Value) -> Json<'static> {
        match value {
            serde_json::Value::Null => Json::Null,
            serde_json::Value::Bool(value) => Json::Bool(*value),
            serde_json::Value::Number(number) => Json::Float(number.as_f64().unwrap()),
            serde_json::Value::String(text) => Json::Text(Cow::Owned(text.clone())),
            serde_json::Value::Array(elements) => Json::List(elements.iter().map(of_serde).collect()),
            serde_json::Value::Object(map) => {
                Json::Map(map.iter().map(|(key, value)| (Cow::Owned(key.clone()), of_serde(value))).collect())
            }
        }
    }

    #[test]
    fn words_of_python() {
        let mut pull = Pull::new(b"[NaN, Infinity, -Infinity, -0.5e3]");
        pull.enter().unwrap();
        let mut numbers = Vec::new();
        while pull.element().unwrap() {
            numbers.push(pull.number().unwrap());
        }
        assert!(numbers[0].is_nan());
        assert_eq!(numbers[1..], [f64::INFINITY, f64::NEG_INFINITY, -500.0]);
    }

    #[test]
    fn commas_stand_between_and_nowhere_else() {
        for text in [
            "[1 2]",
            "[,1]",
            "[1,]",
            "[1,,2]",
            r#"{"a": 1 "b": 2}"#,
            r#"{,"a": 1}"#,
            r#"{"a": 1,}"#,
            "[[1] 2]",
        ] {
            assert!(tree(&mut Pull::new(text.as_bytes())).is_err(), "{text}");
            assert!(Json::parse(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["[]", "{}", "[[], {}, 1]", r#"{"a": [], "b": {"c": 1}, "d": 2}"#] {
            assert!(tree(&mut Pull::new(text.as_bytes())).is_ok(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_serde_writes(value in value(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            prop_assert_eq!(tree(&mut Pull::new(text.as_bytes())).unwrap(), of_serde(&value));
            let mut pull = Pull::new(text.as_bytes());
            pull.skip().unwrap();
            prop_assert_eq!(pull.position(), text.len());
        }

        #[test]
        fn hostile_text_is_an_error(text in "[\\[\\]{}\",:\\\\ntNI0-9. ]{0,40}") {
            let _ = tree(&mut Pull::new(text.as_bytes()));
            let _ = Pull::new(text.as_bytes()).skip();
        }
    }
}
