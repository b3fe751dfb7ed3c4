//! A JSON value as it is written, understood when it is asked for.

use std::borrow::Cow;

use crate::read::{Json, Pull, Shape};

/// The text of one JSON value, without blanks around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a>(&'a [u8]);

impl<'a> Written<'a> {
    /// The text of one value, as [`Pull`] went through it.
    pub(super) fn new(text: &'a [u8]) -> Written<'a> {
        Written(text)
    }

    /// The text itself.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// What it begins as; nothing if it is no JSON.
    pub fn shape(self) -> Option<Shape> {
        Pull::new(self.0).shape().ok()
    }

    /// The text of a string.
    pub fn text(self) -> Option<Cow<'a, str>> {
        if self.0.first() == Some(&b'"') { Pull::new(self.0).text().ok() } else { None }
    }

    /// `true` or `false`.
    pub fn flag(self) -> Option<bool> {
        match self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// The number it is, `NaN` and infinities included.
    pub fn number(self) -> Option<f64> {
        match self.0.first()? {
            b'-' | b'0'..=b'9' | b'N' | b'I' => Pull::new(self.0).number().ok(),
            _ => None,
        }
    }

    /// A number, or a word for one that is not finite: some dumps write `"inf"` or `"nan\t"`.
    pub fn number_or_word(self) -> Option<f64> {
        self.number().or_else(|| number_in_words(&self.text()?))
    }

    /// The whole numbers of a list; others in it are passed over.
    pub fn whole_numbers(self) -> Vec<i64> {
        let mut pull = Pull::new(self.0);
        let mut numbers = Vec::new();
        if pull.shape() != Ok(Shape::List) || pull.enter().is_err() {
            return numbers;
        }
        while pull.element() == Ok(true) {
            match Written::next(&mut pull) {
                Ok(element) => numbers.extend(element.number().map(|number| number as i64)),
                Err(_) => break,
            }
        }
        numbers
    }

    /// All of it; the error says what is wrong at which byte.
    pub fn json(self) -> Result<Json<'a>, (&'static str, usize)> {
        Json::parse(self.0)
    }

    /// The value that comes next.
    pub(super) fn next(pull: &mut Pull<'a>) -> Result<Written<'a>, crate::read::PullError> {
        pull.shape()?;
        let start = pull.position();
        pull.skip()?;
        Ok(Written(pull.since(start)))
    }
}

/// The number a word stands for.
pub(super) fn number_in_words(word: &str) -> Option<f64> {
    let word = word.trim_end_matches('\t');
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    if is("nan") {
        Some(f64::NAN)
    } else if is("inf") {
        Some(f64::INFINITY)
    } else if is("-inf") {
        Some(f64::NEG_INFINITY)
    } else {
        None
    }
}
