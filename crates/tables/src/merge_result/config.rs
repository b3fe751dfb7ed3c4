//! Which APIs and which figures are wanted: the configuration of merging.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use msprobe_report::error::{Code, CompareError};

use super::cannot_merge;
use crate::yaml::{self, Node};

/// No list of APIs is longer.
const MOST_BYTES: u64 = 1 << 20;

/// What to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    /// Parts of names of the rows wanted.
    pub apis: Vec<String>,
    /// Columns wanted; `None` for all.
    pub indexes: Option<Vec<String>>,
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Config, CompareError> {
        let unusable = |reason: String| {
            CompareError::new(Code::InvalidFile, format!("cannot read {}: {reason}", path.display()))
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| unusable(error.to_string()))?;
        file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| unusable(error.to_string()))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(unusable(format!("it is longer than {MOST_BYTES} bytes")));
        }
        Config::parse(&text, unusable)
    }

    fn parse(text: &str, unusable: impl Fn(String) -> CompareError) -> Result<Config, CompareError> {
        let config = yaml::parse(text).map_err(|problem| unusable(problem.to_string()))?;
        if is_nothing(&config) {
            return Err(cannot_merge("config.yaml is empty, please check."));
        }
        let wanted = |key: &str| config.get(key).filter(|value| !is_nothing(value));
        let apis = match wanted("api") {
            None => return Err(cannot_merge("The APIs required to merge data were not found.")),
            Some(apis) => texts(apis, "api")?,
        };
        let indexes = wanted("compare_index").map(|indexes| texts(indexes, "compare_index")).transpose()?;
        Ok(Config { apis, indexes })
    }
}

/// Whether a value says nothing: null, or a collection without elements.
fn is_nothing(value: &Node) -> bool {
    match value {
        Node::Null => true,
        Node::Text(_) => false,
        Node::List(elements) => elements.is_empty(),
        Node::Map(members) => members.is_empty(),
    }
}

fn texts(value: &Node, key: &str) -> Result<Vec<String>, CompareError> {
    let wrong = || cannot_merge(format!("The config format of '{key}' is incorrect, please check."));
    let Node::List(elements) = value else { return Err(wrong()) };
    elements.iter().map(|element| element.as_text().map(str::to_owned).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, |reason| CompareError::new(Code::InvalidFile, reason))
            .map_err(|error| error.message)
    }

    #[test]
    fn lists() {
        let config = parse("api: [a.b]\ncompare_index:\n- Max diff\n").unwrap();
        assert_eq!(
            (config.apis, config.indexes),
            (vec!["a.b".to_owned()], Some(vec!["Max diff".to_owned()]))
        );
        assert_eq!(parse("api: [a]\ncompare_index:\n").unwrap().indexes, None);
        assert_eq!(parse("api: [a]\ncompare_index: []\n").unwrap().indexes, None);
    }

    #[test]
    fn what_is_wrong() {
        assert_eq!(parse("").unwrap_err(), "config.yaml is empty, please check.");
        assert_eq!(
            parse("compare_index: [a]").unwrap_err(),
            "The APIs required to merge data were not found."
        );
        assert_eq!(parse("api: []").unwrap_err(), "The APIs required to merge data were not found.");
        let wrong = "The config format of 'api' is incorrect, please check.";
        assert_eq!([parse("api: words").unwrap_err(), parse("api: [[a]]").unwrap_err()], [wrong, wrong]);
        assert_eq!(parse("words").unwrap_err(), "The APIs required to merge data were not found.");
        assert!(parse("api: [").is_err());
    }

    #[test]
    fn harm() {
        let deep = "it is nested more than 32 levels deep";
        assert!(parse(&"[".repeat(200_000)).is_err());
        assert_eq!(parse(&"- ".repeat(200_000)).unwrap_err(), deep);
        let bomb: String = (1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect();
        assert!(parse(&format!("a0: &a0 x\n{bomb}api: *a29\n")).is_err());
    }
}
