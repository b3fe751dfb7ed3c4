//! Classes of modules that share tensors among ranks. A user can add to them in a YAML file.

use std::path::Path;

use msprobe_report::error::{Code, CompareError};
use msprobe_tables::yaml::{self, Node};

use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{NodeKind, split_call};

/// Classes by what they share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// Their weights are split by what comes out.
    pub column: Vec<String>,
    /// Their weights are split by what goes in.
    pub row: Vec<String>,
    /// Their weights are split by words. Classes, or what modules are called.
    pub vocabulary: Vec<String>,
    /// What the number of words of each rank is a multiple of.
    pub vocabulary_multiple: u64,
    /// What comes out of them on each rank is a gate and what it lets through. Classes, or what modules are called.
    pub gated: Vec<String>,
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
            vocabulary: texts(&[
                "VocabParallelEmbedding",
                "ParallelLMHead",
                "word_embeddings",
                "output_layer",
                "lm_head",
            ]),
            vocabulary_multiple: 128,
            gated: texts(&["MergedColumnParallelLinear", "gate_up_proj", "linear_fc1", "dense_h_to_4h"]),
            layers: texts(&["layers", "layer"]),
            experts: texts(&["local_experts", "experts"]),
        }
    }
}

const FORM: &str = "{column|row|vocabulary|gated|layers|experts}: [name, …], vocabulary_multiple: N";

/// Modules called so are gated in some models, and not in others: the sizes around them have to say so.
const GATED_OR_NOT: [&str; 2] = ["linear_fc1", "dense_h_to_4h"];

/// How the weight of a module is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// By what comes out.
    Column,
    /// By what goes in.
    Row,
    /// By words.
    Vocabulary,
}

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
            if key == "vocabulary_multiple" {
                let number = names.as_text().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
                classes.vocabulary_multiple = number.ok_or_else(|| {
                    wrong("expected a whole number above 0 for vocabulary_multiple".to_owned())
                })?;
                continue;
            }
            let list = match key {
                "column" => &mut classes.column,
                "row" => &mut classes.row,
                "vocabulary" => &mut classes.vocabulary,
                "gated" => &mut classes.gated,
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

    /// How the weight of a module is split.
    pub(super) fn split_of(&self, name: &str) -> Option<Split> {
        let class = class_of(name);
        let is_of = |classes: &[String]| classes.iter().any(|known| known == class);
        if is_of(&self.column) {
            Some(Split::Column)
        } else if is_of(&self.row) {
            Some(Split::Row)
        } else {
            self.is_vocabulary(name).then_some(Split::Vocabulary)
        }
    }

    /// Whether a module has a weight with a row for each word.
    pub(super) fn is_vocabulary(&self, name: &str) -> bool {
        is_listed(name, &self.vocabulary)
    }

    /// The same of the module a node is, or is a function of.
    pub(super) fn is_of_vocabulary(&self, hierarchy: &Hierarchy, node: NodeIndex) -> bool {
        module_around(hierarchy, node).is_some_and(|name| self.is_vocabulary(name))
    }

    /// Whether a module may be gated; its size says so where its name alone does not.
    pub(super) fn may_be_gated(&self, name: &str) -> bool {
        is_listed(name, &self.gated)
    }

    /// Whether a module that may be gated is, going by nothing but its name.
    pub(super) fn is_gated_by_name(name: &str) -> bool {
        !GATED_OR_NOT.contains(&own_name_of(name))
    }
}

fn is_listed(name: &str, list: &[String]) -> bool {
    let names = [class_of(name), own_name_of(name)];
    list.iter().any(|known| names.contains(&known.as_str()))
}

/// The name of the module that a node is, or that a function was called in.
pub(super) fn module_around(hierarchy: &Hierarchy, node: NodeIndex) -> Option<&str> {
    let found = hierarchy.node(node);
    let module = if found.kind == NodeKind::Api { hierarchy.node(found.parent?) } else { found };
    (module.kind == NodeKind::Module).then_some(&*module.name)
}

/// What a module is without its call: `Module.fc.Linear` of `Module.fc.Linear.forward.0`.
pub(super) fn stem_of(name: &str) -> &str {
    let calls = ["forward", "backward"].into_iter().find_map(|direction| split_call(name, direction));
    match calls {
        Some((stem, _)) => stem,
        None => name.find(".parameters_grad").map_or(name, |at| &name[..at]),
    }
}

/// The class of a module: `Linear` of `Module.fc.Linear.forward.0`.
pub(super) fn class_of(name: &str) -> &str {
    stem_of(name).rsplit('.').next().unwrap_or_default()
}

/// What a module is called in its parent: `fc` of `Module.fc.Linear.forward.0`.
fn own_name_of(name: &str) -> &str {
    stem_of(name).rsplit('.').nth(1).unwrap_or_default()
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
        std::fs::write(&path, "gated: [w13]\nvocabulary_multiple: 64\n").unwrap();
        let classes = Classes::read(&path).unwrap();
        assert_eq!(classes.vocabulary_multiple, 64);
        assert!(classes.may_be_gated("Module.mlp.w13.Linear.parameters_grad"));
        assert!(!classes.may_be_gated("Module.mlp.w2.Linear.forward.0"));
        let bad_numbers = ["vocabulary_multiple: 0", "vocabulary_multiple: [1]"];
        for bad in ["colum: [x]", "column: x", "column: [[x]]", "- x"].into_iter().chain(bad_numbers) {
            std::fs::write(&path, bad).unwrap();
            assert!(Classes::read(&path).unwrap_err().hint.is_some(), "{bad}");
        }
    }
}
