//! Pixels as a PNG file.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::canvas::{Canvas, PIXEL_BYTES};

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
/// Eight bits per channel, colour with opacity, the only compression, the only filters, not interlaced.
const FORMAT: [u8; 5] = [8, 6, 0, 0, 0];
/// Every row says how it differs from the one above: most rows of a plot do not.
const FILTER_UP: u8 = 2;
/// For programs that print: 100 dots per inch, in dots per metre.
const DOTS_PER_METRE: u32 = 3937;

pub(super) fn write(canvas: &Canvas, width: u32, height: u32, mut out: impl Write) -> io::Result<()> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(1 << 16), Compression::fast());
    let row_bytes = width as usize * PIXEL_BYTES;
    let blank = vec![0; row_bytes];
    let mut line = vec![FILTER_UP; row_bytes + 1];
    let mut above = blank.as_slice();
    for row in canvas.rows() {
        for ((difference, pixel), over) in line.iter_mut().skip(1).zip(row).zip(above) {
            *difference = pixel.wrapping_sub(*over);
        }
        encoder.write_all(&line)?;
        above = row;
    }
    let data = encoder.finish()?;
    out.write_all(&SIGNATURE)?;
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&width.to_be_bytes());
    header.extend_from_slice(&height.to_be_bytes());
    header.extend_from_slice(&FORMAT);
    chunk(&mut out, *b"IHDR", &header)?;
    let dots = DOTS_PER_METRE.to_be_bytes();
    chunk(&mut out, *b"pHYs", &[dots.as_slice(), &dots, &[1]].concat())?;
    chunk(&mut out, *b"IDAT", &data)?;
    chunk(&mut out, *b"IEND", &[])?;
    out.flush()
}

fn chunk(out: &mut impl Write, kind: [u8; 4], data: &[u8]) -> io::Result<()> {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&kind);
    checksum.update(data);
    let length = u32::try_from(data.len()).map_err(|_| io::Error::other("the picture is too large"))?;
    out.write_all(&length.to_be_bytes())?;
    out.write_all(&kind)?;
    out.write_all(data)?;
    out.write_all(&checksum.finalize().to_be_bytes())
}
