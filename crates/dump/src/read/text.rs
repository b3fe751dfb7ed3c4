//! Strings without escapes, as they stand in a file.

use std::borrow::Cow;

/// A string of these bytes; what is no text in them is replaced.
pub(super) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    // Most strings of a dump are keys, the same few again and again, and a few bytes are compared faster than they are checked.
    if let Some(word) = known(bytes) {
        return Cow::Borrowed(word);
    }
    // Nearly always it is what it should be, and that is told faster than what is not.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The keys of a record and of what describes a tensor.
fn known(bytes: &[u8]) -> Option<&'static str> {
    let words: &[&'static str] = match bytes.len() {
        3 => &["Max", "Min", "md5"],
        4 => &["type", "Mean", "Norm"],
        5 => &["dtype", "shape", "value"],
        6 => &["output"],
        9 => &["data_name"],
        10 => &["input_args"],
        12 => &["input_kwargs"],
        13 => &["requires_grad"],
        _ => return None,
    };
    words.iter().copied().find(|word| word.as_bytes() == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_its_bytes_known_or_not() {
        for text in ["Max", "max", "type", "kind", "", "größer", "input_kwargs"] {
            assert_eq!(text_of(text.as_bytes()), text);
        }
        assert_eq!(text_of(b"a\xffb"), "a\u{fffd}b");
    }
}
