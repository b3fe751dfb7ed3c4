//! `similarities.csv`: a row per parameter, one for all together, a column per step. Of sketches also `cosines.csv`, the
//! same with cosines, and `step_cosines.csv` with those between consecutive steps of each run.

use std::fs::File;
use std::io::{self, BufWriter};

use msprobe_report::{CellSink, CsvOptions, Sheet, SheetRows, write_sheet_csv};

use super::agreement::Agreement;
use super::measure::Similarities;
use super::sketches::StepCosines;

/// The name of the last row.
pub(super) const SUMMARY: &str = "summary";

/// How the runs are called in the first column of `step_cosines.csv`.
const RUNS: [&str; 2] = ["first", "second"];

pub(super) fn write_similarities(similarities: &Similarities, file: &mut File) -> io::Result<()> {
    let cell =
        |agreement: Option<Agreement>, sink: &mut dyn CellSink| match agreement.map(Agreement::similarity) {
            Some(Some(similarity)) => sink.number(similarity),
            // As it has always been written where there is no element.
            Some(None) => sink.integer(0),
            None => sink.empty(),
        };
    write(similarities, &["step"], &Rows { similarities, cell }, file)
}

/// Cosines between the two runs.
pub(super) fn write_cosines(similarities: &Similarities, file: &mut File) -> io::Result<()> {
    let cell = |agreement: Option<Agreement>, sink: &mut dyn CellSink| {
        write_number(sink, agreement.and_then(Agreement::cosine).map(|(cosine, _)| cosine));
    };
    write(similarities, &["step"], &Rows { similarities, cell }, file)
}

/// Cosines between each step and the one before it, of both runs.
pub(super) fn write_step_cosines(
    similarities: &Similarities,
    runs: &[StepCosines; 2],
    file: &mut File,
) -> io::Result<()> {
    write(similarities, &["run", "step"], &StepRows { similarities, runs }, file)
}

fn write(
    similarities: &Similarities,
    first_headers: &[&str],
    rows: &dyn SheetRows,
    file: &mut File,
) -> io::Result<()> {
    let steps = similarities.steps.iter().map(u64::to_string);
    let headers = first_headers.iter().map(|&header| header.to_owned()).chain(steps).collect();
    let sheet = Sheet { name: String::new(), headers, rows };
    let options = CsvOptions { crlf: true, bom: true, escape_formulas: true };
    write_sheet_csv(&sheet, options, BufWriter::new(file))
}

fn write_number(sink: &mut dyn CellSink, number: Option<f64>) {
    match number {
        Some(number) => sink.number(number),
        None => sink.empty(),
    }
}

/// Rows of one number per step.
struct Rows<'a, C> {
    similarities: &'a Similarities,
    cell: C,
}

impl<C: Fn(Option<Agreement>, &mut dyn CellSink) + Sync> SheetRows for Rows<'_, C> {
    fn len(&self) -> usize {
        self.similarities.parameters.len() + 1
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let Similarities { parameters, agreements, summary, .. } = self.similarities;
        let (name, agreements) = match (parameters.get(row), agreements.get(row)) {
            (Some(name), Some(agreements)) => (name.as_str(), agreements),
            _ => (SUMMARY, summary),
        };
        sink.text(name);
        for &agreement in agreements {
            (self.cell)(agreement, sink);
        }
    }
}

struct StepRows<'a> {
    similarities: &'a Similarities,
    runs: &'a [StepCosines; 2],
}

impl SheetRows for StepRows<'_> {
    fn len(&self) -> usize {
        self.runs.iter().map(|run| run.rows.len()).sum()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let rows_of_run = self.similarities.parameters.len() + 1;
        let (run, row) = (row / rows_of_run, row % rows_of_run);
        sink.text(RUNS.get(run).copied().unwrap_or_default());
        sink.text(self.similarities.parameters.get(row).map_or(SUMMARY, String::as_str));
        for &cosine in self.runs.get(run).and_then(|run| run.rows.get(row)).into_iter().flatten() {
            write_number(sink, cosine);
        }
    }
}
