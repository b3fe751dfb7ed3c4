//! The files of one pair of dumps: the main table in all formats asked for, with what goes beyond it on further sheets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use msprobe_compare::pairing::RowPair;
use msprobe_compare::side::{Side, Stacks};
use msprobe_compare::verdict::{DifferingRecord, GoldenOnly, Judgement, NOISE_FACTOR, RowDetail, RowOrigin};
use msprobe_report::answer::{Answer, Scope};
use msprobe_report::error::CompareError;
use msprobe_report::paths::publish_stamped;
use msprobe_report::{
    Block, CellSink, CsvOptions, Page, PageTable, Sheet, SheetRows, Tone, write_page, write_sheet_csv,
    write_sheet_json, write_workbook,
};

use super::json::verdict_json;
use super::{Form, Options};
use crate::table::Infinities;

/// What there is to report.
pub(super) struct Report<'a> {
    pub(super) target: &'a Side,
    pub(super) golden: &'a Side,
    /// The main table for csv, json and html.
    pub(super) rows: &'a dyn SheetRows,
    /// The main table for workbooks.
    pub(super) workbook_rows: &'a dyn SheetRows,
    /// Which generation of tables it is of.
    pub(super) form: Form,
    pub(super) stacks: Option<&'a Stacks>,
    pub(super) headers: Vec<String>,
    pub(super) pairs: &'a [RowPair],
    pub(super) judgement: &'a Judgement,
    /// Step and rank of both dumps.
    pub(super) scope: Scope,
}

const DETAIL_HEADERS: [&str; 10] = [
    "Match Method",
    "Aligned Bench Name",
    "Unmatched Reason",
    "Difference",
    "Error",
    "Tolerated Error",
    "Limit Origin",
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
) -> Result<Vec<PathBuf>, CompareError> {
    let formats = options.formats;
    let mut files = Vec::new();
    let mut stem = stem.display().to_string();
    let mut write = |extension: &str, write: &dyn Fn(&mut File) -> io::Result<()>| {
        let path = publish_stamped(Path::new(&format!("{stem}.{extension}")), write)?;
        // The time that was free for the first file is that of all.
        stem = path.display().to_string();
        stem.truncate(stem.len().saturating_sub(extension.len() + 1));
        files.push(path);
        Ok::<(), CompareError>(())
    };
    let main = |rows| Sheet { name: "Sheet".to_owned(), headers: report.headers.clone(), rows };
    if formats.xlsx {
        write("xlsx", &|file| report.workbook(file, main(report.workbook_rows)))?;
    }
    if formats.csv {
        let options = CsvOptions { escape_formulas: true, ..CsvOptions::default() };
        write("csv", &|file| write_sheet_csv(&main(report.rows), options, BufWriter::new(file)))?;
    }
    if formats.json {
        // The first difference across ranks has files of the plain name.
        let extension = if options.first_difference { "report.json" } else { "json" };
        write(extension, &|file| report.json(file))?;
    }
    if formats.html {
        write("html", &|file| report.html(file))?;
    }
    Ok(files)
}

impl Report<'_> {
    /// Scripts of old read the first sheet of the older form, which therefore is the table of the reference. Of the newer
    /// form they read the csv: its workbook is for people, with the answer first.
    fn workbook(&self, file: &mut File, main: Sheet<'_>) -> io::Result<()> {
        let (verdict, details, only) =
            (VerdictRows(self.verdict_lines()), Details::notable(self), self.golden_only());
        let answered = Answered { report: self, view: View::Workbook };
        let verdict = Sheet { name: "Verdict".into(), headers: texts(&["Item", "Value"]), rows: &verdict };
        let details = Sheet { name: "Row Origins".into(), headers: Details::headers(), rows: &details };
        let only = Sheet { name: "Bench Only".into(), headers: GoldenOnlyRows::headers(), rows: &only };
        match self.form {
            Form::Old => write_workbook(file, &[main, verdict, details, only]),
            Form::Newest => {
                let main = Sheet { name: main.name, headers: answered.headers(), rows: &answered };
                write_workbook(file, &[verdict, main, details, only])
            }
        }
    }

    fn json(&self, file: &mut File) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        let verdict = verdict_json(&self.judgement.verdict);
        let answer = self.answer().to_json();
        write!(out, "{{\"verdict\": {verdict},\n\"answer\": {answer},\n\"rows\": ")?;
        let rows = Answered { report: self, view: View::Json };
        write_sheet_json(&Sheet { name: String::new(), headers: rows.headers(), rows: &rows }, &mut out)?;
        write!(out, ",\n\"bench_only\": ")?;
        let only = self.golden_only();
        let sheet = Sheet { name: String::new(), headers: GoldenOnlyRows::headers(), rows: &only };
        write_sheet_json(&sheet, &mut out)?;
        writeln!(out, "}}")?;
        out.flush()
    }

    fn html(&self, file: &mut File) -> io::Result<()> {
        let rows = Answered { report: self, view: View::Page };
        let only = self.golden_only();
        let headers = rows.headers();
        let hidden = |header: &String| HIDDEN_ON_PAGE.contains(&header.as_str());
        let title = "msprobe: comparison of two dumps".to_owned();
        let answer = self.answer().block(&title, self.more_facts());
        let comparison = PageTable {
            hidden_columns: (0..headers.len()).filter(|&index| hidden(&headers[index])).collect(),
            detail_columns: vec![headers.len() - 1],
            first_row: self.evidence_row(),
            ..PageTable::new("Comparison", headers, &rows)
        };
        let only = PageTable::new("Bench only", GoldenOnlyRows::headers(), &only);
        let blocks = vec![Block::Answer(answer), Block::Table(comparison), Block::Table(only)];
        write_page(&Page { title, blocks }, BufWriter::new(file))
    }

    /// The row of the table that shows the culprit.
    fn evidence_row(&self) -> Option<usize> {
        let culprit = self.judgement.verdict.culprit.as_ref()?;
        let shown = culprit.evidence.target.as_ref()?;
        self.pairs.iter().position(|pair| self.target.rows[pair.target].is_same_value_as(shown))
    }

    /// The answer for this pair of dumps.
    fn answer(&self) -> Answer {
        let scope = self.scope;
        self.judgement.verdict.answer(scope, &scope.to_string())
    }

    /// The answer, item by item.
    fn verdict_lines(&self) -> Vec<(String, String)> {
        let answer = self.answer();
        let mut lines = vec![("Verdict".to_owned(), answer.headline.clone())];
        lines.extend(answer.facts());
        lines.extend(self.more_facts());
        lines
    }

    /// What the answer does not say.
    fn more_facts(&self) -> Vec<(String, String)> {
        let verdict = &self.judgement.verdict;
        let mut facts = Vec::new();
        let mut add = |label: &str, text: String| facts.push((label.to_owned(), text));
        let asides = verdict.aside_lines();
        if !asides.is_empty() {
            add("Different Beside The Numbers", asides.join("\n"));
        }
        if !verdict.amplifying.is_empty() {
            let records: Vec<String> = verdict.amplifying.iter().map(DifferingRecord::in_and_out).collect();
            add("Records That Amplify The Error Most (error in -> out, times tolerated)", records.join("\n"));
        }
        if let Some(culprit) = &verdict.culprit {
            add("Match Method", culprit.method.as_str().to_owned());
            if let Some(golden) = &culprit.golden_name {
                add("Bench Partner", golden.clone());
            }
            if let Some(stack) = &culprit.stack {
                add("Call Stack", frames_as_lines(stack));
            }
        }
        let tolerances: Vec<String> =
            verdict.tolerances.named().map(|(name, value)| format!("{name} {value:e}")).collect();
        add("Tolerances", tolerances.join(", "));
        let needed = verdict.needed_tolerances.iter();
        let needed: Vec<String> =
            needed.map(|(precision, share)| format!("{} {share:.1e}", precision.as_str())).collect();
        if !needed.is_empty() {
            add("Tolerances That Would Have Passed", needed.join(", "));
        }
        if verdict.noise_runs > 0 {
            let runs = verdict.noise_runs;
            add("Noise", format!("measured in {runs} further runs of the bench side, times {NOISE_FACTOR}"));
        }
        add("NPU Dump", self.target.path.display().to_string());
        add("Bench Dump", self.golden.path.display().to_string());
        facts
    }

    fn golden_only(&self) -> GoldenOnlyRows<'_> {
        GoldenOnlyRows { target: self.target, golden: self.golden, rows: &self.judgement.golden_only }
    }

    /// The cells about a row. Errors are those against the partner of the verdict; where it is not that of the table,
    /// it is named.
    fn detail_cells(&self, pair: &RowPair, sink: &mut dyn CellSink) {
        let detail = self.judgement.rows[pair.target].as_ref();
        let aligned = detail.filter(|detail| pair.golden != Ok(detail.golden));
        match (aligned, pair.golden) {
            (Some(detail), _) => sink.text(detail.method.as_str()),
            (None, Ok(_)) => sink.text(pair.method.as_str()),
            (None, Err(_)) => sink.empty(),
        }
        match aligned {
            Some(detail) => sink.text(&self.golden.rows[detail.golden].name),
            None => sink.empty(),
        }
        match pair.golden {
            Ok(_) => sink.empty(),
            Err(reason) => sink.text(reason.as_str()),
        }
        match detail {
            Some(detail) => {
                sink.text(if detail.error == 0.0 { "none" } else { detail.kind.as_str() });
                Infinities::Workbook.number(detail.error, sink);
                Infinities::Workbook.number(detail.limit.tolerated, sink);
                sink.text(detail.limit.origin.as_str());
                for value in [detail.inherited, detail.introduced()] {
                    Infinities::Workbook.number(value, sink);
                }
                sink.text(detail.origin.as_str());
            }
            None => (0..7).for_each(|_| sink.empty()),
        }
    }
}

/// Frames, one per line.
fn frames_as_lines(frames: &[Box<str>]) -> String {
    let line = |frame: &str| frame.split_whitespace().collect::<Vec<_>>().join(" ");
    frames.iter().map(|frame| line(frame)).collect::<Vec<_>>().join("\n")
}

/// Whom the main table is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Scripts: columns keep their names.
    Json,
    /// A browser: with the cells about each row, and call stacks.
    Page,
    /// A spreadsheet of the newer form: the cells about each row have a sheet of their own.
    Workbook,
}

/// The main table with what the verdict says of each row in front, and rows in the colour of that.
struct Answered<'a> {
    report: &'a Report<'a>,
    view: View,
}

impl Answered<'_> {
    fn headers(&self) -> Vec<String> {
        let mut headers = vec!["Answer".to_owned()];
        // The rules of the reference are kept, under a name that tells them from the answer.
        headers.extend(self.report.headers.iter().map(|header| match header.as_str() {
            "Result" | "Accuracy Reached or Not" if self.view != View::Json => {
                format!("{header} (rule of the reference)")
            }
            _ => header.clone(),
        }));
        if self.view != View::Workbook {
            headers.extend(texts(&DETAIL_HEADERS));
        }
        headers.extend((self.view == View::Page).then(|| "Call Stack".to_owned()));
        headers
    }

    fn detail(&self, row: usize) -> Option<&RowDetail> {
        self.report.judgement.rows[self.report.pairs[row].target].as_ref()
    }
}

impl SheetRows for Answered<'_> {
    fn len(&self) -> usize {
        self.report.rows.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        sink.text(self.detail(row).map_or("only on the NPU side", |detail| detail.origin.as_str()));
        let pair = &self.report.pairs[row];
        match self.view {
            View::Workbook => self.report.workbook_rows.cells(row, sink),
            View::Json | View::Page => {
                self.report.rows.cells(row, sink);
                self.report.detail_cells(pair, sink);
            }
        }
        if self.view == View::Page {
            let side = self.report.target;
            let record = &side.records[side.rows[pair.target].record as usize];
            match self.report.stacks.and_then(|stacks| stacks.of(&record.name)) {
                Some(stack) => sink.text(&frames_as_lines(&stack.frames)),
                None => sink.empty(),
            }
        }
    }

    fn tone(&self, row: usize) -> Tone {
        match self.detail(row).map(|detail| detail.origin) {
            Some(RowOrigin::Introduced) => Tone::Bad,
            Some(RowOrigin::Inherited) => Tone::Warning,
            Some(RowOrigin::NotCompared) | None => Tone::Unknown,
            Some(RowOrigin::Equal | RowOrigin::Tolerated | RowOrigin::Aside | RowOrigin::NotJudged) => {
                Tone::Plain
            }
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
        let notable = |detail: &RowDetail| {
            matches!(detail.origin, RowOrigin::Introduced | RowOrigin::Inherited | RowOrigin::NotCompared)
        };
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
}

/// Values only the golden run has, of calls it alone made or of calls that were paired.
struct GoldenOnlyRows<'a> {
    target: &'a Side,
    golden: &'a Side,
    rows: &'a [GoldenOnly],
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
            "NPU API",
        ])
    }
}

impl SheetRows for GoldenOnlyRows<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        let only = self.rows[row];
        let leaf = &self.golden.rows[only.row];
        sink.text(&self.golden.records[leaf.record as usize].name);
        sink.text(&leaf.name);
        sink.text(&leaf.dtype);
        sink.text(&leaf.shape.to_string());
        for statistic in &leaf.statistics {
            Infinities::Workbook.statistic(statistic, "None", sink);
        }
        sink.text(leaf.md5.as_deref().unwrap_or("N/A"));
        match only.paired_with {
            Some(record) => sink.text(&self.target.records[record].name),
            None => sink.text("N/A"),
        }
    }

    /// Not compared, as on the main table.
    fn tone(&self, _: usize) -> Tone {
        Tone::Unknown
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
