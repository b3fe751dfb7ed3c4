//! The text of a summary, byte for byte as comparison and spreadsheets know it: UTF-8 with BOM, CRLF, quotes where they
//! must be.

use csv::{Terminator, WriterBuilder};
use msprobe_tensor::GradientFigures;
use msprobe_tensor::digits::push_repr;

use crate::config::{Bound, GradLevel};

const BOM: char = '\u{feff}';

/// Cells of a line.
pub(super) type Row = Vec<String>;

/// A summary with these rows.
pub(super) fn document<'a>(
    level: GradLevel,
    bounds: &[Bound],
    rows: impl Iterator<Item = &'a Row>,
) -> String {
    let text = BOM.to_string().into_bytes();
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(text);
    // Memory takes everything, and all rows have as many cells.
    let _ = writer.write_record(header(level, bounds));
    for row in rows {
        let _ = writer.write_record(row);
    }
    writer.into_inner().map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

fn header(level: GradLevel, bounds: &[Bound]) -> Row {
    let mut row = vec!["param_name".to_owned()];
    match level {
        GradLevel::L0 => row.push("MD5".to_owned()),
        GradLevel::L1 => {}
        GradLevel::L2 => {
            let mut below = "-inf";
            for bound in bounds {
                row.push(format!("({below}, {}]", bound.text()));
                below = bound.text();
            }
            // Without bounds there is one interval, which says nothing.
            if !bounds.is_empty() {
                row.push(format!("({below}, inf)"));
            }
            row.push("=0".to_owned());
        }
    }
    row.extend(["max", "min", "norm", "shape"].map(str::to_owned));
    row
}

/// The row of a gradient.
pub(super) fn row(level: GradLevel, name: &str, figures: &GradientFigures, shape: &[usize]) -> Row {
    let mut row = vec![name.to_owned()];
    match level {
        GradLevel::L0 => row.push(format!("{:08x}", figures.crc32.unwrap_or(0))),
        GradLevel::L1 => {}
        GradLevel::L2 => {
            let mut below = 0;
            for &at_most in &figures.at_most {
                row.push(fraction(at_most - below, figures.count));
                below = at_most;
            }
            if !figures.at_most.is_empty() {
                row.push(fraction(figures.count - below, figures.count));
            }
            row.push(fraction(figures.zeros, figures.count));
        }
    }
    row.extend([figures.max, figures.min, figures.norm].map(|figure| float(figure.into())));
    row.push(format!("{shape:?}"));
    row
}

fn fraction(count: u64, all: u64) -> String {
    // There may be nothing to divide by; what the reference writes then is an integer.
    if all == 0 { "0".to_owned() } else { float(count as f64 / all as f64) }
}

fn float(value: f64) -> String {
    let mut digits = Vec::new();
    push_repr(&mut digits, value);
    String::from_utf8_lossy(&digits).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Config, Overrides};
    use crate::framework::Framework;

    fn bounds(values: &serde_json::Value) -> Vec<Bound> {
        let file = json!({ "task": "grad_probe", "dump_path": "out", "grad_probe": { "bounds": values } });
        let resolved =
            Config::from_json(&file.to_string(), &Overrides::default(), &Framework::known()).unwrap();
        resolved.config.grad_probe.unwrap().bounds
    }

    fn figures(at_most: Vec<u64>) -> GradientFigures {
        let (max, min, norm) = (0.114_450_194_f32, f32::NAN, f32::INFINITY);
        GradientFigures {
            max,
            min,
            norm,
            count: 3,
            zeros: 1,
            at_most,
            not_finite: 0,
            crc32: Some(0xab),
            sketch: None,
        }
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
        let row_of = |level, name: &str, figures: &GradientFigures, shape: &[usize]| {
            let text = document(level, &[], [row(level, name, figures, shape)].iter());
            text.lines().nth(1).unwrap().to_owned()
        };
        let cells = row(GradLevel::L2, "a,\"b", &empty, &[0]);
        assert_eq!(cells, ["a,\"b", "0", "0", "0", "nan", "nan", "0.0", "[0]"]);
        assert_eq!(row_of(GradLevel::L1, "a,\"b", &empty, &[0]), "\"a,\"\"b\",nan,nan,0.0,[0]");
        let low = GradientFigures { min: f32::NEG_INFINITY, max: -0.0, ..figures(vec![]) };
        assert_eq!(row_of(GradLevel::L1, "a", &low, &[]), "a,-0.0,-inf,inf,[]");
        // Two shortest texts are as near; Python takes the even one.
        let tie = GradientFigures { max: 620.013_73, min: -13.782_486, ..figures(vec![]) };
        let text = row_of(GradLevel::L1, "a", &tie, &[]);
        assert_eq!(text, "a,620.0137329101562,-13.782485961914062,inf,[]");
    }
}
