//! Mapping of layers: rules per class of layer, from which each row's partner follows.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;

use msprobe_compare::side::{Record, Side};
use msprobe_dump::names::segments;
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;

use super::scopes::{RecordScope, TOP_LAYER, places};
use super::{MappingSource, NO_PARTNER, misshapen, names_of};
use crate::yaml::{self, Node};

const FORM: &str = "{LayerClass}: {target child: golden child}";
/// A key up to this length stands on one line with its value.
const MAX_KEY_CHARS: usize = 122;

/// A mapping of rows that follows from one of layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LayerMapping {
    /// Name of a target row and of its partner, `N/A` for none; in the order of the target.
    pub rows: Vec<(String, String)>,
}

impl LayerMapping {
    /// The text users get beside the table, and can give back as a mapping of rows.
    pub fn to_yaml(&self) -> String {
        if self.rows.is_empty() {
            return "{}\n".to_owned();
        }
        let mut text = String::new();
        for (name, partner) in &self.rows {
            let (key, value) = (scalar(name), scalar(partner));
            // Writing to a string cannot fail. Readers accept long keys only if they are marked.
            let _ = if key.chars().count() > MAX_KEY_CHARS {
                writeln!(text, "? {key}\n: {value}")
            } else {
                writeln!(text, "{key}: {value}")
            };
        }
        text
    }

    /// The same as keys to match by.
    pub fn into_mapping(self) -> HashMap<String, String> {
        self.rows.into_iter().collect()
    }
}

/// Finds the partner of every target row by its place in the model. Reads stack.json and construct.json beside both
/// dumps; without them nothing has a partner.
pub fn layer_mapping(
    target: &Side,
    golden: &Side,
    source: MappingSource<'_>,
    console: &dyn Console,
) -> Result<LayerMapping, CompareError> {
    let partners = layer_partners(target, golden, source, console)?;
    let partners: Vec<Option<&Record>> = partners
        .into_iter()
        .map(|partner| match partner {
            LayerPartner::Record(record) => golden.records.get(record),
            LayerPartner::Unknown | LayerPartner::Nothing => None,
        })
        .collect();
    Ok(map_rows(target, golden, &partners))
}

/// What a mapping of layers says of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerPartner {
    /// Nothing: it is in no layer.
    Unknown,
    /// It has no partner.
    Nothing,
    /// This record of the golden side.
    Record(usize),
}

/// The same for whole records of the target.
pub fn layer_partners(
    target: &Side,
    golden: &Side,
    source: MappingSource<'_>,
    console: &dyn Console,
) -> Result<Vec<LayerPartner>, CompareError> {
    let rules = match source {
        MappingSource::BuiltIn => Rules::new(),
        MappingSource::File(file) => read_rules(file, console)?,
    };
    let target_places = places(target, console)?;
    let target_tree = Tree::new(&target_places);
    let golden_places = places(golden, console)?;
    let golden_tree = Tree::new(&golden_places);
    let mut partners = vec![LayerPartner::Unknown; target.records.len()];
    for (place, nth) in target_places.iter().zip(&target_tree.nth) {
        let partner = golden_tree
            .find(&target_tree.translate(place, &rules), &place.state, *nth)
            .and_then(|at| golden_places.get(at))
            .map_or(LayerPartner::Nothing, |place| LayerPartner::Record(place.record));
        if let Some(slot) = partners.get_mut(place.record) {
            *slot = partner;
        }
    }
    Ok(partners)
}

/// Rows at the same place of their records.
fn map_rows(target: &Side, golden: &Side, partners: &[Option<&Record>]) -> LayerMapping {
    let mut rows: Vec<(String, String)> = Vec::with_capacity(target.rows.len());
    let mut positions: HashMap<&str, usize> = HashMap::with_capacity(target.rows.len());
    for (record, partner) in target.records.iter().zip(partners) {
        let by_place: HashMap<&str, &str> = partner
            .and_then(|partner| golden.rows.get(partner.rows.clone()))
            .map(|rows| rows.iter().map(|leaf| (&*leaf.place, &*leaf.name)).collect())
            .unwrap_or_default();
        for leaf in target.rows.get(record.rows.clone()).unwrap_or_default() {
            let found = by_place.get(&*leaf.place).copied();
            let mapped = found.unwrap_or(NO_PARTNER).to_owned();
            // A name that is repeated counts as its last occurrence.
            match positions.get(&*leaf.name).and_then(|&position| rows.get_mut(position)) {
                Some(row) => row.1 = mapped,
                None => {
                    positions.insert(&leaf.name, rows.len());
                    rows.push((leaf.name.to_string(), mapped));
                }
            }
        }
    }
    LayerMapping { rows }
}

/// For a class of layer and the first part of a child's name: the children there are rules for, longest first.
type Rules = HashMap<String, HashMap<String, Vec<Rule>>>;

struct Rule {
    /// Names from the layer down to the child.
    child: Vec<String>,
    /// What stands in their place on the golden side.
    partner: Vec<String>,
}

fn read_rules(file: &Path, console: &dyn Console) -> Result<Rules, CompareError> {
    let root = yaml::read(file)?;
    let classes: &[(Rc<Node>, Rc<Node>)] = match &*root {
        Node::Null => {
            console.warning(&format!("The mapping file {} is empty.", file.display()));
            &[]
        }
        Node::Map(classes) => classes,
        other => return Err(misshapen(file, &format!("expected a mapping, found {}", other.kind()), FORM)),
    };
    // The older name of the root counts where both are given.
    let has_old_root = root.get("Cell").is_some();
    let mut rules = Rules::new();
    for (class, children) in classes {
        let class = class
            .as_text()
            .ok_or_else(|| misshapen(file, &format!("expected a class, found {}", class.kind()), FORM))?;
        let class = match class {
            TOP_LAYER if has_old_root => continue,
            "Cell" => TOP_LAYER,
            other => other,
        };
        let mut by_first: HashMap<String, Vec<Rule>> = HashMap::new();
        for (child, partner) in names_of(children, file, FORM)? {
            let Some(partner) = partner else {
                return Err(misshapen(file, &format!("{child} of {class} has no counterpart"), FORM));
            };
            // Behind a bracket users note the class.
            let partner = partner.split('(').next().unwrap_or_default();
            let child: Vec<String> = segments(&child).map(str::to_owned).collect();
            let partner = segments(partner).map(str::to_owned).collect();
            let first = child.first().cloned().unwrap_or_default();
            by_first.entry(first).or_default().push(Rule { child, partner });
        }
        for rules in by_first.values_mut() {
            rules.sort_by_key(|rule| std::cmp::Reverse(rule.child.len()));
        }
        rules.insert(class.to_owned(), by_first);
    }
    Ok(rules)
}

/// The places of one side as a tree of scopes without their first part, which names the framework.
struct Tree<'p> {
    children: HashMap<(usize, &'p str), usize>,
    /// Class of each node: of the last record there, else its own name.
    classes: Vec<&'p str>,
    /// Places at a node in one state, in order.
    entries: HashMap<(usize, &'p str), Vec<usize>>,
    /// For each place, how many there were before it at its node and in its state.
    nth: Vec<usize>,
}

impl<'p> Tree<'p> {
    fn new(places: &'p [RecordScope]) -> Tree<'p> {
        let mut tree = Tree {
            children: HashMap::new(),
            classes: vec![TOP_LAYER],
            entries: HashMap::new(),
            nth: Vec::with_capacity(places.len()),
        };
        for (index, place) in places.iter().enumerate() {
            let mut node = 0;
            for name in place.scope.iter().skip(1) {
                let next = tree.classes.len();
                node = *tree.children.entry((node, name)).or_insert(next);
                if node == next {
                    tree.classes.push(name);
                }
            }
            if let Some(class) = tree.classes.get_mut(node) {
                *class = &place.class;
            }
            let entries = tree.entries.entry((node, &place.state)).or_default();
            tree.nth.push(entries.len());
            entries.push(index);
        }
        tree
    }

    /// The scope a place would have on the other side, without its first part.
    fn translate<'s>(&self, place: &'s RecordScope, rules: &'s Rules) -> Vec<&'s str> {
        let mut translated = Vec::with_capacity(place.scope.len());
        let mut node = Some(0);
        let mut rest = place.scope.get(1..).unwrap_or_default();
        while let Some(name) = rest.first() {
            let class = node.and_then(|node| self.classes.get(node)).copied().unwrap_or_default();
            let rule = rules
                .get(class)
                .and_then(|children| children.get(name))
                .and_then(|rules| rules.iter().find(|rule| rest.starts_with(&rule.child)));
            let step = match rule {
                Some(rule) => {
                    translated.extend(rule.partner.iter().map(String::as_str));
                    rule.child.len()
                }
                None => {
                    translated.push(name);
                    1
                }
            };
            let (passed, remaining) = rest.split_at(step.min(rest.len()));
            for name in passed {
                node = node.and_then(|node| self.children.get(&(node, name.as_str())).copied());
            }
            rest = remaining;
        }
        translated
    }

    /// The `nth` place with this scope and state.
    fn find(&self, scope: &[&str], state: &str, nth: usize) -> Option<usize> {
        let node = scope.iter().try_fold(0, |node, name| self.children.get(&(node, *name)).copied())?;
        self.entries.get(&(node, state))?.get(nth).copied()
    }
}

/// A name as YAML, in quotes only where a reader would take it for something else.
fn scalar(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || "_./-".contains(character))
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain {
        return name.to_owned();
    }
    let is_printable = |character: char| matches!(character, ' '..='~' | '\u{a1}'..='\u{d7ff}');
    if name.chars().all(|character| is_printable(character) && !matches!(character, '\u{2028}' | '\u{2029}'))
    {
        return format!("'{}'", name.replace('\'', "''"));
    }
    let mut quoted = String::from("\"");
    for character in name.chars() {
        let _ = match character {
            '"' | '\\' => write!(quoted, "\\{character}"),
            ' '..='~' => write!(quoted, "{character}"),
            other => write!(quoted, "\\U{:08x}", other as u32),
        };
    }
    quoted.push('"');
    quoted
}
