//! Writing `.pt` files that `torch.load` reads, with `weights_only=True` and `mmap=True` too.
//!
//! The layout is that of `torch.save`: a zip archive of stored entries, `data.pkl` first, then one entry per
//! storage, each aligned so that it can be mapped. Elements are streamed; nothing the size of a tensor is held.

use std::io::{self, Seek, SeekFrom, Write};

use crate::DType;
use crate::view::TensorView;

/// The folder inside the archive; any name does.
const ROOT: &str = "archive";
/// Storages begin at multiples of this, as torch has them.
const ALIGNMENT: u64 = 64;
/// Checksum and write in pieces that stay in cache, and that the file system can take in large pages.
const CHUNK_BYTES: usize = 1 << 20;

/// Writes one tensor, as `torch.save(tensor.contiguous(), path)` does.
pub fn write_tensor(out: &mut (impl Write + Seek), view: &TensorView<'_>) -> io::Result<()> {
    let mut pickle = Pickle::new();
    pickle.tensor(0, view);
    write_archive(out, &pickle.finish(), &[view])
}

/// Writes a dict of tensors, as `torch.save({name: tensor.contiguous(), …}, path)` does.
pub fn write_state_dict<N: AsRef<str>>(
    out: &mut (impl Write + Seek),
    tensors: &[(N, TensorView<'_>)],
) -> io::Result<()> {
    let mut pickle = Pickle::new();
    pickle.bytes.push(b'}');
    for (key, (name, view)) in tensors.iter().enumerate() {
        pickle.text(name.as_ref())?;
        pickle.tensor(key, view);
        pickle.bytes.push(b's');
    }
    let views: Vec<&TensorView<'_>> = tensors.iter().map(|(_, view)| view).collect();
    write_archive(out, &pickle.finish(), &views)
}

fn write_archive(out: &mut (impl Write + Seek), pickle: &[u8], views: &[&TensorView<'_>]) -> io::Result<()> {
    let mut zip = ZipWriter::new(out)?;
    zip.entry("data.pkl", pickle)?;
    zip.entry("byteorder", b"little")?;
    for (key, view) in views.iter().enumerate() {
        zip.streamed_entry(&format!("data/{key}"), view.size_bytes() as u64, |sink| {
            view.try_for_each_bytes(0..view.numel(), |bytes| {
                bytes.chunks(CHUNK_BYTES).try_for_each(&mut *sink)
            })
        })?;
    }
    zip.entry("version", b"3\n")?;
    zip.finish()
}

/// A pickle of protocol 2 under construction.
struct Pickle {
    bytes: Vec<u8>,
}

impl Pickle {
    fn new() -> Self {
        Pickle { bytes: vec![0x80, 2] }
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(b'.');
        self.bytes
    }

    fn global(&mut self, module: &str, name: &str) {
        self.bytes.extend_from_slice(format!("c{module}\n{name}\n").as_bytes());
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let len = u32::try_from(text.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a tensor name of 4 GiB"))?;
        self.bytes.push(b'X');
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// For texts of our own, which are short.
    fn short_text(&mut self, text: &str) {
        self.bytes.push(b'X');
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A non-negative integer in the shortest form torch's own unpickler knows.
    fn int(&mut self, value: usize) {
        let little = (value as u64).to_le_bytes();
        if let Ok(small) = u8::try_from(value) {
            self.bytes.extend_from_slice(&[b'K', small]);
        } else if let Ok(short) = i32::try_from(value) {
            self.bytes.push(b'J');
            self.bytes.extend_from_slice(&short.to_le_bytes());
        } else {
            // Nine bytes: the last one keeps the sign clear.
            self.bytes.extend_from_slice(&[0x8a, 9]);
            self.bytes.extend_from_slice(&little);
            self.bytes.push(0);
        }
    }

    fn sizes(&mut self, sizes: impl Iterator<Item = usize>) {
        self.bytes.push(b'(');
        for size in sizes {
            self.int(size);
        }
        self.bytes.push(b't');
    }

    /// A row-major tensor of the storage `key`, as torch reduces it: dtypes that have a storage class of their
    /// own by `_rebuild_tensor_v2`, the newer ones by `_rebuild_tensor_v3` and a storage of bytes.
    fn tensor(&mut self, key: usize, view: &TensorView<'_>) {
        let class = storage_class(view.dtype());
        let version = if class.is_some() { "_rebuild_tensor_v2" } else { "_rebuild_tensor_v3" };
        self.global("torch._utils", version);
        self.bytes.extend_from_slice(b"((");
        self.short_text("storage");
        match class {
            Some(class) => self.global("torch", class),
            None => self.global("torch.storage", "UntypedStorage"),
        }
        self.short_text(&key.to_string());
        self.short_text("cpu");
        self.int(if class.is_some() { view.numel() } else { view.size_bytes() });
        self.bytes.extend_from_slice(b"tQ");
        self.int(0);
        self.sizes(view.shape().iter().copied());
        self.sizes(row_major_strides(view.shape()).into_iter());
        self.bytes.push(0x89);
        self.global("collections", "OrderedDict");
        self.bytes.extend_from_slice(b")R");
        if class.is_none() {
            self.global("torch", view.dtype().name());
        }
        self.bytes.extend_from_slice(b"tR");
    }
}

/// Strides in elements. Sizes are those of a view, whose extent is known to fit; an empty tensor of absurd
/// other sizes gets saturated strides, which address nothing.
fn row_major_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    let mut running = 1usize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = running;
        running = running.saturating_mul(size.max(1)).min(i64::MAX as usize);
    }
    strides
}

fn storage_class(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "BoolStorage",
        DType::U8 => "ByteStorage",
        DType::I8 => "CharStorage",
        DType::I16 => "ShortStorage",
        DType::I32 => "IntStorage",
        DType::I64 => "LongStorage",
        DType::F16 => "HalfStorage",
        DType::BF16 => "BFloat16Storage",
        DType::F32 => "FloatStorage",
        DType::F64 => "DoubleStorage",
        DType::C64 => "ComplexFloatStorage",
        DType::C128 => "ComplexDoubleStorage",
        DType::U16
        | DType::U32
        | DType::U64
        | DType::F8E4M3FN
        | DType::F8E5M2
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ => return None,
    })
}

/// The largest value the 32-bit fields of a zip archive hold; the one above means "see the zip64 field".
const NARROW_MAX: u64 = 0xffff_fffe;
const NARROW_SENTINEL: u32 = 0xffff_ffff;
const VERSION_ZIP64: u16 = 45;
const FLAG_UTF8: u16 = 1 << 11;

struct ZipWriter<'o, W> {
    out: &'o mut W,
    /// Where the archive begins; offsets inside it count from here.
    base: u64,
    at: u64,
    directory: Vec<u8>,
    count: u64,
}

/// What the directory says about an entry.
struct Record<'n> {
    name: &'n str,
    crc: u32,
    size: u64,
    offset: u64,
}

impl<'o, W: Write + Seek> ZipWriter<'o, W> {
    fn new(out: &'o mut W) -> io::Result<Self> {
        let base = out.stream_position()?;
        Ok(ZipWriter { out, base, at: 0, directory: Vec::new(), count: 0 })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn entry(&mut self, name: &str, data: &[u8]) -> io::Result<()> {
        self.streamed_entry(name, data.len() as u64, |sink| sink(data))
    }

    /// Writes an entry of known size whose checksum is known only after streaming it: patched in afterwards.
    fn streamed_entry(
        &mut self,
        name: &str,
        size: u64,
        stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = format!("{ROOT}/{name}");
        let offset = self.at;
        let header = self.local_header(&name, size);
        self.put(&header)?;
        let mut hasher = crc32fast::Hasher::new();
        let mut written = 0u64;
        let out = &mut *self.out;
        stream(&mut |bytes| {
            hasher.update(bytes);
            written += bytes.len() as u64;
            out.write_all(bytes)
        })?;
        self.at += written;
        if written != size {
            let text = format!("{name}: {written} bytes were streamed, {size} were promised");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let crc = hasher.finalize();
        self.out.seek(SeekFrom::Start(self.base + offset + 14))?;
        self.out.write_all(&crc.to_le_bytes())?;
        self.out.seek(SeekFrom::Start(self.base + self.at))?;
        self.add_record(&Record { name: &name, crc, size, offset });
        Ok(())
    }

    /// A local header without checksum, padded so that what follows is aligned.
    fn local_header(&self, name: &str, size: u64) -> Vec<u8> {
        let wide = size > NARROW_MAX;
        let narrow_size = if wide { NARROW_SENTINEL } else { size as u32 };
        let mut extra = Vec::new();
        if wide {
            extra.extend_from_slice(&[1, 0, 16, 0]);
            extra.extend_from_slice(&size.to_le_bytes());
            extra.extend_from_slice(&size.to_le_bytes());
        }
        // The padding is an extra field of its own, "FB", as torch has it.
        let unpadded = self.at + 30 + name.len() as u64 + extra.len() as u64 + 4;
        let padding = (unpadded.next_multiple_of(ALIGNMENT) - unpadded) as usize;
        extra.extend_from_slice(b"FB");
        extra.extend_from_slice(&(padding as u16).to_le_bytes());
        extra.resize(extra.len() + padding, b'Z');

        let mut header = b"PK\x03\x04".to_vec();
        header.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
        header.extend_from_slice(&FLAG_UTF8.to_le_bytes());
        // Stored; no time, no date, the checksum comes later.
        header.extend_from_slice(&[0; 10]);
        header.extend_from_slice(&narrow_size.to_le_bytes());
        header.extend_from_slice(&narrow_size.to_le_bytes());
        header.extend_from_slice(&(name.len() as u16).to_le_bytes());
        header.extend_from_slice(&(extra.len() as u16).to_le_bytes());
        header.extend_from_slice(name.as_bytes());
        header.extend_from_slice(&extra);
        header
    }

    fn add_record(&mut self, record: &Record<'_>) {
        let mut extra = Vec::new();
        let mut narrow = |value: u64, times: usize| {
            if value <= NARROW_MAX {
                return value as u32;
            }
            for _ in 0..times {
                extra.extend_from_slice(&value.to_le_bytes());
            }
            NARROW_SENTINEL
        };
        let (size, offset) = (narrow(record.size, 2), narrow(record.offset, 1));
        let directory = &mut self.directory;
        directory.extend_from_slice(b"PK\x01\x02");
        directory.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
        directory.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
        directory.extend_from_slice(&FLAG_UTF8.to_le_bytes());
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&record.crc.to_le_bytes());
        directory.extend_from_slice(&size.to_le_bytes());
        directory.extend_from_slice(&size.to_le_bytes());
        directory.extend_from_slice(&(record.name.len() as u16).to_le_bytes());
        let extra_len = if extra.is_empty() { 0 } else { extra.len() as u16 + 4 };
        directory.extend_from_slice(&extra_len.to_le_bytes());
        // No comment, first disk, no attributes.
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(record.name.as_bytes());
        if !extra.is_empty() {
            directory.extend_from_slice(&[1, 0]);
            directory.extend_from_slice(&(extra.len() as u16).to_le_bytes());
            directory.extend_from_slice(&extra);
        }
        self.count += 1;
    }

    /// Writes the directory, with the 64-bit end record that torch always writes too.
    fn finish(mut self) -> io::Result<()> {
        let (start, size) = (self.at, self.directory.len() as u64);
        let mut tail = std::mem::take(&mut self.directory);
        let end64_at = start + size;
        tail.extend_from_slice(b"PK\x06\x06");
        tail.extend_from_slice(&44u64.to_le_bytes());
        tail.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
        tail.extend_from_slice(&VERSION_ZIP64.to_le_bytes());
        tail.extend_from_slice(&[0; 8]);
        for value in [self.count, self.count, size, start] {
            tail.extend_from_slice(&value.to_le_bytes());
        }
        tail.extend_from_slice(b"PK\x06\x07");
        tail.extend_from_slice(&[0; 4]);
        tail.extend_from_slice(&end64_at.to_le_bytes());
        tail.extend_from_slice(&1u32.to_le_bytes());
        tail.extend_from_slice(b"PK\x05\x06");
        tail.extend_from_slice(&[0; 4]);
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        tail.extend_from_slice(&count.to_le_bytes());
        tail.extend_from_slice(&count.to_le_bytes());
        for value in [size, start] {
            let narrow = if value <= NARROW_MAX { value as u32 } else { NARROW_SENTINEL };
            tail.extend_from_slice(&narrow.to_le_bytes());
        }
        tail.extend_from_slice(&[0; 2]);
        self.put(&tail)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::files::pt;
    use crate::view::Endian;

    fn bytes_of(view: &TensorView<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        view.for_each_bytes(0..view.numel(), |block| bytes.extend_from_slice(block));
        bytes
    }

    #[test]
    fn every_dtype_comes_back() {
        let data: Vec<u8> = (0..96).collect();
        for dtype in DType::all() {
            let rows = 96 / dtype.size_bytes() / 3;
            let view = TensorView::new(dtype, vec![3, rows], vec![1, 3], &data, 0, Endian::Little).unwrap();
            let mut out = Cursor::new(Vec::new());
            write_tensor(&mut out, &view).unwrap();
            let file = out.into_inner();
            let index = pt::parse(&file).unwrap();
            let layout = index.entries[0].layout.clone().unwrap();
            assert_eq!((layout.dtype, layout.shape.as_slice()), (dtype, &[3, rows][..]));
            assert_eq!(layout.storage_start % ALIGNMENT as usize, 0);
            assert_eq!(bytes_of(&layout.view(&file).unwrap()), bytes_of(&view), "{dtype}");
        }
    }

    #[test]
    fn names_and_order_of_a_dict_come_back() {
        let data: Vec<u8> = (0..64).collect();
        let one = TensorView::contiguous(DType::F32, vec![2, 3], &data).unwrap();
        let scalar = TensorView::contiguous(DType::U64, vec![], &data).unwrap();
        let empty = TensorView::contiguous(DType::BF16, vec![0, 7], &[]).unwrap();
        let mut out = Cursor::new(Vec::new());
        let tensors = [("z.weight", one.clone()), ("a.é", scalar), ("", empty), ("again", one)];
        write_state_dict(&mut out, &tensors).unwrap();
        let file = out.into_inner();
        let index = pt::parse(&file).unwrap();
        let names: Vec<&str> = index.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["z.weight", "a.é", "", "again"]);
        for (entry, (_, view)) in index.entries.iter().zip(&tensors) {
            let layout = entry.layout.as_ref().unwrap();
            assert_eq!(layout.shape, view.shape());
            assert_eq!(bytes_of(&layout.view(&file).unwrap()), bytes_of(view));
        }
    }

    #[test]
    fn an_archive_may_begin_inside_its_stream() {
        let view = TensorView::contiguous(DType::U8, vec![3], &[1, 2, 3]).unwrap();
        let mut out = Cursor::new(b"before".to_vec());
        out.seek(SeekFrom::End(0)).unwrap();
        write_tensor(&mut out, &view).unwrap();
        assert!(pt::parse(&out.into_inner()[6..]).is_ok());
    }

    /// Keeps the first and last bytes of what is written, and only counts the rest.
    struct Ends {
        head: Vec<u8>,
        tail: Vec<u8>,
        at: u64,
    }

    impl Write for Ends {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.at < 4096 {
                let start = self.at as usize;
                let len = bytes.len().min(4096 - start);
                self.head.resize(self.head.len().max(start + len), 0);
                self.head[start..start + len].copy_from_slice(&bytes[..len]);
            } else if bytes.len() < 4096 {
                self.tail.extend_from_slice(bytes);
            }
            self.at += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Ends {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            if let SeekFrom::Start(at) = to {
                self.at = at;
            }
            Ok(self.at)
        }
    }

    #[test]
    fn sizes_and_offsets_beyond_32_bits_go_to_the_wide_fields() {
        let numel = 5usize << 30;
        let mut out = Ends { head: Vec::new(), tail: Vec::new(), at: 0 };
        let mut zip = ZipWriter::new(&mut out).unwrap();
        zip.streamed_entry("data/0", numel as u64, |sink| {
            let chunk = vec![7; CHUNK_BYTES];
            (0..numel / CHUNK_BYTES).try_for_each(|_| sink(&chunk))
        })
        .unwrap();
        zip.entry("version", b"3\n").unwrap();
        zip.finish().unwrap();
        let wide = (numel as u64).to_le_bytes();
        let has = |bytes: &[u8], needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        // Local header: sentinel sizes, then the zip64 field with both.
        assert!(has(&out.head, &[[0xff; 8].as_slice(), &[14, 0]].concat()));
        assert!(has(&out.head, &[&[1, 0, 16, 0], wide.as_slice(), &wide].concat()));
        // Directory: data/0 has wide sizes, `version` has a wide offset only.
        assert!(has(&out.tail, &[b"archive/data/0\x01\0\x10\0", wide.as_slice(), &wide].concat()));
        assert!(has(&out.tail, b"archive/version\x01\0\x08\0"));
    }
}
