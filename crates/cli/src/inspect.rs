//! `msprobe inspect`: what is in a tensor file.

use anyhow::Result;
use msprobe_report::{Cell, Column, Row, Table, Tone};
use msprobe_tensor::files::{FileError, TensorFile};
use msprobe_tensor::{Statistics, statistics_and_crc32};
use rayon::prelude::*;
use serde_json::json;
use tracing::debug;

use crate::args::{InspectArgs, OutputFormat};
use crate::output::{Results, count_cell, human_size, name_bare_tensors, number_cell, tensors};
use crate::progress::bytes_bar;
use crate::{Exit, WithHint};

const COLUMNS: [Column; 13] = [
    Column::text("name", "name"),
    Column::text("dtype", "dtype"),
    Column::text("shape", "shape"),
    Column::number("max", "max"),
    Column::number("min", "min"),
    Column::number("mean", "mean"),
    Column::number("norm", "norm"),
    Column::number("nan", "nan"),
    Column::number("pos_inf", "+inf"),
    Column::number("neg_inf", "-inf"),
    Column::number("zero", "zeros"),
    Column::text("crc32", "crc32"),
    Column::text("error", "error"),
];

/// What was measured of one tensor.
struct Measured {
    stats: Statistics,
    crc32: u32,
}

pub(crate) fn run(args: &InspectArgs) -> Result<Exit> {
    let file = TensorFile::open(&args.file)?;
    debug!("{} is a {} file with {}", args.file.display(), file.format(), tensors(file.entries().len()));
    let selected = select(&file, &args.tensors)?;
    let measured = measure(&file, &selected);

    let failures = measured.iter().filter(|result| result.is_err()).count();
    let mut table = Table {
        columns: COLUMNS.to_vec(),
        rows: selected.iter().zip(&measured).map(|(&index, result)| row(&file, index, result)).collect(),
    };
    if args.output.format == OutputFormat::Text {
        name_bare_tensors(&mut table);
        if failures == 0 {
            table.drop_column("error");
        }
    }
    let non_finite =
        measured.iter().flatten().filter(|m| m.stats.nan_count + infinities(&m.stats) > 0).count();
    let results = Results {
        facts: vec![
            ("file", json!(args.file.display().to_string())),
            ("format", json!(file.format().to_string())),
            ("size_bytes", json!(file.size_bytes())),
        ],
        rows_key: "tensors",
        heading: vec![format!(
            "{}: {}, {}, {}",
            args.file.display(),
            file.format(),
            tensors(file.entries().len()),
            human_size(file.size_bytes())
        )],
        verdict: verdict(selected.len(), failures, non_finite),
        table,
    };
    results.print(args.output.format)?;
    Ok(if failures == 0 { Exit::Ok } else { Exit::Failed })
}

/// Positions of the tensors asked for; all of them when none is named.
pub(crate) fn select(file: &TensorFile, names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..file.entries().len()).collect());
    }
    names.iter().map(|name| file.find(name).ok_or_else(|| not_found(file, name).into())).collect()
}

fn not_found(file: &TensorFile, name: &str) -> WithHint {
    let last = name.rsplit('.').next().unwrap_or(name);
    let known = || file.entries().iter().map(|entry| entry.name.as_str());
    let mut similar: Vec<&str> = known().filter(|known| known.contains(name)).take(3).collect();
    if similar.is_empty() {
        similar = known().filter(|known| known.rsplit('.').next() == Some(last)).take(3).collect();
    }
    let hint = if file.entries().len() == 1 && file.entries()[0].name.is_empty() {
        "the file is one bare tensor without a name: leave out --tensor".to_owned()
    } else if similar.is_empty() {
        format!("`msprobe inspect {}` lists the names", file.path().display())
    } else {
        format!("did you mean {}?", similar.join(" or "))
    };
    WithHint { message: format!("{} has no tensor {name:?}", file.path().display()), hint }
}

fn measure(file: &TensorFile, selected: &[usize]) -> Vec<Result<Measured, FileError>> {
    let size = |&index: &usize| file.view(index).map_or(0, |view| view.size_bytes() as u64);
    let bar = bytes_bar(selected.iter().map(size).sum(), "reading");
    let results = selected
        .par_iter()
        .map(|&index| {
            let view = file.view(index)?;
            let (stats, crc32) = statistics_and_crc32(&view);
            file.release(index);
            bar.inc(view.size_bytes() as u64);
            Ok(Measured { stats, crc32 })
        })
        .collect();
    bar.finish_and_clear();
    results
}

fn infinities(stats: &Statistics) -> u64 {
    stats.pos_inf_count + stats.neg_inf_count
}

fn row(file: &TensorFile, index: usize, result: &Result<Measured, FileError>) -> Row {
    let entry = &file.entries()[index];
    let mut cells = vec![Cell::Text(entry.name.clone())];
    match &entry.layout {
        Ok(layout) => {
            cells.extend([Cell::Text(layout.dtype.to_string()), Cell::Sizes(layout.shape.clone())]);
        }
        Err(_) => cells.extend([Cell::Empty, Cell::Empty]),
    }
    let tone = match result {
        Ok(Measured { stats, crc32 }) => {
            cells.extend([stats.max, stats.min, stats.mean, stats.norm].map(number_cell));
            let counts = [stats.nan_count, stats.pos_inf_count, stats.neg_inf_count, stats.zero_count];
            cells.extend(counts.map(count_cell));
            cells.extend([Cell::Text(format!("{crc32:08x}")), Cell::Empty]);
            if stats.nan_count > 0 || infinities(stats) > 0 { Tone::Warning } else { Tone::Plain }
        }
        Err(error) => {
            cells.resize(COLUMNS.len() - 1, Cell::Empty);
            cells.push(Cell::Text(reason(error)));
            Tone::Bad
        }
    };
    Row { cells, tone }
}

/// The error without the file and tensor, which the table shows already.
pub(crate) fn reason(error: &FileError) -> String {
    match error {
        FileError::Open { source, .. } => source.to_string(),
        FileError::Format { source, .. } | FileError::Tensor { source, .. } => source.to_string(),
    }
}

fn verdict(shown: usize, failures: usize, non_finite: usize) -> String {
    let mut parts = vec![match (shown, failures) {
        (0, _) => "no tensors in this file".to_owned(),
        (_, 0) => format!("{} read", tensors(shown)),
        _ => format!("{} could not be read, {} of {shown} could", tensors(failures), shown - failures),
    }];
    if shown > failures {
        parts.push(match non_finite {
            0 => "all values finite".to_owned(),
            1 => "1 with NaN or Inf".to_owned(),
            many => format!("{many} with NaN or Inf"),
        });
    }
    parts.join("; ")
}
