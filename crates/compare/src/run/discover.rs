//! Which dumps of two directories belong together.

use std::fs;
use std::path::{Path, PathBuf};

use crate::console::Console;
use crate::error::{Code, CompareError};

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
        if rank_number(&name).is_none() {
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

/// Everything two paths have in common: files, directories with a dump, with ranks, or with steps.
pub fn find_pairs(
    target: &Path,
    golden: &Path,
    console: &dyn Console,
) -> Result<Vec<DumpPair>, CompareError> {
    if target.is_file() != golden.is_file() {
        let message = "The npu_path and bench_path need to be of the same type.";
        return Err(CompareError::new(Code::InvalidCompareMode, message)
            .with_hint("give two dump.json files, or two directories"));
    }
    if target.is_file() {
        let pair = DumpPair { target: target.to_owned(), golden: golden.to_owned(), suffix: String::new() };
        return Ok(vec![pair]);
    }
    let mut pairs = Vec::new();
    collect(target, golden, "", console, &mut pairs)?;
    if pairs.is_empty() {
        let message = format!("no dump is both in {} and in {}", target.display(), golden.display());
        return Err(CompareError::new(Code::InvalidPath, message)
            .with_hint("give the directories that hold dump.json, rank* or step* of two runs"));
    }
    Ok(pairs)
}

fn collect(
    target: &Path,
    golden: &Path,
    suffix: &str,
    console: &dyn Console,
    pairs: &mut Vec<DumpPair>,
) -> Result<(), CompareError> {
    for file in ["dump.json", "debug.json"] {
        if target.join(file).is_file() && golden.join(file).is_file() {
            let pair =
                DumpPair { target: target.join(file), golden: golden.join(file), suffix: suffix.to_owned() };
            pairs.push(pair);
        }
    }
    for (word, is_of_kind) in
        [("step", is_step as fn(&str) -> bool), ("rank", |name| rank_number(name).is_some())]
    {
        let found = |directory: &Path| -> Result<Vec<String>, CompareError> {
            let mut names = entries(directory)?;
            names.retain(|name| is_of_kind(name) && directory.join(name).is_dir());
            sort_by_number(&mut names);
            Ok(names)
        };
        let (targets, goldens) = (found(target)?, found(golden)?);
        for name in &targets {
            if goldens.contains(name) || targets.len() == 1 && goldens.len() == 1 {
                let partner = if goldens.contains(name) { name } else { &goldens[0] };
                let suffix = format!("{suffix}_{name}");
                collect(&target.join(name), &golden.join(partner), &suffix, console, pairs)?;
            } else {
                console.warning(&format!("{word} {name} is only in {}", target.display()));
            }
        }
        for name in goldens.iter().filter(|name| !targets.contains(name) && targets.len() != 1) {
            console.warning(&format!("{word} {name} is only in {}", golden.display()));
        }
    }
    Ok(())
}

fn is_step(name: &str) -> bool {
    name.strip_prefix("step").is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Step and rank of a dump, as far as its path names them.
pub(super) fn place_of(dump: &Path) -> (Option<u64>, Option<u64>) {
    let parts = || dump.components().rev().skip(1).take(3).map(|part| part.as_os_str().to_string_lossy());
    let step = parts().find_map(|part| part.strip_prefix("step")?.parse().ok());
    let rank = parts().find_map(|part| rank_number(&part).filter(|_| part.len() > "rank".len()));
    (step, rank)
}

/// `rank` is 0 of a run without ranks.
fn rank_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("rank")?;
    match number {
        "" | "0" => Some(0),
        _ if number.starts_with('0') => None,
        _ => number.parse().ok(),
    }
}

fn sort_by_number(names: &mut [String]) {
    let number =
        |name: &str| name.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse::<u64>().ok();
    names.sort_by_key(|name| (number(name), name.clone()));
}

fn entries(directory: &Path) -> Result<Vec<String>, CompareError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        CompareError::new(Code::IllegalPath, format!("cannot read {}: {error}", directory.display()))
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Hidden files are of editors and file systems.
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
