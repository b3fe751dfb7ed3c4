//! `seed` and `is_deterministic`: repeatable runs by configuration, as `seed_all` makes them by a call.

use serde_json::{Map, Value};

use super::error::Refusal;
use super::python;

/// Neither key, or `null`, means that random numbers are left alone.
pub(super) fn seed(file: &Map<String, Value>) -> Result<Option<u32>, Refusal> {
    match file.get("seed") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().and_then(|seed| u32::try_from(seed).ok()) {
            Some(seed) => Ok(Some(seed)),
            None => Err(Refusal::logged(format!(
                "seed is invalid, it should be an integer between 0 and {}, currently it is {}",
                u32::MAX,
                python::repr(value)
            ))),
        },
    }
}

/// Whether deterministic algorithms are asked for; `None` if the file does not say.
pub(super) fn is_deterministic(file: &Map<String, Value>) -> Result<Option<bool>, Refusal> {
    match file.get("is_deterministic") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(*on)),
        Some(value) => Err(Refusal::logged(format!(
            "is_deterministic is invalid, it should be a boolean, currently it is {}",
            python::repr(value)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Config, Overrides};
    use super::*;
    use crate::framework::Framework;

    fn read(mut file: Value) -> Result<(Option<u32>, Option<bool>), String> {
        file["dump_path"] = json!("d");
        match Config::from_json(&file.to_string(), &Overrides::default(), &Framework::known()) {
            Ok(resolved) => Ok((resolved.config.seed, resolved.config.is_deterministic)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn both_keys_are_read() {
        assert_eq!(read(json!({})), Ok((None, None)));
        assert_eq!(read(json!({ "seed": null, "is_deterministic": null })), Ok((None, None)));
        assert_eq!(read(json!({ "seed": 1234, "is_deterministic": false })), Ok((Some(1234), Some(false))));
        assert_eq!(read(json!({ "seed": 0, "is_deterministic": true })), Ok((Some(0), Some(true))));
        assert_eq!(read(json!({ "seed": u32::MAX })), Ok((Some(u32::MAX), None)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for wrong in [json!(-1), json!(4_294_967_296u64), json!(1.0), json!("1234"), json!(true), json!([1])]
        {
            let error = read(json!({ "seed": wrong })).unwrap_err();
            assert!(
                error.starts_with("seed is invalid, it should be an integer between 0 and 4294967295"),
                "{error}"
            );
        }
        for wrong in [json!(0), json!("false"), json!([])] {
            let error = read(json!({ "is_deterministic": wrong })).unwrap_err();
            assert!(error.starts_with("is_deterministic is invalid, it should be a boolean"), "{error}");
        }
    }
}
