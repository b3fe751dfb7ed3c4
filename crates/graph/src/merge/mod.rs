//! Ranks of one model, merged into one graph by the way their work is split.
//!
//! What ranks share of experts, sequences and tensors is put together first ([`tensor`]), as long as calls are called the same on
//! all of them; then stages of layers one behind the other ([`pipeline`]). What is left is one graph for each replica.

mod as_dump;
pub mod classes;
mod groups;
mod judge;
mod members;
mod padding;
mod pipeline;
mod shapes;
mod strategy;
mod tensor;

use msprobe_compare::Mode;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::publish_numbered_by_path;
use msprobe_report::paths::timestamp;

use self::judge::{Sides, judge_merged};
use self::members::{Member, merge_collections, wrap_collections};
pub use self::strategy::{DEFAULT_ORDER, Dimension, Strategies, Strategy};
use crate::compare::Task;
use crate::graph::Graph;
use crate::matching::Matching;
use crate::run::{
    DbError, Filling, GraphOutcome, Options, Pair, Progress, StepDirs, percent, put_together, read_graph,
};

/// Merges the ranks of both sides, step by step, and stores what came of it.
pub(crate) fn run(
    strategies: &Strategies,
    target: &[StepDirs],
    golden: Option<&[StepDirs]>,
    options: &Options,
    outcome: &mut GraphOutcome,
    console: &dyn Console,
    progress: &Progress<'_>,
) -> Result<(), CompareError> {
    strategies.target.check()?;
    let golden = match (golden, &strategies.golden) {
        (None, _) => None,
        (Some(dirs), Some(strategy)) => {
            strategy.check()?;
            Some((dirs, strategy))
        }
        (Some(_), None) => {
            return Err(CompareError::new(Code::InvalidParam, "the golden side has no parallel strategy")
                .with_hint("give two numbers each: --rank_size 8 1 --tp 2 1 --pp 1 1"));
        }
    };
    let steps = pair_steps(target, golden, outcome, console);
    if steps.is_empty() {
        return Err(CompareError::new(Code::InvalidPath, "the two sides have no step in common")
            .with_hint("give two dumps of the same steps, or one step each"));
    }
    if options.as_dump {
        for (done, (step, _)) in steps.iter().enumerate() {
            if let Err(error) = merge_into_dump(step, strategies, options, outcome, console) {
                fail(step, error, outcome, console);
            }
            progress(percent(done + 1, steps.len()));
        }
        return Ok(());
    }
    let kind = if golden.is_some() { "compare" } else { "build" };
    let path = options.output.join(format!("{kind}_{}.vis.db", timestamp()));
    let written = publish_numbered_by_path(&path, |temporary| -> Result<(), DbError> {
        let mut filling = Filling::begin(temporary, options)?;
        filling.links_ranks = false;
        for (done, &(step, other)) in steps.iter().enumerate() {
            match merge_step(step, other, strategies, options, outcome, &mut filling, console) {
                Ok(()) => {}
                Err(DbError::Refused(error)) => fail(step, error, outcome, console),
                Err(error) => return Err(error),
            }
            progress(percent(done + 1, steps.len()).min(95));
        }
        filling.finish()
    });
    match written {
        Ok(path) => {
            outcome.files.push(path);
            progress(100);
            Ok(())
        }
        // Every step told why.
        Err(DbError::Refused(_)) => Ok(()),
        Err(error) => Err(error.into_error(&path)),
    }
}

/// The ranks of one step and how they share the work.
type Shared<'s> = (&'s StepDirs, &'s Strategy);

/// Steps of both sides that belong together. One step of each belongs together whatever their numbers.
fn pair_steps<'s>(
    target: &'s [StepDirs],
    golden: Option<(&'s [StepDirs], &'s Strategy)>,
    outcome: &mut GraphOutcome,
    console: &dyn Console,
) -> Vec<(&'s StepDirs, Option<Shared<'s>>)> {
    let Some((others, strategy)) = golden else {
        return target.iter().map(|step| (step, None)).collect();
    };
    let is_pair =
        |one: &StepDirs, two: &StepDirs| one.step == two.step || target.len() == 1 && others.len() == 1;
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    let number = |step: &StepDirs| step.step.unwrap_or_default();
    for step in target {
        match others.iter().find(|other| is_pair(step, other)) {
            Some(other) => pairs.push((step, Some((other, strategy)))),
            None => alone.push(format!("step {} is on the target side only", number(step))),
        }
    }
    for other in others.iter().filter(|other| !target.iter().any(|step| is_pair(step, other))) {
        alone.push(format!("step {} is on the golden side only", number(other)));
    }
    for message in alone {
        console.warning(&format!("{message}, it is left out"));
        outcome.leave_out(message);
    }
    pairs
}

/// A step that cannot be merged costs itself.
fn fail(step: &StepDirs, error: CompareError, outcome: &mut GraphOutcome, console: &dyn Console) {
    let place = step.name.as_deref().unwrap_or_default();
    let before = if place.is_empty() { String::new() } else { format!("{place}: ") };
    console.error(&format!("{before}{}", error.message));
    outcome.fail(place, error);
}

fn merge_into_dump(
    step: &StepDirs,
    strategies: &Strategies,
    options: &Options,
    outcome: &mut GraphOutcome,
    console: &dyn Console,
) -> Result<(), CompareError> {
    for member in merge_ranks(step, &strategies.target, strategies, options, console)? {
        outcome.files.extend(as_dump::write(&member, step.step, options)?);
        let mut pair = Pair { target: member.graph, golden: None, verdict: None };
        outcome.add_pair(&mut pair, step.step, Some(member.rank));
    }
    Ok(())
}

fn check_size(step: &StepDirs, strategy: &Strategy) -> Result<(), CompareError> {
    if step.ranks.len() == strategy.rank_size as usize {
        return Ok(());
    }
    let place = step.name.as_deref().unwrap_or("the dump");
    let message = format!("{place} has {} ranks, rank_size is {}", step.ranks.len(), strategy.rank_size);
    Err(CompareError::new(Code::InvalidParam, message).with_hint(
        "merging needs the dump of every rank: give the number of rank directories as --rank_size",
    ))
}

fn merge_step(
    target: &StepDirs,
    golden: Option<Shared<'_>>,
    strategies: &Strategies,
    options: &Options,
    outcome: &mut GraphOutcome,
    filling: &mut Filling<'_>,
    console: &dyn Console,
) -> Result<(), DbError> {
    let merged = merge_ranks(target, &strategies.target, strategies, options, console)?;
    let others = match golden {
        None => None,
        Some((dirs, strategy)) => Some(merge_ranks(dirs, strategy, strategies, options, console)?),
    };
    if let Some(others) = &others
        && others.len() != merged.len()
    {
        let message = format!(
            "merging leaves {} graphs of the target and {} of the golden side",
            merged.len(),
            others.len()
        );
        let hint = "both sides need the same number of replicas: rank_size divided by tp, pp and cp";
        return Err(CompareError::new(Code::InvalidParam, message).with_hint(hint).into());
    }
    let mut others = others.map(Vec::into_iter);
    for member in merged {
        let rank = member.rank;
        let mut pair = match others.as_mut().and_then(Iterator::next) {
            None => Pair { target: member.graph, golden: None, verdict: None },
            Some(other) => compare_merged(member.graph, other.graph, options)?,
        };
        if let Some((_, strategy)) = golden {
            let sides = Sides { target: &strategies.target, golden: strategy, classes: &strategies.classes };
            for note in judge_merged(&mut pair, sides) {
                outcome.note(note);
            }
        }
        let answer = outcome.add_pair(&mut pair, target.step, Some(rank));
        let place = crate::run::rank_place(target.step, rank, true);
        filling.add(&pair, target.step.unwrap_or(0), rank, answer.as_ref(), |shown| {
            outcome.add_node(&pair, &place, shown);
        })?;
    }
    Ok(())
}

/// Merged graphs are matched by the order of functions, whatever their shapes.
fn compare_merged(target: Graph, golden: Graph, options: &Options) -> Result<Pair, CompareError> {
    let is_statistics = |graph: &Graph| graph.files.header.task.as_deref() == Some("statistics");
    if !is_statistics(&target) || !is_statistics(&golden) {
        return Err(CompareError::new(Code::InvalidTask, "only statistics of merged ranks can be compared")
            .with_hint(
                "collect both sides with \"task\": \"statistics\" and \"summary_mode\": \"statistics\"",
            ));
    }
    let mut pair = put_together(target, golden, Task::Values(Mode::Summary), &Matching::Fuzzy, None, options);
    if let Some(golden) = &mut pair.golden {
        golden.comparer.is_merged = true;
    }
    Ok(pair)
}

/// Merges the ranks of a step. What is left has the ranks of the first of each.
fn merge_ranks(
    step: &StepDirs,
    strategy: &Strategy,
    strategies: &Strategies,
    options: &Options,
    console: &dyn Console,
) -> Result<Vec<Member>, CompareError> {
    check_size(step, strategy)?;
    let mut members = Vec::with_capacity(step.ranks.len());
    for dir in &step.ranks {
        console.info(&format!("reading {}", dir.path.display()));
        let graph = read_graph(&dir.path, options, console)?;
        members.push(Member { rank: dir.rank, graph });
    }
    let classes = &strategies.classes;
    for member in &mut members {
        wrap_collections(member);
    }
    for (size, dimension) in [
        (strategy.ep, Dimension::Expert),
        (strategy.cp, Dimension::Context),
        (strategy.tp, Dimension::Tensor),
    ] {
        if size < 2 {
            continue;
        }
        let groups = groups::groups(&members, strategy, dimension);
        members = put_groups_together(members, groups, |group| {
            merge_collections(group);
            match dimension {
                Dimension::Expert => pipeline::merge_experts(group, classes),
                _ => tensor::merge_values(group, dimension, classes),
            }
        });
    }
    if strategy.pp > 1 {
        let groups = groups::pipeline(&members, strategy);
        members = put_groups_together(members, groups, |group| {
            merge_collections(group);
            pipeline::merge_stages(group, classes);
            if let Some(main) = group.first_mut().filter(|_| strategy.vpp > 1) {
                pipeline::fold_chunks(main, classes);
            }
        });
    }
    Ok(members)
}

/// Merges each group of ranks into its first one. A rank that is in no group stays by itself.
fn put_groups_together(
    members: Vec<Member>,
    groups: Vec<Vec<u32>>,
    merge: impl Fn(&mut [Member]),
) -> Vec<Member> {
    let mut rest: Vec<Option<Member>> = members.into_iter().map(Some).collect();
    let mut merged = Vec::new();
    for group in groups {
        let mut taken: Vec<Member> = Vec::new();
        for rank in group {
            let place =
                rest.iter().position(|member| member.as_ref().is_some_and(|member| member.rank == rank));
            taken.extend(place.and_then(|place| rest[place].take()));
        }
        if taken.is_empty() {
            continue;
        }
        merge(&mut taken);
        merged.extend(taken.into_iter().next());
    }
    merged.extend(rest.into_iter().flatten());
    merged.sort_by_key(|member| member.rank);
    merged
}
