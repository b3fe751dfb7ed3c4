//! The text of a summary, byte for byte as comparison and spreadsheets know it: UTF-8 with BOM, CRLF, quotes where they
//! must be.

use std::fmt::Write as _;

use msprobe_report::push_float_repr;
use msprobe_tensor::GradientFigures;

use crate::config::{Bound, GradLevel};

const BOM: char = '\u{feff}';
const LINE_END: &str = "\r\n";

/// A summary with these rows.
pub(super) fn document<'a>(
    level: GradLevel,
    bounds: &[Bound],
    rows: impl Iterator<Item = &'a String>,
) -> String {
    let mut text = String::from(BOM);
    text.push_str(&header(level, bounds));
    text.push_str(LINE_END);
    for row in rows {
        text.push_str(row);
        text.push_str(LINE_END);
    }
    text
}

fn header(level: GradLevel, bounds: &[Bound]) -> String {
    let mut row = Row::default();
    row.cell("param_name");
    match level {
        GradLevel::L0 => row.cell("MD5"),
        GradLevel::L1 => {}
        GradLevel::L2 => {
            let mut below = "-inf";
            for bound in bounds {
                row.cell(&format!("({below}, {}]", bound.text()));
                below = bound.text();
            }
            // Without bounds there is one interval, which says nothing.
            if !bounds.is_empty() {
                row.cell(&format!("({below}, inf)"));
            }
            row.cell("=0");
        }
    }
    for name in ["max", "min", "norm", "shape"] {
        row.cell(name);
    }
    row.text
}

/// The row of a gradient.
pub(super) fn row(level: GradLevel, name: &str, figures: &GradientFigures, shape: &[usize]) -> String {
    let mut row = Row::default();
    row.cell(name);
    match level {
        GradLevel::L0 => row.cell(&format!("{:08x}", figures.crc32.unwrap_or(0))),
        GradLevel::L1 => {}
        GradLevel::L2 => {
            let mut below = 0;
            for &at_most in &figures.at_most {
                row.fraction(at_most - below, figures.count);
                below = at_most;
            }
            if !figures.at_most.is_empty() {
                row.fraction(figures.count - below, figures.count);
            }
            row.fraction(figures.zeros, figures.count);
        }
    }
    for figure in [figures.max, figures.min, figures.norm] {
        row.float(figure.into());
    }
    row.shape(shape);
    row.text
}

#[derive(Default)]
struct Row {
    text: String,
    has_cells: bool,
}

impl Row {
    fn cell(&mut self, cell: &str) {
        self.begin();
        if cell.contains([',', '"', '\r', '\n']) {
            self.text.push('"');
            self.text.push_str(&cell.replace('"', "\"\""));
            self.text.push('"');
        } else {
            self.text.push_str(cell);
        }
    }

    fn fraction(&mut self, count: u64, all: u64) {
        if all == 0 {
            // There is nothing to divide by; what the reference writes is an integer.
            self.cell("0");
        } else {
            self.float(count as f64 / all as f64);
        }
    }

    fn float(&mut self, value: f64) {
        self.begin();
        let mut digits = Vec::new();
        push_float_repr(&mut digits, value);
        self.text.push_str(&String::from_utf8_lossy(&digits));
    }

    fn shape(&mut self, shape: &[usize]) {
        let mut text = String::from("[");
        for (position, size) in shape.iter().enumerate() {
            let _ = write!(text, "{}{size}", if position > 0 { ", " } else { "" });
        }
        text.push(']');
        self.cell(&text);
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_cells, true) {
            self.text.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Config, Overrides};

    fn bounds(values: &serde_json::Value) -> Vec<Bound> {
        let file = json!({ "task": "grad_probe", "dump_path": "out", "grad_probe": { "bounds": values } });
        let resolved = Config::from_json(&file.to_string(), &Overrides::default()).unwrap();
        resolved.config.grad_probe.unwrap().bounds
    }

    fn figures(at_most: Vec<u64>) -> GradientFigures {
        let (max, min, norm) = (0.114_450_194_f32, f32::NAN, f32::INFINITY);
        GradientFigures { max, min, norm, count: 3, zeros: 1, at_most, crc32: Some(0xab) }
    }

    #[test]
    fn each_level_has_its_columns() {
        let some = bounds(&json!([-0.1, 0, 1e-5]));
        let shape = [3, 8];
        let of = |level, bounds: &[Bound], at_most| {
            let row = row(level, "a", &figures(at_most), &shape);
            document(level, bounds, [row].iter())
        };
        assert_eq!(
            of(GradLevel::L0, &[], vec![]),
            "\u{feff}param_name,MD5,max,min,norm,shape\r\na,000000ab,0.11445019394159317,nan,inf,\"[3, 8]\"\r\n"
        );
        assert_eq!(
            of(GradLevel::L1, &[], vec![]),
            "\u{feff}param_name,max,min,norm,shape\r\na,0.11445019394159317,nan,inf,\"[3, 8]\"\r\n"
        );
        assert_eq!(
            of(GradLevel::L2, &some, vec![1, 1, 2]),
            "\u{feff}param_name,\"(-inf, -0.1]\",\"(-0.1, 0]\",\"(0, 1e-05]\",\"(1e-05, inf)\",=0,max,min,norm,shape\r\n\
             a,0.3333333333333333,0.0,0.3333333333333333,0.3333333333333333,0.3333333333333333,\
             0.11445019394159317,nan,inf,\"[3, 8]\"\r\n"
        );
        assert_eq!(
            of(GradLevel::L2, &[], vec![]),
            "\u{feff}param_name,=0,max,min,norm,shape\r\n\
             a,0.3333333333333333,0.11445019394159317,nan,inf,\"[3, 8]\"\r\n"
        );
    }

    #[test]
    fn names_are_quoted_and_nothing_is_divided_by_nothing() {
        let empty = GradientFigures { count: 0, zeros: 0, norm: 0.0, max: f32::NAN, ..figures(vec![0]) };
        assert_eq!(row(GradLevel::L2, "a,\"b", &empty, &[0]), "\"a,\"\"b\",0,0,0,nan,nan,0.0,[0]");
        let low = GradientFigures { min: f32::NEG_INFINITY, max: -0.0, ..figures(vec![]) };
        assert_eq!(row(GradLevel::L1, "a", &low, &[]), "a,-0.0,-inf,inf,[]");
        // Two shortest texts are as near; Python takes the even one.
        let tie = GradientFigures { max: 620.013_73, min: -13.782_486, ..figures(vec![]) };
        let text = row(GradLevel::L1, "a", &tie, &[]);
        assert_eq!(text, "a,620.0137329101562,-13.782485961914062,inf,[]");
    }
}
