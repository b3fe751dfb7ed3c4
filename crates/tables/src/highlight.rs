//! Which rows are coloured, and why: rules over single rows, and over each result next to each argument of its call.

use std::collections::HashMap;

use msprobe_compare::Mode;
use msprobe_compare::metrics::TensorComparison;
use msprobe_compare::pairing::RowPair;
use msprobe_compare::side::{Leaf, Role, Scalar, Side};
use msprobe_report::Tone;

use crate::table::{Difference, difference};

const NOT_FINITE: &str = "maximum or minimum is nan, -inf, or inf";
const HUGE: &str = "maximum absolute error exceeds 1e+10";
const MAGNITUDE: &str = "maximum absolute error of both input/parameters and output exceed 1, with the output larger \
                         by an order of magnitude";
const RATIO_COLLAPSED: &str =
    "The input/parameter's one thousandth err ratio exceeds 0.9, while the output's is below 0.6";
const RATIO_FELL: &str =
    "The output's one thousandth err ratio decreases by more than 0.1 compared to the input/parameter's";
const COSINE_FELL: &str = "The output's cosine decreases by more than 0.1 compared to the input/parameter's";
const RELATIVE_LARGE: &str = "maximum relative error exceeds 0.5";
const RELATIVE_GREW: &str =
    "The output's maximum relative error exceeds 0.1, while the input/parameter's is below 0.01";

/// Colours of rows, and their reasons. Rows without a colour are not in it.
#[derive(Debug, Default)]
pub struct Highlights {
    rows: HashMap<usize, (Tone, Vec<&'static str>)>,
}

impl Highlights {
    /// Applies all rules. `pairs` in the order of the table.
    pub fn of(
        target: &Side,
        golden: &Side,
        mode: Mode,
        pairs: &[RowPair],
        tensors: &[TensorComparison],
    ) -> Highlights {
        let mut highlights = Highlights::default();
        if mode == Mode::Md5 {
            return highlights;
        }
        let rows = Rows { target, golden, mode, pairs, tensors };
        for row in 0..pairs.len() {
            if let Some(reason) = rows.own_reason(row) {
                highlights.add(row, Tone::Bad, reason);
            }
        }
        let mut start = 0;
        while start < pairs.len() {
            let record = rows.leaf(start).record;
            let len =
                pairs[start..].iter().take_while(|pair| target.rows[pair.target].record == record).count();
            rows.judge_group(start..start + len, &mut highlights);
            start += len;
        }
        highlights
    }

    fn add(&mut self, row: usize, tone: Tone, reason: &'static str) {
        let (own, reasons) = self.rows.entry(row).or_insert((tone, Vec::new()));
        match (*own, tone) {
            (Tone::Bad, Tone::Warning) => return,
            (Tone::Warning, Tone::Bad) => {
                *own = Tone::Bad;
                reasons.clear();
            }
            _ => {}
        }
        // The same rule against several arguments is one reason.
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    /// Colour of a row.
    pub fn tone(&self, row: usize) -> Tone {
        self.rows.get(&row).map_or(Tone::Plain, |(tone, _)| *tone)
    }

    /// Why it has that colour.
    pub fn reasons(&self, row: usize) -> &[&'static str] {
        self.rows.get(&row).map_or(&[], |(_, reasons)| reasons)
    }
}

struct Rows<'a> {
    target: &'a Side,
    golden: &'a Side,
    mode: Mode,
    pairs: &'a [RowPair],
    tensors: &'a [TensorComparison],
}

/// What the pair rules look at.
#[derive(Clone, Copy)]
struct Numbers {
    error: f64,
    golden_max: f64,
    ratio: Option<f64>,
    cosine: Option<f64>,
}

impl Rows<'_> {
    fn leaf(&self, row: usize) -> &Leaf {
        &self.target.rows[self.pairs[row].target]
    }

    fn partner(&self, row: usize) -> Option<&Leaf> {
        self.pairs[row].golden.ok().map(|golden| &self.golden.rows[golden])
    }

    /// `Max diff`, or `MaxAbsErr`.
    fn error(&self, row: usize) -> Option<f64> {
        match self.mode {
            Mode::All => self.tensors[row].metrics.max_abs.number(),
            _ => match difference(&self.leaf(row).statistics[0], &self.partner(row)?.statistics[0]) {
                Difference::Number(value, _) => Some(value),
                _ => None,
            },
        }
    }

    fn own_reason(&self, row: usize) -> Option<&'static str> {
        let [max, min, ..] = &self.leaf(row).statistics;
        let not_finite = |scalar: &Scalar| match scalar {
            Scalar::Float(value) => !value.is_finite(),
            Scalar::Text(text) => matches!(&**text, "nan" | "inf" | "-inf"),
            _ => false,
        };
        if not_finite(max) || not_finite(min) {
            return Some(NOT_FINITE);
        }
        self.error(row).filter(|error| error.abs() > 1e10).map(|_| HUGE)
    }

    fn numbers(&self, row: usize) -> Option<Numbers> {
        let numeric = |scalar: &Scalar| match scalar {
            Scalar::Bool(value) => Some(f64::from(u8::from(*value))),
            other => other.number(),
        };
        numeric(&self.leaf(row).statistics[0])?;
        let metrics = self.tensors.get(row).map(|tensor| &tensor.metrics);
        Some(Numbers {
            error: self.error(row)?,
            golden_max: numeric(&self.partner(row)?.statistics[0])?,
            ratio: metrics.and_then(|metrics| metrics.within_thousandth.number()),
            cosine: metrics.and_then(|metrics| metrics.cosine.number()),
        })
    }

    /// Each result of a call next to each of its arguments. The first row counts as an argument whatever it is.
    fn judge_group(&self, rows: std::ops::Range<usize>, highlights: &mut Highlights) {
        let role = |row: usize| if row == rows.start { Role::Input } else { self.leaf(row).role };
        let inputs: Vec<Numbers> = rows
            .clone()
            .filter(|&row| matches!(role(row), Role::Input | Role::Parameters))
            .filter_map(|row| self.numbers(row))
            .collect();
        if inputs.is_empty() {
            return;
        }
        for row in rows.clone().filter(|&row| role(row) == Role::Output) {
            let Some(output) = self.numbers(row) else { continue };
            for input in &inputs {
                self.judge(row, *input, output, highlights);
            }
        }
    }

    fn judge(&self, row: usize, input: Numbers, output: Numbers, highlights: &mut Highlights) {
        let magnitude = |error: f64| if error.abs() < 1.0 { 0.0 } else { error.abs().log10() };
        if input.error.abs() <= output.error.abs() && magnitude(output.error) - magnitude(input.error) >= 1.0
        {
            highlights.add(row, Tone::Warning, MAGNITUDE);
        }
        if self.mode == Mode::All {
            if let (Some(input), Some(output)) = (input.ratio, output.ratio) {
                if input > 0.9 && output < 0.6 {
                    highlights.add(row, Tone::Bad, RATIO_COLLAPSED);
                } else if input - output > 0.1 {
                    highlights.add(row, Tone::Warning, RATIO_FELL);
                }
            }
            if let (Some(input), Some(output)) = (input.cosine, output.cosine)
                && input - output > 0.1
            {
                highlights.add(row, Tone::Warning, COSINE_FELL);
            }
            return;
        }
        let relative = |numbers: Numbers| (numbers.error / numbers.golden_max.max(f64::EPSILON)).abs();
        if relative(output) > 0.5 {
            highlights.add(row, Tone::Bad, RELATIVE_LARGE);
        } else if relative(output) > 0.1 && relative(input) < 0.01 {
            highlights.add(row, Tone::Warning, RELATIVE_GREW);
        }
    }
}
