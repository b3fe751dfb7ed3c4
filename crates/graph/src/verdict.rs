//! What the comparison engine says of two ranks: the answer, and of each node whether it made its error, got it, or has none
//! that counts.

use std::collections::HashMap;
use std::sync::Arc;

use msprobe_compare::Mode;
use msprobe_compare::metrics::{TensorComparison, compare_tensors};
use msprobe_compare::pairing::MatchMethod;
use msprobe_compare::side::{Construct, Role, Side};
use msprobe_compare::verdict::{
    self, Allowed, Asked, AskedRecords, Judgement, RowOrigin, Tolerances, Verdict,
};
use msprobe_dump::hash::FastMap;
use msprobe_report::answer::{Answer, Scope, StepAndRank};
use msprobe_tables::table::TensorFiles;
use rayon::prelude::*;

use crate::hierarchy::Hierarchy;
use crate::matching::{Links, Matching};

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeVerdict {
    /// Where its error comes from: the worst of its values.
    pub origin: RowOrigin,
    /// The largest error of what came in.
    pub error_in: f64,
    /// The largest error of what went out.
    pub error_out: f64,
    /// What is tolerated where the error is largest.
    pub tolerated: Option<f64>,
}

/// What is known of all nodes, by the names of their records.
pub type NodeVerdicts = FastMap<Arc<str>, NodeVerdict>;

/// The answer for a rank, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct RankAnswer {
    /// How it ended.
    pub status: &'static str,
    /// One sentence.
    pub headline: String,
    /// The record to look at.
    pub culprit: Option<String>,
    /// All of it.
    pub json: String,
}

impl RankAnswer {
    /// Of the answer of a rank.
    pub fn of(answer: &Answer) -> RankAnswer {
        RankAnswer {
            status: answer.status.as_str(),
            headline: answer.headline.clone(),
            culprit: answer.culprit.as_ref().map(|culprit| culprit.name.clone()),
            json: answer.to_json().to_string(),
        }
    }
}

/// A dump as the engine sees it, and the module calls its records were made in.
pub struct Judged {
    /// Its records.
    pub side: Side,
    /// What they were called in.
    pub construct: Construct,
}

impl Judged {
    /// A dump that was read from files, with the construct.json beside it.
    pub fn from_files(side: Side) -> Judged {
        let construct = Construct::read(side.directory()).unwrap_or_default();
        Judged { side, construct }
    }
}

/// The pairs a graph was asked for, for the engine; nothing where it finds better ones by itself.
pub fn asked_records(
    (own, target): (&Side, &Hierarchy),
    (other, golden): (&Side, &Hierarchy),
    links: &Links,
    matching: &Matching,
) -> Option<AskedRecords> {
    let method = match matching {
        Matching::Exact => return None,
        Matching::Fuzzy => MatchMethod::Fuzzy,
        Matching::Mapped(_) => MatchMethod::Mapped,
    };
    let partners: FastMap<&str, usize> =
        other.records.iter().enumerate().map(|(index, record)| (&*record.name, index)).collect();
    let mut asked = AskedRecords::new();
    for (index, record) in own.records.iter().enumerate() {
        let node = target.find(&record.name);
        let partner = node.and_then(|node| links.to_golden[node as usize]);
        let partner = partner.and_then(|node| partners.get(&*golden.node(node).name));
        match (partner, matching) {
            (Some(&partner), _) => asked.insert(index, Some((partner, method))),
            (None, Matching::Mapped(names)) if matches!(names.get(&*record.name), Some(None)) => {
                asked.insert(index, None)
            }
            _ => None,
        };
    }
    Some(asked)
}

/// Judges two ranks, paired as it was asked for.
pub fn judge(
    target: &Judged,
    golden: &Judged,
    mode: Mode,
    asked: Option<&AskedRecords>,
) -> (Verdict, NodeVerdicts) {
    let constructs = (&target.construct, &golden.construct);
    let (target, golden) = (&target.side, &golden.side);
    let files = TensorFiles::new(compare_tensors, target.tensor_dir(), golden.tensor_dir());
    let measure = |rows: &[(usize, usize)]| -> Vec<TensorComparison> {
        let pair =
            |&(own, other): &(usize, usize)| files.measure(&target.rows[own], golden.rows.get(other)).0;
        rows.par_iter().with_max_len(1).map(pair).collect()
    };
    let judgement = verdict::judge(verdict::Input {
        target,
        golden,
        mode,
        asked: asked.map_or(Asked::Nothing, Asked::Records),
        real: HashMap::new(),
        measure: &measure,
        constructs,
        stacks: None,
        tolerances: Tolerances::default(),
        noise: &[],
        allowed: Allowed::default(),
    });
    let nodes = node_verdicts(target, &judgement);
    (judgement.verdict, nodes)
}

/// Where the answer of a rank is about.
pub fn scope(step: Option<u32>, rank: Option<u32>) -> Scope {
    Scope::of_two(StepAndRank::new(step, rank))
}

/// How much an origin weighs against others of one record.
fn weight(origin: RowOrigin) -> u8 {
    match origin {
        RowOrigin::Introduced => 6,
        RowOrigin::Inherited => 5,
        RowOrigin::NotCompared => 4,
        RowOrigin::Tolerated => 3,
        RowOrigin::Aside => 2,
        RowOrigin::NotJudged => 1,
        RowOrigin::Equal => 0,
    }
}

fn node_verdicts(target: &Side, judgement: &Judgement) -> NodeVerdicts {
    let mut verdicts = NodeVerdicts::default();
    for record in &target.records {
        let rows = record.rows.clone().filter_map(|row| Some((row, judgement.rows.get(row)?.as_ref()?)));
        let mut known: Option<NodeVerdict> = None;
        for (row, detail) in rows {
            let is_result = matches!(target.rows[row].role, Role::Output | Role::ParametersGrad);
            let verdict = known.get_or_insert(NodeVerdict {
                origin: detail.origin,
                error_in: 0.0,
                error_out: 0.0,
                tolerated: None,
            });
            let largest = if is_result { &mut verdict.error_out } else { &mut verdict.error_in };
            if detail.error > *largest {
                *largest = detail.error;
                verdict.tolerated = Some(detail.limit.tolerated);
            }
            if weight(detail.origin) > weight(verdict.origin) {
                verdict.origin = detail.origin;
            }
        }
        if let Some(verdict) = known {
            verdicts.insert(record.name.clone(), verdict);
        }
    }
    verdicts
}
