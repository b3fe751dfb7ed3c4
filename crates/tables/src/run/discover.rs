//! Which dumps of two directories belong together.

use std::path::{Path, PathBuf};

use msprobe_compare::side::Which;
use msprobe_compare::verdict::{Gap, GapKind, Gaps};
use msprobe_dump::model::{DirKind, dir_kind};
use msprobe_dump::names::{Rank, Step};
use msprobe_dump::read::{DUMP_FILES, holds_dump};
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::output::names_in;

use super::outcome::gap;

/// Two dump files that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpPair {
    /// The dump of the target.
    pub target: PathBuf,
    /// The dump of the golden run.
    pub golden: PathBuf,
    /// What is put into the names of results: `_rank0`.
    pub suffix: String,
}

/// Directories called `rank` and a number, or nothing: of step directories nothing else is expected.
pub fn find_ranks(directory: &Path) -> Result<Vec<String>, CompareError> {
    let mut ranks = Vec::new();
    for name in entries(directory)? {
        if Rank::of_dir(&name).is_none() {
            let message = format!(
                "dump_dir contains '{name}'. Expected 'rank'. This name is not in the format of dump output. Please \
                 check and delete irrelevant files in {} and try again.",
                directory.display()
            );
            return Err(CompareError::new(Code::InvalidPath, message));
        }
        ranks.push(name);
    }
    sort_by_number(&mut ranks);
    Ok(ranks)
}

/// A directory of ranks as it is, or the only step of a whole dump.
pub(super) fn only_step_of(directory: &Path, console: &dyn Console) -> Result<PathBuf, CompareError> {
    let names = entries(directory)?;
    let steps: Vec<&String> =
        names.iter().filter(|name| is_step(name) && directory.join(name).is_dir()).collect();
    if names.iter().any(|name| Rank::of_dir(name).is_some()) {
        return Ok(directory.to_owned());
    }
    match steps.as_slice() {
        [] => Ok(directory.to_owned()),
        [only] => {
            let step = directory.join(only);
            console.info(&format!("{} is taken, the only step of {}.", step.display(), directory.display()));
            Ok(step)
        }
        several => {
            let names: Vec<String> =
                several.iter().map(|name| directory.join(name).display().to_string()).collect();
            let message =
                format!("{} holds several steps, and ranks of one step are compared", directory.display());
            Err(CompareError::new(Code::InvalidPath, message).with_hint(format!(
                "choose one: {}; or compare all of them: msprobe compare TARGET GOLDEN",
                names.join(", ")
            )))
        }
    }
}

/// What two paths have in common, and what only one of them has.
#[derive(Debug, Default)]
pub struct FoundPairs {
    /// Dumps that belong together.
    pub pairs: Vec<DumpPair>,
    /// Ranks, steps and dumps that have no partner.
    pub gaps: Gaps,
}

/// Everything two paths have in common: files, directories with a dump, with ranks, or with steps.
pub fn find_pairs(target: &Path, golden: &Path, console: &dyn Console) -> Result<FoundPairs, CompareError> {
    if target.is_file() != golden.is_file() {
        let message = "The npu_path and bench_path need to be of the same type.";
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint("give two dump.json files, or two directories"));
    }
    if target.is_file() {
        let pair = DumpPair { target: target.to_owned(), golden: golden.to_owned(), suffix: String::new() };
        return Ok(FoundPairs { pairs: vec![pair], gaps: Gaps::default() });
    }
    let roots = [target, golden].map(|root| root.canonicalize().ok());
    let mut search = Search { console, roots, found: FoundPairs::default() };
    search.collect(target, golden, "")?;
    let found = search.found;
    if found.pairs.is_empty() {
        let message = format!("no dump is both in {} and in {}", target.display(), golden.display());
        return Err(CompareError::new(Code::InvalidPath, message)
            .with_hint("give the directories that hold dump.json, rank* or step* of two runs"));
    }
    Ok(found)
}

/// What is missing where a directory of a level is, and whether a name is one of that level.
type Level = (GapKind, fn(&str) -> bool);

/// The levels of a dump's directories.
const LEVELS: [Level; 2] = [(GapKind::Steps, is_step), (GapKind::Ranks, is_rank)];

/// Goes through two trees side by side and keeps what is paired and what is not.
struct Search<'a> {
    console: &'a dyn Console,
    /// The two trees: one may lie inside the other.
    roots: [Option<PathBuf>; 2],
    found: FoundPairs,
}

impl Search<'_> {
    fn collect(&mut self, target: &Path, golden: &Path, suffix: &str) -> Result<(), CompareError> {
        for file in DUMP_FILES {
            // A link or a directory of that name is refused when it is read, and said.
            match [target, golden].map(|directory| directory.join(file).symlink_metadata().is_ok()) {
                [true, true] => self.found.pairs.push(DumpPair {
                    target: target.join(file),
                    golden: golden.join(file),
                    suffix: suffix.to_owned(),
                }),
                [true, false] => self.only_on(Which::Target, GapKind::Ranks, &target.join(file)),
                [false, true] => self.only_on(Which::Golden, GapKind::Ranks, &golden.join(file)),
                [false, false] => {}
            }
        }
        for (kind, is_of_kind) in LEVELS {
            let level = |directory: &Path| -> Result<Vec<String>, CompareError> {
                let mut names = entries(directory)?;
                names.retain(|name| is_of_kind(name) && directory.join(name).is_dir());
                sort_by_number(&mut names);
                Ok(names)
            };
            let (targets, goldens) = (level(target)?, level(golden)?);
            // The only one of each side belong together, whatever their numbers.
            let are_single = targets.len() == 1 && goldens.len() == 1;
            for name in &targets {
                if goldens.contains(name) || are_single {
                    let partner = if goldens.contains(name) { name } else { &goldens[0] };
                    let suffix = format!("{suffix}_{name}");
                    self.pair(kind, &target.join(name), &golden.join(partner), &suffix)?;
                } else {
                    self.only_on(Which::Target, kind, &target.join(name));
                }
            }
            for name in goldens.iter().filter(|name| !targets.contains(name) && !are_single) {
                self.only_on(Which::Golden, kind, &golden.join(name));
            }
        }
        for directory in [target, golden] {
            for (kind, path) in strays(directory)? {
                if !self.holds_a_root(&path) {
                    self.add_gap(stray_gap(kind, &path));
                }
            }
        }
        Ok(())
    }

    /// Two directories of a level. There is something in them, or both lack their dump.
    fn pair(
        &mut self,
        kind: GapKind,
        target: &Path,
        golden: &Path,
        suffix: &str,
    ) -> Result<(), CompareError> {
        let before = (self.found.pairs.len(), self.found.gaps.total());
        self.collect(target, golden, suffix)?;
        if (self.found.pairs.len(), self.found.gaps.total()) == before {
            self.add_gap(gap(kind, target.display().to_string(), "no dump.json on either side"));
        }
        Ok(())
    }

    fn only_on(&mut self, which: Which, kind: GapKind, path: &Path) {
        self.add_gap(Gap::only_on(which, kind, &path.display().to_string()));
    }

    fn add_gap(&mut self, gap: Gap) {
        self.console.warning(&format!("{} is not compared: {}", gap.name, gap.reason));
        self.found.gaps.add(gap.kind, || gap);
    }

    /// Whether a directory is one of the two trees, or around it.
    fn holds_a_root(&self, path: &Path) -> bool {
        let path = path.canonicalize().ok();
        let is_around = |root: &PathBuf| path.as_ref().is_some_and(|path| root.starts_with(path));
        self.roots.iter().flatten().any(is_around)
    }
}

/// Directories that hold a dump and have the name of no step and no rank, with what they may be meant as.
pub(super) fn strays(directory: &Path) -> Result<Vec<(GapKind, PathBuf)>, CompareError> {
    let is_of_a_level = |name: &str| LEVELS.iter().any(|(_, is_of_kind)| is_of_kind(name));
    let names = entries(directory)?.into_iter().filter(|name| !is_of_a_level(name));
    let kind = |name: &str| if Step::is_meant_by(name) { GapKind::Steps } else { GapKind::Ranks };
    let strays = names.map(|name| (kind(&name), directory.join(name)));
    Ok(strays.filter(|(_, path)| holds_dump(path)).collect())
}

/// What is said of a stray.
pub(super) fn stray_gap(kind: GapKind, path: &Path) -> Gap {
    gap(kind, path.display().to_string(), "it holds a dump, and its name is not that of a step or rank")
}

/// A path as it is, or the only dump below the directory it names, where the dump lies in a step and a rank.
pub fn find_dump(path: &Path, console: &dyn Console) -> Result<PathBuf, CompareError> {
    let is_tensor = |path: &Path| {
        path.extension()
            .is_some_and(|kind| ["pt", "npy", "safetensors", "pth", "bin"].iter().any(|known| kind == *known))
    };
    if path.is_file() && is_tensor(path) {
        let message = format!("{} is a tensor file, not a dump", path.display());
        return Err(CompareError::new(Code::InvalidPath, message)
            .with_hint("two tensor files are compared by: msprobe diff TARGET GOLDEN"));
    }
    if path.exists() {
        return Ok(path.to_owned());
    }
    let missing = || {
        let message = format!("The path {} does not exist, please check!", path.display());
        CompareError::new(Code::IllegalPath, message)
    };
    let (Some(directory), Some(file)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
    else {
        return Err(missing());
    };
    if !matches!(file, "dump.json" | "debug.json") {
        return Err(
            missing().with_hint("give a dump.json, or a directory that holds dump.json, rank* or step*")
        );
    }
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mut candidates = Vec::new();
    gather_dumps(directory, file, &mut candidates);
    match candidates.as_slice() {
        [only] => {
            console.info(&format!(
                "{} is not there; {} is taken, the only one.",
                path.display(),
                only.display()
            ));
            Ok(only.clone())
        }
        [] => Err(missing()),
        candidates => {
            let names: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
            let message = format!("{} is not there, and several are below", path.display());
            Err(CompareError::new(Code::InvalidPath, message)
                .with_hint(format!("choose one: {}", names.join(", "))))
        }
    }
}

/// The dump of a run that belongs to a dump of the golden run: of the same step and rank, or the only one there is.
pub(super) fn noise_dump(run: &Path, golden: &Path, console: &dyn Console) -> Result<PathBuf, CompareError> {
    if run.is_file() {
        return Ok(run.to_owned());
    }
    let names: Vec<_> = golden.components().collect();
    // As deep as steps and ranks go.
    for depth in (1..=names.len().min(LEVELS.len() + 1)).rev() {
        let dump = run.join(names[names.len() - depth..].iter().collect::<PathBuf>());
        if dump.is_file() {
            return Ok(dump);
        }
    }
    find_dump(&run.join(golden.file_name().unwrap_or_default()), console)
}

/// More candidates than this help nobody.
const MAX_CANDIDATES: usize = 16;

fn gather_dumps(directory: &Path, file: &str, candidates: &mut Vec<PathBuf>) {
    if directory.join(file).is_file() {
        candidates.push(directory.join(file));
    }
    let Ok(mut names) = entries(directory) else { return };
    sort_by_number(&mut names);
    for name in names.iter().filter(|name| LEVELS.iter().any(|(_, is_of_kind)| is_of_kind(name))) {
        if candidates.len() < MAX_CANDIDATES {
            gather_dumps(&directory.join(name), file, candidates);
        }
    }
}

fn is_step(name: &str) -> bool {
    matches!(dir_kind(name), Some(DirKind::Step(_)))
}

/// Some versions of the reference call the directory of a process without a rank after the process: `proc12`.
fn is_rank(name: &str) -> bool {
    matches!(dir_kind(name), Some(DirKind::Rank(_) | DirKind::Process))
}

/// Step and rank of a dump, as far as its path names them.
pub(super) fn place_of(dump: &Path) -> (Option<u64>, Option<u64>) {
    let parts = || dump.components().rev().skip(1).take(3).map(|part| part.as_os_str().to_string_lossy());
    let step = parts().find_map(|part| Step::of_dir(&part)).map(|step| step.0);
    let rank = parts().find_map(|part| Rank::of_dir(&part)?.0).map(u64::from);
    (step, rank)
}

fn sort_by_number(names: &mut [String]) {
    let number =
        |name: &str| name.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().ok();
    names.sort_by_key(|name| (number(name), name.clone()));
}

fn entries(directory: &Path) -> Result<Vec<String>, CompareError> {
    let mut names = names_in(directory).map_err(|error| {
        CompareError::new(Code::IllegalPath, format!("cannot read {}: {error}", directory.display()))
    })?;
    // Hidden files are of editors and file systems.
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}
