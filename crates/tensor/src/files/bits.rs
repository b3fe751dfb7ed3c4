//! Directions of gradients: one truth value per element, kept as bytes (`.npy` of bool) or as bits (`.bits`).
//!
//! A `.bits` file is
//!
//! | bytes          | content                                                                        |
//! |----------------|--------------------------------------------------------------------------------|
//! | 8              | `MSPBITS1`; another layout would get another digit                             |
//! | 4              | number of dimensions, little-endian; 0 is a scalar                             |
//! | 8 each         | sizes of the dimensions, little-endian                                         |
//! | ceil(numel/8)  | element `i` in row-major order is bit `i % 8` (lowest first) of byte `i / 8`   |
//!
//! and nothing after that. Bits of the last byte that belong to no element are written as 0 and not looked at when
//! read. In a `.npy`, any byte other than 0 is true. [`read_direction`] takes either, told apart by content.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use rayon::prelude::*;

use super::open::{drop_pages, map_file};
use super::regular::{Links, open_regular};
use super::{FileError, Format, FormatError, TensorLayout, malformed, npy, truncated};
use crate::DType;
use crate::view::{BLOCK_ELEMENTS, Blocks, TensorView, ViewError, checked_numel};

/// The first bytes of every `.bits` file.
pub const MAGIC: &[u8; 8] = b"MSPBITS1";

/// As many as numpy allows.
const MAX_DIMENSIONS: usize = 64;

/// Elements that are compared before their pages are given back: what is resident does not follow the size of a file.
/// A multiple of 64, so that spans of bits begin at whole words.
const SPAN_ELEMENTS: usize = 4 << 20;

const BLOCK_WORDS: usize = BLOCK_ELEMENTS / 64;

/// Why a file holds no directions.
#[derive(Debug, thiserror::Error)]
pub enum DirectionError {
    /// The file cannot be read, or not be understood.
    #[error(transparent)]
    File(#[from] FileError),
    /// An array, but not of truth values.
    #[error("tensor type is not bool: {path}", path = path.display())]
    NotBool {
        /// The file.
        path: PathBuf,
        /// What it holds.
        dtype: DType,
    },
}

/// The directions of one gradient, mapped into memory.
#[derive(Debug)]
pub struct DirectionFile {
    path: PathBuf,
    map: Mmap,
    shape: Vec<usize>,
    numel: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Bytes(TensorLayout),
    /// Where the bits begin.
    Bits(usize),
}

/// Maps a file of directions, `.npy` or `.bits`. Only its header is read.
pub fn read_direction(path: &Path) -> Result<DirectionFile, DirectionError> {
    let map = open_regular(path, Links::Refuse)
        .and_then(|file| map_file(&file))
        .map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    let fail = |format, source| FileError::Format { path: path.to_owned(), format, source };
    let path_buf = path.to_owned();
    if map.starts_with(MAGIC) {
        let (shape, numel, start) = parse_bits(&map).map_err(|error| fail(None, error))?;
        return Ok(DirectionFile { path: path_buf, map, shape, numel, form: Form::Bits(start) });
    }
    let npy = Some(Format::Npy);
    let mut index = npy::parse(&map).map_err(|error| fail(npy, error))?;
    let layout = match index.entries.pop().map(|entry| entry.layout) {
        Some(layout) => layout.map_err(|error| fail(npy, error))?,
        None => return Err(fail(npy, malformed("there is no array in it")).into()),
    };
    if layout.dtype != DType::Bool {
        return Err(DirectionError::NotBool { path: path_buf, dtype: layout.dtype });
    }
    let shape = layout.shape.clone();
    let numel = layout.view(&map).map_err(|error| fail(npy, error))?.numel();
    Ok(DirectionFile { path: path_buf, map, shape, numel, form: Form::Bytes(layout) })
}

/// Shape, number of elements, and where the bits begin.
fn parse_bits(file: &[u8]) -> Result<(Vec<usize>, usize, usize), FormatError> {
    let rest = file.strip_prefix(MAGIC).ok_or_else(|| malformed("the magic MSPBITS1 is missing"))?;
    let Some((dimensions, rest)) = rest.split_first_chunk::<4>() else {
        return Err(truncated("number of dimensions", 4, rest.len()));
    };
    let dimensions = u32::from_le_bytes(*dimensions) as usize;
    if dimensions > MAX_DIMENSIONS {
        return Err(FormatError::Refused(format!(
            "{dimensions} dimensions, at most {MAX_DIMENSIONS} are read"
        )));
    }
    let Some((sizes, bits)) = rest.split_at_checked(dimensions * 8) else {
        return Err(truncated("shape", dimensions * 8, rest.len()));
    };
    let mut shape = Vec::with_capacity(dimensions);
    for size in sizes.chunks_exact(8) {
        let size = size.try_into().map_or(u64::MAX, u64::from_le_bytes);
        shape.push(usize::try_from(size).map_err(|_| malformed(format!("a dimension of {size}")))?);
    }
    let Some(numel) = checked_numel(&shape) else {
        return Err(FormatError::View(ViewError::TooLarge { shape }));
    };
    let needed = numel.div_ceil(8);
    match bits.len() {
        len if len < needed => Err(truncated("bits", needed, len)),
        len if len > needed => Err(malformed(format!("{} bytes after the bits", len - needed))),
        _ => Ok((shape, numel, file.len() - bits.len())),
    }
}

impl DirectionFile {
    /// The path the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of each dimension of the gradient; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// Bytes of the file.
    pub fn size_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes behind the array: the header says less than there is. Bits with more behind them are not read at all.
    pub fn trailing_bytes(&self) -> u64 {
        match &self.form {
            Form::Bytes(layout) => {
                let end = layout.storage_start.saturating_add(layout.storage_len);
                self.map.len().saturating_sub(end) as u64
            }
            Form::Bits(_) => 0,
        }
    }

    /// How many elements are equal in both. `None` if the shapes differ. Pages that were read are given back, so that
    /// memory does not follow the size of the files; large ones are counted on the threads of the current rayon pool.
    pub fn equal_elements(&self, other: &DirectionFile) -> Option<u64> {
        if self.shape != other.shape {
            return None;
        }
        let (mut ours, mut theirs) = (self.elements()?, other.elements()?);
        // Two arrays with the same strides can be read as they lie: counting does not ask for an order.
        if let (Elements::Strided(a, _), Elements::Strided(b, _)) = (&ours, &theirs)
            && a.strides() == b.strides()
            && let (Some(a), Some(b)) = (a.in_memory_order().as_bytes(), b.in_memory_order().as_bytes())
        {
            (ours, theirs) = (Elements::Bytes(a), Elements::Bytes(b));
        }
        let of_span = |index: usize| {
            let start = index * SPAN_ELEMENTS;
            let range = start..self.numel.min(start + SPAN_ELEMENTS);
            let differing = differing(&ours, &theirs, range.clone());
            self.release(&ours, range.clone());
            other.release(&theirs, range);
            differing
        };
        let spans = self.numel.div_ceil(SPAN_ELEMENTS);
        let differing: u64 =
            if spans == 1 { of_span(0) } else { (0..spans).into_par_iter().map(of_span).sum() };
        Some(self.numel as u64 - differing)
    }

    fn elements(&self) -> Option<Elements<'_>> {
        match &self.form {
            Form::Bits(start) => self.map.get(*start..).map(Elements::Bits),
            Form::Bytes(layout) => {
                // It was checked when the file was opened.
                let view = layout.view(&self.map).ok()?;
                Some(match view.as_bytes() {
                    Some(bytes) => Elements::Bytes(bytes),
                    None => Elements::Strided(view.clone(), Blocks::new(&view)),
                })
            }
        }
    }

    /// Gives back the pages of some elements; of strided ones all, because they lie anywhere.
    fn release(&self, elements: &Elements<'_>, range: Range<usize>) {
        let (start, range) = match (&self.form, elements) {
            (Form::Bits(start), _) => (*start, range.start / 8..range.end.div_ceil(8)),
            (Form::Bytes(layout), Elements::Strided(..)) => (layout.storage_start, 0..layout.storage_len),
            (Form::Bytes(layout), _) => (layout.storage_start, range),
        };
        let inside = start.checked_add(range.end).is_some_and(|end| end <= self.map.len());
        if inside && !range.is_empty() {
            drop_pages(&self.map, start + range.start, range.len());
        }
    }
}

/// The elements of a file, in row-major order or, for counting alone, in that of memory.
enum Elements<'a> {
    Bytes(&'a [u8]),
    Bits(&'a [u8]),
    Strided(TensorView<'a>, Blocks<'a, u8>),
}

impl Elements<'_> {
    /// Packs up to a block of elements into words; bits that belong to none are 0. `start` is a multiple of 8.
    fn pack(&self, start: usize, len: usize, scratch: &mut Vec<u8>, words: &mut [u64; BLOCK_WORDS]) {
        words.fill(0);
        match self {
            Elements::Bits(bits) => {
                let bytes = bits.get(start / 8..(start + len).div_ceil(8)).unwrap_or_default();
                for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
                    *word = word_of(bytes);
                }
                if !len.is_multiple_of(64) {
                    words[len / 64] &= (1 << (len % 64)) - 1;
                }
            }
            Elements::Bytes(bytes) => {
                pack_bytes(bytes.get(start..start + len).unwrap_or_default(), words);
            }
            Elements::Strided(_, blocks) => pack_bytes(blocks.read(start, len, scratch), words),
        }
    }
}

/// Up to eight bytes as a word; those that are missing are 0.
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// 1 in each byte that is not 0.
#[inline(always)]
fn ones(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    ((((word & LOW) + LOW) | word) & !LOW) >> 7
}

/// Bit `i` tells whether byte `i` is not 0.
#[inline(always)]
fn gathered(word: u64) -> u64 {
    // Moves the lowest bit of byte `i` to bit `56 + i`; no two products meet, so nothing is carried.
    ones(word).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

fn pack_bytes(bytes: &[u8], words: &mut [u64; BLOCK_WORDS]) {
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(64)) {
        *word = 0;
        for (position, eight) in bytes.chunks(8).enumerate() {
            *word |= gathered(word_of(eight)) << (8 * position);
        }
    }
}

/// How many elements of a range differ. It begins at a multiple of [`SPAN_ELEMENTS`].
fn differing(ours: &Elements<'_>, theirs: &Elements<'_>, range: Range<usize>) -> u64 {
    match (ours, theirs) {
        (Elements::Bytes(a), Elements::Bytes(b)) => {
            differing_bytes(a.get(range.clone()).unwrap_or_default(), b.get(range).unwrap_or_default())
        }
        (Elements::Bits(a), Elements::Bits(b)) => {
            let (whole, rest) = (range.start / 8..range.end / 8, range.end % 8);
            let count = differing_bits(
                a.get(whole.clone()).unwrap_or_default(),
                b.get(whole.clone()).unwrap_or_default(),
            );
            let last = |bits: &[u8]| bits.get(whole.end).copied().unwrap_or_default();
            let mask = (1u8 << rest) - 1;
            count + u64::from(((last(a) ^ last(b)) & mask).count_ones())
        }
        _ => {
            let mut scratch = Vec::new();
            let (mut a, mut b) = ([0; BLOCK_WORDS], [0; BLOCK_WORDS]);
            let end = range.end;
            let blocks = range.step_by(BLOCK_ELEMENTS).map(|start| {
                let len = BLOCK_ELEMENTS.min(end - start);
                ours.pack(start, len, &mut scratch, &mut a);
                theirs.pack(start, len, &mut scratch, &mut b);
                a.iter().zip(&b).map(|(a, b)| u64::from((a ^ b).count_ones())).sum::<u64>()
            });
            blocks.sum()
        }
    }
}

fn differing_bits(a: &[u8], b: &[u8]) -> u64 {
    let pairs = a.chunks(8).zip(b.chunks(8));
    pairs.map(|(a, b)| u64::from((word_of(a) ^ word_of(b)).count_ones())).sum()
}

fn differing_bytes(a: &[u8], b: &[u8]) -> u64 {
    // Each byte of the sum counts for itself, and overflows after 255 words.
    const ROW: usize = 255 * 8;
    let mut count = 0;
    for (a, b) in a.chunks(ROW).zip(b.chunks(ROW)) {
        let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
        count += u64::from((ones(word_of(a.remainder())) ^ ones(word_of(b.remainder()))).count_ones());
        let mut sums = 0u64;
        for (a, b) in a.zip(b) {
            sums += ones(word_of(a)) ^ ones(word_of(b));
        }
        count += sums.to_le_bytes().into_iter().map(u64::from).sum::<u64>();
    }
    count
}

/// What stands before the bits of a `.bits` file, for writers that pack them themselves.
pub fn bits_header(shape: &[usize]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&(shape.len() as u32).to_le_bytes());
    for &size in shape {
        header.extend_from_slice(&(size as u64).to_le_bytes());
    }
    header
}

/// Writes truth values (dtype bool, any layout) as a `.bits` file. The elements are streamed.
pub fn write_bits(out: &mut impl Write, view: &TensorView<'_>) -> io::Result<()> {
    let refused = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    if view.dtype() != DType::Bool {
        return Err(refused(format!("only bool is written as bits, this is {}", view.dtype().numpy_name())));
    }
    if view.shape().len() > MAX_DIMENSIONS {
        return Err(refused(format!("more than {MAX_DIMENSIONS} dimensions")));
    }
    out.write_all(&bits_header(view.shape()))?;
    let blocks = Blocks::<u8>::new(view);
    let (mut scratch, mut words, mut packed) = (Vec::new(), [0; BLOCK_WORDS], Vec::new());
    for start in (0..view.numel()).step_by(BLOCK_ELEMENTS) {
        let len = BLOCK_ELEMENTS.min(view.numel() - start);
        pack_bytes(blocks.read(start, len, &mut scratch), &mut words);
        packed.clear();
        packed.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.write_all(packed.get(..len.div_ceil(8)).unwrap_or_default())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
