//! An answer for people: the headline first, the culprit with what is known of it, what was left out, what to do next, and
//! where the files are.

use std::io::{self, Write};

use super::Answer;
use crate::{Table, Visible, write_text, write_visible_lines};

/// Names of one kind of thing that was left out.
const NAMES: usize = 3;
/// Files that are listed.
const FILES: usize = 20;

/// A part of the text that only one command has; it stands before what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Above it; may be empty.
    pub title: String,
    /// What it says.
    pub body: Body,
}

/// What a section says.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Lines as they are.
    Lines(Vec<String>),
    /// A table, as wide as it needs to be.
    Table(Table),
}

impl Section {
    /// Lines under a title.
    pub fn lines(title: impl Into<String>, lines: Vec<String>) -> Section {
        Section { title: title.into(), body: Body::Lines(lines) }
    }

    /// A table under a title.
    pub fn table(title: impl Into<String>, table: Table) -> Section {
        Section { title: title.into(), body: Body::Table(table) }
    }

    fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines(lines) => lines.is_empty(),
            Body::Table(table) => table.rows.is_empty(),
        }
    }
}

impl Answer {
    /// Writes all of it; `color` decides whether the headline and rows have theirs.
    pub fn write(&self, sections: &[Section], color: bool, out: &mut impl Write) -> io::Result<()> {
        self.write_but_files(sections, color, out)?;
        write_part("", &self.file_lines(), out)
    }

    fn write_but_files(&self, sections: &[Section], color: bool, out: &mut impl Write) -> io::Result<()> {
        let headline = Visible(&self.headline);
        match self.tone().ansi() {
            ansi if color && !ansi.is_empty() => writeln!(out, "\x1b[1m{ansi}{headline}\x1b[0m")?,
            _ => writeln!(out, "{headline}")?,
        }
        write_part("", &self.culprit_lines(), out)?;
        write_part(self.left_out_title(), &self.left_out_lines(), out)?;
        for section in sections.iter().filter(|section| !section.is_empty()) {
            match &section.body {
                Body::Lines(lines) => write_part(&section.title, lines, out)?,
                Body::Table(table) => {
                    write_title(&section.title, out)?;
                    write_text(table, color, out)?;
                }
            }
        }
        let next: Vec<String> = self.next_step.iter().map(|next| format!("Next  {next}")).collect();
        write_part("", &next, out)
    }

    /// The same as text, without colours and without the list of files.
    pub fn text(&self, sections: &[Section]) -> String {
        let mut text = Vec::new();
        // Nothing fails to be written to memory.
        let _ = self.write_but_files(sections, false, &mut text);
        String::from_utf8_lossy(&text).trim_end().to_owned()
    }

    fn culprit_lines(&self) -> Vec<String> {
        let Some(culprit) = &self.culprit else { return Vec::new() };
        let direction = culprit.direction.map_or_else(String::new, |direction| format!("  ({direction})"));
        let mut lines = vec![format!("Culprit  {}{direction}", culprit.name)];
        lines.extend(culprit.facts.iter().map(|(label, text)| format!("  {label:<10} {text}")));
        lines
    }

    pub(super) fn left_out_title(&self) -> &'static str {
        if self.scope.against.is_some() { "Not compared" } else { "Not measured" }
    }

    /// A line per kind, with the first names.
    pub(super) fn left_out_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in &self.not_compared {
            lines.push(format!("  {}", kind.text));
            let named = kind.first.iter().take(NAMES).map(|(name, reason)| match reason.as_str() {
                "" => format!("    {name}"),
                reason => format!("    {name} ({reason})"),
            });
            let before = lines.len();
            lines.extend(named);
            let shown = lines.len() - before;
            if shown > 0 && kind.count > shown {
                lines.push(format!("    … {} more", kind.count - shown));
            }
        }
        lines
    }

    fn file_lines(&self) -> Vec<String> {
        let Some(output) = self.output.as_ref().filter(|_| !self.files.is_empty()) else { return Vec::new() };
        let mut lines = vec![format!("Results are in {}:", output.display())];
        let name = |file: &std::path::PathBuf| {
            format!("  {}", file.strip_prefix(output).unwrap_or(file).to_string_lossy())
        };
        lines.extend(self.files.iter().take(FILES).map(name));
        if self.files.len() > FILES {
            lines.push(format!("  … {} more", self.files.len() - FILES));
        }
        lines
    }
}

fn write_part(title: &str, lines: &[String], out: &mut impl Write) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    write_title(title, out)?;
    write_visible_lines(lines.iter().map(String::as_str), out)
}

/// An empty line, and what stands above a part.
fn write_title(title: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    if title.is_empty() { Ok(()) } else { writeln!(out, "{}", Visible(title)) }
}
