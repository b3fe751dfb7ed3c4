//! A report to look at in a browser: one file with everything in it, verdict first, then tables to sort and filter.
//!
//! Rows are embedded as blocks of JSON, each with the distinct values of a column and an index per row. Blocks are
//! independent of each other, so that they can be made on all cores and never stand in memory together. Curves or a
//! timeline, where there are any, are embedded in the same way.

mod blocks;
mod curves;
mod timeline;

use std::io::{self, Write};

use serde_json::json;

use self::blocks::{Block, ROWS_PER_BLOCK};
pub use self::curves::{CurveSeries, Curves, Limit};
pub use self::timeline::{Lane, Link, Mark, Span, Timeline};
use crate::ordered::in_order;
use crate::sheet::SheetRows;

const STYLE: &str = include_str!("report.css");
const SCRIPTS: [&str; 3] = [include_str!("words.js"), include_str!("model.js"), include_str!("grid.js")];
/// The last one: it begins.
const START: &str = include_str!("report.js");

/// How the verdict is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong.
    Bad,
}

/// What the file shows.
pub struct HtmlReport<'a> {
    /// Heading, and title of the window.
    pub title: String,
    /// Colour of the verdict.
    pub status: Tone,
    /// Paragraphs, one per line.
    pub verdict: String,
    /// Labels and values below the verdict.
    pub facts: Vec<(String, String)>,
    /// One tab each.
    pub tables: Vec<HtmlTable<'a>>,
}

/// A table of the report.
pub struct HtmlTable<'a> {
    /// Shown on its tab.
    pub name: String,
    /// One per column.
    pub headers: Vec<String>,
    /// The rows.
    pub rows: &'a dyn SheetRows,
    /// Columns of long text such as call stacks: not in the grid, but beside it when a row is chosen.
    pub detail_columns: Vec<usize>,
    /// Columns that are switched off at first.
    pub hidden_columns: Vec<usize>,
    /// The row that is shown and marked at first: the evidence.
    pub first_row: Option<usize>,
}

/// What stands before the tables.
enum Section<'a> {
    Nothing,
    Curves(&'a Curves<'a>),
    Timeline(&'a Timeline),
}

impl Section<'_> {
    /// More for the head of the page.
    fn style(&self) -> (&'static str, &'static str) {
        match self {
            Section::Nothing => ("", ""),
            Section::Curves(_) => (curves::STYLE, ""),
            Section::Timeline(_) => (timeline::STYLE, timeline::WITHOUT_SCRIPTS),
        }
    }

    fn scripts(&self) -> &'static [&'static str] {
        match self {
            Section::Nothing => &[],
            Section::Curves(_) => &curves::SCRIPTS,
            Section::Timeline(_) => &timeline::SCRIPTS,
        }
    }
}

/// Writes the report.
pub fn write_html(report: &HtmlReport<'_>, out: impl Write) -> io::Result<()> {
    write(report, &Section::Nothing, out)
}

/// Writes the report with a section of curves before its tables.
pub fn write_html_with_curves(
    report: &HtmlReport<'_>,
    curves: &Curves<'_>,
    out: impl Write,
) -> io::Result<()> {
    write(report, &Section::Curves(curves), out)
}

/// Writes the report with a timeline before its tables.
pub fn write_html_with_timeline(
    report: &HtmlReport<'_>,
    timeline: &Timeline,
    out: impl Write,
) -> io::Result<()> {
    write(report, &Section::Timeline(timeline), out)
}

fn write(report: &HtmlReport<'_>, section: &Section<'_>, mut out: impl Write) -> io::Result<()> {
    out.write_all(head(report, section).as_bytes())?;
    match section {
        Section::Nothing => {}
        Section::Curves(curves) => curves.write(&mut out)?,
        Section::Timeline(timeline) => timeline.write(&mut out)?,
    }
    for (index, table) in report.tables.iter().enumerate() {
        in_order(
            0..table.rows.len(),
            ROWS_PER_BLOCK,
            |rows| {
                let mut piece =
                    format!("<script type=\"application/json\" class=\"rows\" data-table=\"{index}\">")
                        .into_bytes();
                Block::of(table.rows, table.headers.len(), rows).push_json(&mut piece);
                piece.extend_from_slice(b"</script>\n");
                piece
            },
            |piece| out.write_all(&piece),
        )?;
    }
    out.write_all(b"<script>\n\"use strict\";\n(() => {\n")?;
    for script in SCRIPTS.iter().chain(section.scripts()).chain([&START]) {
        out.write_all(script.as_bytes())?;
    }
    out.write_all(b"})();\n</script>\n</body>\n</html>\n")?;
    out.flush()
}

impl Tone {
    /// Its name in the page.
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Warning => "warning",
            Tone::Bad => "bad",
        }
    }
}

/// Everything before the rows. The verdict is plain HTML, there for those who print or read without scripts.
fn head(report: &HtmlReport<'_>, section: &Section<'_>) -> String {
    let (more_style, more_head) = section.style();
    let text = if let Section::Timeline(timeline) = section { timeline.text() } else { String::new() };
    let tone = report.status.class();
    let title = escaped(&report.title);
    let verdict: String = report
        .verdict
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| format!("<p>{}</p>\n", escaped(line)))
        .collect();
    let facts: String = report
        .facts
        .iter()
        .map(|(label, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(label), escaped(value)))
        .collect();
    let facts = if facts.is_empty() { facts } else { format!("<dl class=\"facts\">\n{facts}</dl>\n") };
    let tables: Vec<_> = report.tables.iter().map(described).collect();
    let mut data = Vec::new();
    blocks::push_for_script(&mut data, json!(tables).to_string().as_bytes());
    let data = String::from_utf8_lossy(&data);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}{more_style}</style>\n{more_head}</head>\n<body>\n\
         <header class=\"verdict {tone}\">\n<div class=\"heading\"><span class=\"mark\" aria-hidden=\"true\"></span>\
         <h1>{title}</h1></div>\n<div class=\"paragraphs\">\n{verdict}</div>\n{facts}</header>\n\
         <main id=\"tables\"></main>\n{text}\
         <noscript><p class=\"noscript\">Tables and curves need JavaScript.</p></noscript>\n\
         <script type=\"application/json\" id=\"described\">{data}</script>\n"
    )
}

fn described(table: &HtmlTable<'_>) -> serde_json::Value {
    json!({
        "name": table.name,
        "headers": table.headers,
        "count": table.rows.len(),
        "details": table.detail_columns,
        "hidden": table.hidden_columns,
        "first": table.first_row.filter(|&row| row < table.rows.len()),
    })
}

/// Text for HTML, in content and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Not allowed in HTML.
            '\0' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
