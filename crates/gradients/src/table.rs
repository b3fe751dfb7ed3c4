//! `similarities.csv`: a row per parameter, one for all together, a column per step.

use std::fs::File;
use std::io::{self, BufWriter};

use msprobe_report::{CellSink, CsvOptions, Sheet, SheetRows, write_sheet_csv};

use super::measure::{Count, Similarities};

/// The name of the last row.
pub(super) const SUMMARY: &str = "summary";

pub(super) fn write_similarities(similarities: &Similarities, file: &mut File) -> io::Result<()> {
    let steps = similarities.steps.iter().map(u64::to_string);
    let sheet = Sheet {
        name: String::new(),
        headers: ["step".to_owned()].into_iter().chain(steps).collect(),
        rows: &Rows(similarities),
    };
    let options = CsvOptions { crlf: true, bom: true, escape_formulas: true };
    write_sheet_csv(&sheet, options, BufWriter::new(file))
}

struct Rows<'a>(&'a Similarities);

impl SheetRows for Rows<'_> {
    fn len(&self) -> usize {
        self.0.parameters.len() + 1
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let similarities = self.0;
        let (name, counts) = match (similarities.parameters.get(row), similarities.counts.get(row)) {
            (Some(name), Some(counts)) => (name.as_str(), counts),
            _ => (SUMMARY, &similarities.summary),
        };
        sink.text(name);
        for count in counts {
            match count.map(Count::similarity) {
                Some(Some(similarity)) => sink.number(similarity),
                // As it has always been written where there is no element.
                Some(None) => sink.integer(0),
                None => sink.empty(),
            }
        }
    }
}
