//! The container of a workbook: a zip file with deflated entries, whose pieces may be compressed apart from each other.

use std::io::{self, Seek, SeekFrom, Write};

use crc32fast::Hasher;
use flate2::{Compress, Compression, FlushCompress, Status};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const END_OF_DIRECTORY: u32 = 0x0605_4b50;
const END_OF_DIRECTORY_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// 2.0 knows deflate, 4.5 sizes of 64 bits.
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
const DEFLATED: u16 = 8;
/// 1 January 1980: the same content gives the same file.
const DATE: u16 = 0x0021;
const EXTRA_ZIP64: u16 = 0x0001;
/// Padding that office packages know ("growth hint"). It keeps the place of the 64-bit sizes where they are not needed.
const EXTRA_PADDING: u16 = 0xA220;
const PADDING_SIGNATURE: u16 = 0xA028;
const LOCAL_EXTRA_BYTES: u16 = 20;
/// A final block without content.
const END_OF_STREAM: [u8; 2] = [0x03, 0x00];
const FULL_32: u64 = u32::MAX as u64;

/// A piece of an entry, compressed without knowledge of the others.
pub(super) struct Piece {
    bytes: Vec<u8>,
    crc: Hasher,
    plain_bytes: u64,
}

/// Compresses pieces; keeps its tables from one to the next.
pub(super) struct Deflater(Compress);

impl Deflater {
    /// The fastest level: what is written here is mostly markup, which shrinks at any level.
    pub(super) fn new() -> Deflater {
        Deflater(Compress::new(Compression::new(1), false))
    }

    /// Compresses up to a byte boundary, so that another piece can follow.
    pub(super) fn piece(&mut self, plain: &[u8]) -> io::Result<Piece> {
        self.0.reset();
        let mut bytes = Vec::with_capacity(plain.len() / 4 + 1024);
        loop {
            let done = self.0.total_in() as usize;
            let status = self
                .0
                .compress_vec(plain.get(done..).unwrap_or_default(), &mut bytes, FlushCompress::Sync)
                .map_err(io::Error::other)?;
            let all_read = self.0.total_in() as usize == plain.len();
            // Room left over means that nothing waits to be written.
            if all_read && bytes.len() < bytes.capacity() {
                break;
            }
            if matches!(status, Status::StreamEnd) {
                return Err(io::Error::other("the compressor stopped early"));
            }
            bytes.reserve(bytes.capacity().max(1024));
        }
        let mut crc = Hasher::new();
        crc.update(plain);
        Ok(Piece { bytes, crc, plain_bytes: plain.len() as u64 })
    }
}

struct Entry {
    name: String,
    offset: u64,
    crc: u32,
    packed_bytes: u64,
    plain_bytes: u64,
}

impl Entry {
    fn is_large(&self) -> bool {
        self.packed_bytes >= FULL_32 || self.plain_bytes >= FULL_32
    }
}

struct Open {
    entry: Entry,
    crc: Hasher,
}

/// Writes entries one after the other.
pub(super) struct Zip<W: Write + Seek> {
    out: W,
    at: u64,
    open: Option<Open>,
    entries: Vec<Entry>,
}

impl<W: Write + Seek> Zip<W> {
    pub(super) fn new(out: W) -> Zip<W> {
        Zip { out, at: 0, open: None, entries: Vec::new() }
    }

    /// A whole entry.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        self.start(name)?;
        self.append(&Deflater::new().piece(content)?)?;
        self.end()
    }

    /// Begins an entry; pieces follow.
    pub(super) fn start(&mut self, name: &str) -> io::Result<()> {
        let entry = Entry { name: name.to_owned(), offset: self.at, crc: 0, packed_bytes: 0, plain_bytes: 0 };
        let header = local_header(&entry);
        self.write(&header)?;
        self.open = Some(Open { entry, crc: Hasher::new() });
        Ok(())
    }

    /// Adds to the entry that was begun.
    pub(super) fn append(&mut self, piece: &Piece) -> io::Result<()> {
        self.write(&piece.bytes)?;
        if let Some(open) = &mut self.open {
            open.entry.packed_bytes += piece.bytes.len() as u64;
            open.entry.plain_bytes += piece.plain_bytes;
            open.crc.combine(&piece.crc);
        }
        Ok(())
    }

    /// Closes the entry: now that its sizes are known, its header is written again.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.write(&END_OF_STREAM)?;
        let Some(Open { mut entry, crc }) = self.open.take() else {
            return Ok(());
        };
        entry.packed_bytes += END_OF_STREAM.len() as u64;
        entry.crc = crc.finalize();
        self.out.seek(SeekFrom::Start(entry.offset))?;
        self.out.write_all(&local_header(&entry))?;
        self.out.seek(SeekFrom::Start(self.at))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the directory.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let start = self.at;
        let mut directory = Vec::new();
        for entry in &self.entries {
            push_central_header(&mut directory, entry);
        }
        let end = start + directory.len() as u64;
        push_end(&mut directory, self.entries.len() as u64, start, end);
        self.write(&directory)?;
        self.out.flush()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// As 32 bits, or all ones where the 64-bit field has to be looked at.
fn short(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn put_common(out: &mut Vec<u8>, entry: &Entry, large: bool) {
    put16(out, if large { VERSION_64 } else { VERSION });
    put16(out, 0);
    put16(out, DEFLATED);
    put16(out, 0);
    put16(out, DATE);
    put32(out, entry.crc);
    put32(out, if entry.is_large() { u32::MAX } else { short(entry.packed_bytes) });
    put32(out, if entry.is_large() { u32::MAX } else { short(entry.plain_bytes) });
    put16(out, entry.name.len() as u16);
}

fn local_header(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::with_capacity(80);
    put32(&mut out, LOCAL_HEADER);
    put_common(&mut out, entry, entry.is_large());
    put16(&mut out, LOCAL_EXTRA_BYTES);
    out.extend_from_slice(entry.name.as_bytes());
    if entry.is_large() {
        put16(&mut out, EXTRA_ZIP64);
        put16(&mut out, LOCAL_EXTRA_BYTES - 4);
        put64(&mut out, entry.plain_bytes);
        put64(&mut out, entry.packed_bytes);
    } else {
        put16(&mut out, EXTRA_PADDING);
        put16(&mut out, LOCAL_EXTRA_BYTES - 4);
        put16(&mut out, PADDING_SIGNATURE);
        put16(&mut out, 0);
        put32(&mut out, 0);
        put64(&mut out, 0);
    }
    out
}

fn push_central_header(out: &mut Vec<u8>, entry: &Entry) {
    let far = entry.offset >= FULL_32;
    let large = entry.is_large();
    put32(out, CENTRAL_HEADER);
    put16(out, VERSION_64);
    put_common(out, entry, large || far);
    let fields = if large { 2 } else { 0 } + u16::from(far);
    put16(out, if fields > 0 { 4 + 8 * fields } else { 0 });
    put16(out, 0);
    put16(out, 0);
    put16(out, 0);
    put32(out, 0);
    put32(out, short(entry.offset));
    out.extend_from_slice(entry.name.as_bytes());
    if fields > 0 {
        put16(out, EXTRA_ZIP64);
        put16(out, 8 * fields);
        if large {
            put64(out, entry.plain_bytes);
            put64(out, entry.packed_bytes);
        }
        if far {
            put64(out, entry.offset);
        }
    }
}

fn push_end(out: &mut Vec<u8>, entries: u64, start: u64, end: u64) {
    if end >= FULL_32 || entries >= u64::from(u16::MAX) {
        put32(out, END_OF_DIRECTORY_64);
        put64(out, 44);
        put16(out, VERSION_64);
        put16(out, VERSION_64);
        put32(out, 0);
        put32(out, 0);
        put64(out, entries);
        put64(out, entries);
        put64(out, end - start);
        put64(out, start);
        put32(out, LOCATOR_64);
        put32(out, 0);
        put64(out, end);
        put32(out, 1);
    }
    let count = u16::try_from(entries).unwrap_or(u16::MAX);
    put32(out, END_OF_DIRECTORY);
    put16(out, 0);
    put16(out, 0);
    put16(out, count);
    put16(out, count);
    put32(out, short(end - start));
    put32(out, short(start));
    put16(out, 0);
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;

    /// What the local header and the directory say about an entry has to agree.
    #[test]
    fn pieces_join_to_one_stream() {
        let mut out = Cursor::new(Vec::new());
        let mut zip = Zip::new(&mut out);
        zip.start("a.txt").unwrap();
        let mut deflater = Deflater::new();
        let mut plain = Vec::new();
        for part in [&b"hello "[..], b"", &b"x".repeat(3_000_000), b"end"] {
            plain.extend_from_slice(part);
            zip.append(&deflater.piece(part).unwrap()).unwrap();
        }
        zip.end().unwrap();
        zip.finish().unwrap();
        let bytes = out.into_inner();
        let packed = u32::from_le_bytes(bytes[18..22].try_into().unwrap()) as usize;
        let size = u32::from_le_bytes(bytes[22..26].try_into().unwrap()) as usize;
        assert_eq!(size, plain.len());
        let mut back = Vec::new();
        let start = 30 + 5 + 20;
        flate2::read::DeflateDecoder::new(&bytes[start..start + packed]).read_to_end(&mut back).unwrap();
        assert!(back == plain);
        assert_eq!(bytes[14..18], crc32fast::hash(&plain).to_le_bytes());
        assert_eq!(&bytes[start + packed..start + packed + 4], b"PK\x01\x02");
    }

    #[test]
    fn random_bytes_survive() {
        let mut state = 1u32;
        let plain: Vec<u8> = (0..300_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        let mut packed = Deflater::new().piece(&plain).unwrap().bytes;
        packed.extend_from_slice(&END_OF_STREAM);
        let mut back = Vec::new();
        flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut back).unwrap();
        assert!(back == plain);
    }

    #[test]
    fn large_entries_have_sizes_of_64_bits() {
        let entry = Entry {
            name: "a".into(),
            offset: 5_000_000_000,
            crc: 1,
            packed_bytes: 10,
            plain_bytes: 6_000_000_000,
        };
        let local = local_header(&entry);
        assert_eq!(local.len(), 30 + 1 + 20);
        assert_eq!(local[31..35], [1, 0, 16, 0]);
        assert_eq!(local[35..43], 6_000_000_000u64.to_le_bytes());
        let mut central = Vec::new();
        push_central_header(&mut central, &entry);
        assert_eq!(central.len(), 46 + 1 + 4 + 24);
        assert_eq!(central[central.len() - 8..], 5_000_000_000u64.to_le_bytes());
        let mut end = Vec::new();
        push_end(&mut end, 1, 5_000_000_000, 5_000_000_100);
        assert_eq!(end.len(), 56 + 20 + 22);
        let mut end = Vec::new();
        push_end(&mut end, 1, 100, 200);
        assert_eq!(end.len(), 22);
    }
}
