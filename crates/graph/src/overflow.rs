//! How alarming NaN, infinities and jumps of the norm are in a record, by the rules of the reference.

use msprobe_dump::python_text::python_str;
use msprobe_dump::read::Json;

/// How alarming a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverflowLevel {
    /// What came in is not finite, what went out is.
    Medium,
    /// Neither is finite, or the norm grew a lot.
    High,
    /// What went out is not finite, what came in is.
    Critical,
}

impl OverflowLevel {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            OverflowLevel::Medium => "medium",
            OverflowLevel::High => "high",
            OverflowLevel::Critical => "critical",
        }
    }
}

/// A norm that grows by more than this is alarming.
const MOST_GROWTH: f64 = 100.0;
/// Lists in lists beyond this depth are not looked at.
const MAX_DEPTH: usize = 64;

/// A place where a function has what it does not read, or does not define.
struct Harmless {
    function: &'static str,
    first_input: bool,
    argument: Option<&'static str>,
    first_output: bool,
}

const fn input(function: &'static str, argument: Option<&'static str>) -> Harmless {
    Harmless { function, first_input: true, argument, first_output: false }
}

const fn output(function: &'static str) -> Harmless {
    Harmless { function, first_input: false, argument: None, first_output: true }
}

const HARMLESS: [Harmless; 10] = [
    output("torch.empty"),
    output("torch.empty_like"),
    output("torch.empty_strided"),
    input("distributed.recv", Some("tensor")),
    input("distributed.all_gather", None),
    input("distributed.reduce_scatter", Some("output")),
    input("distributed._reduce_scatter_base", None),
    input("distributed.all_gather_into_tensor", None),
    input("distributed.reduce_scatter_tensor", None),
    input("tensor.masked_fill_", None),
];

/// How alarming the record of this name and text is; nothing if it is not.
pub fn overflow_level(name: &str, text: &[u8]) -> Option<OverflowLevel> {
    let record = Json::parse(text).ok()?;
    let list = |key: &str| record.get(key).and_then(Json::as_list);
    let inputs = record.get("input_args").map_or_else(|| list("input"), Json::as_list).unwrap_or_default();
    let kwargs: &[(std::borrow::Cow<'_, str>, Json<'_>)] = match record.get("input_kwargs") {
        Some(Json::Map(members)) => members,
        _ => &[],
    };
    let outputs = list("output").unwrap_or_default();
    let is_odd = |value: &Json<'_>| is_anomalous(value, 0);
    let odd_in = inputs.iter().any(is_odd) || kwargs.iter().any(|(_, value)| is_odd(value));
    let odd_out = outputs.iter().any(is_odd);
    let level = match (odd_in, odd_out) {
        (false, true) => OverflowLevel::Critical,
        (true, true) => OverflowLevel::High,
        (true, false) => OverflowLevel::Medium,
        (false, false) => {
            let before = inputs
                .iter()
                .chain(kwargs.iter().map(|(_, value)| value))
                .filter_map(norm)
                .reduce(f64::max)?;
            let behind = outputs.iter().filter_map(norm).reduce(f64::max)?;
            let growth = if before == 0.0 { behind } else { behind / before };
            (growth > MOST_GROWTH).then_some(OverflowLevel::High)?
        }
    };
    let mut parts = name.splitn(3, '.');
    let function = match (parts.next(), parts.next()) {
        (Some(kind), Some(function)) => format!("{kind}.{function}").to_lowercase(),
        _ => name.to_lowercase(),
    };
    let rule = HARMLESS.iter().find(|rule| rule.function == function);
    let is_excused = rule.is_some_and(|rule| {
        let others = |list: &[Json<'_>]| list.iter().skip(1).any(is_not_finite);
        let other_argument =
            |argument: &str| kwargs.iter().any(|(name, value)| name != argument && is_not_finite(value));
        !(rule.first_input && others(inputs)
            || rule.argument.is_some_and(other_argument)
            || rule.first_output && others(outputs))
    });
    (!is_excused).then_some(level)
}

fn is_anomalous(value: &Json<'_>, depth: usize) -> bool {
    match value {
        Json::List(elements) if depth < MAX_DEPTH => elements.iter().any(|it| is_anomalous(it, depth + 1)),
        other => is_not_finite(other),
    }
}

/// Whether a statistic of a value says so itself.
fn is_not_finite(value: &Json<'_>) -> bool {
    let says = |key: &str| match value.get(key) {
        Some(Json::Float(number)) => !number.is_finite(),
        Some(word @ Json::Text(_)) => {
            let word = python_str(word).to_lowercase();
            matches!(word.as_str(), "inf" | "-inf" | "nan")
        }
        _ => false,
    };
    ["Max", "Min", "Mean"].into_iter().any(says)
}

fn norm(value: &Json<'_>) -> Option<f64> {
    if value.get("type").and_then(Json::as_str) != Some("torch.Tensor") {
        return None;
    }
    match value.get("Norm")? {
        Json::Float(number) => Some(*number).filter(|number| !number.is_nan()),
        Json::Int(number) => Some(*number as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, inputs: &str, outputs: &str) -> Option<&'static str> {
        let text = format!(r#"{{"input_args": [{inputs}], "input_kwargs": {{}}, "output": [{outputs}]}}"#);
        overflow_level(name, text.as_bytes()).map(OverflowLevel::as_str)
    }

    const FINE: &str = r#"{"type": "torch.Tensor", "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 2.0}"#;
    const ODD: &str = r#"{"type": "torch.Tensor", "Max": NaN, "Min": 0.0, "Mean": 0.5, "Norm": 2.0}"#;

    #[test]
    fn levels_follow_what_comes_in_and_goes_out() {
        assert_eq!(level("Torch.log.0.forward", FINE, ODD), Some("critical"));
        assert_eq!(level("Torch.log.0.forward", ODD, &format!("[[{ODD}]]")), Some("high"));
        assert_eq!(level("Torch.log.0.forward", ODD, FINE), Some("medium"));
        assert_eq!(level("Torch.log.0.forward", FINE, FINE), None);
        assert_eq!(level("Torch.log.0.forward", FINE, r#"{"Max": "-INF"}"#), Some("critical"));
    }

    #[test]
    fn a_norm_that_grows_a_hundredfold_is_high() {
        let with = |norm: &str| format!(r#"{{"type": "torch.Tensor", "Norm": {norm}}}"#);
        assert_eq!(level("Torch.a.0.forward", &with("1.0"), &with("100.0")), None);
        assert_eq!(level("Torch.a.0.forward", &with("1.0"), &with("100.1")), Some("high"));
        assert_eq!(level("Torch.a.0.forward", &with("0"), &with("101")), Some("high"));
        assert_eq!(level("Torch.a.0.forward", &with("NaN"), &with("101")), None);
        assert_eq!(
            level("Torch.a.0.forward", r#"{"type": "mindspore.Tensor", "Norm": 1}"#, &with("101")),
            None
        );
    }

    #[test]
    fn what_is_not_read_is_excused() {
        assert_eq!(level("Torch.empty.0.forward", FINE, ODD), None);
        assert_eq!(level("Torch.empty.0.forward", FINE, &format!("{FINE}, {ODD}")), Some("critical"));
        assert_eq!(level("Distributed.all_gather.0.forward", &format!("{ODD}, {FINE}"), FINE), None);
        assert_eq!(
            level("Distributed.all_gather.0.forward", &format!("{FINE}, {ODD}"), FINE),
            Some("medium")
        );
        let kwargs =
            format!(r#"{{"input_args": [], "input_kwargs": {{"tensor": {ODD}}}, "output": [{FINE}]}}"#);
        assert_eq!(overflow_level("Distributed.recv.0.forward", kwargs.as_bytes()), None);
        assert_eq!(
            overflow_level("Distributed.send.0.forward", kwargs.as_bytes()),
            Some(OverflowLevel::Medium)
        );
    }
}
