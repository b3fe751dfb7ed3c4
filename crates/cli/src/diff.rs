//! `msprobe diff`: two tensor files, tensor by tensor.

use std::cmp::Ordering;
use std::collections::HashSet;

use anyhow::Result;
use msprobe_report::{Cell, Column, Mood, Row, Table, short_number};
use msprobe_tensor::files::TensorFile;
use msprobe_tensor::{PairMetrics, TensorView, compare_pair};
use rayon::prelude::*;
use serde_json::json;
use tracing::debug;

use crate::Status;
use crate::args::{DiffArgs, OutputFormat};
use crate::inspect::{reason, select};
use crate::output::{Results, display_name, name_bare_tensors, tensors, unravel};
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
    Same,
}

impl Outcome {
    fn text(self) -> &'static str {
        match self {
            Outcome::Unreadable => "unreadable",
            Outcome::OnlyInA => "only in A",
            Outcome::OnlyInB => "only in B",
            Outcome::ShapeDiffers => "shape differs",
            Outcome::NonFiniteDiffers => "NaN/Inf differ",
            Outcome::ValuesDiffer => "differs",
            Outcome::DtypeDiffers => "dtype differs",
            Outcome::Same => "same",
        }
    }

    fn mood(self) -> Mood {
        match self {
            Outcome::Same => Mood::Good,
            Outcome::DtypeDiffers => Mood::Warning,
            _ => Mood::Bad,
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

pub(crate) fn run(args: &DiffArgs) -> Result<Status> {
    let (a, b) = (TensorFile::open(&args.a)?, TensorFile::open(&args.b)?);
    let pairs = if args.tensors.is_empty() { pair_all(&a, &b) } else { pair_named(&a, &b, &args.tensors)? };
    debug!("{} names to compare", pairs.len());

    let size = |pair: &Pair| pair_size(&a, pair.a) + pair_size(&b, pair.b);
    let bar = bytes_bar(pairs.iter().map(size).sum(), "comparing");
    let mut compared: Vec<Compared> = pairs
        .par_iter()
        .map(|pair| {
            let result = compare(&a, &b, pair);
            bar.inc(size(pair));
            result
        })
        .collect();
    bar.finish_and_clear();
    // Stable: equally bad tensors stay in the order of the file.
    compared.sort_by(worst_first);

    let worst = compared.first().map(|pair| pair.outcome);
    let status = match worst {
        Some(Outcome::Unreadable) => Status::Failed,
        None | Some(Outcome::Same) => Status::Ok,
        Some(_) => Status::Differs,
    };
    let verdict = verdict(&compared);
    let shown = args.top.unwrap_or(usize::MAX);
    let cut = match compared.len() {
        all if all > shown => format!("\nshowing the worst {shown} of {all}"),
        _ => String::new(),
    };
    let mut table = Table {
        columns: COLUMNS.to_vec(),
        rows: compared.into_iter().take(shown).map(|pair| pair.row).collect(),
    };
    if args.output.format == OutputFormat::Text {
        tidy_for_reading(&mut table);
    }
    let results = Results {
        facts: vec![
            ("a", json!(args.a.display().to_string())),
            ("b", json!(args.b.display().to_string())),
            (
                "status",
                json!(match status {
                    Status::Ok => "same",
                    Status::Differs => "different",
                    Status::Failed => "failed",
                }),
            ),
            ("verdict", json!(verdict)),
        ],
        rows_key: "tensors",
        heading: format!(
            "A: {} ({}, {})\nB: {} ({}, {}){cut}",
            args.a.display(),
            a.format(),
            tensors(a.entries().len()),
            args.b.display(),
            b.format(),
            tensors(b.entries().len()),
        ),
        table,
        verdict,
    };
    results.print(args.output.format)?;
    Ok(status)
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
    let in_a = a.entries().iter().enumerate().map(|(index, entry)| Pair {
        name: entry.name.clone(),
        a: Some(index),
        b: b.find(&entry.name),
    });
    let names_of_a: HashSet<&str> = a.entries().iter().map(|entry| entry.name.as_str()).collect();
    let only_in_b =
        b.entries().iter().enumerate().filter(|(_, entry)| !names_of_a.contains(entry.name.as_str()));
    in_a.chain(only_in_b.map(|(index, entry)| Pair { name: entry.name.clone(), a: None, b: Some(index) }))
        .collect()
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
    let mut cells = vec![Cell::Text(pair.name.clone()), Cell::Text(outcome.text().to_owned())];
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
    Compared { outcome, metrics, row: Row { cells, mood: outcome.mood() }, name: pair.name.clone() }
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

fn verdict(compared: &[Compared]) -> String {
    let differing = compared.iter().filter(|pair| pair.outcome != Outcome::Same).count();
    let Some(worst) = compared.first().filter(|_| differing > 0) else {
        return match compared.len() {
            0 => "same: no tensors on either side".to_owned(),
            count => format!("same: {}, every value equal", tensors(count)),
        };
    };
    let name = display_name(&worst.name);
    let evidence = match (&worst.metrics, worst.outcome) {
        (Some(metrics), Outcome::ValuesDiffer) => format!(
            "{name}, relative distance {}, max abs error {}, cosine {}",
            short_number(relative_distance(metrics)),
            short_number(metrics.max_abs_error),
            short_number(metrics.cosine())
        ),
        _ => format!("{name}, {}", worst.outcome.text()),
    };
    let unreadable = count(compared, Outcome::Unreadable);
    if unreadable > 0 {
        format!(
            "failed: {} could not be read; {} of {} differ",
            tensors(unreadable),
            differing - unreadable,
            compared.len()
        )
    } else {
        let total = tensors(compared.len());
        format!("different: {differing} of {total} ({}); worst: {evidence}", breakdown(compared))
    }
}

fn count(compared: &[Compared], outcome: Outcome) -> usize {
    compared.iter().filter(|pair| pair.outcome == outcome).count()
}

/// How many differ in which way, worst first.
fn breakdown(compared: &[Compared]) -> String {
    let ways = [
        (Outcome::OnlyInA, "only in A"),
        (Outcome::OnlyInB, "only in B"),
        (Outcome::ShapeDiffers, "in shape"),
        (Outcome::NonFiniteDiffers, "in NaN/Inf"),
        (Outcome::ValuesDiffer, "in values"),
        (Outcome::DtypeDiffers, "in dtype only"),
    ];
    let counted = ways.map(|(outcome, text)| (count(compared, outcome), text));
    let told: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, text)| format!("{count} {text}"))
        .collect();
    told.join(", ")
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
