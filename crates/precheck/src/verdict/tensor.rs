//! The verdict of one tensor.

use msprobe_tensor::{DType, DTypeClass, OperatorErrors, TensorView, compare_pair, operator_errors};

use super::row::{Decision, Judged, Metric, shape_text};
use crate::cells::Number;
use crate::standards::Standard;
use crate::status::Status;

/// Similarity that has to be exceeded.
const COSINE: f64 = 0.99;
/// Absolute errors below this need no further look.
const MAX_ABS: f64 = 0.001;
/// Below this, values are zero for the similarity.
const TINY: f64 = f64::EPSILON;

/// Whether values of the two dtypes can be held against each other. With `is_strict`, whatever has the same kind of values.
fn are_comparable(bench: DType, device: DType, is_strict: bool) -> bool {
    let group = |dtype: DType| match dtype {
        DType::F16 | DType::F32 | DType::F64 | DType::BF16 => Some(0),
        DType::Bool | DType::U8 => Some(1),
        DType::I32 | DType::I64 => Some(2),
        _ if !is_strict => None,
        _ => Some(match dtype.class() {
            DTypeClass::Float => 0,
            DTypeClass::Bool | DTypeClass::Unsigned => 1,
            DTypeClass::Signed => 2,
            DTypeClass::Complex => 3,
        }),
    };
    group(bench).is_some_and(|of_bench| group(device) == Some(of_bench))
}

/// Judges a tensor of an API; `name` is the bare one.
pub(super) fn judge(name: &str, bench: &TensorView<'_>, device: &TensorView<'_>, is_strict: bool) -> Judged {
    let (bench_dtype, device_dtype) = (bench.dtype(), device.dtype());
    let described = |judged: Judged| Judged {
        bench_dtype: Some(bench_dtype.torch_name()),
        device_dtype: Some(device_dtype.torch_name()),
        shape: Some(shape_text(device.shape())),
        ..judged
    };
    let error = |message: String| described(Judged::new(Status::Error, message));
    if bench.shape() != device.shape() {
        let [bench, device] = [bench, device].map(|view| format!("torch.Size({:?})", view.shape()));
        return error(format!("The shape of bench{bench} and npu{device} not equal."));
    }
    if !are_comparable(bench_dtype, device_dtype, is_strict) {
        let (bench, device) = (bench_dtype.numpy_name(), device_dtype.numpy_name());
        return error(format!(
            "Bench out dtype is {bench} but npu output dtype is {device}, cannot compare."
        ));
    }
    if bench.numel() == 0 {
        if is_strict {
            return described(Judged::new(Status::Pass, "Both outputs are empty."));
        }
        return error("There is not bench calculation result.".to_owned());
    }
    if !matches!(bench_dtype.class(), DTypeClass::Float | DTypeClass::Complex) {
        return described(exact(bench, device));
    }
    let standard = Standard::of(name);
    let mut limits = standard.limits(device_dtype);
    limits.excuses_agreeing = is_strict;
    match operator_errors(device, bench, &limits) {
        Ok(Some(errors)) => {
            let is_narrow = device_dtype != DType::F64 && bench_dtype != DType::F64;
            described(float(&errors, standard, device_dtype, is_narrow))
        }
        // Shapes are the same and not empty.
        _ => error("There is not bench calculation result.".to_owned()),
    }
}

/// Bools and whole numbers are the same, or not.
fn exact(bench: &TensorView<'_>, device: &TensorView<'_>) -> Judged {
    let dtype = bench.dtype().numpy_name();
    let message =
        format!("Compare algorithm is not supported for {dtype} data. Only judged by Error Rate.\n");
    let equal = compare_pair(device, bench).ok().flatten().map_or(0, |pair| pair.equal_count);
    let total = bench.numel() as u64;
    let unequal = total.saturating_sub(equal);
    let rate = unequal as f64 / total as f64;
    let mut judged = Judged::new(if unequal == 0 { Status::Pass } else { Status::Error }, message);
    judged.set(Metric::ErrorRate, Number::Wide(rate));
    judged.decision = Some(Decision { measure: "error_rate".into(), value: Some(rate), limit: 0.0 });
    judged
}

fn float(errors: &OperatorErrors, standard: Standard, device: DType, is_narrow: bool) -> Judged {
    let mut judged = Judged::new(Status::Pass, "");
    judged.magnitudes.clone_from(&errors.magnitudes);
    if matches!(device, DType::F16 | DType::BF16 | DType::F32) {
        fill_standard(&mut judged, errors, standard, device, is_narrow);
    } else {
        judged.message =
            format!("The data type {} is not supported for new precision standard.", device.torch_name());
    }
    if errors.agreeing > 0 && errors.agreeing == errors.unequal.of {
        judged.message.push_str("Every value is NaN or infinite on both sides alike, consider as pass.\n");
        return judged;
    }
    let (cosine, is_similar, message) = similarity(errors);
    judged.message.push_str(message);
    judged.message.push('\n');
    if let Some(cosine) = cosine {
        judged.set(Metric::Cosine, Number::Wide(cosine));
    }
    let mut end = |status: Status, text: &str, measure: &str, value: Option<f64>, limit: f64| {
        judged.status = status;
        judged.message.push_str(text);
        judged.message.push('\n');
        // No reader of JSON knows NaN.
        let value = value.filter(|value| value.is_finite());
        judged.decision = Some(Decision { measure: measure.into(), value, limit });
    };
    if !is_similar {
        end(
            Status::Error,
            "Cosine similarity is less than 0.99, consider as error, skip other check and set to SPACE.",
            "cosine",
            cosine,
            COSINE,
        );
        return judged;
    }
    let max_error = errors.max_error;
    if max_error < MAX_ABS {
        end(
            Status::Pass,
            "Max abs error is less than 0.001, consider as pass, skip other check and set to SPACE.",
            "max_abs_error",
            Some(max_error),
            MAX_ABS,
        );
        judged.set(Metric::MaxAbs, Number::of(max_error, is_narrow));
        return judged;
    }
    let [hundredth, thousandth, ten_thousandth] = errors.within.map(|share| share.ratio().unwrap_or(0.0));
    let mut shown = vec![(Metric::MaxAbs, Number::of(max_error, is_narrow))];
    let mut show = |metric: Metric, value: f64| shown.push((metric, Number::Wide(value)));
    if matches!(device, DType::F16 | DType::BF16) {
        show(Metric::Hundredth, hundredth);
        if hundredth > 0.99 {
            show(Metric::Thousandth, thousandth);
            let is_good = thousandth > 0.999;
            let (status, text) = if is_good {
                (
                    Status::Pass,
                    "Relative error is less than 0.001, consider as pass, skip other check and set to SPACE.",
                )
            } else {
                (
                    Status::Warning,
                    "Relative error is greater than 0.001, consider as warning, skip other check and set to SPACE.",
                )
            };
            end(status, text, "within_thousandth", Some(thousandth), 0.999);
        } else {
            end(
                Status::Error,
                "Relative error is greater than 0.01, consider as error, skip other check and set to SPACE.",
                "within_hundredth",
                Some(hundredth),
                0.99,
            );
        }
    } else {
        show(Metric::Thousandth, thousandth);
        show(Metric::TenThousandth, ten_thousandth);
        if thousandth <= 0.999 {
            end(
                Status::Error,
                "Relative error is greater than 0.001, consider as error, skip other check and set to SPACE.",
                "within_thousandth",
                Some(thousandth),
                0.999,
            );
        } else if ten_thousandth <= 0.9999 {
            end(
                Status::Warning,
                "Relative error is greater than 0.0001, consider as warning, skip other check and set to SPACE.",
                "within_ten_thousandth",
                Some(ten_thousandth),
                0.9999,
            );
        } else {
            end(
                Status::Pass,
                "Relative error is less than 0.0001, consider as pass.",
                "within_ten_thousandth",
                Some(ten_thousandth),
                0.9999,
            );
        }
    }
    for (metric, number) in shown {
        judged.set(metric, number);
    }
    judged
}

/// The cosine, whether it is good enough, and what is to be said of it.
fn similarity(errors: &OperatorErrors) -> (Option<f64>, bool, &'static str) {
    let (is_bench_zero, is_device_zero) = (errors.largest_golden <= TINY, errors.largest_target <= TINY);
    if errors.unequal.of == 1 {
        let text = "All the data in device dump data is scalar. Please refer to other compare algorithms.";
        (None, true, text)
    } else if is_bench_zero && is_device_zero {
        (None, true, "All the data in device and bench outputs are zero.")
    } else if is_device_zero {
        (None, false, "All the data is zero in device dump data.")
    } else if is_bench_zero {
        (None, false, "All the data is zero in bench dump data.")
    } else if errors.cosine.is_nan() {
        (Some(f64::NAN), false, "Dump data has NaN when comparing with Cosine Similarity.")
    } else {
        (Some(errors.cosine), errors.cosine > COSINE, "")
    }
}

/// The columns of the API's standard.
fn fill_standard(
    judged: &mut Judged,
    errors: &OperatorErrors,
    standard: Standard,
    device: DType,
    is_narrow: bool,
) {
    let thresholds = |judged: &mut Judged| {
        judged.set(Metric::NonFinite, Number::of_share(errors.non_finite_far));
        judged.set(Metric::Relative, Number::of_share(errors.normal_far));
        judged.set(Metric::Absolute, Number::of_share(errors.small_far));
    };
    match standard {
        Standard::BinaryConsistency => judged.set(Metric::ErrorRate, Number::of_share(errors.unequal)),
        Standard::AbsoluteThreshold => thresholds(judged),
        Standard::AccumulativeErrorCompare => {
            thresholds(judged);
            judged.set(Metric::Balance, Number::Wide(errors.balance));
        }
        Standard::ThousandthThreshold => judged.set(Metric::Thousandth, Number::of_share(errors.within[1])),
        Standard::UlpCompare => {
            if let Some(ulp) = errors.ulp {
                let is_narrow = device != DType::F32;
                judged.set(Metric::MaxUlp, Number::of(ulp.max, is_narrow));
                judged.set(Metric::MeanUlp, Number::of(ulp.mean, is_narrow));
                judged.set(Metric::UlpProportion, Number::of_share(ulp.above_limit));
            }
        }
        Standard::Benchmark => {
            judged.set(Metric::SmallValues, Number::of_share(errors.small_far));
            judged.set(Metric::Rmse, Number::Wide(errors.rmse));
            judged.set(Metric::Balance, Number::Wide(errors.balance));
            let number =
                |value: Option<f64>| value.map_or(Number::Whole(0), |value| Number::of(value, is_narrow));
            judged.set(Metric::MaxRelative, number(errors.relative.map(|(max, _)| max)));
            judged.set(Metric::MeanRelative, number(errors.relative.map(|(_, mean)| mean)));
        }
    }
}
