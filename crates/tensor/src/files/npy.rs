//! numpy's `.npy`: one array behind a header that is a Python dict literal.
//!
//! Reads versions 1.0, 2.0 and 3.0. The header is parsed, never evaluated, and by a grammar without recursion:
//! a value of any other kind than numpy writes under that key ends the parse.
//!
//! ml_dtypes' types have no code of their own in the format. What it writes, and what is read from it:
//!
//! | descr        | read as         | also written by                                            |
//! |--------------|-----------------|------------------------------------------------------------|
//! | `<V2`, `\|V2` | `bfloat16`      | two raw bytes of a structured array (not told apart)       |
//! | `<V1`, `\|V1` | `float8_e4m3fn` | every other 1-byte type of ml_dtypes except `float8_e5m2`  |
//! | `<f1`        | `float8_e5m2`   |                                                            |
//!
//! `V1` is ambiguous: `float8_e4m3fn` is the only one of its types in common use, so it is what we take it for.
//! To lose nothing, [`write()`] gives the other three 8-bit floats their full name as descr, which numpy resolves
//! once ml_dtypes is imported (numpy itself cannot load the `<f1` it writes).

use std::io::{self, Write};

use super::numpy::{array_strides, dtype_from_code};
use super::{FormatError, Index, TensorEntry, TensorLayout, malformed, truncated};
use crate::DType;
use crate::view::{Endian, TensorView, ViewError, checked_numel};

/// The first bytes of every `.npy` file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// numpy itself reads no header over 10 000 bytes unless told to; ours are honest far below this too.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// As many as numpy allows.
const MAX_DIMENSIONS: usize = 64;

/// The data starts at a multiple of this, as numpy has it.
const ALIGNMENT: usize = 64;

/// Digits numpy leaves room for, so that the slowest dimension can grow in place.
const GROWTH_DIGITS: usize = 21;

/// Indexes the one array of a `.npy` file, under the empty name. Bytes after the data are allowed: several
/// arrays may be saved to one stream.
pub fn parse(file: &[u8]) -> Result<Index, FormatError> {
    let (header, data_start) = split_header(file)?;
    let header = Header::parse(header)?;
    let (dtype, endian) = parse_descr(&header.descr)?;
    let too_large = || FormatError::View(ViewError::TooLarge { shape: header.shape.clone() });
    let strides = array_strides(&header.shape, header.fortran_order)?;
    let storage_len = checked_numel(&header.shape)
        .and_then(|numel| numel.checked_mul(dtype.size_bytes()))
        .ok_or_else(too_large)?;
    let available = file.len() - data_start;
    if storage_len > available {
        return Err(truncated("array data", storage_len, available));
    }
    let layout = TensorLayout {
        dtype,
        shape: header.shape,
        strides,
        storage_start: data_start,
        storage_len,
        decoded: None,
        offset: 0,
        endian,
    };
    let entries = vec![TensorEntry { name: String::new(), layout: Ok(layout) }];
    Ok(Index { entries, unclaimed_bytes: (available - storage_len) as u64 })
}

/// Writes a tensor as numpy's `np.save` would: version 1.0, row-major, little-endian. The elements are
/// streamed, never gathered as a whole.
pub fn write(out: &mut impl Write, view: &TensorView<'_>) -> io::Result<()> {
    write_header(out, view.dtype(), view.shape())?;
    view.try_for_each_bytes(0..view.numel(), |bytes| out.write_all(bytes))
}

/// Writes the transposed of a tensor: its elements as [`write()`] would, as an array with the dimensions in reverse that
/// is stored column by column. It is what `np.save` makes of a transposed array.
pub fn write_transposed(out: &mut impl Write, view: &TensorView<'_>) -> io::Result<()> {
    let shape: Vec<usize> = view.shape().iter().rev().copied().collect();
    write_ordered_header(out, view.dtype(), &shape, true)?;
    view.try_for_each_bytes(0..view.numel(), |bytes| out.write_all(bytes))
}

/// What stands before the elements.
pub(super) fn write_header(out: &mut impl Write, dtype: DType, shape: &[usize]) -> io::Result<()> {
    write_ordered_header(out, dtype, shape, false)
}

fn write_ordered_header(
    out: &mut impl Write,
    dtype: DType,
    shape: &[usize],
    fortran_order: bool,
) -> io::Result<()> {
    let header = header_text(dtype, shape, fortran_order);
    let header_len = u16::try_from(header.len()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "too many dimensions for a version 1.0 .npy header")
    })?;
    out.write_all(&[MAGIC, &[1, 0], &header_len.to_le_bytes(), header.as_bytes()].concat())
}

fn header_text(dtype: DType, shape: &[usize], fortran_order: bool) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': {}, 'shape': ({}{comma}), }}",
        written_descr(dtype),
        if fortran_order { "True" } else { "False" },
        sizes.join(", "),
    );
    if let Some(grows) = if fortran_order { sizes.last() } else { sizes.first() } {
        header.extend(std::iter::repeat_n(' ', GROWTH_DIGITS.saturating_sub(grows.len())));
    }
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    // Like numpy, a whole 64 bytes of padding when nothing is missing.
    header.extend(std::iter::repeat_n(' ', ALIGNMENT - unpadded % ALIGNMENT));
    header.push('\n');
    header
}

fn written_descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::BF16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::F8E4M3FN => "<V1",
        DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => dtype.numpy_name(),
    }
}

/// The header text, and where the data begins.
fn split_header(file: &[u8]) -> Result<(&[u8], usize), FormatError> {
    let Some(rest) = file.strip_prefix(MAGIC) else {
        return Err(if MAGIC.starts_with(file) {
            truncated("npy magic", MAGIC.len(), file.len())
        } else {
            malformed("the npy magic \\x93NUMPY is missing")
        });
    };
    let &[major, minor, ref rest @ ..] = rest else {
        return Err(truncated("npy version", 2, rest.len()));
    };
    let (header_len, rest) = match (major, minor) {
        (1, 0) => match rest {
            &[a, b, ref rest @ ..] => (u32::from(u16::from_le_bytes([a, b])), rest),
            _ => return Err(truncated("npy header length", 2, rest.len())),
        },
        (2 | 3, 0) => match rest {
            &[a, b, c, d, ref rest @ ..] => (u32::from_le_bytes([a, b, c, d]), rest),
            _ => return Err(truncated("npy header length", 4, rest.len())),
        },
        _ => return Err(FormatError::Unsupported(format!("npy version {major}.{minor}"))),
    };
    let header_len = header_len as usize;
    if header_len > MAX_HEADER_BYTES {
        return Err(FormatError::Refused(format!(
            "an npy header of {header_len} bytes, at most {MAX_HEADER_BYTES} are read"
        )));
    }
    let header = rest.get(..header_len).ok_or_else(|| truncated("npy header", header_len, rest.len()))?;
    Ok((header, file.len() - rest.len() + header_len))
}

/// What a descr says of the elements: `<f4`, or a plain name such as `bfloat16`.
fn parse_descr(descr: &str) -> Result<(DType, Endian), FormatError> {
    if let Some(dtype) = DType::from_numpy_name(descr) {
        return Ok((dtype, Endian::Little));
    }
    let (endian, code) = match descr.as_bytes().first() {
        Some(b'>') => (Endian::Big, &descr[1..]),
        Some(b'<' | b'|' | b'=') => (Endian::Little, &descr[1..]),
        _ => (Endian::Little, descr),
    };
    let dtype = match code {
        "f1" => DType::F8E5M2,
        "V1" => DType::F8E4M3FN,
        "V2" => DType::BF16,
        _ => dtype_from_code(code).ok_or_else(|| unsupported_descr(descr, code))?,
    };
    Ok((dtype, endian))
}

fn unsupported_descr(descr: &str, code: &str) -> FormatError {
    let kind = match code.as_bytes().first() {
        Some(b'O') => "an array of Python objects (it would have to be unpickled)",
        Some(b'S' | b'a' | b'U' | b'T') => "an array of strings",
        Some(b'M' | b'm') => "an array of dates or time spans",
        Some(b'V') => "an array of raw bytes",
        Some(b'f' | b'c') => "a float of this width",
        _ => return FormatError::Unsupported(format!("unknown dtype {:?}", shortened(descr))),
    };
    FormatError::Unsupported(format!("{kind}, dtype {:?}", shortened(descr)))
}

/// The three values of a header.
#[derive(Debug)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &[u8]) -> Result<Header, FormatError> {
        let mut scan = Scanner { text, position: 0 };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        scan.expect(b'{')?;
        while !scan.accept(b'}') {
            let key = scan.string()?;
            scan.expect(b':')?;
            let repeated = match key {
                b"descr" => descr.replace(scan.descr()?).is_some(),
                b"fortran_order" => fortran_order.replace(scan.boolean()?).is_some(),
                b"shape" => shape.replace(scan.shape()?).is_some(),
                _ => return Err(scan.malformed(&format!("unknown key {:?}", lossy(key)))),
            };
            if repeated {
                return Err(scan.malformed(&format!("key {:?} appears twice", lossy(key))));
            }
            if !scan.accept(b',') {
                scan.expect(b'}')?;
                break;
            }
        }
        scan.end()?;
        let missing = |key| malformed(format!("npy header has no {key:?}"));
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// Reads tokens of a Python literal from left to right; whitespace before a token is skipped.
struct Scanner<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.position) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c) {
                return Some(byte);
            }
            self.position += 1;
        }
        None
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), FormatError> {
        if self.accept(byte) {
            return Ok(());
        }
        Err(self.unexpected(&format!("{:?}", char::from(byte))))
    }

    fn end(&mut self) -> Result<(), FormatError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end")),
        }
    }

    /// A quoted string without escapes: numpy needs none.
    fn string(&mut self) -> Result<&'a [u8], FormatError> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.unexpected("a string"));
        };
        let rest = &self.text[self.position + 1..];
        let stop = rest.iter().position(|&byte| matches!(byte, b'\\' | b'\n') || byte == quote);
        match stop {
            Some(len) if rest[len] == quote => {
                self.position += len + 2;
                Ok(&rest[..len])
            }
            Some(_) => Err(self.malformed("a string with an escape or a line break")),
            None => Err(self.malformed("a string without an end")),
        }
    }

    fn descr(&mut self) -> Result<String, FormatError> {
        match self.peek() {
            Some(b'[') => {
                Err(FormatError::Unsupported("a structured array: fields have no tensor form".into()))
            }
            Some(b'(') => Err(FormatError::Unsupported("a dtype that is itself an array".into())),
            _ => Ok(lossy(self.string()?)),
        }
    }

    fn boolean(&mut self) -> Result<bool, FormatError> {
        self.peek();
        let rest = &self.text[self.position..];
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if rest.starts_with(word) {
                self.position += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    /// `()`, `(3,)`, `(3, 4)`; `3L` as Python 2 wrote it.
    fn shape(&mut self) -> Result<Vec<usize>, FormatError> {
        self.expect(b'(')?;
        let mut shape = Vec::new();
        while !self.accept(b')') {
            if shape.len() == MAX_DIMENSIONS {
                return Err(self.malformed(&format!("a shape of more than {MAX_DIMENSIONS} dimensions")));
            }
            shape.push(self.size()?);
            if !self.accept(b',') {
                self.expect(b')')?;
                if shape.len() == 1 {
                    return Err(self.malformed("shape is a number in parentheses, not a tuple"));
                }
                break;
            }
        }
        Ok(shape)
    }

    fn size(&mut self) -> Result<usize, FormatError> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(b'-') => return Err(self.malformed("a negative size in the shape")),
            _ => return Err(self.unexpected("a size")),
        }
        let mut size = 0usize;
        while let Some(&digit @ b'0'..=b'9') = self.text.get(self.position) {
            size = size
                .checked_mul(10)
                .and_then(|size| size.checked_add(usize::from(digit - b'0')))
                .ok_or_else(|| self.malformed("a size that does not fit into 64 bits"))?;
            self.position += 1;
        }
        if self.text.get(self.position) == Some(&b'L') {
            self.position += 1;
        }
        Ok(size)
    }

    fn unexpected(&mut self, wanted: &str) -> FormatError {
        match self.peek() {
            Some(byte) => {
                let found = byte.escape_ascii();
                self.malformed(&format!("expected {wanted}, found '{found}'"))
            }
            None => self.malformed(&format!("expected {wanted}, found nothing more")),
        }
    }

    fn malformed(&self, what: &str) -> FormatError {
        malformed(format!("npy header, byte {}: {what}", self.position))
    }
}

fn lossy(text: &[u8]) -> String {
    shortened(&String::from_utf8_lossy(text))
}

/// Enough to recognise, not enough to flood a log.
fn shortened(text: &str) -> String {
    const MOST: usize = 64;
    if text.chars().nth(MOST).is_none() {
        return text.to_owned();
    }
    text.chars().take(MOST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([version, 0]);
        match version {
            1 => file.extend((header.len() as u16).to_le_bytes()),
            _ => file.extend((header.len() as u32).to_le_bytes()),
        }
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn layout(header: &str) -> Result<TensorLayout, FormatError> {
        let file = file(1, header, &[0; 256]);
        parse(&file).map(|mut index| index.entries.remove(0).layout.unwrap())
    }

    #[test]
    fn header_in_any_dress() {
        for header in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
            "{\"shape\":(2L,3L),\"descr\":\"<f4\",\"fortran_order\":False}",
            "  {\n'fortran_order'\t:False ,'shape' : ( 2 , 3 , ) , 'descr':'<f4',}   ",
        ] {
            let layout = layout(header).unwrap();
            assert_eq!((layout.dtype, &layout.shape[..]), (DType::F32, &[2, 3][..]), "{header}");
            assert_eq!(layout.strides, [3, 1]);
        }
    }

    #[test]
    fn fortran_order_is_column_major() {
        let layout = layout("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4)}").unwrap();
        assert_eq!(layout.strides, [1, 2, 6]);
    }

    #[test]
    fn shapes() {
        let shape = |text: &str| {
            layout(&format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {text}}}")).map(|l| l.shape)
        };
        assert_eq!(shape("()").unwrap(), [0usize; 0]);
        assert_eq!(shape("(3,)").unwrap(), [3]);
        assert_eq!(shape("(0, 5)").unwrap(), [0, 5]);
        for wrong in
            ["(3)", "(,)", "3", "[3]", "(3,,)", "(3 4)", "(3.0,)", "(-1,)", "(1e3,)", "('3',)", "(3,"]
        {
            assert!(matches!(shape(wrong), Err(FormatError::Malformed(_))), "{wrong}");
        }
    }

    #[test]
    fn descrs() {
        let one = |descr: &str| parse_descr(descr).unwrap();
        assert_eq!(one(">f4"), (DType::F32, Endian::Big));
        assert_eq!(one("<c16"), (DType::C128, Endian::Little));
        assert_eq!(one("=i8"), (DType::I64, Endian::Little));
        assert_eq!(one("|V2"), (DType::BF16, Endian::Little));
        assert_eq!(one(">V2"), (DType::BF16, Endian::Big));
        assert_eq!(one("|V1").0, DType::F8E4M3FN);
        assert_eq!(one("<f1").0, DType::F8E5M2);
        for dtype in DType::all() {
            assert_eq!(one(dtype.numpy_name()).0, dtype);
            assert_eq!(one(written_descr(dtype)).0, dtype);
        }
    }

    #[test]
    fn what_has_no_tensor_form_says_so() {
        for (descr, piece) in [
            ("'|O'", "Python objects"),
            ("'<U5'", "strings"),
            ("'|S3'", "strings"),
            ("'<M8[ns]'", "dates"),
            ("'<m8[s]'", "dates"),
            ("'|V16'", "raw bytes"),
            ("'<f16'", "float of this width"),
            ("'<q9'", "unknown dtype"),
            ("''", "unknown dtype"),
            ("[('a', '<f4'), ('b', '<i4')]", "structured"),
            ("('<f4', (2,))", "itself an array"),
        ] {
            let error =
                layout(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,)}}")).unwrap_err();
            assert!(matches!(error, FormatError::Unsupported(_)), "{descr}: {error}");
            assert!(error.to_string().contains(piece), "{descr}: {error}");
        }
    }

    #[test]
    fn written_tensors_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for dtype in DType::all() {
            let numel = 256 / dtype.size_bytes();
            for shape in [vec![numel], vec![2, numel / 2], vec![1, numel, 1]] {
                let view = TensorView::contiguous(dtype, shape.clone(), &bytes).unwrap();
                let mut file = Vec::new();
                write(&mut file, &view).unwrap();
                assert_eq!((file.len() - 256) % 64, 0);
                let index = parse(&file).unwrap();
                let layout = index.entries[0].layout.as_ref().unwrap();
                assert_eq!((layout.dtype, &layout.shape), (dtype, &shape));
                assert_eq!(layout.view(&file).unwrap().as_bytes().unwrap(), bytes);
            }
        }
    }

    #[test]
    fn strided_and_foreign_tensors_are_written_row_major_and_little_endian() {
        let bytes: Vec<u8> = (0..12).collect();
        let written = |strides: Vec<isize>, offset, endian| {
            let view = TensorView::new(DType::I16, vec![2, 3], strides, &bytes, offset, endian).unwrap();
            let mut file = Vec::new();
            write(&mut file, &view).unwrap();
            file.split_off(file.len() - 12)
        };
        assert_eq!(written(vec![1, 2], 0, Endian::Little), [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
        assert_eq!(written(vec![3, 1], 0, Endian::Big), [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10]);
        assert_eq!(written(vec![-3, -1], 5, Endian::Little), [10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1]);
    }

    #[test]
    fn a_header_too_long_for_version_one_is_not_written() {
        let view = TensorView::contiguous(DType::U8, vec![1; 40_000], &[7]).unwrap();
        assert_eq!(write(&mut Vec::new(), &view).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
