//! Arrays saved one by one by MindSpore programs, compared directory by directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use msprobe_compare::metrics::{Note, TensorComparison, compare_tensors};
use msprobe_compare::python_text::list_of_texts;
use msprobe_report::Cell;
use msprobe_report::console::{Console, LimitedWarnings};
use msprobe_report::error::{Code, CompareError};
use msprobe_report::paths::{make_directory_in, publish};
use msprobe_tensor::DType;
use msprobe_tensor::files::NpyArray;
use rayon::prelude::*;

use crate::array::{number_text, shape_text, statistics_cells};
use crate::directories::{Directory, walk};
use crate::metrics::{Accuracy, METRIC_HEADERS, NOT_JUDGED, in_columns, message, metric_text};
use crate::table::{COMMON_HEADERS, STATISTICS_HEADERS, python_bool};

/// The columns of a result, in order.
pub fn headers() -> Vec<&'static str> {
    let [_, _, described @ ..] = &COMMON_HEADERS;
    let judged = ["Accuracy Reached or Not", "Err_message", "Data_name"];
    [&["Name"][..], described, &METRIC_HEADERS, &STATISTICS_HEADERS, &judged].concat()
}

/// Files of one name, by index.
type Groups = BTreeMap<String, Vec<PathBuf>>;

/// Compares every directory beneath `target` that holds arrays with the one of the same name beneath `golden`, and writes
/// `result.csv` into the directory of that name beneath `output`. `map` has the names arrays have on the other side.
pub fn compare_common_dirs(
    target: &Path,
    golden: &Path,
    map: &[(String, String)],
    output: &Path,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let (target_root, golden_root) = (without_dots(target), without_dots(golden));
    let golden_tree: BTreeMap<PathBuf, Directory> = walk(&golden_root, console)
        .into_iter()
        .filter_map(|directory| Some((directory.path.strip_prefix(&golden_root).ok()?.to_owned(), directory)))
        .collect();
    let mut written = Vec::new();
    for directory in walk(&target_root, console) {
        let targets = groups(&directory);
        let Some(relative) = directory.path.strip_prefix(&target_root).ok().filter(|_| !targets.is_empty())
        else {
            continue;
        };
        let Some(golden) = golden_tree.get(relative) else {
            let (path, golden) = (directory.path.display(), golden_root.display());
            console.warning(&format!("{path} has no counterpart in {golden}, it is left out"));
            continue;
        };
        let rows = rows(&targets, &groups(golden), map, console);
        let directory = make_directory_in(output, relative)?;
        let path = directory.join("result.csv");
        publish(&path, console, |file| write(file, &rows))?;
        written.push(path);
    }
    if written.is_empty() {
        let message = format!(
            "no directory of {} with .npy files is in {}",
            target_root.display(),
            golden_root.display()
        );
        return Err(CompareError::new(Code::InvalidPath, message)
            .with_hint("give two directories with the same step and rank directories in them"));
    }
    Ok(written)
}

/// The path as Python's `Path` writes it.
fn without_dots(path: &Path) -> PathBuf {
    let parts: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if parts.as_os_str().is_empty() { PathBuf::from(".") } else { parts }
}

/// Files called `{name}_{dtype}_{index}.npy`, by name and in the order of their indices.
fn groups(directory: &Directory) -> Groups {
    let mut found: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for file in &directory.files {
        let parts = file.strip_suffix(".npy").and_then(|stem| stem.rsplit_once('_'));
        if let Some((rest, index)) = parts
            && let Some((name, _)) = rest.rsplit_once('_')
        {
            // What is no number comes last, by name.
            found.entry(name).or_default().push((index.parse().unwrap_or(u64::MAX), file));
        }
    }
    let sorted = |mut files: Vec<(u64, &str)>| {
        files.sort_unstable();
        files.into_iter().map(|(_, file)| directory.path.join(file)).collect()
    };
    found.into_iter().map(|(name, files)| (name.to_owned(), sorted(files))).collect()
}

fn rows(
    targets: &Groups,
    goldens: &Groups,
    map: &[(String, String)],
    console: &dyn Console,
) -> Vec<Vec<String>> {
    let mut pairs = Vec::new();
    for (name, files) in targets {
        let mapped = || map.iter().find(|(from, _)| from == name).and_then(|(_, to)| goldens.get(to));
        let partners = goldens.get(name).or_else(mapped).map_or(&[][..], Vec::as_slice);
        for (number, target) in files.iter().enumerate() {
            pairs.push((format!("{name}_{number}"), target, partners.get(number)));
        }
    }
    let not_judged = LimitedWarnings::new(console, "arrays without a verdict");
    let row = |(name, target, golden): (String, &PathBuf, Option<&PathBuf>)| {
        row(name, target, golden.map(PathBuf::as_path), console, &not_judged)
    };
    pairs.into_par_iter().map(row).collect()
}

fn row(
    name: String,
    target: &Path,
    golden: Option<&Path>,
    console: &dyn Console,
    not_judged: &LimitedWarnings<'_>,
) -> Vec<String> {
    let open = |path: &Path| NpyArray::open(path).map_err(|reason| console.error(&reason)).ok();
    let files = [open(target), golden.and_then(open)];
    let [target_view, golden_view] =
        [&files[0], &files[1]].map(|file| file.as_ref().and_then(NpyArray::view));
    let golden_name = golden.map_or_else(|| "N/A".to_owned(), |path| path.display().to_string());
    let target_name = target.display().to_string();
    let comparison = match (golden, &target_view, &golden_view) {
        (None, ..) => TensorComparison::refused(Note::NoGolden),
        (_, Some(target), Some(golden)) => compare_tensors(target, golden),
        _ => TensorComparison::refused(Note::NotRead([target_name.clone(), golden_name.clone()])),
    };
    let accuracy = Accuracy::of(&comparison.metrics);
    if accuracy == Accuracy::NotJudged {
        not_judged.warning(|| NOT_JUDGED.to_owned());
    }

    let views = [&target_view, &golden_view];
    let or_missing = |text: Option<String>| text.unwrap_or_else(|| "N/A".to_owned());
    let mut row = vec![inert(name)];
    row.extend(views.map(|view| or_missing(view.as_ref().map(|view| view.dtype().numpy_name().to_owned()))));
    row.extend(views.map(|view| or_missing(view.as_ref().map(|view| shape_text(view.shape())))));
    row.extend(in_columns(&comparison.metrics).map(metric_text));
    for view in views {
        match view {
            Some(view) => row.extend(statistics_cells(view).map(|cell| text(&cell, view.dtype()))),
            None => row.extend(std::iter::repeat_n("N/A".to_owned(), 4)),
        }
    }
    row.extend([accuracy.as_str().to_owned(), message(&comparison)]);
    row.push(list_of_texts([target_name, golden_name]));
    row
}

/// The name of an array with a quote before it if a spreadsheet would take it for a formula.
fn inert(name: String) -> String {
    if name.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{name}") } else { name }
}

fn text(cell: &Cell, dtype: DType) -> String {
    match cell {
        Cell::Bool(value) => python_bool(*value).to_owned(),
        Cell::Float(value) if value.is_nan() => String::new(),
        // Means and norms of integers are floats of their own.
        Cell::Float(value) => number_text(*value, dtype),
        other => other.to_string(),
    }
}

fn write(file: &mut File, rows: &[Vec<String>]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(file);
    writer.write_record(headers())?;
    for row in rows {
        writer.write_record(row)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_grouped_by_name_and_sorted_by_index() {
        let files =
            ["a_b_float32_10.npy", "a_b_float32_9.npy", "c_float16_0.npy", "short.npy", "c_float16_0.txt"];
        let directory =
            Directory { path: PathBuf::from("d"), files: files.map(str::to_owned).to_vec(), lowest: true };
        let groups = groups(&directory);
        assert_eq!(groups.keys().collect::<Vec<_>>(), ["a_b", "c"]);
        assert_eq!(groups["a_b"], ["d/a_b_float32_9.npy", "d/a_b_float32_10.npy"].map(PathBuf::from));
    }

    #[test]
    fn names_are_no_formulas() {
        assert_eq!([inert("=x_0".into()), inert("x=_0".into())], ["'=x_0", "x=_0"]);
    }

    #[test]
    fn paths_lose_their_dots() {
        assert_eq!(without_dots(Path::new("./npu/./x")), Path::new("npu/x"));
        assert_eq!(without_dots(Path::new(".")), Path::new("."));
        assert_eq!(without_dots(Path::new("/a/b")), Path::new("/a/b"));
    }
}
