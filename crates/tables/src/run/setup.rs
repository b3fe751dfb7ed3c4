//! What has to be right before anything is compared.

use std::path::{Path, PathBuf};

use msprobe_compare::Mode;
use msprobe_compare::side::{FileKind, Side, Stacks, Which, read_side};
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::check_exists;

use super::discover::noise_dump;
use super::{Options, StackSource};

/// Reads both dumps and finds out what can be compared.
pub(super) fn read_both(
    target: &Path,
    golden: &Path,
    console: &dyn Console,
) -> Result<(Side, Side, Mode), CompareError> {
    check_names(target, golden)?;
    let size = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    console.begin("reading dumps", size(target) + size(golden));
    let (target, golden) = rayon::join(
        || check_exists(target).and_then(|()| read_side(target, Which::Target, console)),
        || check_exists(golden).and_then(|()| read_side(golden, Which::Golden, console)),
    );
    console.end();
    let (target, golden) = (target?, golden?);
    let mode = mode_of(&target, &golden)?;
    Ok((target, golden, mode))
}

/// Reads the further runs of the golden side. They have to hold what the golden run holds.
pub(super) fn read_noise(
    golden: &Side,
    mode: Mode,
    options: &Options,
    console: &dyn Console,
) -> Result<Vec<Side>, CompareError> {
    let read = |run: &PathBuf| {
        let mut side = read_side(&noise_dump(run, &golden.path, console)?, Which::Golden, console)?;
        if side.path.canonicalize().ok() == golden.path.canonicalize().ok() {
            let message = format!("{} is the bench run itself and shows no noise", side.path.display());
            return Err(CompareError::new(Code::InvalidParam, message)
                .with_hint("--noise takes another run of the bench side"));
        }
        if mode_of(&side, golden)? == Mode::All {
            check_exists(&side.tensor_dir())?;
        }
        match side.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(side),
        }
    };
    if mode == Mode::Md5 && !options.noise.is_empty() {
        let message = "checksums are equal or not: no noise can be measured of them";
        return Err(CompareError::new(Code::InvalidParam, message)
            .with_hint("collect all runs with \"summary_mode\": \"statistics\", or leave --noise out"));
    }
    options.noise.iter().map(read).collect()
}

fn check_names(target: &Path, golden: &Path) -> Result<(), CompareError> {
    let ends = |path: &Path, name: &str| path.to_string_lossy().ends_with(name);
    let both = |name| ends(target, name) && ends(golden, name);
    if !both("dump.json") && !both("debug.json") {
        return Err(CompareError::new(
            Code::InvalidPath,
            "Please check the json path is valid and ensure that neither npu_path nor bench_path is None.",
        ));
    }
    Ok(())
}

fn mode_of(target: &Side, golden: &Side) -> Result<Mode, CompareError> {
    let kind = |side: &Side| {
        let checksums = if side.has_md5 { " with checksums" } else { "" };
        format!("{} is of task {}{checksums}", side.path.display(), side.task)
    };
    let refused = |message: &str| {
        let hint =
            format!("{}; {}; collect both with the same task and summary_mode", kind(target), kind(golden));
        Err(CompareError::new(Code::InvalidTask, message).with_hint(hint))
    };
    if target.task != golden.task {
        return refused("Please check the dump task is consistent.");
    }
    match (target.task.as_str(), target.has_md5, golden.has_md5) {
        ("tensor", _, _) => Ok(Mode::All),
        ("statistics", false, false) => Ok(Mode::Summary),
        ("statistics", true, true) => Ok(Mode::Md5),
        ("statistics", _, _) => refused(
            "Please check the dump task is consistent, dump mode of npu and bench should both be statistics or md5.",
        ),
        _ => {
            Err(CompareError::new(Code::InvalidTask, "Compare applies only to task is tensor or statistics")
                .with_hint(kind(target)))
        }
    }
}

/// Finds the call stacks of the target. A file that was named has to be there and be whole; what lies beside the dump
/// costs nothing but itself.
pub(super) fn read_stacks(
    target: &Side,
    options: &Options,
    console: &dyn Console,
) -> Result<Option<Stacks>, CompareError> {
    match &options.stack {
        StackSource::Off => Ok(None),
        StackSource::File(path) => read_stack_file(path, console).map(Some),
        StackSource::Detect => {
            let path = target.directory().join("stack.json");
            if path.symlink_metadata().is_err() {
                let directory = target.directory().display();
                console.warning(&format!("stack.json is not found in dump dir {directory}."));
                return Ok(None);
            }
            Ok(read_stack_file(&path, console).map_err(|error| passed_over(&path, &error, console)).ok())
        }
    }
}

/// Says that a file beside a dump is not used. It holds no values, so nothing is left out of the comparison.
pub(super) fn passed_over(path: &Path, error: &CompareError, console: &dyn Console) {
    let shown = path.display().to_string();
    let reason = error.hint.as_ref().unwrap_or(&error.message);
    let reason = reason.strip_prefix(&format!("{shown}: ")).unwrap_or(reason);
    console.warning(&format!("{shown} is not used: {reason}"));
}

fn read_stack_file(path: &Path, console: &dyn Console) -> Result<Stacks, CompareError> {
    check_exists(path)?;
    if path.extension().is_none_or(|extension| extension != "json") {
        let message = format!("The file path {} does not end with .json.", path.display());
        return Err(CompareError::new(Code::IllegalPath, message));
    }
    if path.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        let message = format!("dump file {} have empty line!", path.display());
        return Err(CompareError::new(Code::InvalidDumpFile, message));
    }
    Stacks::read(path, console)
}

/// The tensor files must be there if they are to be compared.
pub(super) fn check_tensors(target: &Side, golden: &Side, mode: Mode) -> Result<(), CompareError> {
    if mode == Mode::All {
        check_exists(&target.tensor_dir())?;
        check_exists(&golden.tensor_dir())?;
    }
    Ok(())
}

/// Says what was odd about the records; a record that cannot be compared ends the comparison.
pub(super) fn check_records(
    target: &mut Side,
    golden: &mut Side,
    console: &dyn Console,
) -> Result<(), CompareError> {
    for side in [target, golden] {
        for notice in &side.notices {
            console.warning(notice);
        }
        if let Some(fault) = side.fault.take() {
            return Err(fault);
        }
        if side.records.is_empty() {
            let name = if side.kind == FileKind::Dump { "dump.json" } else { "debug.json" };
            console.warning(&format!("No APIs found in {name}."));
        }
    }
    Ok(())
}
