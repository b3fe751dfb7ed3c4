//! Several pairs of dumps: ranks and steps. One that cannot be compared costs nothing but itself.

use std::path::Path;

use msprobe_compare::side::Which;
use msprobe_compare::verdict::{Gap, GapKind};
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};

use super::discover::{FoundPairs, find_pairs, find_ranks, only_step_of, stray_gap, strays};
use super::first_difference::find_first_differences;
use super::one::compare_files;
use super::outcome::Outcome;
use super::{Options, StackSource};

/// Compares two dump files, or everything two directories have in common.
pub fn compare_dumps(
    target: &Path,
    golden: &Path,
    options: &Options,
    console: &dyn Console,
) -> Result<Outcome, CompareError> {
    let FoundPairs { pairs, gaps } = find_pairs(target, golden, console)?;
    let mut outcome = Outcome { gaps, ..Outcome::new(options.allowed) };
    let alone = pairs.len() == 1;
    for pair in &pairs {
        match compare_files(&pair.target, &pair.golden, &pair.suffix, options, console) {
            Ok(compared) => outcome.add_part(compared),
            Err(error) if alone => return Err(error),
            Err(error) => {
                error.announce(console);
                outcome.add_failure(&pair.target.display().to_string(), &error.to_string());
            }
        }
    }
    if options.first_difference {
        let files = find_first_differences(&pairs, options, console)?;
        if let Some(part) = outcome.parts.first_mut() {
            part.files.extend(files);
        }
    }
    Ok(outcome)
}

/// Compares the ranks of two step directories, as the older form does: both have the same number of ranks and nothing
/// else.
pub fn compare_ranks(
    target: &Path,
    golden: &Path,
    options: &Options,
    console: &dyn Console,
) -> Result<Outcome, CompareError> {
    let runs = [target, golden];
    let (target, golden) = (&only_step_of(target, console)?, &only_step_of(golden, console)?);
    let (targets, goldens) = (find_ranks(target)?, find_ranks(golden)?);
    if targets.len() != goldens.len() {
        let message = "The number of ranks in the two runs are different. Unable to match the ranks. Please use \
                       another folder to compare or use compare() api and manually match the ranks.";
        return Err(CompareError::new(Code::InvalidPath, message));
    }
    let options = Options { stack: StackSource::Detect, ..options.clone() };
    let mut outcome = Outcome::new(options.allowed);
    for (run, _) in runs.into_iter().zip([target, golden]).filter(|(run, step)| *run != step.as_path()) {
        for (kind, path) in strays(run)? {
            outcome.gaps.add(kind, || stray_gap(kind, &path));
        }
    }
    for (rank, partner) in targets.iter().zip(&goldens) {
        let (target, golden) = (target.join(rank), golden.join(partner));
        for file in ["dump.json", "debug.json"] {
            let missing = [&target, &golden].map(|directory| !directory.join(file).is_file());
            for (directory, missing) in [&target, &golden].into_iter().zip(missing) {
                let text = format!("{file} is not found in dump dir {}.", directory.display());
                match (missing, file) {
                    (true, "dump.json") => console.error(&text),
                    (true, _) => console.warning(&text),
                    (false, _) => {}
                }
            }
            match missing {
                [false, false] => {}
                [true, true] if file == "debug.json" || target.join("debug.json").is_file() => continue,
                [true, true] => {
                    outcome.add_failure(rank, &format!("no {file} on both sides"));
                    continue;
                }
                [on_target, _] => {
                    let which = if on_target { Which::Golden } else { Which::Target };
                    let name = format!("{rank}/{file}");
                    outcome.gaps.add(GapKind::Ranks, || Gap::only_on(which, GapKind::Ranks, &name));
                    if file == "dump.json" && !target.join("debug.json").is_file() {
                        outcome.failures.push(format!("{rank}: no {file} on both sides"));
                    }
                    continue;
                }
            }
            let result =
                compare_files(&target.join(file), &golden.join(file), &format!("_{rank}"), &options, console);
            match result {
                Ok(compared) => outcome.add_part(compared),
                Err(error) => {
                    error.announce(console);
                    let why = match error.code {
                        Code::InvalidData => "Invalid or missing 'data' in dump.json. ",
                        Code::InvalidTask => "Invalid or missing 'task' in dump.json. ",
                        _ => "",
                    };
                    console.error(&format!("{why}Skipping {rank} comparison."));
                    outcome.add_failure(rank, &error.to_string());
                }
            }
        }
    }
    Ok(outcome)
}
