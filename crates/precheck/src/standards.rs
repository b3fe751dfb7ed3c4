//! Which standard an API is held to, and the limits of each, by dtype of the tested side.

use msprobe_tensor::{DType, OperatorLimits, UlpLimits};

/// How the errors of an API are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standard {
    /// Every element is the same.
    BinaryConsistency,
    /// Hardly any element is off by more than a limit.
    AbsoluteThreshold,
    /// Errors in units in the last place.
    UlpCompare,
    /// The share of relative errors below a thousandth.
    ThousandthThreshold,
    /// Errors of sums of many terms.
    AccumulativeErrorCompare,
    /// Errors are held against those of a reference device.
    Benchmark,
}

const ABSOLUTE: [&str; 30] = [
    "mul",
    "mul_",
    "__mul__",
    "__imul__",
    "__rmul__",
    "add",
    "add_",
    "__add__",
    "__iadd__",
    "__radd__",
    "div",
    "div_",
    "__div__",
    "__idiv__",
    "divide",
    "divide_",
    "leaky_relu",
    "leaky_relu_",
    "prelu",
    "reciprocal",
    "reciprocal_",
    "rsqrt",
    "rsqrt_",
    "square",
    "square_",
    "sub",
    "sub_",
    "rsub",
    "__isub__",
    "__sub__",
];

const BINARY: [&str; 61] = [
    "abs",
    "abs_",
    "absolute",
    "absolute_",
    "argmin",
    "bitwise_and",
    "bitwise_and_",
    "broadcast_to",
    "ceil",
    "ceil_",
    "equal",
    "fill_",
    "flatten",
    "floor",
    "floor_",
    "gather",
    "greater",
    "greater_",
    "greater_equal",
    "greater_equal_",
    "histc",
    "isfinite",
    "isnan",
    "less",
    "less_",
    "less_equal",
    "less_equal_",
    "logical_and",
    "logical_and_",
    "logical_not",
    "logical_not_",
    "logical_or",
    "logical_or_",
    "masked_fill",
    "masked_fill_",
    "max_pool3d",
    "maximum",
    "minimum",
    "neg",
    "neg_",
    "nonzero",
    "not_equal",
    "not_equal_",
    "one_hot",
    "pad",
    "relu",
    "reshape",
    "round",
    "round_",
    "select",
    "sign",
    "sign_",
    "sort",
    "tile",
    "topk",
    "transpose",
    "transpose_",
    "tril",
    "tril_",
    "triu",
    "triu_",
];

const ULP: [&str; 17] = [
    "__matmul__",
    "addbmm",
    "addbmm_",
    "addmm",
    "addmm_",
    "baddbmm",
    "baddbmm_",
    "bilinear",
    "bmm",
    "chain_matmul",
    "hspmm",
    "linear",
    "matmul",
    "mm",
    "mv",
    "smm",
    "sspaddmm",
];

impl Standard {
    /// That of an API by its bare name: `matmul`.
    pub fn of(name: &str) -> Standard {
        if ABSOLUTE.contains(&name) {
            Standard::AbsoluteThreshold
        } else if BINARY.contains(&name) || name == "type_as" {
            Standard::BinaryConsistency
        } else if ULP.contains(&name) {
            Standard::UlpCompare
        } else if matches!(name, "conv1d" | "conv2d") {
            Standard::ThousandthThreshold
        } else if name == "test_api" {
            Standard::AccumulativeErrorCompare
        } else {
            Standard::Benchmark
        }
    }

    /// Its identifier.
    pub fn as_str(self) -> &'static str {
        match self {
            Standard::BinaryConsistency => "binary_consistency",
            Standard::AbsoluteThreshold => "absolute_threshold",
            Standard::UlpCompare => "ulp_compare",
            Standard::ThousandthThreshold => "thousandth_threshold",
            Standard::AccumulativeErrorCompare => "accumulative_error_compare",
            Standard::Benchmark => "benchmark",
        }
    }

    /// Its limits for outputs of a dtype.
    pub fn limits(self, dtype: DType) -> OperatorLimits {
        let exponents = |half: i32, brain: i32, other: i32| {
            power(match dtype {
                DType::F16 => half,
                DType::BF16 => brain,
                _ => other,
            })
        };
        let bound = exponents(-8, -7, -11);
        let small_value_atol = match (self, dtype) {
            (Standard::AccumulativeErrorCompare, _) => bound,
            // The manual says 2^-16 for bfloat16; the reference computes with this.
            (_, DType::BF16) => 1e-16,
            (Standard::AbsoluteThreshold, DType::F16) => power(-16),
            (_, DType::F16) => 1e-16,
            _ => power(-30),
        };
        let is_accumulative = self == Standard::AccumulativeErrorCompare;
        OperatorLimits {
            small_value: if is_accumulative { 1.0 } else { exponents(-10, -10, -20) },
            small_value_atol,
            rtol: if is_accumulative { bound } else { exponents(-10, -8, -20) },
            excuses_agreeing: false,
            ulp: if self == Standard::UlpCompare { ulp_limits(dtype) } else { None },
        }
    }
}

fn ulp_limits(dtype: DType) -> Option<UlpLimits> {
    let (element_limit, min_exponent, mantissa_bits) = match dtype {
        DType::F16 => (1.0, -14, 10),
        DType::BF16 => (1.0, -126, 7),
        DType::F32 => (32.0, -126, 23),
        _ => return None,
    };
    Some(UlpLimits { element_limit, min_exponent, mantissa_bits })
}

/// Two to the power of a whole number.
pub(crate) fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standards_by_name() {
        for (name, standard) in [
            ("mul", "absolute_threshold"),
            ("type_as", "binary_consistency"),
            ("matmul", "ulp_compare"),
            ("conv2d", "thousandth_threshold"),
            ("softmax", "benchmark"),
            ("", "benchmark"),
        ] {
            assert_eq!(Standard::of(name).as_str(), standard, "{name}");
        }
    }

    #[test]
    fn only_narrow_floats_are_counted_in_last_places() {
        assert!(Standard::UlpCompare.limits(DType::F64).ulp.is_none());
        assert_eq!(Standard::UlpCompare.limits(DType::BF16).ulp.unwrap().mantissa_bits, 7);
        assert_eq!(Standard::Benchmark.limits(DType::F16).small_value_atol, 1e-16);
        assert_eq!(Standard::AbsoluteThreshold.limits(DType::F16).small_value_atol, 1.0 / 65536.0);
    }
}
