//! What is looked at in a record before it becomes rows: values no collection writes, checksums.

use msprobe_dump::read::Json;

use super::parse::MAX_DEPTH;
use crate::error::{Code, CompareError};

/// Checksums where the reference looks for them: not in keyword arguments, not in nested lists.
pub(super) fn has_shallow_md5(record: &Json<'_>) -> bool {
    let Json::Map(fields) = record else { return false };
    // A keyword argument may have that name; a checksum is a text.
    let is_checksum = |value: &Json<'_>| value.get("md5").is_some_and(|md5| md5.as_str().is_some());
    fields.iter().any(|(_, field)| match field {
        Json::List(elements) => elements.iter().any(is_checksum),
        other => is_checksum(other),
    })
}

pub(super) fn has_md5(value: &Json<'_>) -> bool {
    match value {
        Json::List(elements) => elements.iter().any(has_md5),
        Json::Map(members) => {
            members.iter().any(|(key, member)| key == "md5" && member.as_str().is_some() || has_md5(member))
        }
        _ => false,
    }
}

/// Refuses shapes and flags of the wrong type; `special` tells of text that looks like a formula.
pub(super) fn check_field(
    record: &str,
    value: &Json<'_>,
    depth: usize,
    special: &mut bool,
) -> Result<(), CompareError> {
    if depth > MAX_DEPTH {
        let message = format!("the values of {record} are nested more than {MAX_DEPTH} levels deep");
        return Err(CompareError::new(Code::RecursionLimit, message));
    }
    match value {
        Json::List(elements) => {
            elements.iter().try_for_each(|element| check_field(record, element, depth + 1, special))
        }
        // Keyword arguments may be called like the members of a value.
        Json::Map(members) if value.get("type").is_none_or(|kind| kind.as_str().is_none()) => {
            members.iter().try_for_each(|(_, member)| check_field(record, member, depth + 1, special))
        }
        Json::Map(members) => members.iter().try_for_each(|(key, member)| match (&**key, member) {
            ("shape", Json::List(_)) | ("requires_grad", Json::Bool(_)) => Ok(()),
            ("shape", _) => {
                let message =
                    format!("shape of input or output of {record} is not list or tuple, please check!");
                Err(CompareError::new(Code::InvalidObjectType, message))
            }
            ("requires_grad", _) => {
                let message =
                    format!("requires_grad of input or output of {record} is not bool, please check!");
                Err(CompareError::new(Code::InvalidObjectType, message))
            }
            _ => check_field(record, member, depth + 1, special),
        }),
        Json::Text(text) => {
            *special |= looks_like_a_formula(text);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `^[＋－＝％＠+\-=%@]|;[＋－＝％＠+\-=%@]`.
pub(crate) fn looks_like_a_formula(text: &str) -> bool {
    let leads = |text: &str| text.starts_with(['＋', '－', '＝', '％', '＠', '+', '-', '=', '%', '@']);
    // Nearly every text begins with a letter and has no semicolon.
    if text.as_bytes().first().is_none_or(u8::is_ascii_alphanumeric) && !text.as_bytes().contains(&b';') {
        return false;
    }
    leads(text) || text.split(';').skip(1).any(leads)
}
