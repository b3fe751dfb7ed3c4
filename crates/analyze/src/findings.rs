//! What is told of an origin: the operation, the evidence, and how it spread.

use msprobe_dump::hash::FastMap;
use msprobe_dump::model::{Construct, find_stacks};
use msprobe_tensor::Extremes;
use serde::Serialize;

use crate::advice::advice;
use crate::causes::{Cause, Making};
use crate::elements::count;
use crate::links::At;
use crate::origins::{Origin, Picture};
use crate::rank::RankDump;
use crate::record::{Kinds, Record, Role};
use crate::relatives::{forward_name, forward_of, modules_around};
use crate::values::{Value, values_of};

/// What sort of origin it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginKind {
    /// The operation made it from finite values.
    Produced,
    /// A communication made it from finite values of all ranks.
    Communication,
    /// A parameter was not finite before.
    Parameter,
    /// Data from outside, or operations nobody recorded.
    Input,
    /// A rank without a dump sent it.
    MissingRank,
}

impl OriginKind {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            OriginKind::Produced => "produced",
            OriginKind::Communication => "communication",
            OriginKind::Parameter => "parameter",
            OriginKind::Input => "input",
            OriginKind::MissingRank => "missing_rank",
        }
    }
}

/// One record on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The rank.
    pub rank: u32,
    /// The record.
    pub operation: String,
    /// `produced`, `spread`, `arrived`, …
    pub how: &'static str,
}

/// Elements of a tensor file.
#[derive(Debug, Clone, PartialEq)]
pub struct Elements {
    /// Which tensor of the record.
    pub place: String,
    /// What was counted.
    pub counts: Extremes,
    /// The index of the first NaN or infinity; empty for a scalar.
    pub first_bad: Option<Vec<u64>>,
}

/// An origin with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The rank.
    pub rank: u32,
    /// The record.
    pub operation: String,
    /// What sort of origin.
    pub kind: OriginKind,
    /// Whether it is of the backward pass.
    pub is_backward: bool,
    /// What its results hold.
    pub values: Kinds,
    /// Why it is to blame.
    pub reason: String,
    /// What usually makes this operation do so, where its inputs show it.
    pub advice: Option<String>,
    /// The parameter, if it is one and its name is known.
    pub parameter: Option<String>,
    /// The modules around it, outermost first.
    pub modules: Vec<String>,
    /// Where it was called, innermost frame first.
    pub stack: Vec<String>,
    /// Its inputs and parameters.
    pub inputs: Vec<Value>,
    /// Its outputs.
    pub outputs: Vec<Value>,
    /// The way from it.
    pub chain: Vec<Hop>,
    /// What was counted in its tensor files.
    pub elements: Vec<Elements>,
}

/// Gathers the evidence for origins. What could not be read is added to `notes`.
pub fn findings_of(
    origins: &[Origin],
    picture: &Picture,
    ranks: &[RankDump],
    constructs: &[Construct],
    notes: &mut Vec<String>,
) -> Vec<Finding> {
    let stacks = stacks_of(origins, ranks, notes);
    let empty = Construct::default();
    origins
        .iter()
        .filter_map(|origin| {
            let (dump, record) = record_at(ranks, origin.at)?;
            let construct = constructs.get(origin.at.rank as usize).unwrap_or(&empty);
            let values = values_of(dump, record).unwrap_or_else(|error| {
                notes.push(format!("rank {}: {error}", dump.dir.rank));
                Vec::new()
            });
            let kind = kind_of(origin.cause, record);
            let made = match record.kinds(Role::Output) {
                Kinds::NONE => record.kinds(Role::Input) | record.kinds(Role::Parameter),
                kinds => kinds,
            };
            let advice = match origin.cause {
                Cause::Made(Making::Computed | Making::InCommunication) => {
                    advice(record.function(), record.is_backward(), kind, &values, made)
                }
                _ => None,
            };
            let (outputs, inputs): (Vec<Value>, Vec<Value>) =
                values.into_iter().partition(|value| value.role == Role::Output);
            let modules = modules_around(construct, record);
            let parameter = match origin.cause {
                Cause::Parameter => parameter_of(dump, record, &modules),
                _ => None,
            };
            let elements = match &dump.tensor_dir {
                Some(dir) => elements_of(dir, inputs.iter().chain(&outputs), dump.dir.rank, notes),
                None => Vec::new(),
            };
            Some(Finding {
                rank: dump.dir.rank,
                operation: record.name.to_string(),
                kind,
                is_backward: record.is_backward(),
                values: made,
                reason: reason_of(origin.cause, kind, dump, record) + ending_of(origin.cause, record),
                advice,
                parameter,
                modules,
                stack: stacks.get(&origin.at).cloned().unwrap_or_default(),
                inputs,
                outputs,
                chain: hops(picture, ranks, &origin.chain),
                elements,
            })
        })
        .collect()
}

/// A record and the dump it is in.
pub(crate) fn record_at(ranks: &[RankDump], at: At) -> Option<(&RankDump, &Record)> {
    let dump = ranks.get(at.rank as usize)?;
    Some((dump, dump.records.get(at.record as usize)?))
}

fn hops(picture: &Picture, ranks: &[RankDump], chain: &[At]) -> Vec<Hop> {
    chain
        .iter()
        .filter_map(|&at| {
            let (dump, record) = record_at(ranks, at)?;
            let how = match picture.cause(at)? {
                Cause::Made(Making::InCommunication) => "communication",
                Cause::Made(_) => "produced",
                Cause::Parameter => "parameter",
                Cause::Entered => "input",
                Cause::Missing(_) => "missing_rank",
                Cause::Arrived(_) => "arrived",
                Cause::Spread { sure: true, .. } => "spread",
                Cause::Spread { sure: false, .. } => "spread, not traced",
                Cause::Inside(_) => "around",
                Cause::Harmless(_) => "harmless",
            };
            Some(Hop { rank: dump.dir.rank, operation: record.name.to_string(), how })
        })
        .collect()
}

fn kind_of(cause: Cause, record: &Record) -> OriginKind {
    match cause {
        Cause::Made(Making::InCommunication) => OriginKind::Communication,
        Cause::Parameter => OriginKind::Parameter,
        Cause::Missing(_) => OriginKind::MissingRank,
        // A leaf that requires a gradient and that nobody made.
        // Modules list their parameters themselves.
        Cause::Entered
            if !record.is_module() && record.bad_of(Role::Input).any(|tensor| tensor.requires_grad) =>
        {
            OriginKind::Parameter
        }
        Cause::Entered => OriginKind::Input,
        _ => OriginKind::Produced,
    }
}

/// What came of values that nothing recorded made, if it was nothing so far.
fn ending_of(cause: Cause, record: &Record) -> &'static str {
    let is_given = matches!(cause, Cause::Entered | Cause::Parameter);
    let is_absorbed = is_given && record.has_output && record.kinds(Role::Output).is_finite();
    if is_absorbed { "; its results are finite" } else { "" }
}

fn reason_of(cause: Cause, kind: OriginKind, dump: &RankDump, record: &Record) -> String {
    let forward = forward_of(dump, record);
    let finite = match forward {
        _ if !record.is_backward() => "its inputs and parameters are finite",
        Some(forward) if record.is_parameter_gradient() && forward.bad.is_empty() => {
            "the gradients its module was given and everything the forward call of it saw are finite"
        }
        Some(_) if record.is_parameter_gradient() => {
            "the gradients its module was given are finite, and what the forward call of it saw is but for harmless values"
        }
        Some(forward) if forward.bad.is_empty() => {
            "the gradients it was given and everything its forward call saw are finite"
        }
        Some(_) => {
            "the gradients it was given are finite, and what its forward call saw is but for harmless values"
        }
        None => "the gradients it was given are finite; its forward call is not in the dump",
    };
    match cause {
        Cause::Made(Making::Computed) if !record.has_input && !record.is_parameter_gradient() => {
            "its output is not finite, and nothing before it is; its inputs were not recorded".to_owned()
        }
        Cause::Made(Making::Computed) => format!("{finite}, its output is not"),
        Cause::Made(Making::InCommunication) => {
            "what every rank put in is finite, what came out is not: the sum or product is too large for the dtype, or \
             data was damaged on the way"
                .to_owned()
        }
        Cause::Made(Making::FullyMasked) => {
            "its input is finite but for -inf, as masks have it; the result is not: some rows are masked completely"
                .to_owned()
        }
        Cause::Made(Making::FromUninitialized) => {
            "it computed with memory that nobody had written to since it was allocated".to_owned()
        }
        Cause::Made(Making::FromArgument) => {
            "it was given a number that is not finite as an argument, and what it made was computed with".to_owned()
        }
        Cause::Parameter => "a parameter it read was not finite before; nothing recorded in this step made it so".to_owned(),
        Cause::Missing(Some(rank)) => {
            format!("it received this from rank {rank}, of which there is no dump, or none of this call")
        }
        Cause::Missing(None) => {
            "it received this in a communication of which no other rank is in the dump".to_owned()
        }
        Cause::Entered if kind == OriginKind::Parameter => {
            "an input of it that requires a gradient is not finite, and nothing recorded before made it: most likely a \
             parameter"
                .to_owned()
        }
        Cause::Entered if record.bad.is_empty() => "a number among its arguments is not finite".to_owned(),
        Cause::Entered if dump.level == "L0" => {
            "its input is not finite, and no module before it made it: data, or code between modules (collect with level \
             mix or L1 to see it)"
                .to_owned()
        }
        Cause::Entered => {
            "its input is not finite, and nothing recorded before made it: data, or code that is not collected".to_owned()
        }
        _ => String::new(),
    }
}

/// `fc2.weight` of the module that has the parameter this record read.
fn parameter_of(dump: &RankDump, record: &Record, modules: &[String]) -> Option<String> {
    let read: Vec<u64> = record
        .bad
        .iter()
        .filter(|tensor| tensor.role != Role::Output)
        .map(|tensor| tensor.fingerprint)
        .collect();
    let owners = dump.records.iter().filter(|owner| {
        owner.is_module()
            && (owner.name == record.name || modules.iter().any(|module| **module == *owner.name))
    });
    for owner in owners {
        let Some(position) =
            owner.bad_of(Role::Parameter).position(|tensor| read.contains(&tensor.fingerprint))
        else {
            continue;
        };
        let bad = values_of(dump, owner).ok()?;
        let mut bad =
            bad.into_iter().filter(|value| value.role == Role::Parameter && !value.kinds().is_finite());
        let place = bad.nth(position)?.place;
        let name = place.strip_prefix("parameters.").unwrap_or(&place).to_owned();
        return Some(format!("{}.{name}", owner.parts().module()?.qualified()));
    }
    None
}

fn stacks_of(origins: &[Origin], ranks: &[RankDump], notes: &mut Vec<String>) -> FastMap<At, Vec<String>> {
    let mut stacks = FastMap::default();
    for (index, dump) in ranks.iter().enumerate() {
        // Backward has no stack of its own: that of its forward tells where it comes from.
        let own: Vec<(At, String)> = origins
            .iter()
            .filter(|origin| origin.at.rank as usize == index)
            .filter_map(|origin| Some((origin.at, record_at(ranks, origin.at)?.1)))
            .map(|(at, record)| {
                let forward = forward_of(dump, record).map(|forward| forward.name.to_string());
                let name = forward.or_else(|| forward_name(&record.name));
                (at, name.unwrap_or_else(|| record.name.to_string()))
            })
            .collect();
        if own.is_empty() {
            continue;
        }
        let names = own.iter().map(|(_, name)| name.as_str()).collect();
        match find_stacks::<std::hash::RandomState>(&dump.dir.path, &names) {
            Ok(mut found) => {
                for (at, name) in &own {
                    stacks.extend(found.remove(name).map(|frames| (*at, frames)));
                }
            }
            Err(error) => notes.push(format!("rank {}: no call stacks: {error}", dump.dir.rank)),
        }
    }
    stacks
}

fn elements_of<'a>(
    dir: &std::path::Path,
    values: impl Iterator<Item = &'a Value>,
    rank: u32,
    notes: &mut Vec<String>,
) -> Vec<Elements> {
    let mut elements = Vec::new();
    for value in values.filter(|value| !value.kinds().is_finite()) {
        let Some(data_name) = &value.data_name else { continue };
        match count(dir, data_name) {
            Ok((counts, first_bad)) => {
                elements.push(Elements { place: value.place.clone(), counts, first_bad });
            }
            Err(error) => notes.push(format!("rank {rank}: {error}")),
        }
    }
    elements
}
