//! `msprobe diff`: two tensor files, tensor by tensor.

mod answer;

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::path::Path;

use anyhow::Result;
use msprobe_report::answer::{Section, Status};
use msprobe_report::{Cell, Column, Row, Table, Tone};
use msprobe_tensor::files::{Format, PlainValue, TensorFile};
use msprobe_tensor::{PairMetrics, TensorView, compare_pair};
use rayon::prelude::*;
use serde_json::json;
use tracing::debug;

use crate::Exit;
use crate::args::{DiffArgs, OutputFormat};
use crate::inspect::{reason, select};
use crate::output::{Results, display_name, name_bare_tensors, print_answer, tensors, unravel};
use crate::progress::bytes_bar;

const COLUMNS: [Column; 19] = [
    Column::text("name", "name"),
    Column::text("result", "result"),
    Column::text("dtype_a", "dtype a"),
    Column::text("dtype_b", "dtype b"),
    Column::text("shape_a", "shape a"),
    Column::text("shape_b", "shape b"),
    Column::number("cosine", "cosine"),
    Column::number("euclidean_distance", "eucl dist"),
    Column::number("relative_distance", "rel dist"),
    Column::number("max_abs_error", "max abs"),
    Column::number("max_relative_error", "max rel"),
    Column::number("within_thousandth", "<1/1000"),
    Column::number("within_five_thousandths", "<5/1000"),
    Column::number("within_hundredth", "<1/100"),
    Column::number("equal_share", "equal"),
    Column::text("first_mismatch", "first at"),
    Column::text("nan_positions_agree", "nan agree"),
    Column::text("inf_positions_agree", "inf agree"),
    Column::text("error", "error"),
];

/// What became of one name, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Unreadable,
    OnlyInA,
    OnlyInB,
    ShapeDiffers,
    NonFiniteDiffers,
    ValuesDiffer,
    DtypeDiffers,
    PlainDiffers,
    Unclaimed,
    Same,
}

impl Outcome {
    /// What it makes of the answer.
    fn status(self) -> Status {
        match self {
            Outcome::Unreadable | Outcome::OnlyInA | Outcome::OnlyInB | Outcome::Unclaimed => {
                Status::Incomplete
            }
            Outcome::ShapeDiffers
            | Outcome::NonFiniteDiffers
            | Outcome::ValuesDiffer
            | Outcome::DtypeDiffers
            | Outcome::PlainDiffers => Status::Diverged,
            Outcome::Same => Status::Identical,
        }
    }

    /// Its name in tables and JSON.
    fn as_str(self) -> &'static str {
        match self {
            Outcome::Unreadable => "unreadable",
            Outcome::OnlyInA => "only in A",
            Outcome::OnlyInB => "only in B",
            Outcome::ShapeDiffers => "shape differs",
            Outcome::NonFiniteDiffers => "NaN/Inf differ",
            Outcome::ValuesDiffer => "differs",
            Outcome::DtypeDiffers => "dtype differs",
            Outcome::PlainDiffers => "no tensor, differs",
            Outcome::Unclaimed => "bytes of no tensor",
            Outcome::Same => "same",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Outcome::Same => Tone::Good,
            Outcome::DtypeDiffers | Outcome::PlainDiffers | Outcome::Unclaimed => Tone::Warning,
            _ => Tone::Bad,
        }
    }
}

/// One name on either side or both.
struct Pair {
    name: String,
    a: Option<usize>,
    b: Option<usize>,
}

/// A pair and what came of it.
struct Compared {
    outcome: Outcome,
    metrics: Option<PairMetrics>,
    row: Row,
    name: String,
}

pub(crate) fn run(args: &DiffArgs) -> Result<Exit> {
    let (a, b) = (TensorFile::open(&args.a)?, TensorFile::open(&args.b)?);
    let (compared, equal_plain) = compare_files(&a, &b, &args.tensors)?;
    let answer = answer::answer(&compared, equal_plain, &args.a);
    let status = answer.status;
    let shown = args.top.unwrap_or(usize::MAX);
    let one_of = |side: &str, path: &Path, file: &TensorFile| {
        format!("{side}: {} ({}, {})", path.display(), file.format(), tensors(file.entries().len()))
    };
    let mut heading = vec![one_of("A", &args.a, &a), one_of("B", &args.b, &b)];
    if compared.len() > shown {
        heading.push(format!("showing the worst {shown} of {}", compared.len()));
    }
    let verdict = format!("{}: {}", status.as_str(), answer::sentence(&compared, equal_plain));
    let mut table = Table {
        columns: COLUMNS.to_vec(),
        rows: compared.into_iter().take(shown).map(|pair| pair.row).collect(),
    };
    if args.output.format == OutputFormat::Text {
        tidy_for_reading(&mut table);
        print_answer(&answer, &[Section::lines("", heading), Section::table("", table)])?;
        return Ok(status.exit());
    }
    let results = Results {
        facts: vec![
            ("a", json!(args.a.display().to_string())),
            ("b", json!(args.b.display().to_string())),
            ("status", json!(status.as_str())),
            ("verdict", json!(verdict)),
            ("answer", answer.to_json()),
        ],
        rows_key: "tensors",
        heading,
        table,
        verdict,
    };
    results.print(args.output.format)?;
    Ok(status.exit())
}

/// Everything of two files, or some tensors of them, worst first; and how many values besides tensors are equal.
fn compare_files(a: &TensorFile, b: &TensorFile, names: &[String]) -> Result<(Vec<Compared>, usize)> {
    let pairs = if names.is_empty() { pair_all(a, b) } else { pair_named(a, b, names)? };
    debug!("{} names to compare", pairs.len());
    let size = |pair: &Pair| pair_size(a, pair.a) + pair_size(b, pair.b);
    let bar = bytes_bar(pairs.iter().map(size).sum(), "comparing");
    let mut compared: Vec<Compared> = pairs
        .par_iter()
        .map(|pair| {
            let result = compare(a, b, pair);
            bar.inc(size(pair));
            result
        })
        .collect();
    bar.finish_and_clear();
    let plain = if names.is_empty() { compare_plain(a, b)? } else { Plain::default() };
    compared.extend(plain.differing);
    // Who names tensors of many asks for nothing else of the file.
    let is_asked_for = |file: &&TensorFile| names.is_empty() || file.format() == Format::Npy;
    compared.extend([a, b].into_iter().filter(is_asked_for).filter_map(unclaimed));
    // Stable: equally bad tensors stay in the order of the file.
    compared.sort_by(worst_first);
    Ok((compared, plain.equal))
}

/// What two `.pt` files hold besides tensors, compared.
#[derive(Default)]
struct Plain {
    equal: usize,
    differing: Vec<Compared>,
}

/// Compares numbers, texts and settings. Other formats have no place for them.
fn compare_plain(a: &TensorFile, b: &TensorFile) -> Result<Plain> {
    let mut plain = Plain::default();
    if a.format() != Format::Pt || b.format() != Format::Pt {
        return Ok(plain);
    }
    let (in_a, in_b) = (a.plain_values()?, b.plain_values()?);
    let mut left: HashMap<&str, VecDeque<&PlainValue>> = HashMap::new();
    for value in &in_b {
        left.entry(&value.name).or_default().push_back(value);
    }
    for value in &in_a {
        match left.get_mut(value.name.as_str()).and_then(VecDeque::pop_front) {
            Some(other) if other.text == value.text => plain.equal += usize::from(!is_container(value)),
            Some(other) => {
                let text = format!("{} against {}", shortened(&value.text), shortened(&other.text));
                plain.differing.push(without_metrics(&value.name, Outcome::PlainDiffers, text));
            }
            None => {
                let outcome = Outcome::OnlyInA;
                plain.differing.push(without_metrics(&value.name, outcome, shortened(&value.text)));
            }
        }
    }
    let rest = in_b.iter().filter(|value| {
        let left = left.get(value.name.as_str());
        left.is_some_and(|left| left.iter().any(|other| std::ptr::eq(*other, *value)))
    });
    let only_in_b = rest.map(|value| without_metrics(&value.name, Outcome::OnlyInB, shortened(&value.text)));
    plain.differing.extend(only_in_b);
    Ok(plain)
}

/// What only holds others is no value of its own for people.
fn is_container(value: &PlainValue) -> bool {
    matches!(value.text.as_str(), "dict" | "list" | "tuple" | "set")
}

/// Long texts are told by their beginning.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() <= SHOWN {
        text.to_owned()
    } else {
        text.chars().take(SHOWN).chain(['…']).collect()
    }
}

/// A file with data that belongs to no tensor may hold more than the header says.
fn unclaimed(file: &TensorFile) -> Option<Compared> {
    let (bytes, path) = (file.unclaimed_bytes(), file.path().display());
    let text = match file.format() {
        Format::Npy => format!("{bytes} bytes of {path} are behind its array"),
        _ => format!("{bytes} bytes of {path} belong to none of its tensors"),
    };
    (bytes > 0).then(|| without_metrics("", Outcome::Unclaimed, text))
}

/// A row about something that is no pair of tensors.
fn without_metrics(name: &str, outcome: Outcome, text: String) -> Compared {
    let mut cells = vec![Cell::Text(name.to_owned()), Cell::Text(outcome.as_str().to_owned())];
    cells.resize(COLUMNS.len() - 1, Cell::Empty);
    cells.push(Cell::Text(text));
    Compared { outcome, metrics: None, row: Row { cells, tone: outcome.tone() }, name: name.to_owned() }
}

fn pair_all(a: &TensorFile, b: &TensorFile) -> Vec<Pair> {
    if let ([only_a], [only_b]) = (a.entries(), b.entries()) {
        let (name_a, name_b) = (&only_a.name, &only_b.name);
        let name = if name_a == name_b {
            name_a.clone()
        } else {
            format!("{} ~ {}", display_name(name_a), display_name(name_b))
        };
        return vec![Pair { name, a: Some(0), b: Some(0) }];
    }
    // A name that comes several times is paired in order.
    let mut left: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (index, entry) in b.entries().iter().enumerate() {
        left.entry(&entry.name).or_default().push_back(index);
    }
    let mut pairs: Vec<Pair> = Vec::with_capacity(a.entries().len());
    for (index, entry) in a.entries().iter().enumerate() {
        let partner = left.get_mut(entry.name.as_str()).and_then(VecDeque::pop_front);
        pairs.push(Pair { name: entry.name.clone(), a: Some(index), b: partner });
    }
    let mut only_in_b: Vec<usize> = left.into_values().flatten().collect();
    only_in_b.sort_unstable();
    let name_of = |index: usize| b.entries().get(index).map_or_else(String::new, |entry| entry.name.clone());
    pairs.extend(only_in_b.into_iter().map(|index| Pair { name: name_of(index), a: None, b: Some(index) }));
    pairs
}

fn pair_named(a: &TensorFile, b: &TensorFile, names: &[String]) -> Result<Vec<Pair>> {
    let (in_a, in_b) = (select(a, names)?, select(b, names)?);
    let pairs = names.iter().zip(in_a.into_iter().zip(in_b));
    Ok(pairs.map(|(name, (a, b))| Pair { name: name.clone(), a: Some(a), b: Some(b) }).collect())
}

fn pair_size(file: &TensorFile, index: Option<usize>) -> u64 {
    index.and_then(|index| file.view(index).ok()).map_or(0, |view| view.size_bytes() as u64)
}

fn compare(a: &TensorFile, b: &TensorFile, pair: &Pair) -> Compared {
    let view_a = pair.a.map(|index| a.view(index)).transpose();
    let view_b = pair.b.map(|index| b.view(index)).transpose();
    let mut error = Cell::Empty;
    let mut metrics = None;
    let outcome = match (&view_a, &view_b) {
        (Err(failure), _) | (_, Err(failure)) => {
            error = Cell::Text(reason(failure));
            Outcome::Unreadable
        }
        (Ok(Some(a)), Ok(Some(b))) if a.shape() == b.shape() => {
            // Equal shapes have equal counts; there is nothing else to go wrong.
            metrics = compare_pair(a, b).ok().flatten();
            judge(a, b, metrics.as_ref())
        }
        (Ok(Some(_)), Ok(Some(_))) => Outcome::ShapeDiffers,
        (Ok(_), Ok(None)) => Outcome::OnlyInA,
        (Ok(None), Ok(_)) => Outcome::OnlyInB,
    };
    for (file, index) in [(a, pair.a), (b, pair.b)] {
        if let Some(index) = index {
            file.release(index);
        }
    }
    let (view_a, view_b) = (view_a.ok().flatten(), view_b.ok().flatten());
    let mut cells = vec![Cell::Text(pair.name.clone()), Cell::Text(outcome.as_str().to_owned())];
    cells.extend([&view_a, &view_b].map(|view| match view {
        Some(view) => Cell::Text(view.dtype().to_string()),
        None => Cell::Empty,
    }));
    cells.extend([&view_a, &view_b].map(|view| match view {
        Some(view) => Cell::Sizes(view.shape().to_vec()),
        None => Cell::Empty,
    }));
    match (&metrics, &view_a) {
        (Some(metrics), Some(view)) => cells.extend(metric_cells(metrics, view, outcome)),
        _ => cells.resize(COLUMNS.len() - 1, Cell::Empty),
    }
    cells.push(error);
    Compared { outcome, metrics, row: Row { cells, tone: outcome.tone() }, name: pair.name.clone() }
}

fn judge(a: &TensorView<'_>, b: &TensorView<'_>, metrics: Option<&PairMetrics>) -> Outcome {
    let same_values = metrics.is_none_or(|metrics| {
        metrics.nan_positions_agree && metrics.equal_count + metrics.target_non_finite.nan == metrics.count
    });
    let non_finite_agree =
        metrics.is_none_or(|metrics| metrics.nan_positions_agree && metrics.inf_positions_agree);
    match (same_values, non_finite_agree) {
        (true, _) if a.dtype() == b.dtype() => Outcome::Same,
        (true, _) => Outcome::DtypeDiffers,
        (false, true) => Outcome::ValuesDiffer,
        (false, false) => Outcome::NonFiniteDiffers,
    }
}

fn metric_cells(metrics: &PairMetrics, view: &TensorView<'_>, outcome: Outcome) -> [Cell; 12] {
    // The metrics count NaN as unequal to itself; the verdict, and so the row, does not.
    let equal = match outcome {
        Outcome::Same | Outcome::DtypeDiffers => metrics.count,
        _ => metrics.equal_count,
    };
    // With NaN or Inf on one side only, an error of the rest would read like an error of the tensor.
    let error =
        |value: f64| if outcome == Outcome::NonFiniteDiffers { Cell::Empty } else { Cell::Float(value) };
    [
        error(metrics.cosine()),
        error(metrics.euclidean_distance),
        error(relative_distance(metrics)),
        error(metrics.max_abs_error),
        error(metrics.max_relative_error),
        error(metrics.share(metrics.within_thousandth)),
        error(metrics.share(metrics.within_five_thousandths)),
        error(metrics.share(metrics.within_hundredth)),
        Cell::Float(metrics.share(equal)),
        metrics.first_difference.map_or(Cell::Empty, |flat| Cell::Sizes(unravel(flat, view))),
        Cell::Bool(metrics.nan_positions_agree),
        Cell::Bool(metrics.inf_positions_agree),
    ]
}

/// Distance in units of the golden side's norm: comparable between tensors of any size and scale.
fn relative_distance(metrics: &PairMetrics) -> f64 {
    if metrics.euclidean_distance == 0.0 { 0.0 } else { metrics.euclidean_distance / metrics.golden_norm }
}

fn worst_first(x: &Compared, y: &Compared) -> Ordering {
    let distance = |pair: &Compared| pair.metrics.as_ref().map_or(0.0, relative_distance);
    x.outcome.cmp(&y.outcome).then_with(|| distance(y).total_cmp(&distance(x)))
}

/// Leaves out of the text what says nothing: columns that agree everywhere, and empty ones.
fn tidy_for_reading(table: &mut Table) {
    name_bare_tensors(table);
    for (kept, twin, title) in [("dtype_a", "dtype_b", "dtype"), ("shape_a", "shape_b", "shape")] {
        merge_twin_columns(table, kept, twin, title);
    }
    for key in ["nan_positions_agree", "inf_positions_agree"] {
        let index = table.position(key);
        let disagree = |row: &Row| index.and_then(|index| row.cells.get(index)) == Some(&Cell::Bool(false));
        if !table.rows.iter().any(disagree) {
            table.drop_column(key);
        }
    }
    let is_empty = |index: usize| table.rows.iter().all(|row| row.cells.get(index) == Some(&Cell::Empty));
    let empty: Vec<&str> = (0..table.columns.len())
        .filter(|&index| is_empty(index))
        .map(|index| table.columns[index].key)
        .collect();
    for key in empty {
        table.drop_column(key);
    }
}

/// Shows two columns as one where both sides say the same in every row.
fn merge_twin_columns(table: &mut Table, kept: &str, twin: &str, title: &'static str) {
    let (Some(kept), Some(twin_index)) = (table.position(kept), table.position(twin)) else { return };
    if table.rows.iter().all(|row| row.cells.get(kept) == row.cells.get(twin_index)) {
        table.columns[kept].title = title;
        table.drop_column(twin);
    }
}

#[cfg(test)]
mod tests;
