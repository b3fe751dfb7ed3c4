//! Overflows of single operators: what the device test and the CPU say of the same inputs, in words.

use msprobe_report::console::Level;
use msprobe_tensor::{DTypeClass, statistics};

use crate::verdict::{Leaf, Plain};

/// Whether outputs overflow: the largest is infinity, the smallest minus infinity, or something is NaN. Nothing where a bool is
/// among them.
pub fn overflows(leaves: &[Leaf<'_>]) -> Option<bool> {
    if leaves.iter().any(is_bool) {
        return None;
    }
    Some(leaves.iter().any(|leaf| match leaf {
        Leaf::Tensor(view) if matches!(view.dtype().class(), DTypeClass::Float | DTypeClass::Complex) => {
            let stats = statistics(view);
            stats.nan_count + stats.pos_inf_count + stats.neg_inf_count > 0
        }
        Leaf::Plain { value: Plain::Float(value), .. } => !value.is_finite(),
        _ => false,
    }))
}

/// A Python bool; tensors of bools merely hold nothing that could overflow.
fn is_bool(leaf: &Leaf<'_>) -> bool {
    matches!(leaf, Leaf::Plain { type_text, .. } if type_text == "<class 'bool'>")
}

/// What is said of an API that ran. `device_overflows` is the device's own test; without one its outputs decide. Strictly, what
/// overflows on neither side is no overflow of any kind.
pub fn message(
    full_name: &str,
    bench: Option<&[Leaf<'_>]>,
    device: Option<&[Leaf<'_>]>,
    device_overflows: Option<bool>,
    is_strict: bool,
) -> (Level, String) {
    let (Some(bench), Some(device)) = (bench, device) else {
        return (
            Level::Warning,
            format!("The {full_name} overflow is a normal overflow, out and npu_out is None."),
        );
    };
    let on_device = device_overflows.or_else(|| overflows(device));
    let (Some(on_bench), Some(on_device)) = (overflows(bench), on_device) else {
        return (
            Level::Warning,
            format!(
                "The output of {full_name} is bool type.This dtype not support overflow, so it will be skipped."
            ),
        );
    };
    if on_bench != on_device {
        return (Level::Warning, format!("The {full_name} overflow is an abnormal overflow."));
    }
    if is_strict && !on_bench {
        return (Level::Info, format!("The {full_name} does not overflow."));
    }
    (Level::Warning, format!("The {full_name} overflow is a normal overflow."))
}

/// What is said of an API that raised.
pub fn failure(full_name: &str, error: &str) -> (Level, String) {
    let name = crate::Call::parse(full_name).map_or_else(|| full_name.to_owned(), |call| call.name);
    if error.contains("not implemented for 'Half'") {
        let text = format!(
            "API {name} not support half tensor in CPU. This API does not support overflow check, so it will be skipped."
        );
        return (Level::Warning, text);
    }
    if error.contains("expected scalar type Long") {
        let text = format!(
            "API {name} not support int32 tensor in CPU, please add {name} to CONVERT_API 'int32_to_int64' list in \
             accuracy_tools/msprobe/core/common/const.py file."
        );
        return (Level::Warning, text);
    }
    if error.contains("could not create a primitive descriptor for a matmul primitive") {
        let text = format!(
            "API {name} not support matmul primitive in CPU due to pytorch bug, so it will be skipped."
        );
        return (Level::Warning, text);
    }
    (Level::Error, format!("Run {full_name} UT Error: {error}"))
}

#[cfg(test)]
mod tests {
    use msprobe_tensor::{DType, TensorView};

    use super::*;

    fn tensor(values: &[f32]) -> Leaf<'_> {
        Leaf::Tensor(
            TensorView::contiguous(DType::F32, vec![values.len()], bytemuck::cast_slice(values)).unwrap(),
        )
    }

    #[test]
    fn the_three_kinds() {
        let (good, bad) = ([1.0, 2.0], [1.0, f32::INFINITY]);
        let said = |bench: &[f32], device: &[f32], is_strict| {
            message("Torch.exp.0", Some(&[tensor(bench)]), Some(&[tensor(device)]), None, is_strict).1
        };
        assert_eq!(said(&bad, &bad, true), "The Torch.exp.0 overflow is a normal overflow.");
        assert_eq!(said(&good, &bad, false), "The Torch.exp.0 overflow is an abnormal overflow.");
        assert_eq!(said(&good, &good, false), "The Torch.exp.0 overflow is a normal overflow.");
        assert_eq!(said(&good, &good, true), "The Torch.exp.0 does not overflow.");
        let none = message("VF.lstm.0", None, None, None, false).1;
        assert_eq!(none, "The VF.lstm.0 overflow is a normal overflow, out and npu_out is None.");
    }

    #[test]
    fn bools_are_left_out() {
        let flag = Leaf::Plain { type_text: "<class 'bool'>".into(), value: Plain::Int("1".into()) };
        assert_eq!(overflows(std::slice::from_ref(&flag)), None);
        let (level, text) = message(
            "Torch.equal.0",
            Some(std::slice::from_ref(&flag)),
            Some(std::slice::from_ref(&flag)),
            None,
            false,
        );
        assert_eq!(level, Level::Warning);
        assert!(text.starts_with("The output of Torch.equal.0 is bool type.This dtype"), "{text}");
        assert_eq!(overflows(&[Leaf::None]), Some(false));
    }

    #[test]
    fn failures_any_name_survives() {
        assert_eq!(failure("a.b.c.d.e", "boom"), (Level::Error, "Run a.b.c.d.e UT Error: boom".to_owned()));
        assert!(
            failure("Torch.a.b.0", "x not implemented for 'Half'").1.starts_with("API a.b not support half")
        );
    }
}
