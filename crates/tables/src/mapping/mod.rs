//! Which name a row of the target is to be looked up by, where the user gave a mapping or asked for the built-in one.
//!
//! Four kinds: of APIs and their arguments, of cells, of rows, and of layers, from which one of rows is made.

mod apis;
mod builtin_apis;
mod cells;
mod layers;
mod scopes;

use std::collections::HashMap;
use std::path::Path;

use msprobe_report::error::{Code, CompareError};

pub use self::apis::api_keys;
pub use self::cells::cell_keys;
pub use self::layers::{LayerMapping, LayerPartner, layer_mapping, layer_partners};
use crate::yaml::{self, Node};

/// What stands in a mapping for a name without a partner.
const NO_PARTNER: &str = "N/A";

/// Where the rules of a mapping come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingSource<'a> {
    /// Only the rules that are built in.
    BuiltIn,
    /// A YAML file, which adds to them.
    File(&'a Path),
}

/// Reads a mapping of rows: `target row name: golden row name`. A row mapped to nothing has no partner (`N/A`).
pub fn data_mapping(file: &Path) -> Result<HashMap<String, String>, CompareError> {
    let names = read_names(file, "{target row name}: {golden row name}")?;
    Ok(names
        .into_iter()
        .map(|(name, other)| (name, other.unwrap_or_else(|| NO_PARTNER.to_owned())))
        .collect())
}

/// Reads a file that maps names to names; none for a name mapped to nothing.
fn read_names(file: &Path, form: &str) -> Result<HashMap<String, Option<String>>, CompareError> {
    let root = yaml::read(file)?;
    names_of(&root, file, form)
}

/// The names a node maps to names.
fn names_of(node: &Node, file: &Path, form: &str) -> Result<HashMap<String, Option<String>>, CompareError> {
    let members = match node {
        Node::Null => return Ok(HashMap::new()),
        Node::Map(members) => members,
        other => return Err(misshapen(file, &format!("expected a mapping, found {}", other.kind()), form)),
    };
    let mut names = HashMap::with_capacity(members.len());
    for (key, value) in members {
        let key = key
            .as_text()
            .ok_or_else(|| misshapen(file, &format!("expected a name, found {}", key.kind()), form))?;
        let value = match &**value {
            Node::Null => None,
            Node::Text(text) => Some(text.clone()),
            other => {
                let problem = format!("expected a name for {key}, found {}", other.kind());
                return Err(misshapen(file, &problem, form));
            }
        };
        names.insert(key.to_owned(), value);
    }
    Ok(names)
}

/// A mapping file of the wrong structure.
fn misshapen(file: &Path, problem: &str, form: &str) -> CompareError {
    let message = format!("The structure of the mapping file {} is invalid: {problem}", file.display());
    CompareError::new(Code::InvalidFile, message).with_hint(format!("the form of the file is `{form}`"))
}
