//! Kernel dumps of MindSpore graphs, compared per rank and step: whole arrays or statistics.

mod join;
mod npy;
mod statistic;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use msprobe_report::VecRows;
use msprobe_report::console::Console;
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::{make_directory, publish_stamped, timestamp};
use msprobe_report::{Cell, Sheet, write_workbook};

use crate::directories::{Directory, walk};
use crate::metrics::METRIC_HEADERS;
use crate::table::{COMMON_HEADERS, DIFFERENCE_HEADERS, STATISTICS_HEADERS};

/// A sheet has no room for more, header included.
const MOST_ROWS: usize = 1_048_576;

const SCALAR: &str = "This is type of scalar data, can not compare.\n";
const DTYPES_DIFFER: &str = "Dtype of NPU and bench Tensor do not match. Skipped.\n";

/// Why two records are not compared: the texts of the reasons that apply.
fn reasons(reasons: [(bool, &str); 3]) -> String {
    reasons.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect()
}

/// Rank and step.
type RankAndStep = (i64, i64);

/// What a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Npy,
    Statistic,
}

impl Mode {
    fn of(directories: &[&Directory]) -> Option<Mode> {
        let any = |test: fn(&String) -> bool| directories.iter().any(|dir| dir.files.iter().any(test));
        if any(|file| file.strip_suffix(".npy").is_some()) {
            Some(Mode::Npy)
        } else if any(|file| file == statistic::FILE_NAME) {
            Some(Mode::Statistic)
        } else {
            None
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Mode::Npy => "NPY_MODE",
            Mode::Statistic => "STATISTIC_MODE",
        }
    }
}

/// Compares the kernel dumps beneath two directories and writes a workbook for each rank and step that both have.
/// Empty lists of ranks and steps mean all. What cannot be compared is reported and left out; it is an error only if
/// nothing is left.
pub fn compare_graphs(
    target_root: &Path,
    golden_root: &Path,
    rank_ids: &[i64],
    step_ids: &[i64],
    output: &Path,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let trees = [tree(target_root, console)?, tree(golden_root, console)?];
    let targets = places(&trees[0], rank_ids, step_ids);
    let mut goldens = places(&trees[1], rank_ids, step_ids);
    make_directory(output)?;
    let left_out = |(rank, step): RankAndStep, root: &Path| {
        console.warning(&format!("rank {rank}, step {step} is not in {}, it is left out", root.display()));
    };
    let mut written = Vec::new();
    let mut refused = None;
    let mut common = false;
    for ((rank, step), target) in targets {
        let Some(golden) = goldens.remove(&(rank, step)) else {
            left_out((rank, step), golden_root);
            continue;
        };
        common = true;
        match compare_place((rank, step), &target, &golden, output, console) {
            Ok(files) => written.extend(files),
            Err(error) => {
                console.error(&error.message);
                console.warning(&format!("rank {rank}, step {step} could not be compared, it is left out"));
                refused.get_or_insert(error);
            }
        }
    }
    for (rank, step) in goldens.into_keys() {
        left_out((rank, step), target_root);
    }
    match refused {
        Some(error) if written.is_empty() => Err(error),
        _ if !common => Err(nothing_in_common(target_root, golden_root)),
        _ => Ok(written),
    }
}

fn nothing_in_common(target_root: &Path, golden_root: &Path) -> CompareError {
    let message =
        format!("no rank and step is in both {} and {}", target_root.display(), golden_root.display());
    CompareError::new(Code::InvalidPath, message)
        .with_hint("give directories that hold {rank}/{net}/{graph}/{step}, and check rank_id and step_id")
}

/// The directories beneath a root. Names in the table are absolute, so the root is made so first.
fn tree(root: &Path, console: &dyn Console) -> Result<Vec<Directory>, CompareError> {
    let absolute = fs::canonicalize(root).map_err(|error| {
        CompareError::new(Code::IllegalPath, format!("cannot open {}: {error}", root.display()))
            .with_hint("check the path for a spelling mistake")
    })?;
    Ok(walk(&absolute, console))
}

/// The lowest directories by rank and step. A step with several graphs has several.
fn places<'a>(
    tree: &'a [Directory],
    rank_ids: &[i64],
    step_ids: &[i64],
) -> BTreeMap<RankAndStep, Vec<&'a Directory>> {
    let wanted = |ids: &[i64], id: i64| ids.is_empty() || ids.contains(&id);
    let mut places: BTreeMap<RankAndStep, Vec<&Directory>> = BTreeMap::new();
    for directory in tree.iter().filter(|directory| directory.lowest) {
        if let Some((rank, step)) = place_of(&directory.path)
            && wanted(rank_ids, rank)
            && wanted(step_ids, step)
        {
            places.entry((rank, step)).or_default().push(directory);
        }
    }
    places
}

/// Reads `{rank}/{net}/{graph}/{step}` or `{rank}/{graph}/{step}` off the end of a path.
fn place_of(path: &Path) -> Option<RankAndStep> {
    let parts: Vec<&str> = path.iter().rev().take(4).map(|part| part.to_str().unwrap_or_default()).collect();
    let number = |place: usize| parts.get(place)?.parse::<i64>().ok();
    let prefixed = || parts.get(3)?.rsplit_once('_')?.1.parse::<i64>().ok();
    let has_prefix = path.to_string_lossy().contains("rank_");
    let rank = has_prefix.then(prefixed).flatten().or_else(|| number(3)).or_else(|| number(2))?;
    Some((rank, number(0)?))
}

fn compare_place(
    (rank, step): RankAndStep,
    target: &[&Directory],
    golden: &[&Directory],
    output: &Path,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let (Some(mode), Some(golden_mode)) = (Mode::of(target), Mode::of(golden)) else {
        return Err(CompareError::new(Code::InvalidFile, "Error mode.")
            .with_hint(format!("rank {rank}, step {step} has neither .npy files nor a statistic.csv")));
    };
    if mode != golden_mode {
        let (mode, golden_mode) = (mode.as_str(), golden_mode.as_str());
        let message = format!("NPU mode {mode} not equal to MATCH mode {golden_mode}.");
        return Err(CompareError::new(Code::InvalidCompareMode, message));
    }
    let rows = match mode {
        Mode::Npy => npy::rows(target, golden, console),
        Mode::Statistic => statistic::rows(target, golden, console)?,
    };
    let stem = format!("compare_result_{rank}_{step}_{}", timestamp());
    write_tables(mode, rows, output, &stem, console)
}

fn headers(mode: Mode) -> Vec<String> {
    let own: &[&str] = match mode {
        Mode::Npy => &METRIC_HEADERS,
        Mode::Statistic => &DIFFERENCE_HEADERS,
    };
    let judged = ["Accuracy Reached or Not", "Err_message"];
    let headers = [&COMMON_HEADERS[..], &STATISTICS_HEADERS, &judged, own].concat();
    headers.into_iter().map(str::to_owned).collect()
}

fn write_tables(
    mode: Mode,
    rows: Vec<Vec<Cell>>,
    output: &Path,
    stem: &str,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let mut slices = Vec::new();
    halve(0..rows.len(), MOST_ROWS, &mut slices);
    let mut rows = rows.into_iter();
    let mut written = Vec::new();
    for (number, slice) in slices.iter().enumerate() {
        let name =
            if slices.len() == 1 { format!("{stem}.xlsx") } else { format!("{stem}_slice_{number}.xlsx") };
        let path = output.join(name);
        let rows = VecRows::new(rows.by_ref().take(slice.len()).collect());
        let sheet = Sheet { name: "Sheet1".to_owned(), headers: headers(mode), rows: &rows };
        let path = publish_stamped(&path, |file| write_workbook(file, &[sheet]))?;
        console.info(&format!("Compare result is saved to {}", path.display()));
        written.push(path);
    }
    Ok(written)
}

/// Cuts rows in halves until each piece is below the limit.
fn halve(rows: Range<usize>, limit: usize, slices: &mut Vec<Range<usize>>) {
    if rows.len() < limit || rows.len() < 2 {
        slices.push(rows);
        return;
    }
    let middle = rows.start + rows.len() / 2;
    halve(rows.start..middle, limit, slices);
    halve(middle..rows.end, limit, slices);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_steps_are_read_off_the_end() {
        let place = |path: &str| place_of(Path::new(path));
        assert_eq!(place("/d/rank_3/Net/0/7"), Some((3, 7)));
        assert_eq!(place("/d/npu_rank_12/Net/0/7"), Some((12, 7)));
        assert_eq!(place("/d/5/Net/0/7"), Some((5, 7)));
        assert_eq!(place("/d/x/5/0/7"), Some((5, 7)));
        assert_eq!(place("/rank_x/5/Net/0/7"), Some((5, 7)));
        assert_eq!(place("/d/rank_3/Net/0/last"), None);
        assert_eq!(place("7"), None);
    }

    #[test]
    fn long_tables_are_halved() {
        let mut slices = Vec::new();
        halve(0..9, 4, &mut slices);
        assert_eq!(slices, [0..2, 2..4, 4..6, 6..9]);
        slices.clear();
        halve(0..0, 4, &mut slices);
        assert!(slices.len() == 1 && slices[0].is_empty());
    }
}
