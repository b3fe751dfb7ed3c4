//! Texts, shapes and scalars of a dump, each text and shape kept once.

use std::sync::Arc;

use msprobe_dump::hash::FastSet;
use msprobe_dump::model::Written;
use msprobe_dump::read::Json;

use super::Scalar;
use crate::python_text::python_str;

/// Arguments of training differ from call to call only rarely; what does is not worth keeping.
const MOST_KEPT: usize = 1 << 16;

/// Texts that were met.
#[derive(Default)]
pub(super) struct Texts {
    known: FastSet<Arc<str>>,
    /// Shapes that were met.
    shapes: FastSet<Arc<[u64]>>,
}

impl Texts {
    /// A text, kept once.
    pub(super) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        if self.known.len() < MOST_KEPT {
            self.known.insert(text.clone());
        }
        text
    }

    /// Sizes, kept once.
    pub(super) fn sizes(&mut self, sizes: &[u64]) -> Arc<[u64]> {
        if let Some(known) = self.shapes.get(sizes) {
            return known.clone();
        }
        let sizes: Arc<[u64]> = sizes.into();
        if self.shapes.len() < MOST_KEPT {
            self.shapes.insert(sizes.clone());
        }
        sizes
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
