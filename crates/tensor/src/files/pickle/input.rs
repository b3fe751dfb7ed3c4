//! Reading the operands of instructions: every length is held against what is left before it is used.

use super::machine::Machine;
use super::opcodes::Op;
use crate::files::{FormatError, malformed};

impl<'a> Machine<'a> {
    pub(super) fn check_remaining(&self, what: &'static str, needed: u64) -> Result<usize, FormatError> {
        let available = (self.end.saturating_sub(self.at)) as u64;
        if needed > available {
            return Err(FormatError::Truncated { what, needed, available });
        }
        Ok(needed as usize)
    }

    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FormatError> {
        self.check_remaining(what, N as u64)?;
        let bytes = self.input.get(self.at..).and_then(<[u8]>::first_chunk::<N>);
        self.at += N;
        bytes.copied().ok_or_else(|| malformed(what))
    }

    /// Steps over `len` bytes and gives them as a range.
    pub(super) fn span(&mut self, what: &'static str, len: u64) -> Result<(u64, u32), FormatError> {
        let len = self.check_remaining(what, len)?;
        let short = u32::try_from(len)
            .map_err(|_| FormatError::Unsupported(format!("{what} of {len} bytes; the limit is 4 GiB")))?;
        let start = self.at as u64;
        self.at += len;
        Ok((start, short))
    }

    pub(super) fn bytes_at(&self, start: u64, len: u32) -> &'a [u8] {
        self.input.get(start as usize..).and_then(|rest| rest.get(..len as usize)).unwrap_or_default()
    }

    /// The length prefix of a text or bytes instruction.
    pub(super) fn length(&mut self, op: Op) -> Result<u64, FormatError> {
        let what = "pickled length";
        Ok(match op {
            Op::ShortBinString | Op::ShortBinUnicode | Op::ShortBinBytes | Op::Long1 => {
                u8::from_le_bytes(self.array(what)?).into()
            }
            Op::BinUnicode | Op::BinBytes => u32::from_le_bytes(self.array(what)?).into(),
            Op::BinString | Op::Long4 => {
                let len = i32::from_le_bytes(self.array(what)?);
                u64::try_from(len).map_err(|_| malformed(format!("negative pickled length {len}")))?
            }
            _ => u64::from_le_bytes(self.array(what)?),
        })
    }

    pub(super) fn line(&mut self) -> Result<&'a [u8], FormatError> {
        let rest = self.input.get(self.at..self.end).unwrap_or_default();
        let len = rest.iter().position(|&byte| byte == b'\n').ok_or(FormatError::Truncated {
            what: "line of a pickle",
            needed: rest.len() as u64 + 1,
            available: rest.len() as u64,
        })?;
        self.at += len + 1;
        let line = rest.get(..len).unwrap_or_default();
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    pub(super) fn text_line(&mut self) -> Result<&'a str, FormatError> {
        let at = self.at;
        std::str::from_utf8(self.line()?)
            .map_err(|_| malformed(format!("pickled text at byte {at} is not UTF-8")))
    }
}
