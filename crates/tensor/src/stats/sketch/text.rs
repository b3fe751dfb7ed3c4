//! The text form of a sketch: a digit for the version, a letter for what there is, and numbers in base64.

use std::fmt;
use std::str::FromStr;

use super::{COMPONENTS, Columns, Content, EIGHTHS, Sketch, Sums};

const VERSION: char = '1';
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Components come in pairs of 28 bits.
const COMPONENT_BITS: u32 = 28;
/// Beyond this no tensor has numbers.
const MAX_EXPONENT: i16 = 1000;
/// Bytes of the longest sketch.
const MAX_BYTES: usize = 8 + 2 + 3 + 7 * COMPONENTS / 2 + 3 * EIGHTHS + 2 + 3 * EIGHTHS;

/// Why a text is not a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SketchTextError {
    /// It is of a version that is not known here.
    #[error(
        "the sketch is of a version other than {VERSION}; read it with the msprobe that wrote it, or a newer one"
    )]
    Version,
    /// Its letter is unknown, or what follows has another length or other characters than the letter says.
    #[error("the sketch is damaged")]
    Damaged,
}

/// Characters of the longest sketch.
const MAX_CHARACTERS: usize = 2 + MAX_BYTES.div_ceil(3) * 4;

/// The text of a sketch, kept in place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SketchText {
    characters: [u8; MAX_CHARACTERS],
    len: u8,
}

impl SketchText {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        let characters = self.characters.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(characters).unwrap_or_default()
    }
}

impl fmt::Debug for SketchText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Sketch {
    /// The text form, without an allocation.
    pub fn text(&self) -> SketchText {
        let mut bytes = Bytes { all: [0; MAX_BYTES], len: 0 };
        bytes.push(8, self.hash);
        let letter = match &self.content {
            Content::Nothing => b'h',
            Content::Zero => b'z',
            Content::Sums(sums) => {
                bytes.push(2, u64::from(sums.exponent.cast_unsigned()));
                bytes.push(3, u64::from(sums.norm));
                for pair in sums.components.as_chunks::<2>().0 {
                    let [low, high] = pair.map(|component| low_bits(component, COMPONENT_BITS));
                    bytes.push(7, low | high << COMPONENT_BITS);
                }
                if let Some(rows) = &sums.rows {
                    bytes.push_eighths(rows);
                }
                if let Some(columns) = &sums.columns {
                    bytes.push(2, u64::from(columns.width));
                    bytes.push_eighths(&columns.sums);
                }
                match (&sums.rows, &sums.columns) {
                    (None, None) => b'm',
                    (Some(_), None) => b'r',
                    (None, Some(_)) => b'k',
                    (Some(_), Some(_)) => b'c',
                }
            }
        };
        let mut characters = [0; MAX_CHARACTERS];
        characters[..2].copy_from_slice(&[VERSION as u8, letter]);
        // Bytes behind the last are zero: whole threes are encoded, and what stands for nothing is left out.
        let threes = bytes.all[..bytes.len.next_multiple_of(3).min(MAX_BYTES)].chunks(3);
        for (three, four) in threes.zip(characters[2..].as_chunks_mut::<4>().0) {
            let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
            let word = byte(0) << 16 | byte(1) << 8 | byte(2);
            *four = [18, 12, 6, 0].map(|shift| ALPHABET[(word >> shift & 63) as usize]);
        }
        SketchText { characters, len: (2 + (bytes.len * 8).div_ceil(6)) as u8 }
    }
}

impl fmt::Display for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl FromStr for Sketch {
    type Err = SketchTextError;

    fn from_str(text: &str) -> Result<Sketch, SketchTextError> {
        let text = text.strip_prefix(VERSION).ok_or(SketchTextError::Version)?;
        parse(text.as_bytes()).ok_or(SketchTextError::Damaged)
    }
}

fn parse(text: &[u8]) -> Option<Sketch> {
    let (&letter, text) = text.split_first()?;
    let mut bytes = decode(text)?;
    let hash = bytes.take(8)?;
    let content = match letter {
        b'h' => Content::Nothing,
        b'z' => Content::Zero,
        b'm' | b'r' | b'k' | b'c' => {
            let exponent = (bytes.take(2)? as u16).cast_signed();
            if exponent.unsigned_abs() > MAX_EXPONENT.unsigned_abs() {
                return None;
            }
            let norm = bytes.take(3)? as u32;
            let mut components = [0; COMPONENTS];
            for pair in components.as_chunks_mut::<2>().0 {
                let both = bytes.take(7)?;
                *pair = [both, both >> COMPONENT_BITS].map(|bits| signed(bits, COMPONENT_BITS));
            }
            let rows = if matches!(letter, b'r' | b'c') { Some(bytes.take_eighths()?) } else { None };
            let columns = if matches!(letter, b'k' | b'c') {
                Some(Columns { width: bytes.take(2)? as u16, sums: bytes.take_eighths()? })
            } else {
                None
            };
            Content::Sums(Sums { exponent, norm, components, rows, columns })
        }
        _ => return None,
    };
    (bytes.at == bytes.len).then_some(Sketch { hash, content })
}

/// The lower bits of a number, two's complement.
fn low_bits(number: i32, bits: u32) -> u64 {
    u64::from(number.cast_unsigned()) & ((1 << bits) - 1)
}

/// The number that [`low_bits`] was given.
fn signed(bits: u64, count: u32) -> i32 {
    let unused = 32 - count;
    ((bits as u32) << unused).cast_signed() >> unused
}

/// The bytes a text stands for.
struct Bytes {
    all: [u8; MAX_BYTES],
    len: usize,
}

impl Bytes {
    /// The lowest `count` bytes of a number, the lowest first.
    fn push(&mut self, count: usize, number: u64) {
        self.all[self.len..self.len + count].copy_from_slice(&number.to_le_bytes()[..count]);
        self.len += count;
    }

    fn push_eighths(&mut self, sums: &[i32; EIGHTHS]) {
        for &sum in sums {
            self.push(3, low_bits(sum, 24));
        }
    }
}

/// Bytes that are read one after the other.
struct Reader {
    all: [u8; MAX_BYTES],
    len: usize,
    at: usize,
}

impl Reader {
    fn take(&mut self, count: usize) -> Option<u64> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.len)?;
        let mut number = [0; 8];
        number.get_mut(..count)?.copy_from_slice(self.all.get(self.at..end)?);
        self.at = end;
        Some(u64::from_le_bytes(number))
    }

    fn take_eighths(&mut self) -> Option<[i32; EIGHTHS]> {
        let mut sums = [0; EIGHTHS];
        for sum in &mut sums {
            *sum = signed(self.take(3)?, 24);
        }
        Some(sums)
    }
}

/// What base64 without padding stands for. `None` for other characters, bits left over, or more than a sketch has.
fn decode(text: &[u8]) -> Option<Reader> {
    let mut reader = Reader { all: [0; MAX_BYTES], len: 0, at: 0 };
    for chunk in text.chunks(4) {
        let mut word = 0u32;
        for &character in chunk {
            word = word << 6 | digit(character)?;
        }
        word <<= 6 * (4 - chunk.len());
        let count = chunk.len().checked_sub(1).filter(|&count| count > 0)?;
        let bytes = word.to_be_bytes();
        let (bytes, left) = bytes[1..].split_at(count);
        if left.iter().any(|&byte| byte != 0) {
            return None;
        }
        reader.all.get_mut(reader.len..reader.len + count)?.copy_from_slice(bytes);
        reader.len += count;
    }
    Some(reader)
}

fn digit(character: u8) -> Option<u32> {
    Some(u32::from(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}
