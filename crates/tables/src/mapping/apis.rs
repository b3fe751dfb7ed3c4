//! Mapping of APIs: MindSpore's names to PyTorch's, and with a file also the order of arguments and results.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use msprobe_compare::side::{Leaf, Record, Role, Side};
use msprobe_report::console::{Console, Level};
use msprobe_report::error::CompareError;

use super::builtin_apis::pytorch_name;
use super::{MappingSource, misshapen};
use crate::names::{api_of, kind_of, split_at_place};
use crate::yaml::{self, Node};

const FORM: &str = "- ms_api: {type}.{name}, pt_api: {type}.{name}, ms_args: [..], pt_args: [..], ms_outputs: [..], \
                    pt_outputs: [..]";

/// Parts of a place that are tried; rows are not nested as deep.
const MAX_PLACE_PARTS: usize = 32;

/// The name each target row is looked up by; none for rows a rule of the file leaves without a partner.
pub fn api_keys(
    target: &Side,
    golden: &Side,
    source: MappingSource<'_>,
    console: &dyn Console,
) -> Result<Vec<Option<String>>, CompareError> {
    let mut keys: Vec<Option<String>> =
        target.rows.iter().map(|leaf| Some(built_in_key(&leaf.name))).collect();
    let MappingSource::File(file) = source else { return Ok(keys) };
    let rules = read_rules(file, console)?;
    let golden_apis: HashSet<&str> = golden.rows.iter().filter_map(|leaf| api_of(&leaf.name)).collect();
    // The last rule of an API counts.
    let mut by_api: HashMap<&str, &Rule> = HashMap::with_capacity(rules.len());
    let mut unused: HashSet<&str> = HashSet::new();
    for rule in &rules {
        if golden_apis.contains(&*rule.golden) {
            by_api.insert(&rule.target, rule);
        } else {
            unused.insert(&rule.golden);
        }
    }
    console.log(
        Level::Debug,
        &format!("APIs of the mapping file that the bench side does not have: {unused:?}"),
    );
    for record in &target.records {
        for row in record.rows.clone() {
            let Some(leaf) = target.rows.get(row) else { continue };
            let rule = api_of(&leaf.name).and_then(|api| by_api.get(api));
            if let (Some(rule), Some(key)) = (rule, keys.get_mut(row)) {
                *key = rule.key(leaf, record);
            }
        }
    }
    Ok(keys)
}

fn built_in_key(name: &str) -> String {
    match kind_of(name) {
        "Mint" => name.replace("Mint", "Torch"),
        "MintFunctional" => name.replace("MintFunctional", "Functional"),
        _ => match api_of(name).and_then(|api| Some((pytorch_name(api)?, name.strip_prefix(api)?))) {
            Some((api, rest)) => format!("{api}{rest}"),
            None => name.to_owned(),
        },
    }
}

/// One entry of the file.
#[derive(Debug, Default)]
struct Rule {
    /// API of the target.
    target: String,
    /// Its counterpart.
    golden: String,
    /// For arguments, results, parameters and their gradients: which of the target is which of the golden side.
    places: [HashMap<String, String>; 4],
}

/// The words an entry names places by, without `ms_` and `pt_`. The first is the documented one; the reference reads
/// another one for results.
const PLACES: [&[&str]; 4] = [
    &["args", "arg"],
    &["outputs", "output"],
    &["parameters", "parameter"],
    &["parameters_grad", "parameter_grad", "parameters_grads"],
];

impl Rule {
    /// The name a row of the rule's API is looked up by.
    fn key(&self, leaf: &Leaf, record: &Record) -> Option<String> {
        let (word, places) = {
            let [arguments, results, parameters, gradients] = &self.places;
            match leaf.role {
                Role::Input => (".input.", arguments),
                Role::Output => (".output.", results),
                Role::Parameters => (".parameters.", parameters),
                Role::ParametersGrad => (".parameters_grad.", gradients),
            }
        };
        let (head, place) = split_at_place(&leaf.name, &record.name, word)?;
        // The longest place first: one of the values in a list can have a partner of its own.
        // Bounded, because names come from outside and a name may be nothing but dots.
        let ends = place.match_indices('.').map(|(end, _)| end).take(MAX_PLACE_PARTS).chain([place.len()]);
        let ends: Vec<usize> = ends.collect();
        let (partner, end) =
            ends.iter().rev().find_map(|&end| Some((places.get(place.get(..end)?)?, end)))?;
        let head = head.strip_prefix(&*self.target)?;
        Some(format!("{}{head}{partner}{}", self.golden, place.get(end..)?))
    }
}

fn read_rules(file: &Path, console: &dyn Console) -> Result<Vec<Rule>, CompareError> {
    let root = yaml::read(file)?;
    let mut rules = Vec::new();
    match &*root {
        Node::Null => console.warning(&format!("The mapping file {} is empty.", file.display())),
        Node::Map(_) => rules.extend(read_rule(&root, file, console)?),
        Node::List(entries) => {
            for entry in entries {
                rules.extend(read_rule(entry, file, console)?);
            }
        }
        Node::Text(_) => {
            return Err(misshapen(
                file,
                "expected an entry or a list of entries, found a single value",
                FORM,
            ));
        }
    }
    Ok(rules)
}

/// One entry; none if its lists do not fit together, which costs only the entry.
fn read_rule(entry: &Node, file: &Path, console: &dyn Console) -> Result<Option<Rule>, CompareError> {
    if !matches!(entry, Node::Map(_)) {
        let problem = format!("expected an entry with ms_api and pt_api, found {}", entry.kind());
        return Err(misshapen(file, &problem, FORM));
    }
    let api = |key: &str| match entry.get(key) {
        Some(Node::Text(api)) => Ok(api.clone()),
        Some(other) => {
            Err(misshapen(file, &format!("expected a name as {key}, found {}", other.kind()), FORM))
        }
        None => Err(misshapen(file, &format!("an entry has no {key}"), FORM)),
    };
    let mut rule = Rule { target: api("ms_api")?, golden: api("pt_api")?, ..Rule::default() };
    for (words, places) in PLACES.iter().zip(&mut rule.places) {
        let target = read_places(entry, "ms", words, file)?;
        let golden = read_places(entry, "pt", words, file)?;
        if target.len() != golden.len() {
            console.warning(&format!(
                "The user-defined mapping table is incorrect, make sure that the number of parameters is equal: \
                 {} has {} {word} and {} has {}",
                rule.target,
                target.len(),
                rule.golden,
                golden.len(),
                word = words.first().unwrap_or(&""),
            ));
            return Ok(None);
        }
        *places = target.into_iter().zip(golden).collect();
    }
    Ok(Some(rule))
}

/// The indexes or names an entry lists; none if it does not.
fn read_places(entry: &Node, side: &str, words: &[&str], file: &Path) -> Result<Vec<String>, CompareError> {
    let listed = words.iter().find_map(|word| {
        let key = format!("{side}_{word}");
        entry.get(&key).map(|value| (key, value))
    });
    let Some((key, value)) = listed else { return Ok(Vec::new()) };
    let wrong = |node: &Node| {
        let problem = format!("expected a list of indexes or names as {key}, found {} in it", node.kind());
        misshapen(file, &problem, FORM)
    };
    match value {
        Node::Null => Ok(Vec::new()),
        Node::Text(place) => Ok(vec![place.clone()]),
        Node::List(places) => places
            .iter()
            .map(|place| place.as_text().map(str::to_owned).ok_or_else(|| wrong(place)))
            .collect(),
        Node::Map(_) => Err(wrong(value)),
    }
}
