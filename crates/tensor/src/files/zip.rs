//! The directory of a zip archive, read in place: names and where their bytes lie. Only what tensor files
//! need: entries stored without compression, ZIP64, no decompression.
//!
//! The central directory is the authority; every local header must agree with it, and no two entries may
//! share a byte. Memory use is a small multiple of the directory's own bytes, whatever it claims.

use std::collections::HashMap;
use std::ops::Range;

use super::{FormatError, malformed};

const LOCAL_SIGNATURE: &[u8; 4] = b"PK\x03\x04";
const CENTRAL_SIGNATURE: &[u8; 4] = b"PK\x01\x02";
const END_SIGNATURE: &[u8; 4] = b"PK\x05\x06";
const END64_SIGNATURE: &[u8; 4] = b"PK\x06\x06";
const LOCATOR64_SIGNATURE: &[u8; 4] = b"PK\x06\x07";
const LOCAL_LEN: usize = 30;
const CENTRAL_LEN: usize = 46;
const END_LEN: usize = 22;
const END64_LEN: usize = 56;
const LOCATOR64_LEN: usize = 20;
const MAX_COMMENT_LEN: usize = u16::MAX as usize;

const METHOD_STORED: u16 = 0;
const FLAG_ENCRYPTED: u16 = 1;
const FLAG_SIZES_FOLLOW: u16 = 1 << 3;
const ZIP64_EXTRA: u16 = 1;

/// Whether the bytes open like a zip archive.
pub(crate) fn is_zip(file: &[u8]) -> bool {
    file.starts_with(LOCAL_SIGNATURE) || file.starts_with(END_SIGNATURE)
}

/// One file of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    /// Its path, free of `..`, NUL, backslashes and a leading slash.
    pub(crate) name: &'a str,
    method: u16,
    encrypted: bool,
    /// Local header and data: what must not overlap with another entry.
    span: Range<usize>,
    data: Range<usize>,
}

impl Entry<'_> {
    /// Where the entry's bytes lie in the archive, if they lie there as they are.
    pub(crate) fn stored(&self) -> Result<Range<usize>, FormatError> {
        if self.encrypted {
            return Err(FormatError::Unsupported(format!("zip entry `{}` is encrypted", self.name)));
        }
        if self.method != METHOD_STORED {
            return Err(FormatError::Unsupported(format!(
                "zip entry `{}` is compressed (method {}); torch.save stores entries uncompressed, \
                 repack the archive with `zip -0`",
                self.name, self.method
            )));
        }
        Ok(self.data.clone())
    }
}

/// The entries of an archive by name.
#[derive(Debug)]
pub(crate) struct Archive<'a> {
    entries: Vec<Entry<'a>>,
    by_name: HashMap<&'a str, u32>,
}

impl<'a> Archive<'a> {
    /// Reads the directory of the archive that is `file`.
    pub(crate) fn parse(file: &'a [u8]) -> Result<Self, FormatError> {
        let directory = find_directory(file)?;
        let mut entries = Vec::new();
        let mut by_name = HashMap::new();
        let mut at = directory.range.start;
        while at < directory.range.end {
            let (entry, next) = read_entry(file, &directory.range, at)?;
            if by_name.insert(entry.name, entries.len() as u32).is_some() {
                return Err(malformed(format!("zip entry `{}` appears twice", entry.name)));
            }
            entries.push(entry);
            at = next;
        }
        if entries.len() as u64 != directory.count {
            return Err(malformed(format!(
                "the zip end record promises {} entries, its directory has {}",
                directory.count,
                entries.len()
            )));
        }
        refuse_overlaps(&entries)?;
        Ok(Archive { entries, by_name })
    }

    /// All entries, in directory order.
    pub(crate) fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The entry of that exact name.
    pub(crate) fn get(&self, name: &str) -> Option<&Entry<'a>> {
        self.by_name.get(name).and_then(|&index| self.entries.get(index as usize))
    }
}

struct Directory {
    range: Range<usize>,
    count: u64,
}

/// Bytes `at..at + len`, or the error that they are missing.
fn take<'a>(file: &'a [u8], at: usize, len: usize, what: &'static str) -> Result<&'a [u8], FormatError> {
    at.checked_add(len).and_then(|end| file.get(at..end)).ok_or_else(|| FormatError::Truncated {
        what,
        needed: len as u64,
        available: file.len().saturating_sub(at) as u64,
    })
}

// The callers have taken a header of fixed length; the offsets are constants inside it. Zero for a slip.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u16::from_le_bytes(b))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u32::from_le_bytes(b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u64::from_le_bytes(b))
}

fn to_usize(value: u64, what: &str) -> Result<usize, FormatError> {
    usize::try_from(value).map_err(|_| malformed(format!("{what} {value} is beyond this machine's memory")))
}

/// The end record, searched from the end of the file: its comment must reach exactly to the last byte.
fn find_end(file: &[u8]) -> Result<usize, FormatError> {
    let last = file.len().checked_sub(END_LEN).ok_or(FormatError::Truncated {
        what: "zip end record",
        needed: END_LEN as u64,
        available: file.len() as u64,
    })?;
    (last.saturating_sub(MAX_COMMENT_LEN)..=last)
        .rev()
        .find(|&at| {
            file[at..].starts_with(END_SIGNATURE)
                && u16_at(&file[at..], 20) as usize == file.len() - at - END_LEN
        })
        .ok_or_else(|| malformed("no zip end record: the file is cut short or has something appended"))
}

fn find_directory(file: &[u8]) -> Result<Directory, FormatError> {
    let end_at = find_end(file)?;
    let end = take(file, end_at, END_LEN, "zip end record")?;
    if u16_at(end, 4) != 0 || u16_at(end, 6) != 0 {
        return Err(FormatError::Unsupported("a zip archive split over several disks".into()));
    }
    if u16_at(end, 8) != u16_at(end, 10) {
        return Err(malformed("the zip end record names two different entry counts"));
    }
    let mut count = u64::from(u16_at(end, 10));
    let mut size = u64::from(u32_at(end, 12));
    let mut start = u64::from(u32_at(end, 16));
    let mut limit = end_at;
    let locator = end_at
        .checked_sub(LOCATOR64_LEN)
        .map(|at| &file[at..end_at])
        .filter(|locator| locator.starts_with(LOCATOR64_SIGNATURE));
    if let Some(locator) = locator {
        let end64_at = to_usize(u64_at(locator, 8), "zip64 end record offset")?;
        let end64 = take(file, end64_at, END64_LEN, "zip64 end record")?;
        if !end64.starts_with(END64_SIGNATURE) {
            return Err(malformed("the zip64 locator does not point at a zip64 end record"));
        }
        let wide = [u64_at(end64, 32), u64_at(end64, 40), u64_at(end64, 48)];
        let narrow = [(count, 0xffff), (size, 0xffff_ffff), (start, 0xffff_ffff)];
        if narrow.iter().zip(wide).any(|(&(value, sentinel), wide)| value != sentinel && value != wide) {
            return Err(malformed("the zip end record and the zip64 end record contradict each other"));
        }
        [count, size, start] = wide;
        limit = end64_at;
    }
    let directory_end = start.checked_add(size).filter(|&end| end <= limit as u64).ok_or_else(|| {
        malformed(format!("the zip directory of {size} bytes at {start} does not end before its end record"))
    })?;
    Ok(Directory { range: start as usize..directory_end as usize, count })
}

/// The central record at `at` and its local header; also where the next central record begins.
fn read_entry<'a>(
    file: &'a [u8],
    directory: &Range<usize>,
    at: usize,
) -> Result<(Entry<'a>, usize), FormatError> {
    let inside = &file[..directory.end];
    let record = take(inside, at, CENTRAL_LEN, "zip directory record")?;
    if !record.starts_with(CENTRAL_SIGNATURE) {
        return Err(malformed(format!("no zip directory record at byte {at}")));
    }
    let flags = u16_at(record, 8);
    let method = u16_at(record, 10);
    let (name_len, extra_len) = (u16_at(record, 28) as usize, u16_at(record, 30) as usize);
    let comment_len = u16_at(record, 32) as usize;
    let name = take(inside, at + CENTRAL_LEN, name_len, "zip entry name")?;
    let extra = take(inside, at + CENTRAL_LEN + name_len, extra_len, "zip entry extra field")?;
    let next = at + CENTRAL_LEN + name_len + extra_len + comment_len;
    let name = check_name(name)?;

    let mut compressed = u64::from(u32_at(record, 20));
    let mut size = u64::from(u32_at(record, 24));
    let mut local_at = u64::from(u32_at(record, 42));
    widen(extra, [&mut size, &mut compressed, &mut local_at])
        .ok_or_else(|| malformed(format!("zip entry `{name}` has a broken zip64 field")))?;
    if method == METHOD_STORED && size != compressed {
        return Err(malformed(format!(
            "zip entry `{name}` is stored but has two sizes, {size} and {compressed}"
        )));
    }

    let local_at = to_usize(local_at, "zip entry offset")?;
    let header = take(file, local_at, LOCAL_LEN, "zip local header")?;
    if !header.starts_with(LOCAL_SIGNATURE) {
        return Err(malformed(format!("zip entry `{name}` has no local header at byte {local_at}")));
    }
    let local_name_len = u16_at(header, 26) as usize;
    let local_extra_len = u16_at(header, 28) as usize;
    let local_name = take(file, local_at + LOCAL_LEN, local_name_len, "zip local name")?;
    let data_start = local_at + LOCAL_LEN + local_name_len + local_extra_len;
    let local_extra =
        take(file, local_at + LOCAL_LEN + local_name_len, local_extra_len, "zip local extra field")?;
    let mut local_compressed = u64::from(u32_at(header, 18));
    let mut local_size = u64::from(u32_at(header, 22));
    widen(local_extra, [&mut local_size, &mut local_compressed, &mut 0])
        .ok_or_else(|| malformed(format!("zip entry `{name}` has a broken zip64 field")))?;
    let sizes_follow = u16_at(header, 6) & FLAG_SIZES_FOLLOW != 0 && local_compressed == 0;
    if local_name != name.as_bytes()
        || u16_at(header, 8) != method
        || (!sizes_follow && (local_size, local_compressed) != (size, compressed))
    {
        return Err(malformed(format!("the local header of zip entry `{name}` contradicts the directory")));
    }

    // Entries lie before the directory, so this also keeps them inside the file.
    let available = directory.start.saturating_sub(data_start) as u64;
    if compressed > available {
        return Err(FormatError::Truncated { what: "zip entry", needed: compressed, available });
    }
    let data = data_start..data_start + compressed as usize;
    let encrypted = flags & FLAG_ENCRYPTED != 0;
    Ok((Entry { name, method, encrypted, span: local_at..data.end, data }, next))
}

/// Replaces fields that hold the 32-bit sentinel by the 64-bit values of the zip64 extra field, which lists
/// only those. `None` if it ends early.
fn widen(mut extra: &[u8], fields: [&mut u64; 3]) -> Option<()> {
    while let Some((header, rest)) = extra.split_first_chunk::<4>() {
        let (id, len) = (u16_at(header, 0), u16_at(header, 2) as usize);
        let mut body = rest.get(..len)?;
        extra = &rest[len..];
        if id != ZIP64_EXTRA {
            continue;
        }
        for field in fields {
            if *field == 0xffff_ffff {
                let (value, rest) = body.split_first_chunk::<8>()?;
                *field = u64::from_le_bytes(*value);
                body = rest;
            }
        }
        return Some(());
    }
    Some(())
}

fn check_name(name: &[u8]) -> Result<&str, FormatError> {
    let text = std::str::from_utf8(name).map_err(|_| {
        malformed(format!("zip entry name {:?} is not UTF-8", name.escape_ascii().to_string()))
    })?;
    if text.is_empty() {
        return Err(malformed("a zip entry without a name"));
    }
    if text.starts_with('/') || text.contains(['\\', '\0']) || text.split('/').any(|part| part == "..") {
        return Err(FormatError::Refused(format!("zip entry name {text:?} could escape its archive")));
    }
    Ok(text)
}

fn refuse_overlaps(entries: &[Entry<'_>]) -> Result<(), FormatError> {
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    let entry = |index: u32| &entries[index as usize];
    order.sort_unstable_by_key(|&index| entry(index).span.start);
    match order.windows(2).find(|pair| entry(pair[1]).span.start < entry(pair[0]).span.end) {
        None => Ok(()),
        Some(pair) => Err(FormatError::Refused(format!(
            "zip entries `{}` and `{}` overlap",
            entry(pair[0]).name,
            entry(pair[1]).name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of stored entries, laid out by hand.
    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for (name, data) in entries {
            let at = file.len() as u32;
            let (name_len, size) = (name.len() as u16, data.len() as u32);
            file.extend_from_slice(LOCAL_SIGNATURE);
            file.extend_from_slice(&[0; 14]);
            file.extend_from_slice(&size.to_le_bytes());
            file.extend_from_slice(&size.to_le_bytes());
            file.extend_from_slice(&name_len.to_le_bytes());
            file.extend_from_slice(&[0; 2]);
            file.extend_from_slice(name.as_bytes());
            file.extend_from_slice(data);
            directory.extend_from_slice(CENTRAL_SIGNATURE);
            directory.extend_from_slice(&[0; 16]);
            directory.extend_from_slice(&size.to_le_bytes());
            directory.extend_from_slice(&size.to_le_bytes());
            directory.extend_from_slice(&name_len.to_le_bytes());
            directory.extend_from_slice(&[0; 12]);
            directory.extend_from_slice(&at.to_le_bytes());
            directory.extend_from_slice(name.as_bytes());
        }
        let start = file.len() as u32;
        file.extend_from_slice(&directory);
        file.extend_from_slice(END_SIGNATURE);
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(&(entries.len() as u16).to_le_bytes());
        file.extend_from_slice(&(entries.len() as u16).to_le_bytes());
        file.extend_from_slice(&(directory.len() as u32).to_le_bytes());
        file.extend_from_slice(&start.to_le_bytes());
        file.extend_from_slice(&[0; 2]);
        file
    }

    #[test]
    fn finds_entries_where_they_lie() {
        let file = archive(&[("a/x", b"hello"), ("a/y", b""), ("a/z", b"!")]);
        let zip = Archive::parse(&file).unwrap();
        assert_eq!(zip.entries().iter().map(|e| e.name).collect::<Vec<_>>(), ["a/x", "a/y", "a/z"]);
        assert_eq!(&file[zip.get("a/x").unwrap().stored().unwrap()], b"hello");
        assert_eq!(&file[zip.get("a/z").unwrap().stored().unwrap()], b"!");
        assert!(zip.get("x").is_none());
    }

    #[test]
    fn refuses_names_that_escape() {
        for name in ["/etc/passwd", "a/../../b", "..", "a\\b", "a\0b"] {
            let error = Archive::parse(&archive(&[(name, b"x")])).unwrap_err();
            assert!(
                matches!(&error, FormatError::Refused(text) if text.contains("escape")),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn duplicate_names_are_malformed() {
        let error = Archive::parse(&archive(&[("a", b"x"), ("a", b"y")])).unwrap_err();
        assert!(error.to_string().contains("appears twice"), "{error}");
    }

    #[test]
    fn a_comment_may_follow_and_may_hold_a_false_end_record() {
        let mut file = archive(&[("a", b"x")]);
        let at = file.len() - 2;
        file[at..].copy_from_slice(&30u16.to_le_bytes());
        file.extend_from_slice(b"PK\x05\x06");
        file.extend_from_slice(&[7; 26]);
        assert_eq!(Archive::parse(&file).unwrap().entries().len(), 1);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let file = archive(&[("a/x", b"hello"), ("a/y", b"there")]);
        for len in 0..file.len() {
            assert!(Archive::parse(&file[..len]).is_err(), "{len}");
        }
    }
}
