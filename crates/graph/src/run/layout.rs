//! Which ranks of which steps a path has.

use std::path::{Path, PathBuf};

use msprobe_dump::model::RunDir;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::names_in;
use msprobe_report::paths::check_directory;

/// The directory of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankDir {
    /// Its name, where it is named after a rank.
    pub name: Option<String>,
    /// The rank.
    pub rank: u32,
    /// Where it is.
    pub path: PathBuf,
}

/// The ranks of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDirs {
    /// The name of its directory, where there is one.
    pub name: Option<String>,
    /// The step.
    pub step: Option<u32>,
    /// Its ranks, ascending.
    pub ranks: Vec<RankDir>,
}

/// What a path is: one rank, the ranks of a step, or steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// The files of one rank.
    Files,
    /// Ranks.
    Ranks,
    /// Steps with ranks.
    Steps,
}

/// Looks at a path.
pub(super) fn find(path: &Path, console: &dyn Console) -> Result<(Content, Vec<StepDirs>), CompareError> {
    check_directory(path)?;
    let unreadable = |error: std::io::Error| {
        CompareError::new(Code::InvalidPath, format!("{} cannot be read: {error}", path.display()))
    };
    let names = names_in(path).map_err(unreadable)?;
    if names.is_empty() {
        return Err(CompareError::new(Code::InvalidPath, format!("The path {} is empty.", path.display()))
            .with_hint("give the directory of a rank, of a step, or of several steps"));
    }
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("dump.json") || has("construct.json") || has("dump_tensor_data") {
        let rank = RankDir { name: None, rank: 0, path: path.to_owned() };
        return Ok((Content::Files, vec![StepDirs { name: None, step: None, ranks: vec![rank] }]));
    }
    let run = RunDir::read(path).map_err(unreadable)?;
    match (run.ranks.is_empty(), run.steps.is_empty()) {
        (false, true) => {
            tell_others(&run, console);
            Ok((Content::Ranks, vec![StepDirs { name: None, step: None, ranks: ranks_of(&run) }]))
        }
        (true, false) => {
            tell_others(&run, console);
            let mut steps = Vec::new();
            for dir in &run.steps {
                let inside = RunDir::read(&dir.path).map_err(unreadable)?;
                tell_others(&inside, console);
                let ranks = ranks_of(&inside);
                if ranks.is_empty() {
                    console.warning(&format!("{} has no directory of a rank, it is left out", dir.path.display()));
                    continue;
                }
                let name = dir.path.file_name().map(|name| name.to_string_lossy().into_owned());
                steps.push(StepDirs { name, step: u32::try_from(dir.of.0).ok(), ranks });
            }
            Ok((Content::Steps, steps))
        }
        _ => Err(CompareError::new(
            Code::InvalidPath,
            format!("{} holds neither a dump nor directories of ranks or of steps alone", path.display()),
        )
        .with_hint("its directories should be rank0, rank1, … or step0, step1, …; or it should hold dump.json itself")),
    }
}

fn ranks_of(run: &RunDir) -> Vec<RankDir> {
    let rank = |dir: &msprobe_dump::model::Dir<msprobe_dump::names::Rank>| RankDir {
        name: dir.path.file_name().map(|name| name.to_string_lossy().into_owned()),
        rank: dir.of.number(),
        path: dir.path.clone(),
    };
    run.ranks.iter().map(rank).collect()
}

fn tell_others(run: &RunDir, console: &dyn Console) {
    for other in &run.others {
        console.warning(&format!("{} is no directory of a rank or a step, it is left out", other.display()));
    }
}

/// A rank of the target, and that of the golden side.
pub(super) type DirPair = (RankDir, Option<RankDir>);

/// A step and its ranks.
#[derive(Debug, Clone)]
pub(super) struct StepPairs {
    /// The name of the target's directory.
    pub(super) name: Option<String>,
    /// The step.
    pub(super) step: Option<u32>,
    /// Its ranks.
    pub(super) ranks: Vec<DirPair>,
}

/// Ranks of both sides that belong together. What only one side has is told, and is among what could not be compared.
pub(super) fn pair_up(
    target: Vec<StepDirs>,
    golden: Option<Vec<StepDirs>>,
    left_out: &mut Vec<String>,
) -> Vec<StepPairs> {
    let Some(mut golden) = golden else {
        let single = |step: StepDirs| StepPairs {
            name: step.name,
            step: step.step,
            ranks: step.ranks.into_iter().map(|rank| (rank, None)).collect(),
        };
        return target.into_iter().map(single).collect();
    };
    let mut pairs = Vec::new();
    for step in target {
        let place = golden.iter().position(|other| other.step == step.step);
        let Some(other) = place.map(|place| golden.swap_remove(place)) else {
            left_out.push(format!("step {} is on the target side only", step.step.unwrap_or_default()));
            continue;
        };
        let mut others = other.ranks;
        let in_step = step.step.map_or_else(String::new, |step| format!("step {step}, "));
        let mut ranks = Vec::new();
        for rank in step.ranks {
            match others.iter().position(|other| other.rank == rank.rank) {
                Some(place) => ranks.push((rank, Some(others.swap_remove(place)))),
                None => left_out.push(format!("{in_step}rank {} is on the target side only", rank.rank)),
            }
        }
        for other in others {
            left_out.push(format!("{in_step}rank {} is on the golden side only", other.rank));
        }
        pairs.push(StepPairs { name: step.name, step: step.step, ranks });
    }
    for step in golden {
        left_out.push(format!("step {} is on the golden side only", step.step.unwrap_or_default()));
    }
    pairs.retain(|step| !step.ranks.is_empty());
    pairs
}
