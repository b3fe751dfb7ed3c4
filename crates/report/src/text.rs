//! A table for the terminal: aligned columns, two blanks apart, a coloured row where its tone says so.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::{Cell, Column, Table, Visible};

/// Six digits reach this far.
const EXACT_BELOW: f64 = 1e6;

const RESET: &str = "\x1b[0m";

/// Writes the table. `color` decides whether moods become ANSI colours.
pub fn write_text(table: &Table, color: bool, out: &mut impl Write) -> io::Result<()> {
    let texts: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.cells.iter().map(short).collect()).collect();
    let widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = texts.iter().filter_map(|row| row.get(index)).map(|text| text.width());
            cells.max().unwrap_or(0).max(column.title.width())
        })
        .collect();
    let titles: Vec<String> = table.columns.iter().map(|column| column.title.to_owned()).collect();
    let bold = if color { "\x1b[1m" } else { "" };
    write_line(&table.columns, &widths, &titles, bold, out)?;
    for (row, texts) in table.rows.iter().zip(&texts) {
        let style = if color { row.tone.ansi() } else { "" };
        write_line(&table.columns, &widths, texts, style, out)?;
    }
    Ok(())
}

fn write_line(
    columns: &[Column],
    widths: &[usize],
    texts: &[String],
    style: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut line = String::new();
    for ((column, &width), text) in columns.iter().zip(widths).zip(texts) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        let padding = " ".repeat(width.saturating_sub(text.width()));
        if column.right {
            line.push_str(&padding);
            line.push_str(text);
        } else {
            line.push_str(text);
            line.push_str(&padding);
        }
    }
    let line = line.trim_end();
    if style.is_empty() { writeln!(out, "{line}") } else { writeln!(out, "{style}{line}{RESET}") }
}

/// A cell at reading precision: floats to six significant digits (twelve decimals next to 1), control characters made visible.
fn short(cell: &Cell) -> String {
    match cell {
        Cell::Float(value) => short_number(*value),
        Cell::Text(text) => Visible(text).to_string(),
        other => other.to_string(),
    }
}

/// A number at reading precision: six significant digits, or twelve decimals next to 1.
pub fn short_number(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return Cell::Float(value).to_string();
    }
    let mut rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded == 1.0 {
        // A cosine or share just short of 1 must not look like 1.
        rounded = format!("{value:.12}").parse().unwrap_or(value);
    }
    if rounded != value && rounded.abs() >= EXACT_BELOW {
        // Zeros in the place of lost digits would look like digits.
        return format!("{rounded:e}");
    }
    Cell::Float(rounded).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Row, Tone};

    #[test]
    fn aligns_by_display_width_and_rounds_floats() {
        let table = Table {
            columns: vec![Column::text("name", "name"), Column::number("value", "value")],
            rows: vec![
                Row { cells: vec![Cell::Text("权重".into()), Cell::Float(0.123_456_789)], tone: Tone::Bad },
                Row { cells: vec![Cell::Text("b\n".into()), Cell::Float(1.5e-9)], tone: Tone::Plain },
                Row { cells: vec![Cell::Text(String::new()), Cell::Float(0.999_999_9)], tone: Tone::Plain },
            ],
        };
        let mut out = Vec::new();
        write_text(&table, false, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name      value\n权重   0.123457\nb\\n      1.5e-9\n      0.9999999\n"
        );
        let mut out = Vec::new();
        write_text(&table, true, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("\x1b[31m权重"));
    }
}
