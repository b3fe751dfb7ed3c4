//! The section of the gradient probe.

use serde_json::{Map, Number, Value};

use super::error::Refusal;
use super::python;
use crate::words::{Word, words};

words! {
    /// How much is recorded of each gradient.
    GradLevel {
        /// Statistics and a checksum.
        L0 = "L0",
        /// Statistics and directions.
        L1 = "L1",
        /// These and a distribution.
        L2 = "L2",
    }
}

/// Bounds where the section has none.
const DEFAULT_BOUNDS: [i64; 3] = [-1, 0, 1];
/// 2^63, which bounds are below.
const BEYOND_INT64: f64 = 9_223_372_036_854_775_808.0;

/// What to record of gradients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradProbe {
    /// How much.
    pub level: GradLevel,
    /// Full names of the parameters; `None` for all.
    pub param_list: Option<Vec<String>>,
    /// Where intervals of the distribution end, ascending.
    pub bounds: Vec<Bound>,
    /// Whether directions are stored as bits.
    pub compact_direction: bool,
    /// Whether a sketch of each gradient stands for its directions.
    pub sketch: bool,
}

/// Where an interval ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    text: String,
    /// Of the float32, which would not be `Eq`.
    bits: u32,
}

impl Bound {
    fn new(value: &Value, number: &Number) -> Bound {
        let rounded = number.as_f64().unwrap_or(f64::NAN) as f32;
        Bound { text: python::repr(value), bits: rounded.to_bits() }
    }

    /// The number as Python prints it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What elements are compared with.
    pub fn value(&self) -> f32 {
        f32::from_bits(self.bits)
    }
}

impl GradProbe {
    /// Whether a parameter is recorded.
    pub fn wants(&self, parameter: &str) -> bool {
        self.param_list.as_ref().is_none_or(|names| names.iter().any(|name| name == parameter))
    }

    /// Reads the members of the section, in the order and with the texts that scripts know.
    pub(super) fn read(members: Option<&Map<String, Value>>) -> Result<GradProbe, Refusal> {
        let get = |key: &str| members.and_then(|members| members.get(key));
        let level = match get("grad_level") {
            None => GradLevel::L1,
            Some(value) => value.as_str().and_then(GradLevel::find).ok_or_else(|| {
                let words = python::repr_all::<GradLevel>();
                Refusal::plain(format!("grad_level must be one of dict_keys({words})"))
            })?,
        };
        let param_list = match get("param_list") {
            None => None,
            Some(Value::Array(names)) if names.is_empty() => None,
            // What is no string is the name of nothing.
            Some(Value::Array(names)) => {
                Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            Some(_) => return Err(Refusal::plain("param_list must be a list")),
        };
        let bounds = match get("bounds") {
            None => read_bounds(&DEFAULT_BOUNDS.map(Value::from))?,
            Some(Value::Array(bounds)) => read_bounds(bounds)?,
            Some(_) => return Err(Refusal::plain("bounds must be a list")),
        };
        let switch = |key: &str| match get(key) {
            None => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err(Refusal::plain(format!("{key} must be a boolean"))),
        };
        let (compact_direction, sketch) = (switch("compact_direction")?, switch("sketch")?);
        if compact_direction && sketch {
            return Err(Refusal::plain(
                "compact_direction and sketch cannot both be true: a sketch stands for the directions",
            ));
        }
        Ok(GradProbe { level, param_list, bounds, compact_direction, sketch })
    }
}

fn read_bounds(values: &[Value]) -> Result<Vec<Bound>, Refusal> {
    let mut bounds = Vec::with_capacity(values.len());
    let mut before: Option<&Number> = None;
    for value in values {
        let Value::Number(number) = value else {
            return Err(Refusal::plain("bounds element is not int or float"));
        };
        if !is_int64(number) {
            return Err(Refusal::plain("bounds element is out of int64 range"));
        }
        if before.is_some_and(|before| !is_below(before, number)) {
            return Err(Refusal::plain("bounds list is not ascending"));
        }
        before = Some(number);
        bounds.push(Bound::new(value, number));
    }
    Ok(bounds)
}

fn is_int64(number: &Number) -> bool {
    let in_range = |value: f64| (-BEYOND_INT64..BEYOND_INT64).contains(&value);
    number.as_i64().is_some() || (number.is_f64() && number.as_f64().is_some_and(in_range))
}

/// Integers are compared as such: they can differ where floats do not.
fn is_below(first: &Number, second: &Number) -> bool {
    match (first.as_i64(), second.as_i64()) {
        (Some(first), Some(second)) => first < second,
        _ => first.as_f64() < second.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(section: &Value) -> Result<GradProbe, String> {
        GradProbe::read(section.as_object()).map_err(|refusal| refusal.after(Vec::new()).to_string())
    }

    #[test]
    fn what_is_missing_has_a_default() {
        let probe = GradProbe::read(None).unwrap();
        assert_eq!((probe.level, probe.compact_direction, probe.sketch), (GradLevel::L1, false, false));
        assert!(probe.wants("any"));
        assert!(read(&json!({ "param_list": [] })).unwrap().wants("any"));
        let some = read(&json!({ "param_list": ["a", 1] })).unwrap();
        assert!(some.wants("a") && !some.wants("1") && !some.wants("a.b"));
        assert!(!read(&json!({ "param_list": [1] })).unwrap().wants("any"));
        let texts: Vec<_> = probe.bounds.iter().map(Bound::text).collect();
        assert_eq!(texts, ["-1", "0", "1"]);
    }

    #[test]
    fn bounds_keep_their_text_and_are_compared_as_float32() {
        let probe = read(
            &json!({ "bounds": [-1e-5, 0, 0.01, 1e16, 9_007_199_254_740_992i64, 9_007_199_254_740_993i64] }),
        );
        let error = probe.unwrap_err();
        assert_eq!(error, "bounds list is not ascending");
        let probe =
            read(&json!({ "bounds": [-1e-5, 0, 0.01, 9_007_199_254_740_992i64, 9_007_199_254_740_993i64] }));
        let bounds = probe.unwrap().bounds;
        let texts: Vec<_> = bounds.iter().map(Bound::text).collect();
        assert_eq!(texts, ["-1e-05", "0", "0.01", "9007199254740992", "9007199254740993"]);
        assert_eq!(bounds[2].value(), 0.01f32);
        assert_eq!(read(&json!({ "bounds": [] })).unwrap().bounds, []);
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_scripts_know() {
        for (section, text) in [
            (json!({ "grad_level": "L3" }), "grad_level must be one of dict_keys(['L0', 'L1', 'L2'])"),
            (json!({ "grad_level": "l1" }), "grad_level must be one of dict_keys(['L0', 'L1', 'L2'])"),
            (json!({ "grad_level": null }), "grad_level must be one of dict_keys(['L0', 'L1', 'L2'])"),
            (json!({ "param_list": "a" }), "param_list must be a list"),
            (json!({ "bounds": "a" }), "bounds must be a list"),
            (json!({ "bounds": null }), "bounds must be a list"),
            (json!({ "bounds": [0, true] }), "bounds element is not int or float"),
            (json!({ "bounds": ["0"] }), "bounds element is not int or float"),
            (json!({ "bounds": [0, 9_223_372_036_854_775_808u64] }), "bounds element is out of int64 range"),
            (json!({ "bounds": [9_223_372_036_854_775_808.0] }), "bounds element is out of int64 range"),
            (json!({ "bounds": [-1e300] }), "bounds element is out of int64 range"),
            (json!({ "bounds": [1, 0] }), "bounds list is not ascending"),
            (json!({ "bounds": [0, 0.0] }), "bounds list is not ascending"),
            (json!({ "compact_direction": 1 }), "compact_direction must be a boolean"),
            (json!({ "sketch": "yes" }), "sketch must be a boolean"),
            (
                json!({ "sketch": true, "compact_direction": true }),
                "compact_direction and sketch cannot both be true: a sketch stands for the directions",
            ),
        ] {
            assert_eq!(read(&section).unwrap_err(), text, "{section}");
        }
        assert!(
            read(&json!({ "bounds": [-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_807i64] })).is_ok()
        );
    }
}
