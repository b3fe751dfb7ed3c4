//! What usually makes an operation give NaN or Inf, told only where the statistics of its inputs agree with it.

use crate::findings::OriginKind;
use crate::record::{Kinds, Role};
use crate::values::Value;

/// The largest argument whose exponential a float32 can hold; bfloat16 has the same range.
const LARGEST_EXPONENT: f64 = 88.72;

/// A sentence on why, if the inputs show it.
pub(crate) fn advice(
    function: &str,
    is_backward: bool,
    kind: OriginKind,
    values: &[Value],
    made: Kinds,
) -> Option<String> {
    if kind == OriginKind::Communication {
        return half_of(values).map(|value| {
            let dtype = short(&value.dtype);
            format!(
                "{dtype} holds at most {}: average before the sum, or communicate in float32",
                limit(dtype)
            )
        });
    }
    if kind != OriginKind::Produced {
        return None;
    }
    let inputs: Vec<&Value> = values.iter().filter(|value| value.role != Role::Output).collect();
    let (low, high) = (least(&inputs), greatest(&inputs));
    if is_backward {
        return backward_advice(function);
    }
    match function.trim_matches('_') {
        "log" | "log2" | "log10" if low? < 0.0 => {
            Some(format!("its input goes down to {}: negative numbers have no logarithm", number(low?)))
        }
        "log" | "log2" | "log10" if low? == 0.0 => {
            Some("its input has zeros: their logarithm is -inf".to_owned())
        }
        "log1p" if low? <= -1.0 => Some(format!("its input goes down to {}, log1p ends at -1", number(low?))),
        "sqrt" | "rsqrt" if low? < 0.0 => {
            Some(format!("its input goes down to {}: negative numbers have no square root", number(low?)))
        }
        "rsqrt" | "reciprocal" if low? <= 0.0 && high? >= 0.0 => {
            Some("its input has zeros, or changes its sign: add a small epsilon".to_owned())
        }
        "exp" | "expm1" | "exp2" | "cosh" | "sinh" => exponent_advice(&inputs, high?),
        "acos" | "asin" | "arccos" | "arcsin" if low? < -1.0 || high? > 1.0 => {
            Some("its input leaves [-1, 1]".to_owned())
        }
        "div" | "true_divide" | "truediv" | "rtruediv" | "divide" | "idiv" | "itruediv" => {
            let divisor = inputs.last()?;
            let (low, high) = (divisor.figures[1]?, divisor.figures[0]?);
            (low <= 0.0 && high >= 0.0).then(|| {
                format!("{} goes from {} to {}: it has zeros", divisor.place, number(low), number(high))
            })
        }
        "pow" | "rpow" | "square" | "matmul" | "rmatmul" | "mm" | "bmm" | "addmm" | "baddbmm" | "linear"
        | "einsum" | "mul" | "imul" | "add" | "iadd" | "sum" | "conv1d" | "conv2d" | "conv3d" | "cumsum"
        | "norm" => {
            let value = half_of(values).filter(|_| !made.contains(Kinds::NAN))?;
            let dtype = short(&value.dtype);
            Some(format!(
                "the result does not fit into {dtype}, which ends at {}: compute it in float32 or bfloat16, or scale before",
                limit(dtype)
            ))
        }
        _ => None,
    }
}

fn backward_advice(function: &str) -> Option<String> {
    let zeros = match function.trim_matches('_') {
        "sqrt" | "rsqrt" | "pow" => "the slope at 0 is infinite",
        "norm" | "vector_norm" => "the slope of a norm at 0 does not exist",
        "log" | "log2" | "log10" | "div" | "truediv" | "reciprocal" => "it divides by its forward input",
        "where" => "both branches are differentiated, also the one that was not taken",
        _ => return None,
    };
    Some(format!("in backward {zeros}: keep the input away from there, e.g. with a small epsilon or clamp"))
}

fn exponent_advice(inputs: &[&Value], high: f64) -> Option<String> {
    let is_half = inputs.iter().any(|value| short(&value.dtype) == "float16");
    let most = if is_half { 65504_f64.ln() } else { LARGEST_EXPONENT };
    (high > most).then(|| {
        format!("its input goes up to {}, and from {most:.1} on the result does not fit: subtract the maximum first", number(high))
    })
}

/// The first tensor of a dtype with a short range.
fn half_of(values: &[Value]) -> Option<&Value> {
    values.iter().find(|value| !limit(short(&value.dtype)).is_empty())
}

fn limit(dtype: &str) -> &'static str {
    match dtype {
        "float16" => "65504",
        "float8_e4m3fn" => "448",
        "float8_e5m2" => "57344",
        _ => "",
    }
}

fn short(dtype: &str) -> &str {
    dtype.trim_start_matches("torch.")
}

fn least(inputs: &[&Value]) -> Option<f64> {
    inputs.iter().filter_map(|value| value.figures[1]).reduce(f64::min)
}

fn greatest(inputs: &[&Value]) -> Option<f64> {
    inputs.iter().filter_map(|value| value.figures[0]).reduce(f64::max)
}

fn number(value: f64) -> String {
    msprobe_report::short_number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(role: Role, dtype: &str, max: f64, min: f64) -> Value {
        Value {
            place: "input.1".to_owned(),
            role,
            dtype: format!("torch.{dtype}"),
            shape: vec![2],
            figures: [Some(max), Some(min), None, None],
            data_name: None,
        }
    }

    fn told(function: &str, max: f64, min: f64, dtype: &str) -> Option<String> {
        advice(function, false, OriginKind::Produced, &[value(Role::Input, dtype, max, min)], Kinds::POSITIVE)
    }

    #[test]
    fn only_what_the_inputs_show_is_told() {
        assert!(told("log", 7.0, -2.0, "float32").unwrap().contains("-2"));
        assert_eq!(told("log", 7.0, 1.0, "float32"), None);
        assert!(told("exp", 100.0, 0.0, "float32").is_some());
        assert_eq!(told("exp", 20.0, 0.0, "float32"), None);
        assert!(told("exp", 20.0, 0.0, "float16").is_some());
        assert!(told("__truediv__", 2.0, 0.0, "float32").unwrap().contains("input.1"));
        assert!(told("matmul", 300.0, 0.0, "float16").unwrap().contains("65504"));
        assert_eq!(told("matmul", 300.0, 0.0, "float32"), None);
        assert_eq!(told("gelu", 300.0, -1.0, "float32"), None);
    }

    #[test]
    fn backward_and_communication() {
        let values = [value(Role::Input, "float16", 60000.0, 0.0)];
        assert!(advice("sqrt", true, OriginKind::Produced, &values, Kinds::POSITIVE).is_some());
        let sum = advice("all_reduce", false, OriginKind::Communication, &values, Kinds::POSITIVE);
        assert!(sum.unwrap().contains("float16"));
        assert_eq!(advice("log", false, OriginKind::Input, &values, Kinds::NAN), None);
    }
}
