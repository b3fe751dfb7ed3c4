//! The files of one pair of dumps: the main table in all formats asked for, with what goes beyond it on further sheets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use msprobe_report::{
    CellSink, CsvOptions, Fill, HtmlReport, HtmlTable, Sheet, SheetRows, Tone, write_html, write_sheet_csv,
    write_sheet_json, write_workbook,
};

use super::Options;
use crate::console::Console;
use crate::error::CompareError;
use crate::matching::RowPair;
use crate::output::publish;
use crate::side::{Side, Stacks};
use crate::table::{float_cell, scalar_cell};
use crate::verdict::{Judgement, RowDetail, RowOrigin, Status};

/// What there is to report.
pub(super) struct Report<'a> {
    pub(super) target: &'a Side,
    pub(super) golden: &'a Side,
    /// The main table for csv, json and html.
    pub(super) rows: &'a dyn SheetRows,
    /// The main table for workbooks.
    pub(super) workbook_rows: &'a dyn SheetRows,
    /// Whether the main table colours its rows.
    pub(super) has_colours: bool,
    pub(super) stacks: Option<&'a Stacks>,
    pub(super) headers: Vec<String>,
    pub(super) pairs: &'a [RowPair],
    pub(super) judgement: &'a Judgement,
}

const DETAIL_HEADERS: [&str; 8] = [
    "Match Method",
    "Aligned Bench Name",
    "Unmatched Reason",
    "Difference",
    "Error",
    "Inherited Error",
    "Introduced Error",
    "Error Origin",
];

/// Columns of a page that are switched off at first: they repeat another one in most rows.
const HIDDEN_ON_PAGE: [&str; 8] = [
    "Bench Name",
    "Bench Dtype",
    "Bench Tensor Shape",
    "NPU Requires_grad",
    "Bench Requires_grad",
    "Requires_grad Consistent",
    "NPU_Stack_Info",
    "Data_name",
];

/// Writes every format that was asked for. `stem` is the path without extension.
pub(super) fn write_reports(
    report: &Report<'_>,
    stem: &Path,
    options: &Options,
    console: &dyn Console,
) -> Result<Vec<PathBuf>, CompareError> {
    let formats = options.formats;
    let mut files = Vec::new();
    let mut write = |extension: &str, write: &dyn Fn(&Path) -> io::Result<()>| {
        let path = PathBuf::from(format!("{}.{extension}", stem.display()));
        publish(&path, console, write)?;
        files.push(path);
        Ok::<(), CompareError>(())
    };
    let main = |rows| Sheet { name: "Sheet".to_owned(), headers: report.headers.clone(), rows };
    if formats.xlsx {
        write("xlsx", &|path| report.workbook(path, main(report.workbook_rows)))?;
    }
    if formats.csv {
        write("csv", &|path| {
            let mut out = BufWriter::new(File::create(path)?);
            write_sheet_csv(
                &main(report.rows),
                CsvOptions { escape_formulas: true, ..CsvOptions::default() },
                &mut out,
            )?;
            out.flush()
        })?;
    }
    if formats.json {
        // The first difference across ranks has files of the plain name.
        let extension = if options.first_difference { "report.json" } else { "json" };
        write(extension, &|path| report.json(path))?;
    }
    if formats.html {
        write("html", &|path| report.html(path))?;
    }
    Ok(files)
}

impl Report<'_> {
    fn workbook(&self, path: &Path, main: Sheet<'_>) -> io::Result<()> {
        let (verdict, details, only) =
            (VerdictRows(self.verdict_lines()), Details::notable(self), self.golden_only());
        let sheets = [
            main,
            Sheet { name: "Verdict".into(), headers: texts(&["Item", "Value"]), rows: &verdict },
            Sheet { name: "Row Origins".into(), headers: Details::headers(), rows: &details },
            Sheet { name: "Bench Only".into(), headers: GoldenOnlyRows::headers(), rows: &only },
        ];
        write_workbook(path, &sheets)
    }

    fn json(&self, path: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        let verdict = serde_json::Value::Object(self.judgement.verdict.to_json());
        write!(out, "{{\"verdict\": {verdict},\n\"rows\": ")?;
        let rows = Extended { report: self, for_page: false };
        write_sheet_json(&Sheet { name: String::new(), headers: rows.headers(), rows: &rows }, &mut out)?;
        write!(out, ",\n\"bench_only\": ")?;
        let only = self.golden_only();
        let sheet = Sheet { name: String::new(), headers: GoldenOnlyRows::headers(), rows: &only };
        write_sheet_json(&sheet, &mut out)?;
        writeln!(out, "}}")?;
        out.flush()
    }

    fn html(&self, path: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        let rows = Extended { report: self, for_page: true };
        let only = self.golden_only();
        let headers = rows.headers();
        let hidden = |header: &String| HIDDEN_ON_PAGE.contains(&header.as_str());
        let evidence = self.evidence_row();
        let report = HtmlReport {
            title: "msprobe: comparison of two dumps".to_owned(),
            status: match self.judgement.verdict.status {
                Status::Identical | Status::WithinTolerance => Tone::Good,
                Status::Failed => Tone::Warning,
                Status::Diverged | Status::DiffersAtInput => Tone::Bad,
            },
            verdict: self.judgement.verdict.paragraph(""),
            facts: self.verdict_lines().into_iter().skip(1).collect(),
            tables: vec![
                HtmlTable {
                    name: "Comparison".into(),
                    hidden_columns: headers
                        .iter()
                        .enumerate()
                        .filter(|(_, header)| hidden(header))
                        .map(|(index, _)| index)
                        .collect(),
                    detail_columns: vec![headers.len() - 1],
                    headers,
                    rows: &rows,
                    first_row: evidence,
                },
                HtmlTable {
                    name: "Bench only".into(),
                    headers: GoldenOnlyRows::headers(),
                    rows: &only,
                    detail_columns: Vec::new(),
                    hidden_columns: Vec::new(),
                    first_row: None,
                },
            ],
        };
        write_html(&report, &mut out)?;
        out.flush()
    }

    /// The row of the table that shows the culprit.
    fn evidence_row(&self) -> Option<usize> {
        let culprit = self.judgement.verdict.culprit.as_ref()?;
        let name = culprit.evidence.iter().find(|(key, _)| *key == "NPU Name").map(|(_, value)| value);
        let crate::verdict::Evidence::Text(name) = name? else { return None };
        self.pairs.iter().position(|pair| *self.target.rows[pair.target].name == **name)
    }

    fn verdict_lines(&self) -> Vec<(String, String)> {
        let verdict = &self.judgement.verdict;
        let mut lines = vec![
            ("Verdict".to_owned(), verdict.paragraph("")),
            ("Status".to_owned(), verdict.status.word().to_owned()),
        ];
        if let Some(culprit) = &verdict.culprit {
            lines.push(("Culprit".to_owned(), culprit.name.clone()));
            lines.push(("Direction".to_owned(), culprit.direction.to_owned()));
            lines.push(("Match Method".to_owned(), culprit.method.word().to_owned()));
            if let Some(golden) = &culprit.golden_name {
                lines.push(("Bench Partner".to_owned(), golden.clone()));
            }
            if let Some(stack) = &culprit.stack {
                lines.push(("Call Stack".to_owned(), frames_as_lines(stack)));
            }
        }
        let tolerances: Vec<String> =
            verdict.tolerances.named().map(|(name, value)| format!("{name} {value:e}")).collect();
        lines.push(("Tolerances".to_owned(), tolerances.join(", ")));
        lines.push(("NPU Dump".to_owned(), self.target.path.display().to_string()));
        lines.push(("Bench Dump".to_owned(), self.golden.path.display().to_string()));
        lines
    }

    fn golden_only(&self) -> GoldenOnlyRows<'_> {
        let rows = self.judgement.golden_only.iter().flat_map(|only| only.rows.clone()).collect();
        GoldenOnlyRows { golden: self.golden, rows }
    }

    /// The cells about a row. Errors are those against the partner of the verdict; where it is not that of the table,
    /// it is named.
    fn detail_cells(&self, pair: &RowPair, sink: &mut dyn CellSink) {
        let detail = self.judgement.rows[pair.target].as_ref();
        let aligned = detail.filter(|detail| pair.golden != Ok(detail.golden));
        match (aligned, pair.golden) {
            (Some(detail), _) => sink.text(detail.method.word()),
            (None, Ok(_)) => sink.text(pair.method.word()),
            (None, Err(_)) => sink.empty(),
        }
        match aligned {
            Some(detail) => sink.text(&self.golden.rows[detail.golden].name),
            None => sink.empty(),
        }
        match pair.golden {
            Ok(_) => sink.empty(),
            Err(reason) => sink.text(reason.words()),
        }
        match detail {
            Some(detail) => {
                sink.text(if detail.error == 0.0 { "none" } else { detail.kind_word() });
                for value in [detail.error, detail.inherited, detail.introduced()] {
                    float_cell(value, sink);
                }
                sink.text(detail.origin.word());
            }
            None => (0..5).for_each(|_| sink.empty()),
        }
    }
}

/// Frames, one per line.
fn frames_as_lines(frames: &[Box<str>]) -> String {
    let line = |frame: &str| frame.split_whitespace().collect::<Vec<_>>().join(" ");
    frames.iter().map(|frame| line(frame)).collect::<Vec<_>>().join("\n")
}

/// The main table with the cells about each row; for a page also with the call stack of each.
struct Extended<'a> {
    report: &'a Report<'a>,
    for_page: bool,
}

impl Extended<'_> {
    fn headers(&self) -> Vec<String> {
        let mut headers = self.report.headers.clone();
        headers.extend(texts(&DETAIL_HEADERS));
        headers.extend(self.for_page.then(|| "Call Stack".to_owned()));
        headers
    }
}

impl SheetRows for Extended<'_> {
    fn len(&self) -> usize {
        self.report.rows.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        self.report.rows.cells(row, sink);
        let pair = &self.report.pairs[row];
        self.report.detail_cells(pair, sink);
        if self.for_page {
            let side = self.report.target;
            let record = &side.records[side.rows[pair.target].record as usize];
            match self.report.stacks.and_then(|stacks| stacks.of(&record.name)) {
                Some(stack) => sink.text(&frames_as_lines(&stack.frames)),
                None => sink.empty(),
            }
        }
    }

    /// Tables without colours of their own are coloured by where errors come from.
    fn fill(&self, row: usize) -> Fill {
        let own = self.report.rows.fill(row);
        if !self.for_page || self.report.has_colours {
            return own;
        }
        match self.report.judgement.rows[self.report.pairs[row].target].map(|detail| detail.origin) {
            Some(RowOrigin::Introduced) => Fill::Red,
            Some(RowOrigin::Inherited) => Fill::Yellow,
            _ => own,
        }
    }
}

/// Rows there is something to say about: unmatched, matched otherwise than by name, or beyond tolerance.
struct Details<'a> {
    report: &'a Report<'a>,
    rows: Vec<usize>,
}

impl<'a> Details<'a> {
    fn notable(report: &'a Report<'a>) -> Details<'a> {
        let notable =
            |detail: &RowDetail| matches!(detail.origin, RowOrigin::Introduced | RowOrigin::Inherited);
        let rows = report
            .pairs
            .iter()
            .enumerate()
            .filter(|(_, pair)| {
                pair.golden.is_err() || report.judgement.rows[pair.target].as_ref().is_some_and(notable)
            })
            .map(|(row, _)| row)
            .collect();
        Details { report, rows }
    }

    fn headers() -> Vec<String> {
        let mut headers = texts(&["Row", "NPU Name", "Bench Name"]);
        headers.extend(texts(&DETAIL_HEADERS));
        headers
    }
}

impl SheetRows for Details<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let index = self.rows[row];
        let pair = &self.report.pairs[index];
        // The number a spreadsheet shows beside the row.
        sink.integer(index as i128 + 2);
        sink.text(&self.report.target.rows[pair.target].name);
        match pair.golden {
            Ok(golden) => sink.text(&self.report.golden.rows[golden].name),
            Err(_) => sink.text("N/A"),
        }
        self.report.detail_cells(pair, sink);
    }

    fn fill(&self, _: usize) -> Fill {
        Fill::Plain
    }
}

struct VerdictRows(Vec<(String, String)>);

impl SheetRows for VerdictRows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        sink.text(&self.0[row].0);
        sink.text(&self.0[row].1);
    }

    fn fill(&self, _: usize) -> Fill {
        Fill::Plain
    }
}

/// Values of records only the golden run has.
struct GoldenOnlyRows<'a> {
    golden: &'a Side,
    rows: Vec<usize>,
}

impl GoldenOnlyRows<'_> {
    fn headers() -> Vec<String> {
        texts(&[
            "Bench API",
            "Bench Name",
            "Bench Dtype",
            "Bench Tensor Shape",
            "Bench max",
            "Bench min",
            "Bench mean",
            "Bench l2norm",
            "BENCH MD5",
        ])
    }
}

impl SheetRows for GoldenOnlyRows<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let leaf = &self.golden.rows[self.rows[row]];
        sink.text(&self.golden.records[leaf.record as usize].name);
        sink.text(&leaf.name);
        sink.text(&leaf.dtype);
        sink.text(&leaf.shape);
        for statistic in &leaf.statistics {
            scalar_cell(statistic, "None", sink);
        }
        sink.text(leaf.md5.as_deref().unwrap_or("N/A"));
    }

    fn fill(&self, _: usize) -> Fill {
        Fill::Plain
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
