//! Classes of modules that share tensors among ranks. A user can add to them in a YAML file.

use std::path::Path;

use msprobe_report::error::{Code, CompareError};
use msprobe_tables::yaml::{self, Node};

/// Classes by what they share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// Their weights are split by what comes out.
    pub column: Vec<String>,
    /// Their weights are split by what goes in.
    pub row: Vec<String>,
    /// Their weights are split by words.
    pub vocabulary: Vec<String>,
    /// Parts of paths in front of the number of a layer.
    pub layers: Vec<String>,
    /// Parts of paths in front of the number of an expert.
    pub experts: Vec<String>,
}

impl Default for Classes {
    fn default() -> Classes {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Classes {
            column: texts(&[
                "ColumnParallelLinear",
                "TEColumnParallelLinear",
                "TELayerNormColumnParallelLinear",
                "LayerNormColumnParallelLinear",
                "MergedColumnParallelLinear",
                "QKVParallelLinear",
            ]),
            row: texts(&["RowParallelLinear", "TERowParallelLinear"]),
            vocabulary: texts(&["VocabParallelEmbedding", "ParallelLMHead"]),
            layers: texts(&["layers", "layer"]),
            experts: texts(&["local_experts", "experts"]),
        }
    }
}

const FORM: &str = "{column|row|vocabulary|layers|experts}: [name, …]";

impl Classes {
    /// The known ones, and those of a file.
    pub fn read(path: &Path) -> Result<Classes, CompareError> {
        let mut classes = Classes::default();
        let root = yaml::read(path)?;
        let wrong = |what: String| {
            CompareError::new(Code::InvalidFile, format!("{}: {what}", path.display()))
                .with_hint(format!("the form of the file is `{FORM}`"))
        };
        let members = match &*root {
            Node::Null => return Ok(classes),
            Node::Map(members) => members,
            other => return Err(wrong(format!("expected a mapping, found {}", other.kind()))),
        };
        for (key, names) in members {
            let key = key.as_text().unwrap_or_default();
            let list = match key {
                "column" => &mut classes.column,
                "row" => &mut classes.row,
                "vocabulary" => &mut classes.vocabulary,
                "layers" => &mut classes.layers,
                "experts" => &mut classes.experts,
                _ => return Err(wrong(format!("unknown key {key:?}"))),
            };
            let Node::List(names) = &**names else {
                return Err(wrong(format!("expected a list of names for {key}, found {}", names.kind())));
            };
            for name in names {
                let name = name.as_text().ok_or_else(|| wrong(format!("expected a name in {key}")))?;
                if !list.iter().any(|known| known == name) {
                    list.push(name.to_owned());
                }
            }
        }
        Ok(classes)
    }
}

/// The class of a module call: `Linear` of `Module.fc.Linear.forward.0`.
pub(super) fn class_of(name: &str) -> &str {
    name.rsplit('.').nth(2).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_adds_to_what_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("classes.yaml");
        std::fs::write(&path, "column: [MyColumn, ColumnParallelLinear]\nlayers:\n  - blocks\n").unwrap();
        let classes = Classes::read(&path).unwrap();
        assert_eq!(classes.column.last().map(String::as_str), Some("MyColumn"));
        assert_eq!(classes.column.len(), Classes::default().column.len() + 1);
        assert_eq!(classes.layers, ["layers", "layer", "blocks"]);
        for bad in ["colum: [x]", "column: x", "column: [[x]]", "- x"] {
            std::fs::write(&path, bad).unwrap();
            assert!(Classes::read(&path).unwrap_err().hint.is_some(), "{bad}");
        }
    }
}
