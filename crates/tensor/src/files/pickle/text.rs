//! The escaped texts of protocol 0.

/// Protocol 0's UNICODE: Latin-1 with `\u1234` and `\U00012345`. `None` for a broken escape.
pub(super) fn unescape_unicode(line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = line;
    let mut buffer = [0; 4];
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = match (byte, tail.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        let character = if digits == 0 {
            rest = tail;
            char::from(byte)
        } else {
            let hex = tail.get(1..=digits)?;
            rest = tail.get(digits + 1..)?;
            char::from_u32(u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?)?
        };
        out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
    }
    Some(())
}

/// Protocol 0's STRING: a Python literal of bytes, quotes included. `None` for a broken escape or quote.
pub(super) fn unescape_literal(line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let line = line.trim_ascii();
    let quote = *line.first().filter(|&&quote| quote == b'\'' || quote == b'"')?;
    let mut rest = line.get(1..)?.strip_suffix(&[quote])?;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&escape, tail) = rest.split_first()?;
        rest = tail;
        out.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'\\' | b'\'' | b'"' => escape,
            b'x' => {
                let hex = rest.get(..2)?;
                rest = rest.get(2..)?;
                u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_escapes() {
        let mut out = Vec::new();
        unescape_unicode(b"a\\u00e9\xe9\\U0001f600\\n", &mut out).unwrap();
        assert_eq!(out, "aéé😀\\n".as_bytes());
        for broken in [&b"\\u12"[..], b"\\ud800", b"\\uzzzz", b"\\U00110000"] {
            assert_eq!(unescape_unicode(broken, &mut Vec::new()), None);
        }
    }

    #[test]
    fn string_literals() {
        let mut out = Vec::new();
        unescape_literal(br#"'a\n\x00\xff\'"\\'"#, &mut out).unwrap();
        assert_eq!(out, b"a\n\x00\xff'\"\\");
        for broken in [&b"a"[..], b"'a", b"'", b"'\\'", b"'\\x1'", b"'\\q'"] {
            assert_eq!(unescape_literal(broken, &mut Vec::new()), None, "{broken:?}");
        }
    }
}
