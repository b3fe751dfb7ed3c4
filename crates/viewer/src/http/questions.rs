//! Questions as they come: parts of an address, or a body.

use std::collections::HashMap;

use serde::Deserialize;

use crate::fault::Fault;
use crate::store::{Scope, Statistics};
use crate::wire::Side;

/// The part of an address behind the question mark.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Query(HashMap<String, String>);

impl Query {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn need(&self, key: &str) -> Result<&str, Fault> {
        self.get(key).ok_or_else(|| Fault::bad(format!("the question has no {key}")))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, Fault> {
        match self.get(key) {
            None => Ok(None),
            Some(text) => {
                text.parse().map(Some).map_err(|_| Fault::bad(format!("{key}={text} is no number")))
            }
        }
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        matches!(self.get(key), Some("1" | "true"))
    }

    /// Words between commas.
    pub(super) fn words(&self, key: &str) -> Vec<String> {
        self.get(key).map(|words| words.split(',').map(str::to_owned).collect()).unwrap_or_default()
    }

    pub(super) fn side(&self) -> Result<Side, Fault> {
        match self.get("side") {
            None => Ok(Side::Target),
            Some(word) => Side::of(word).ok_or_else(|| Fault::bad(format!("{word} is no side"))),
        }
    }

    pub(super) fn scope(&self) -> Result<Scope, Fault> {
        Ok(Scope {
            step: self.number("step")?.unwrap_or(0),
            rank: self.number("rank")?.unwrap_or(0),
            side: self.side()?,
        })
    }

    /// By which statistics nodes are judged.
    pub(super) fn statistics(&self) -> Result<Statistics, Fault> {
        Statistics::of(self.words("stats").iter().map(String::as_str))
    }

    /// The micro step, if it is one.
    pub(super) fn micro(&self) -> Result<Option<i64>, Fault> {
        Ok(self.number("micro")?.filter(|micro: &i64| *micro >= 0))
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct OpenBody {
    #[serde(default)]
    pub(super) step: i64,
    #[serde(default)]
    pub(super) rank: i64,
    #[serde(default)]
    pub(super) side: Side,
    pub(super) micro: Option<i64>,
    pub(super) nodes: Vec<String>,
    /// Words between commas.
    #[serde(default)]
    pub(super) stats: String,
}

impl OpenBody {
    pub(super) fn statistics(&self) -> impl Iterator<Item = &str> {
        self.stats.split(',').filter(|word| !word.is_empty())
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct MatchBody {
    #[serde(default)]
    pub(super) step: i64,
    #[serde(default)]
    pub(super) rank: i64,
    pub(super) target: String,
    pub(super) golden: Option<String>,
    #[serde(default)]
    pub(super) descendants: bool,
}

#[derive(Debug, Clone, Deserialize, Default)]
pub(super) struct PlaceBody {
    #[serde(default)]
    pub(super) step: i64,
    #[serde(default)]
    pub(super) rank: i64,
    /// Of a file of pairs.
    #[serde(default)]
    pub(super) pairs: serde_json::Map<String, serde_json::Value>,
}
