//! Texts and scalars of a dump, each text kept once.

use std::fmt::Write;
use std::sync::Arc;

use msprobe_dump::hash::FastSet;
use msprobe_dump::model::Written;
use msprobe_dump::read::Json;

use super::Scalar;
use crate::python_text::python_str;

/// Texts that were met.
#[derive(Default)]
pub(super) struct Texts {
    known: FastSet<Arc<str>>,
    /// Room for a shape.
    room: String,
}

impl Texts {
    /// A text, kept once.
    pub(super) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        // Arguments of training differ from call to call only rarely; what does is not worth keeping.
        if self.known.len() < 1 << 16 {
            self.known.insert(text.clone());
        }
        text
    }

    /// The text of a shape: `[2, 3]`.
    pub(super) fn shape(&mut self, sizes: &[u64]) -> Arc<str> {
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        let _ = write!(room, "{sizes:?}");
        let text = self.get(&room);
        self.room = room;
        text
    }

    /// `str` of a value.
    pub(super) fn shown(&mut self, written: Written<'_>) -> Arc<str> {
        match written.text() {
            Some(text) => self.get(&text),
            None => self.get(&python_str(&written.json().unwrap_or(Json::Null))),
        }
    }

    pub(super) fn scalar(&mut self, written: Written<'_>) -> Scalar {
        match written.json() {
            Ok(Json::Null) | Err(_) => Scalar::Null,
            Ok(Json::Bool(value)) => Scalar::Bool(value),
            Ok(Json::Int(value)) => {
                i64::try_from(value).map_or_else(|_| Scalar::Large(Box::new(value)), Scalar::Int)
            }
            Ok(Json::Float(value)) => Scalar::Float(value),
            Ok(Json::Text(text)) => Scalar::Text(self.get(&text)),
            Ok(other) => Scalar::Text(self.get(&python_str(&other))),
        }
    }
}
