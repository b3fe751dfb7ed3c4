//! The answer for merged ranks: what was merged, as records the comparison engine judges like those of one rank.
//!
//! Where both sides are split in the same way, everything is judged. Where they are not, functions work on parts that have no
//! counterpart, a sum over half a row for instance: then only modules are judged, whose values are whole when they are merged.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use msprobe_compare::Mode;
use msprobe_compare::side::{
    Construct, Earlier, FileKind, Framework, Leaf, Record, Scalar, Side, ValueKind, ValueShape,
};
use msprobe_dump::hash::FastMap;

use super::as_dump::calls;
use super::classes::Classes;
use super::padding::{Padding, padding};
use super::strategy::Strategy;
use crate::graph::{Graph, NodeReader};
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::matching::{Links, Matching};
use crate::names::{NodeKind, is_distributed};
use crate::run::Pair;
use crate::values::NodeValue;
use crate::verdict::{Judged, asked_records, judge};

/// Norms of a padded vocabulary that are this close are those of the same rows: its padding is nothing.
const SAME_ROWS: f64 = 1e-2;

/// How the two sides are split.
#[derive(Clone, Copy)]
pub(super) struct Sides<'s> {
    pub(super) target: &'s Strategy,
    pub(super) golden: &'s Strategy,
    pub(super) classes: &'s Classes,
}

/// What of merged graphs is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judging {
    /// All calls.
    Everything,
    /// Not what ranks say to each other, nor what each of them does beside the model.
    TheModel,
    /// Calls of modules.
    Modules,
}

impl Sides<'_> {
    fn judging(self) -> Judging {
        let parts = |strategy: &Strategy| (strategy.tp, strategy.cp, strategy.ep);
        let stages = |strategy: &Strategy| (strategy.pp, strategy.vpp);
        if parts(self.target) != parts(self.golden) {
            Judging::Modules
        } else if stages(self.target) != stages(self.golden) {
            Judging::TheModel
        } else {
            Judging::Everything
        }
    }

    /// Whether shapes are those of the same tensor, split among other numbers of ranks.
    fn is_explained(self, one: &[u64], two: &[u64]) -> bool {
        let elements = |sizes: &[u64]| sizes.iter().try_fold(1_u64, |all, &size| all.checked_mul(size));
        let (Some(one_all), Some(two_all)) = (elements(one), elements(two)) else { return false };
        let (more, less) = (one_all.max(two_all), one_all.min(two_all));
        if one.len() != two.len() || less == 0 || !more.is_multiple_of(less) {
            return false;
        }
        let ranks = |strategy: &Strategy| u64::from(strategy.tp) * u64::from(strategy.cp);
        [self.target, self.golden].into_iter().any(|strategy| ranks(strategy).is_multiple_of(more / less))
    }
}

/// Asks the engine about a pair of merged graphs. What people should know of the answer is given back.
pub(super) fn judge_merged(pair: &mut Pair, sides: Sides<'_>) -> Vec<String> {
    let Some(golden) = &pair.golden else { return Vec::new() };
    let judging = sides.judging();
    let mut own = drafts(&pair.target, judging);
    let mut other = drafts(&golden.graph, judging);
    let mut notes = match judging {
        Judging::Everything => Vec::new(),
        Judging::TheModel => vec![
            "the sides have other stages: communication, and functions outside modules, are not judged"
                .to_owned(),
        ],
        Judging::Modules => vec![
            "tensors are split among other numbers of ranks: calls of modules are judged, those of functions are not"
                .to_owned(),
        ],
    };
    let padded = fit(&pair.target.hierarchy, (&mut own, &mut other), &golden.links, sides);
    let (own, other) = (judged(&pair.target, own), judged(&golden.graph, other));
    let asked = asked_records(
        (&own.side, &pair.target.hierarchy),
        (&other.side, &golden.graph.hierarchy),
        &golden.links,
        &Matching::Fuzzy,
    );
    pair.verdict = Some(judge(&own, &other, Mode::Summary, asked.as_ref()));
    if !padded.is_empty() {
        let values = crate::run::count(padded.len(), "value");
        notes.push(format!("the vocabulary is padded to another size on each side: {values}"));
    }
    for (node, sentence) in padded {
        pair.target.merge_info.entry(node).or_default().push(sentence);
    }
    notes
}

/// A record before it is judged.
struct Draft {
    node: NodeIndex,
    rows: Vec<Leaf>,
}

fn drafts(graph: &Graph, judging: Judging) -> Vec<Draft> {
    let hierarchy = &graph.hierarchy;
    let mut reader = NodeReader::default();
    let is_judged = |&node: &NodeIndex| match judging {
        Judging::Everything => true,
        Judging::TheModel => !is_distributed(&hierarchy.node(node).name) && !is_outside(hierarchy, node),
        Judging::Modules => hierarchy.node(node).kind == NodeKind::Module,
    };
    let draft = |node: NodeIndex| {
        let values = graph.values(node, &mut reader);
        (!values.is_empty()).then(|| Draft { node, rows: values.iter().map(row).collect() })
    };
    calls(hierarchy).into_iter().filter(is_judged).filter_map(draft).collect()
}

/// Whether a function was called in no module.
fn is_outside(hierarchy: &Hierarchy, node: NodeIndex) -> bool {
    let parent = hierarchy.node(node).parent;
    let is_in_module = parent
        .is_some_and(|parent| parent != Hierarchy::ROOT && !hierarchy.node(parent).kind.is_collection());
    hierarchy.node(node).kind == NodeKind::Api && !is_in_module
}

/// What is judged of a value. Of one that was merged only statistics are left: a sketch or a checksum is of one rank.
fn row(value: &NodeValue) -> Leaf {
    let mut leaf = value.leaf.clone();
    let mut hasher = DefaultHasher::new();
    value.written.hash(&mut hasher);
    if let Some(merged) = &value.merged {
        (leaf.sketch, leaf.md5, leaf.has_checksum) = (None, None, false);
        if let Some(whole) = &merged.whole_shape {
            leaf.shape = ValueShape::Sizes(whole.as_slice().into());
        }
        merged.statistics.map(|number| number.map(f64::to_bits)).hash(&mut hasher);
    }
    leaf.digest = hasher.finish();
    leaf
}

/// Takes away what only splitting and padding make different. The sentences are about padding, with the nodes they are of.
fn fit(
    hierarchy: &Hierarchy,
    (own, other): (&mut [Draft], &mut [Draft]),
    links: &Links,
    sides: Sides<'_>,
) -> Vec<(NodeIndex, String)> {
    let places: FastMap<NodeIndex, usize> =
        other.iter().enumerate().map(|(place, draft)| (draft.node, place)).collect();
    let partner_of =
        |draft: &Draft| links.to_golden[draft.node as usize].and_then(|node| places.get(&node).copied());
    // Modules of the vocabulary tell its sizes; what they give goes on through others.
    let mut known: Vec<Padding> = Vec::new();
    for draft in own.iter().filter(|draft| sides.classes.is_of_vocabulary(hierarchy, draft.node)) {
        let Some(partner) = partner_of(draft).and_then(|place| other.get(place)) else { continue };
        for leaf in &draft.rows {
            let golden = partner.rows.iter().find(|other| other.place == leaf.place);
            let sizes = golden.and_then(|golden| Some((leaf.shape.sizes()?, golden.shape.sizes()?)));
            known.extend(sizes.and_then(|(one, two)| padding(one, two, sides)));
        }
    }
    let mut padded = Vec::new();
    for draft in own {
        let Some(partner) = partner_of(draft).and_then(|place| other.get_mut(place)) else { continue };
        draft.rows.retain_mut(|leaf| {
            let Some(at) = partner.rows.iter().position(|other| other.place == leaf.place) else {
                return true;
            };
            let golden = &mut partner.rows[at];
            let (Some(one), Some(two)) = (leaf.shape.sizes(), golden.shape.sizes()) else { return true };
            if one == two || leaf.kind != ValueKind::Tensor || golden.kind != ValueKind::Tensor {
                return true;
            }
            let padding = padding(one, two, sides).filter(|padding| known.contains(padding));
            if let Some(padding) = padding {
                let is_judged = take_off_padding(leaf, golden, padding);
                padded.push((draft.node, padding.sentence(&leaf.place, is_judged)));
                if !is_judged {
                    partner.rows.remove(at);
                }
                return is_judged;
            }
            if sides.is_explained(one, two) {
                leaf.shape = golden.shape.clone();
            }
            true
        });
    }
    padded
}

/// Rows of zeros change nothing of a norm, and of a mean only what it is divided by. Whether those that pad are zeros, the
/// norm says; if they are not, statistics cannot tell what is without them.
fn take_off_padding(leaf: &mut Leaf, golden: &Leaf, padding: Padding) -> bool {
    let norms = (leaf.statistics[3].number(), golden.statistics[3].number());
    let (Some(norm), Some(other)) = norms else { return false };
    // NaN is not more than anything: it is left for the engine to tell.
    if (norm - other).abs() > SAME_ROWS * norm.abs().max(other.abs()) {
        return false;
    }
    if let Some(mean) = leaf.statistics[2].number() {
        leaf.statistics[2] = Scalar::Float(mean * padding.own as f64 / padding.other as f64);
    }
    leaf.shape = golden.shape.clone();
    true
}

/// Drafts as a side of a comparison.
fn judged(graph: &Graph, drafts: Vec<Draft>) -> Judged {
    let hierarchy = &graph.hierarchy;
    let mut records = Vec::with_capacity(drafts.len());
    let mut rows: Vec<Leaf> = Vec::new();
    for draft in drafts {
        let from = rows.len();
        let record = u32::try_from(records.len()).unwrap_or(u32::MAX);
        rows.extend(draft.rows.into_iter().map(|leaf| Leaf { record, ..leaf }));
        let name: Arc<str> = hierarchy.node(draft.node).name.clone();
        records.push(Record { name, rows: from..rows.len(), rest: 0, earlier: Earlier::default() });
    }
    let parent = |node: NodeIndex| {
        let parent = hierarchy.node(node).parent.filter(|&parent| parent != Hierarchy::ROOT)?;
        Some(hierarchy.node(parent)).filter(|parent| !parent.kind.is_collection())
    };
    let construct = Construct::of(
        calls(hierarchy)
            .into_iter()
            .map(|node| (&*hierarchy.node(node).name, parent(node).map(|parent| &*parent.name))),
    );
    let header = &graph.files.header;
    let framework = match header.framework.as_deref() {
        Some("pytorch") => Some(Framework::PyTorch),
        Some("mindspore") => Some(Framework::MindSpore),
        _ => None,
    };
    let side = Side {
        path: graph.files.dump_path(),
        kind: FileKind::Dump,
        task: header.task.clone().unwrap_or_default(),
        level: header.level.clone(),
        framework,
        has_md5: false,
        records,
        rows,
        notices: Vec::new(),
        fault: None,
    };
    Judged { side, construct }
}
