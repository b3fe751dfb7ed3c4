//! What is known of operations by their names, where it matters for how results are judged. Names are those of
//! [`RecordName::operation`].

use msprobe_dump::names::RecordName;

/// Whether the results of a function are facts about the machine or the memory, not about numbers.
pub(super) fn tells_of_the_machine(operation: &str) -> bool {
    const NAMES: [&str; 9] = [
        "data_ptr",
        "get_device",
        "is_contiguous",
        "is_pinned",
        "storage_offset",
        "stride",
        "storage",
        "untyped_storage",
        "element_size",
    ];
    NAMES.contains(&operation)
}

/// Whether a function returns memory that nobody has written to.
pub(super) fn is_uninitialised(operation: &str) -> bool {
    const NAMES: [&str; 6] =
        ["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_with_format"];
    NAMES.contains(&operation)
}

/// Whether a function gives something quite different where its input passes a threshold: there, a small error of few
/// elements becomes a large one.
pub(super) fn jumps(operation: &str) -> bool {
    const NAMES: [&str; 16] = [
        "relu",
        "relu_",
        "ReLU",
        "relu6",
        "ReLU6",
        "leaky_relu",
        "LeakyReLU",
        "hardtanh",
        "Hardtanh",
        "threshold",
        "clamp",
        "clamp_",
        "max_pool2d",
        "MaxPool2d",
        "maximum",
        "minimum",
    ];
    NAMES.contains(&operation)
}

/// The place of the tensor that a function divides by.
pub(super) fn divisor_of(operation: &str) -> Option<&'static str> {
    match operation {
        "addcdiv" | "addcdiv_" => Some("input.2"),
        "div" | "div_" | "__truediv__" | "__itruediv__" | "true_divide" => Some("input.1"),
        "reciprocal" | "rsqrt" => Some("input.0"),
        _ => None,
    }
}

/// Whether a function returns places of elements it chose by their values.
pub(super) fn chooses(operation: &str) -> bool {
    const NAMES: [&str; 9] =
        ["topk", "sort", "argsort", "argmax", "argmin", "max", "min", "multinomial", "one_hot"];
    NAMES.contains(&operation)
}

/// Whether a call gives the same for inputs that differ by a constant: there, rounding may be all of a difference.
pub(super) fn forgets_offsets(record: &str) -> bool {
    const NAMES: [&str; 6] = ["softmax", "log_softmax", "softmin", "Softmax", "LogSoftmax", "Softmin"];
    NAMES.contains(&RecordName::parse(record).operation())
}
