//! Text from files on a terminal: what would move the cursor, change colours or turn lines around is shown instead.

use std::fmt;

/// Text as one line that a terminal shows as it is: control characters, line breaks and marks of direction become
/// escapes.
#[derive(Debug, Clone, Copy)]
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(acts_on_terminals) {
            let (plain, from) = rest.split_at(at);
            f.write_str(plain)?;
            let mut letters = from.chars();
            match letters.next() {
                Some('\n') => f.write_str("\\n")?,
                Some('\r') => f.write_str("\\r")?,
                Some('\t') => f.write_str("\\t")?,
                Some(other) if u32::from(other) < 0x100 => write!(f, "\\x{:02x}", u32::from(other))?,
                Some(other) => write!(f, "\\u{{{:x}}}", u32::from(other))?,
                None => {}
            }
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

/// Whether a character does something else than stand where it is: control characters, separators of lines, marks that turn
/// the direction of what follows, and the tags nobody sees.
fn acts_on_terminals(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Writes several lines of our own, each as [`Visible`].
pub fn write_visible_lines<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    out: &mut impl std::io::Write,
) -> std::io::Result<()> {
    for line in lines {
        writeln!(out, "{}", Visible(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_acts_is_escaped() {
        for plain in ["", "Torch.add.0.forward", "权重 ÄÖ 🙂 e\u{301} \\x1b", "שלום"] {
            assert_eq!(Visible(plain).to_string(), plain);
        }
        for (text, shown) in [
            ("a\x1b[31mred\x1b[0m", "a\\x1b[31mred\\x1b[0m"),
            ("one\ntwo\r\tthree", "one\\ntwo\\r\\tthree"),
            ("\u{9b}31m\u{7f}\0", "\\x9b31m\\x7f\\x00"),
            ("x\u{202e}gnp.exe\u{2066}", "x\\u{202e}gnp.exe\\u{2066}"),
            ("a\u{2028}b\u{feff}", "a\\u{2028}b\\u{feff}"),
            ("\x1b", "\\x1b"),
        ] {
            assert_eq!(Visible(text).to_string(), shown);
        }
    }

    #[test]
    fn nothing_acts_afterwards() {
        // Every character there is, one after the other.
        let all: String = ('\0'..=char::MAX).collect();
        assert!(!Visible(&all).to_string().contains(acts_on_terminals));
    }
}
