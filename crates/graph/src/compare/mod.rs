//! Two nodes that belong together: what is measured of their values, and how bad it is.

mod index;
mod metrics;

use std::path::PathBuf;
use std::sync::Arc;

use msprobe_compare::Mode;
use msprobe_compare::metrics::{compare_tensors, compare_tensors_widened};
use msprobe_compare::side::{Leaf, Role, Side};
use msprobe_dump::hash::FastMap;
use msprobe_tables::newest::Grade;
use msprobe_tables::table::TensorFiles;

pub use self::index::{Index, worst_of_collection};
use crate::graph::{Graph, NodeReader};
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::Generation;
use crate::values::{Extra, NodeValue, SharedValues};

/// What two graphs have to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Values, in one of the ways tables know.
    Values(Mode),
    /// Nothing but the nodes themselves.
    Structure,
}

impl Task {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Task::Values(Mode::All) => "all",
            Task::Values(Mode::Summary) => "summary",
            Task::Values(Mode::Md5) => "md5",
            Task::Structure => "structure",
        }
    }

    /// What a file says is compared.
    pub fn of(word: &str) -> Option<Task> {
        let modes = [Mode::All, Mode::Summary, Mode::Md5].map(Task::Values);
        modes.into_iter().chain([Task::Structure]).find(|task| task.as_str() == word)
    }

    /// Whether checksums are compared.
    pub fn has_checksums(self) -> bool {
        self == Task::Values(Mode::Md5)
    }
}

/// What a pair of nodes gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeResult {
    /// How bad it is, as files say it.
    pub index: Option<Index>,
    /// In the first generation, whether all checksums agree.
    pub checksums_agree: Option<bool>,
    /// The grade, in the third generation.
    pub grade: Option<Grade>,
    /// What is shown behind the members of each value of the target.
    pub extras: Vec<Vec<(&'static str, Extra)>>,
    /// Tensor files that could not be read.
    pub failures: Vec<String>,
}

/// Compares pairs of nodes.
pub struct Comparer {
    /// What is compared.
    pub task: Task,
    /// Like which form of the reference.
    pub generation: Generation,
    /// Whether the two sides were written under different frameworks.
    pub across_frameworks: bool,
    /// Whether ranks were merged.
    pub is_merged: bool,
    files: TensorFiles,
}

/// A value of the target and its partner.
#[derive(Clone, Copy)]
pub(crate) struct ValuePair<'v> {
    /// Its number among the values of the target.
    pub(crate) place: usize,
    pub(crate) target: &'v NodeValue,
    pub(crate) golden: Option<&'v Leaf>,
}

impl Comparer {
    /// Compares nodes of these two graphs.
    pub fn new(target: &Graph, golden: &Graph, task: Task, generation: Generation) -> Comparer {
        let compare = match generation {
            Generation::First => compare_tensors,
            Generation::Third => compare_tensors_widened,
        };
        let framework = |graph: &Graph| graph.files.header.framework.clone();
        Comparer {
            task,
            generation,
            across_frameworks: framework(target) != framework(golden),
            is_merged: false,
            files: TensorFiles::new(compare, target.tensor_dir(), golden.tensor_dir()),
        }
    }

    /// Compares values that were stored before, of tensors whose files are in these two directories.
    pub fn of_stored(task: Task, generation: Generation, tensor_dirs: [PathBuf; 2]) -> Comparer {
        let compare = match generation {
            Generation::First => compare_tensors,
            Generation::Third => compare_tensors_widened,
        };
        let [target, golden] = tensor_dirs;
        let files = TensorFiles::new(compare, target, golden);
        Comparer { task, generation, across_frameworks: false, is_merged: false, files }
    }

    /// Compares the values of two nodes, of which the target's is called so.
    pub fn compare<'v>(
        &self,
        name: &str,
        target: &'v SharedValues,
        golden: &(impl Iterator<Item = &'v Leaf> + Clone),
    ) -> NodeResult {
        let Task::Values(mode) = self.task else { return NodeResult::default() };
        if target.is_empty() {
            return NodeResult::default();
        }
        let pairs = pair_values(target, golden);
        let mut result = NodeResult { extras: vec![Vec::new(); target.len()], ..NodeResult::default() };
        match self.generation {
            Generation::First => self.first(name, mode, &pairs, &mut result),
            Generation::Third => self.third(name, mode, &pairs, &mut result),
        }
        result
    }

    /// The same, reading the values first; those of the golden side are taken from `known` where that has them.
    pub fn compare_nodes(
        &self,
        (target, index): (&Graph, u32),
        (golden, other): (&Graph, u32),
        known: Option<&KnownValues>,
        reader: &mut NodeReader,
    ) -> (SharedValues, NodeResult) {
        let name = &target.hierarchy.node(index).name;
        let values = target.values(index, reader);
        let result = match known.and_then(|known| known.of(golden, other)) {
            Some(leaves) => self.compare(name, &values, &leaves.iter()),
            None => {
                let others = golden.values(other, reader);
                self.compare(name, &values, &others.iter().map(|value| &value.leaf))
            }
        };
        (values, result)
    }
}

/// What the engine has read of a dump already: the values of its records, without what was written of them.
pub struct KnownValues {
    side: Side,
    records: FastMap<Arc<str>, usize>,
}

impl KnownValues {
    /// Of a dump that was read.
    pub fn new(side: Side) -> KnownValues {
        let records = side.records.iter().enumerate().map(|(at, record)| (record.name.clone(), at)).collect();
        KnownValues { side, records }
    }

    /// Those of a node, unless merging changed them.
    fn of(&self, graph: &Graph, node: NodeIndex) -> Option<&[Leaf]> {
        if node == Hierarchy::ROOT || graph.changed.contains_key(&node) {
            return None;
        }
        let record = self.records.get(&graph.hierarchy.node(node).name)?;
        Some(self.side.rows_of(*record))
    }
}

/// Arguments with arguments, parameters with parameters, and so on, in order. What only the golden side has is left out.
fn pair_values<'v>(
    target: &'v [NodeValue],
    golden: &(impl Iterator<Item = &'v Leaf> + Clone),
) -> Vec<ValuePair<'v>> {
    let roles = [Role::Input, Role::Parameters, Role::Output, Role::ParametersGrad];
    let mut pairs = Vec::with_capacity(target.len());
    for role in roles {
        let mut partners = golden.clone().filter(|leaf| leaf.role == role);
        let own = target.iter().enumerate().filter(|(_, value)| value.leaf.role == role);
        pairs.extend(own.map(|(place, target)| ValuePair { place, target, golden: partners.next() }));
    }
    pairs
}
