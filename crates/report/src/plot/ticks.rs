//! Which part of an axis is shown, and where its numbers stand.

/// Numbers on an axis, at most; one less than this many gaps.
const MOST_GAPS: usize = 9;
/// Steps between numbers, each times a power of ten.
const MANTISSAS: [f64; 4] = [1.0, 2.0, 2.5, 5.0];
/// Room beside the outermost points, as a share of what they span.
const MARGIN: f64 = 0.05;
/// Values are taken as equal when they span less than this share of their size.
const SAME: f64 = 1e-12;
/// Beyond this the span of two numbers might be too large for a number.
const LARGEST: f64 = 1e300;
/// From here on numbers have an exponent.
const LONG_NUMBER: f64 = 1e8;
/// Counted things are read digit by digit for longer.
const LONG_COUNT: f64 = 1e12;
/// Below this numbers have an exponent.
const SHORT_NUMBER: f64 = 1e-4;

/// The part of an axis that is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct View {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Only whole numbers mean something on this axis.
    whole: bool,
}

impl View {
    /// A view with room for all the values that are numbers.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> View {
        View::with(values, false)
    }

    /// A view for things that are counted: where all values are whole, so are the numbers on the axis.
    pub(super) fn of_counts(values: impl Iterator<Item = f64>) -> View {
        View::with(values, true)
    }

    fn with(values: impl Iterator<Item = f64>, mut whole: bool) -> View {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value.clamp(-LARGEST, LARGEST));
            high = high.max(value.clamp(-LARGEST, LARGEST));
            whole &= value.fract() == 0.0 && value.abs() < LONG_COUNT;
        }
        if low > high {
            return View { low: 0.0, high: 1.0, whole: false };
        }
        let size = low.abs().max(high.abs());
        let (low, high) = if size < 1.0 / LARGEST { (0.0, 0.0) } else { (low, high) };
        let room = if high - low > size * SAME {
            (high - low) * MARGIN
        } else if whole {
            0.5
        } else if low == 0.0 {
            MARGIN
        } else {
            low.abs() * MARGIN
        };
        View { low: low - room, high: high + room, whole }
    }

    /// Where a value stands: 0 at the low end, 1 at the high end.
    pub(super) fn share(self, value: f64) -> f64 {
        (value.clamp(-LARGEST, LARGEST) - self.low) / (self.high - self.low)
    }

    /// As many numbers as there is room for, with `fits` to say whether there is.
    pub(super) fn ticks(self, fits: impl Fn(&[Tick]) -> bool) -> Vec<Tick> {
        let mut ticks = Vec::new();
        for gaps in (1..=MOST_GAPS).rev() {
            let next = self.ticks_of(Step::over((self.high - self.low) / gaps as f64, self.whole));
            // Rather crowded than without two numbers to tell the scale.
            if ticks.len() >= 2 && next.len() < 2 {
                break;
            }
            ticks = next;
            if fits(&ticks) {
                break;
            }
        }
        ticks
    }

    fn ticks_of(self, step: Step) -> Vec<Tick> {
        let size = step.size();
        // A number at the very edge counts, whatever the last digits of the edge are.
        let slack = (self.high - self.low) * 1e-9;
        let first = ((self.low - slack) / size).ceil();
        let last = ((self.high + slack) / size).floor();
        let count = (last - first).clamp(-1.0, 2.0 * MOST_GAPS as f64) as i32;
        let at = (0..=count).map(|index| (first + f64::from(index)) * size + 0.0);
        let largest = self.low.abs().max(self.high.abs());
        at.map(|at| Tick { at, label: self.label(at, step, largest) }).collect()
    }

    fn label(self, at: f64, step: Step, largest: f64) -> String {
        let long = if self.whole { LONG_COUNT } else { LONG_NUMBER };
        if (SHORT_NUMBER..long).contains(&largest) {
            return format!("{at:.*}", step.decimals().max(0) as usize);
        }
        if at == 0.0 {
            return "0".to_owned();
        }
        let exponent = at.abs().log10().floor() as i32;
        format!("{at:.*e}", (exponent + step.decimals()).max(0) as usize)
    }
}

/// A number on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// The distance of two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    mantissa: f64,
    exponent: i32,
}

impl Step {
    /// The smallest step that is not smaller than `least`.
    fn over(least: f64, whole: bool) -> Step {
        let exponent = least.log10().floor().clamp(-305.0, 305.0) as i32;
        let step = (exponent..=exponent + 1)
            .flat_map(|exponent| MANTISSAS.map(|mantissa| Step { mantissa, exponent }))
            .filter(|step| !whole || step.size().fract() == 0.0)
            .find(|step| step.size() >= least * (1.0 - 1e-9));
        step.unwrap_or(Step {
            mantissa: 1.0,
            exponent: if whole { (exponent + 2).max(0) } else { exponent + 2 },
        })
    }

    fn size(self) -> f64 {
        // Dividing by a power of ten rounds once where multiplying by its inverse rounds twice.
        if self.exponent < 0 {
            self.mantissa / 10f64.powi(-self.exponent)
        } else {
            self.mantissa * 10f64.powi(self.exponent)
        }
    }

    /// Digits after the point that tell two numbers apart; below zero for zeros before it.
    fn decimals(self) -> i32 {
        i32::from(self.mantissa == 2.5) - self.exponent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        View::of(values.iter().copied()).ticks(|_| true).into_iter().map(|tick| tick.label).collect()
    }

    fn counts(values: &[f64]) -> Vec<String> {
        View::of_counts(values.iter().copied()).ticks(|_| true).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn numbers_are_those_of_the_recorded_pictures() {
        assert_eq!(
            labels(&[1.0, 1.0, 0.833_333_333_333_333_4, 1.0]),
            ["0.825", "0.850", "0.875", "0.900", "0.925", "0.950", "0.975", "1.000"]
        );
        assert_eq!(
            labels(&[0.875, 0.625, 0.75, 1.0]),
            ["0.65", "0.70", "0.75", "0.80", "0.85", "0.90", "0.95", "1.00"]
        );
        assert_eq!(
            labels(&[0.889_570_5, 0.840_490_7, 0.895_705_5, 0.920_245_3]),
            ["0.84", "0.85", "0.86", "0.87", "0.88", "0.89", "0.90", "0.91", "0.92"]
        );
        assert_eq!(labels(&[0.0, 3.0]), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"]);
    }

    #[test]
    fn steps_of_a_run_are_whole() {
        assert_eq!(counts(&[0.0, 1.0, 2.0, 3.0]), ["0", "1", "2", "3"]);
        assert_eq!(counts(&[0.0, 20.0]), ["0", "5", "10", "15", "20"]);
        assert_eq!(counts(&[1_000_000.0, 1_000_300.0]).first().unwrap(), "1000000");
        assert_eq!(counts(&[7.0]), ["7"]);
        assert_eq!(counts(&[0.0]), ["0"]);
        assert_eq!(counts(&[-3.0, 2.0]), ["-3", "-2", "-1", "0", "1", "2"]);
    }

    #[test]
    fn flat_empty_tiny_and_huge_values_have_an_axis() {
        assert_eq!(labels(&[1.0; 3]).first().unwrap(), "0.96");
        assert_eq!(labels(&[0.0; 2]).len(), 5);
        assert!(labels(&[0.25]).contains(&"0.250".to_owned()));
        assert_eq!(labels(&[]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[f64::NAN, f64::INFINITY]), labels(&[]));
        assert_eq!(labels(&[-2e-7, 4e-7]), ["-2e-7", "-1e-7", "0", "1e-7", "2e-7", "3e-7", "4e-7"]);
        assert_eq!(labels(&[1e9, 1.5e9]).last().unwrap(), "1.5e9");
        for values in [
            &[f64::MAX, f64::MIN][..],
            &[f64::MAX],
            &[f64::MIN_POSITIVE, 5e-324],
            &[1e-299, 2e-299],
            &[1e16, 1e16 + 2.0],
            &[1e-310],
            &[1.0, 1.0 + 1e-15],
            &[1e300, 1.000_001e300],
        ] {
            for view in [View::of(values.iter().copied()), View::of_counts(values.iter().copied())] {
                assert!(view.low < view.high && (view.high - view.low).is_finite(), "{values:?}");
                let ticks = view.ticks(|_| true);
                assert!(!ticks.is_empty() && ticks.len() <= 19, "{values:?} {ticks:?}");
                assert!(ticks.iter().all(|tick| tick.label.len() < 20), "{ticks:?}");
                assert!(
                    ticks.iter().all(|tick| (-1e-6..=1.000_001).contains(&view.share(tick.at))),
                    "{ticks:?}"
                );
            }
        }
    }

    #[test]
    fn numbers_become_fewer_until_they_fit() {
        let view = View::of_counts([0.0, 100.0].into_iter());
        assert_eq!(view.ticks(|ticks| ticks.len() <= 4).len(), 3);
        assert_eq!(view.ticks(|_| false).len(), 2);
    }

    #[test]
    fn labels_tell_their_numbers() {
        let mut state = 1u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let low = ((state >> 40) as f64 - 8e6) * 10f64.powi((state % 37) as i32 - 20);
            let high = low + (state >> 50) as f64 * 10f64.powi((state % 31) as i32 - 18);
            let view = View::of([low, high].into_iter());
            let ticks = view.ticks(|_| true);
            assert!(ticks.len() >= 3, "{low} {high}");
            let step = ticks[1].at - ticks[0].at;
            for tick in &ticks {
                let told: f64 = tick.label.parse().unwrap();
                assert!((told - tick.at).abs() < step * 0.01, "{low} {high} {tick:?}");
            }
        }
    }
}
