//! Early warnings: values that are still finite, but close to what their dtype can hold, or beyond what another can.
//!
//! Statistics tell the largest magnitude exactly, so [`Danger::NearMaximum`] and [`Danger::WouldOverflow`] are facts.
//! How many elements are too small they only bound. Of `n` elements with root mean square `r`, at most `n (r/t)²` have
//! a magnitude of `t` or more; the others, at least the share `1 - (r/t)²`, are smaller. Zeros are among them: a sparse
//! gradient looks like one that underflowed. Where the tensor itself was dumped, [`crate::elements::refine`] counts.
//!
//! | danger | what is reported | threshold | [`Warning::limit`] |
//! |---|---|---|---|
//! | [`Danger::NearMaximum`] | a value whose magnitude is larger | 90 % of the largest number | the largest number |
//! | [`Danger::Underflow`] | half of the elements or more are smaller | the smallest normal number | the same |
//! | [`Danger::WouldOverflow`] | a value that does not round to a finite number | half a step above the largest number | the largest number |
//! | [`Danger::WouldUnderflow`] | half of the elements or more round to zero | half of the smallest number | the smallest number |
//!
//! The last two are about the dtype asked for with `--as-dtype`; its smallest number is a subnormal one. Integers are
//! never reported. Complex tensors are only looked at in their own dtype, by modulus.

mod bound;
mod keep;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::str::FromStr;

use msprobe_tensor::DType;

pub use self::watch::RangeWatch;
use crate::record::Role;

/// Underflow is reported when at least this share of the elements is affected.
pub const UNDERFLOW_SHARE: f64 = 0.5;

/// A dtype that tensors are thought to be converted to: one of [`AsDtype::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsDtype(DType);

impl AsDtype {
    /// All of them.
    pub const ALL: [AsDtype; 5] = [
        AsDtype(DType::F16),
        AsDtype(DType::BF16),
        AsDtype(DType::F32),
        AsDtype(DType::F8E4M3FN),
        AsDtype(DType::F8E5M2),
    ];
}

impl fmt::Display for AsDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name())
    }
}

impl FromStr for AsDtype {
    type Err = String;

    /// Reads a name as users write it: `float16`, `torch.float16`, `fp16`, `half`, `Float16`, …
    fn from_str(name: &str) -> Result<AsDtype, String> {
        let lower = name.trim().to_ascii_lowercase();
        let bare =
            lower.strip_prefix("torch.").or_else(|| lower.strip_prefix("mindspore.")).unwrap_or(&lower);
        Ok(AsDtype(match bare {
            "float16" | "fp16" | "f16" | "half" => DType::F16,
            "bfloat16" | "bf16" => DType::BF16,
            "float32" | "fp32" | "f32" | "float" | "single" => DType::F32,
            "float8_e4m3fn" | "float8_e4m3" | "fp8_e4m3fn" | "fp8_e4m3" | "f8_e4m3" | "e4m3fn" | "e4m3" => {
                DType::F8E4M3FN
            }
            "float8_e5m2" | "fp8_e5m2" | "f8_e5m2" | "e5m2" => DType::F8E5M2,
            _ => {
                let names = AsDtype::ALL.map(|dtype| dtype.to_string()).join(", ");
                return Err(format!("{name:?} is none of the dtypes that can be asked for: {names}"));
            }
        }))
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeOptions {
    /// From which share of the largest number on a value is near it.
    pub near_max_share: f64,
    /// Whether the values would fit into this dtype.
    pub as_dtype: Option<AsDtype>,
}

impl Default for RangeOptions {
    fn default() -> Self {
        RangeOptions { near_max_share: 0.9, as_dtype: None }
    }
}

/// What may go wrong with a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Danger {
    /// A value is close to the largest number of its dtype.
    NearMaximum,
    /// Many elements are smaller than the smallest normal number of their dtype.
    Underflow,
    /// A value is too large for the dtype asked for.
    WouldOverflow,
    /// Many elements would become zero in the dtype asked for.
    WouldUnderflow,
}

impl Danger {
    /// All of them, in the order of [`RangeFindings::counts`].
    pub const ALL: [Danger; 4] =
        [Danger::NearMaximum, Danger::Underflow, Danger::WouldOverflow, Danger::WouldUnderflow];

    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Danger::NearMaximum => "near_maximum",
            Danger::Underflow => "underflow",
            Danger::WouldOverflow => "would_overflow",
            Danger::WouldUnderflow => "would_underflow",
        }
    }

    /// Whether elements are too small, not too large.
    pub fn is_underflow(self) -> bool {
        matches!(self, Danger::Underflow | Danger::WouldUnderflow)
    }
}

/// Where the share of a [`Warning`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Statistics: a share is a lower bound, zeros included.
    Statistics,
    /// The elements were counted: a share is exact, zeros not included.
    Elements {
        /// Elements that are affected: too large, or too small without being zero.
        affected: u64,
        /// Elements that are zero.
        zero: u64,
        /// All elements.
        elements: u64,
    },
}

/// A tensor in danger.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// Index of its record.
    pub record: u32,
    /// What it is of the record.
    pub role: Role,
    /// Its number among the tensors of that role.
    pub index: u16,
    /// What may go wrong.
    pub danger: Danger,
    /// The value in question: the one of the largest magnitude; for underflow that, if it is itself too small, and
    /// otherwise the root mean square.
    pub value: f64,
    /// The number of the dtype that the value is held against; see the table of this module.
    pub limit: f64,
    /// The share of the elements that is affected; none if only the largest value is known.
    pub share: Option<f64>,
    /// Where the share comes from.
    pub evidence: Evidence,
    /// The tensor's dtype.
    pub dtype: DType,
    /// The dtype asked for, where the danger is about that.
    pub as_dtype: Option<AsDtype>,
    /// The name of the tensor's file.
    pub data_name: Option<Box<str>>,
}

impl Warning {
    /// Whether the value is exactly the lowest number of the tensor's dtype. Attention masks are filled with it: most
    /// likely nothing overflowed. Where a device saturates, it can also stand for -Inf.
    pub fn is_fill(&self) -> bool {
        !self.danger.is_underflow()
            && self.dtype.float_range().is_some_and(|range| self.value == -range.largest)
    }

    /// The warning in words; `name` is that of the record.
    pub fn sentence(&self, name: &str) -> String {
        format!("{name} {} {} ({}): {}", self.role.as_str(), self.index, self.dtype, self.predicate())
    }

    fn predicate(&self) -> String {
        let (value, limit, counted) = (Plain(self.value), Plain(self.limit), self.counted());
        let target = self.as_dtype.map_or(self.dtype, |asked| asked.0);
        match self.danger {
            Danger::NearMaximum if self.is_fill() => {
                format!("{value} is the lowest number itself, as in masks or after saturation{counted}")
            }
            Danger::NearMaximum => {
                let share = Percent(self.value.abs() / self.limit);
                format!("{value} is {share} of the largest number, {limit}{counted}")
            }
            Danger::WouldOverflow => {
                let fill = if self.is_fill() { ", the lowest number of its dtype as in masks," } else { "" };
                format!("{value}{fill} does not fit into {target}, whose largest number is {limit}{counted}")
            }
            Danger::Underflow => {
                let (subject, measure) = (self.subject(""), self.measure());
                format!("{subject} are below {limit}, the smallest normal number{measure}")
            }
            Danger::WouldUnderflow => {
                let (subject, measure) = (self.subject(" are zero or"), self.measure());
                format!("{subject} would become zero in {target}, whose smallest number is {limit}{measure}")
            }
        }
    }

    /// ` (3 of 4096 elements)`, if they were counted.
    fn counted(&self) -> String {
        match self.evidence {
            Evidence::Statistics => String::new(),
            Evidence::Elements { affected, elements, .. } => format!(" ({affected} of {elements} elements)"),
        }
    }

    /// Which elements are too small; `zeros` follows where zeros may be among them.
    fn subject(&self, zeros: &str) -> String {
        let share = self.share.unwrap_or(0.0);
        match self.evidence {
            Evidence::Elements { affected, zero: 0, elements } => {
                format!("{} of the elements ({affected} of {elements})", Percent(share))
            }
            Evidence::Elements { affected, zero, elements } => {
                let share = Percent(share);
                format!("{share} of the elements ({affected} of {elements}), besides {zero} zeros,")
            }
            Evidence::Statistics if share >= 1.0 => format!("all elements{zeros}"),
            Evidence::Statistics => format!("at least {} of the elements{zeros}", Percent(share)),
        }
    }

    fn measure(&self) -> String {
        let what = match (self.evidence, self.share) {
            (Evidence::Elements { .. }, _) => return String::new(),
            (Evidence::Statistics, Some(1.0)) => "largest magnitude",
            (Evidence::Statistics, _) => "root mean square",
        };
        format!(": the {what} is {}", Plain(self.value))
    }
}

/// The warnings of one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RangeFindings {
    /// In the order of the dump; per danger the first ones and the most severe ones, at most [`Self::MOST`] in all.
    pub warnings: Vec<Warning>,
    /// How many tensors are in danger, by [`Danger::ALL`].
    pub counts: [u64; 4],
    /// How many of `counts` are so by the lowest number of their dtype alone; see [`Warning::is_fill`].
    pub fills: [u64; 4],
    /// What was looked for.
    pub options: RangeOptions,
}

impl RangeFindings {
    /// The most warnings of a rank.
    pub const MOST: usize = keep::MOST;

    /// Leaves out what is so by the lowest number of its dtype alone, and tells how many tensors that were.
    pub fn set_fills_aside(&mut self) -> u64 {
        self.warnings.retain(|warning| !warning.is_fill());
        for (count, fills) in self.counts.iter_mut().zip(self.fills) {
            *count = count.saturating_sub(fills);
        }
        std::mem::take(&mut self.fills).into_iter().max().unwrap_or(0)
    }
}

/// Where a danger begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Edge {
    /// Larger magnitudes are affected; for underflow this one and smaller ones.
    pub(crate) at: f64,
    /// [`Warning::limit`].
    pub(crate) limit: f64,
}

/// Where each danger begins for tensors of a dtype, by [`Danger::ALL`]; none where it cannot come up.
pub(crate) fn edges(dtype: DType, options: &RangeOptions) -> [Option<Edge>; 4] {
    let Some(own) = dtype.float_range() else { return [None; 4] };
    let is_real = !matches!(dtype, DType::C64 | DType::C128);
    let target = options.as_dtype.filter(|_| is_real).and_then(|target| target.0.float_range());
    let too_large = target.filter(|target| own.largest >= target.overflow_from);
    let too_small = target.filter(|target| own.smallest <= target.zero_up_to);
    [
        Some(Edge { at: own.largest * options.near_max_share, limit: own.largest }),
        Some(Edge { at: own.smallest_normal.next_down(), limit: own.smallest_normal }),
        too_large.map(|target| Edge { at: target.overflow_from.next_down(), limit: target.largest }),
        too_small.map(|target| Edge { at: target.zero_up_to, limit: target.smallest }),
    ]
}

/// A number for people: at most six digits.
struct Plain(f64);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.abs();
        if magnitude != 0.0 && !(1e-3..1e7).contains(&magnitude) && magnitude.is_finite() {
            let text = format!("{:.4e}", self.0);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            return write!(f, "{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
        }
        // Zero and what is not finite have no digits to count.
        let before_point =
            if magnitude > 0.0 && magnitude.is_finite() { magnitude.log10().floor() } else { 0.0 };
        let decimals = (5.0 - before_point).max(0.0) as usize;
        let text = format!("{:.decimals$}", self.0);
        let short = if decimals == 0 { &text } else { text.trim_end_matches('0').trim_end_matches('.') };
        f.write_str(short)
    }
}

/// A share in per cent, rounded down so that "at least" stays true and only all of it is 100 %.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let decimals = if percent >= 100.0 || (1.0..99.0).contains(&percent) { 0 } else { 2 };
        let unit = 10_f64.powi(decimals);
        let floor = (percent * unit).floor() / unit;
        if floor == 0.0 && percent > 0.0 {
            return f.write_str("less than 0.01 %");
        }
        write!(f, "{floor} %")
    }
}
