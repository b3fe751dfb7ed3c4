//! Which APIs and which figures are wanted: the configuration of merging.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use saphyr::{LoadableYamlNode, Yaml};

use super::cannot_merge;
use crate::error::{Code, CompareError};

/// No list of APIs is longer.
const MOST_BYTES: u64 = 1 << 20;
/// Collections opened by a bracket, and collections opened on one line.
const MOST_BRACKETS: usize = 1000;
const MOST_DASHES: usize = 100;

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
        if is_nested(text) {
            return Err(unusable("it is nested too deeply".to_owned()));
        }
        let documents = Yaml::load_from_str(text).map_err(|error| unusable(error.to_string()))?;
        let Some(config) = documents.first().filter(|config| !is_nothing(config)) else {
            return Err(cannot_merge("config.yaml is empty, please check."));
        };
        let apis = match config.as_mapping_get("api").filter(|apis| !is_nothing(apis)) {
            None => return Err(cannot_merge("The APIs required to merge data were not found.")),
            Some(apis) => texts(apis, "api")?,
        };
        let indexes = config.as_mapping_get("compare_index").filter(|indexes| !is_nothing(indexes));
        let indexes = indexes.map(|indexes| texts(indexes, "compare_index")).transpose()?;
        Ok(Config { apis, indexes })
    }
}

/// Whether a value says nothing: null, or a collection without elements.
fn is_nothing(value: &Yaml<'_>) -> bool {
    value.is_null() || value.is_badvalue() || value.is_empty_collection()
}

fn texts(value: &Yaml<'_>, key: &str) -> Result<Vec<String>, CompareError> {
    let list = value.as_vec().and_then(|list| {
        list.iter().map(|element| element.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    });
    list.ok_or_else(|| cannot_merge(format!("The config format of '{key}' is incorrect, please check.")))
}

/// Whether values could be nested so deeply that taking them apart exhausts the stack. Nesting by indentation
/// cannot: it takes more bytes than a file may have.
fn is_nested(text: &str) -> bool {
    let brackets = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    let dashes = |line: &str| line.split_ascii_whitespace().filter(|word| matches!(*word, "-" | "?")).count();
    brackets > MOST_BRACKETS || text.lines().any(|line| dashes(line) > MOST_DASHES)
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
        assert_eq!([parse("api: words").unwrap_err(), parse("api: [1]").unwrap_err()], [wrong, wrong]);
        assert_eq!(parse("words").unwrap_err(), "The APIs required to merge data were not found.");
        assert!(parse("api: [").is_err());
    }

    #[test]
    fn harm() {
        assert_eq!(parse(&"[".repeat(200_000)).unwrap_err(), "it is nested too deeply");
        assert_eq!(parse(&"- ".repeat(200_000)).unwrap_err(), "it is nested too deeply");
        let bomb: String = (1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect();
        assert!(parse(&format!("a0: &a0 x\n{bomb}api: *a29\n")).is_err());
    }
}
