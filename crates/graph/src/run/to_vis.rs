//! The first generation: a `.vis` file for each rank.

use msprobe_dump::hash::FastMap;
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;
use msprobe_report::paths::{publish_stamped, timestamp};

use super::layout::{DirPair, StepPairs};
use super::outcome::rank_place;
use super::pair::read_pair;
use super::{GraphOutcome, Options, Progress, percent, ranks_in};
use crate::graph::NodeReader;
use crate::links::{Ranks, communication, link};
use crate::names::Generation;
use crate::store::vis::{NodeLinks, VisFile};
use crate::walk::Walk;

/// Links of both sides of a step, by rank.
type StepLinks = [FastMap<u32, NodeLinks>; 2];

pub(super) fn write(
    steps: &[StepPairs],
    options: &Options,
    outcome: &mut GraphOutcome,
    console: &dyn Console,
    progress: &Progress<'_>,
) {
    let time = timestamp();
    let all = ranks_in(steps);
    let mut done = 0;
    for step in steps {
        let links = if step.ranks.len() > 1 { links_of_step(step, options) } else { StepLinks::default() };
        for rank in &step.ranks {
            let place = rank_place(step.step, rank.0.rank, rank.0.name.is_some());
            console.info(&format!("building {}", rank.0.path.display()));
            if let Err(error) = write_rank(step, rank, &links, &time, options, outcome, console) {
                console.error(&format!("{}: {}", rank.0.path.display(), error.message));
                outcome.fail(&place, error);
            }
            done += 1;
            progress(percent(done, all));
        }
    }
}

fn write_rank(
    step: &StepPairs,
    (target, golden): &DirPair,
    links: &StepLinks,
    time: &str,
    options: &Options,
    outcome: &mut GraphOutcome,
    console: &dyn Console,
) -> Result<(), CompareError> {
    let golden_dir = golden.as_ref().map(|golden| golden.path.as_path());
    let mut pair = read_pair(&target.path, golden_dir, options, true, console)?;
    let rank = target.name.as_ref().map(|_| target.rank);
    outcome.add_pair(&mut pair, step.step, rank);
    let place = rank_place(step.step, target.rank, target.name.is_some());
    let kind = if golden.is_some() { "compare" } else { "build" };
    let parts = [Some(kind), step.name.as_deref(), target.name.as_deref(), Some(time)];
    let stem = parts.into_iter().flatten().collect::<Vec<_>>().join("_");
    let none = NodeLinks::default();
    let of = |side: usize| links[side].get(&target.rank).unwrap_or(&none);
    let file = VisFile {
        target: pair.walk(options.overflow_check),
        target_links: of(0),
        golden: pair.golden.as_ref().map(|golden| (&golden.graph, golden.task, &golden.links, of(1))),
    };
    let path = options.output.join(format!("{stem}.vis"));
    let written =
        publish_stamped(&path, |out| file.write(out, |shown| outcome.add_node(&pair, &place, shown)))?;
    outcome.files.push(written);
    Ok(())
}

/// Reads all ranks of a step for their communication only. A rank that cannot be read is told when it is written.
fn links_of_step(step: &StepPairs, options: &Options) -> StepLinks {
    let mut sides: [Ranks; 2] = [Vec::new(), Vec::new()];
    for (target, golden) in &step.ranks {
        let golden = golden.as_ref().map(|golden| golden.path.as_path());
        let quiet = msprobe_report::console::Silent;
        let Ok(pair) = read_pair(&target.path, golden, options, false, &quiet) else { continue };
        let walks = [Some(pair.walk(options.overflow_check)), pair.golden_walk(options.overflow_check)];
        for (side, walk) in sides.iter_mut().zip(walks) {
            if let Some(walk) = walk {
                side.push((target.rank.into(), calls_of(&walk)));
            }
        }
    }
    sides.map(|ranks| {
        let links = link(&ranks).into_iter();
        links
            .filter_map(|(rank, links)| Some((u32::try_from(rank).ok()?, links.into_iter().collect())))
            .collect()
    })
}

fn calls_of(walk: &Walk<'_>) -> Vec<crate::links::Communication> {
    let mut reader = NodeReader::default();
    communication(walk.graph, Generation::First, |node| walk.told_to_peers(node, &mut reader))
}
