//! Opening a tensor file: mapping it, telling its format by its content, and lending out its tensors.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::regular::{Links, open_inside, open_regular};
use super::{FormatError, Index, PlainValue, TensorEntry, npy, pt, safetensors};
use crate::view::TensorView;

/// The file formats tensors are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// numpy's `.npy`.
    Npy,
    /// What `torch.save` writes, zip or legacy: `.pt`, `.pth`, `.bin`.
    Pt,
    /// `.safetensors`.
    Safetensors,
}

impl Format {
    /// Tells the format by content. `hint` is a file extension without its dot; it decides only what content
    /// leaves open.
    fn detect(hint: Option<&str>, bytes: &[u8]) -> Result<Format, FormatError> {
        if bytes.is_empty() {
            let what = "any tensor file";
            return Err(FormatError::Truncated { what, needed: 8, available: 0 });
        }
        let hinted = hint.and_then(Format::from_extension);
        if bytes.starts_with(npy::MAGIC) {
            return Ok(Format::Npy);
        }
        // Before pickles: a header length of 640 starts with the same two bytes as one.
        if safetensors::looks_like(bytes) {
            return Ok(Format::Safetensors);
        }
        if is_zip(bytes) || is_legacy_torch(bytes) {
            return Ok(Format::Pt);
        }
        if let Some(what) = known_stranger(bytes) {
            return Err(FormatError::Unsupported(what.to_owned()));
        }
        hinted.ok_or_else(|| {
            let start = &bytes[..bytes.len().min(8)];
            FormatError::Unsupported(format!(
                "not a tensor file, it starts with \"{}\"",
                start.escape_ascii()
            ))
        })
    }

    fn from_extension(extension: &str) -> Option<Format> {
        let is = |name: &str| extension.eq_ignore_ascii_case(name);
        if is("npy") {
            Some(Format::Npy)
        } else if is("safetensors") {
            Some(Format::Safetensors)
        } else if is("pt") || is("pth") || is("bin") {
            Some(Format::Pt)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Npy => "npy",
            Format::Pt => "pt",
            Format::Safetensors => "safetensors",
        })
    }
}

fn is_zip(bytes: &[u8]) -> bool {
    // The second is how a zip without members starts.
    (bytes.starts_with(b"PK\x03\x04") && !is_npz(bytes)) || bytes.starts_with(b"PK\x05\x06")
}

/// A zip whose first member is called `*.npy`.
fn is_npz(bytes: &[u8]) -> bool {
    const NAME_LEN_AT: usize = 26;
    const NAME_AT: usize = 30;
    let Some(&[low, high]) = bytes.get(NAME_LEN_AT..NAME_LEN_AT + 2) else {
        return false;
    };
    let name_len = usize::from(u16::from_le_bytes([low, high]));
    bytes.get(NAME_AT..NAME_AT + name_len).is_some_and(|name| name.ends_with(b".npy"))
}

/// A pickle whose first value is torch's magic number, 0x1950a86a20f9469cfc6c as a LONG1.
fn is_legacy_torch(bytes: &[u8]) -> bool {
    const MAGIC_NUMBER: &[u8] = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
    // Protocols 4 and 5 put a frame of nine bytes before it.
    bytes.first() == Some(&0x80)
        && bytes
            .get(2..bytes.len().min(32))
            .is_some_and(|start| start.windows(MAGIC_NUMBER.len()).any(|window| window == MAGIC_NUMBER))
}

/// Files people hand us that have a name, but hold no tensors we can reach.
fn known_stranger(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"PK\x03\x04") {
        Some("an .npz archive, unzip it to get its .npy files")
    } else if bytes.get(257..262) == Some(b"ustar") {
        Some("a tar archive (torch before 0.2 saved so), unpack it or save it again")
    } else if bytes.starts_with(b"version https://git-lfs") {
        Some("a git LFS pointer, the file itself was not downloaded")
    } else if bytes.starts_with(b"\x1f\x8b")
        || bytes.starts_with(b"\x28\xb5\x2f\xfd")
        || bytes.starts_with(b"\xfd7zXZ\0")
        || bytes.starts_with(b"BZh")
    {
        Some("a compressed file")
    } else {
        None
    }
}

impl Index {
    /// Indexes the bytes of a tensor file. `format_hint` is a file extension without its dot, and decides only
    /// what the content leaves open.
    pub fn parse(format_hint: Option<&str>, bytes: &[u8]) -> Result<(Format, Index), FormatError> {
        let format = Format::detect(format_hint, bytes)?;
        parse_as(format, bytes).map(|index| (format, index))
    }
}

fn parse_as(format: Format, bytes: &[u8]) -> Result<Index, FormatError> {
    match format {
        Format::Npy => npy::parse(bytes),
        Format::Pt => pt::parse(bytes),
        Format::Safetensors => safetensors::parse(bytes),
    }
}

/// Why a tensor file, or a tensor of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be opened or mapped.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content cannot be understood.
    #[error("cannot read {}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format it was read as; `None` when none could be told.
        format: Option<Format>,
        /// What is wrong with it.
        source: FormatError,
    },
    /// One tensor cannot be used; its neighbours may be.
    #[error("cannot read {}: {source}", place(path, tensor))]
    Tensor {
        /// The file.
        path: PathBuf,
        /// Its name in the file; empty when the file is one bare tensor.
        tensor: String,
        /// What is wrong with it.
        source: FormatError,
    },
}

fn place(path: &Path, tensor: &str) -> String {
    match tensor {
        "" => path.display().to_string(),
        _ => format!("tensor {tensor:?} of {}", path.display()),
    }
}

impl FileError {
    /// What to do next, in a sentence.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            FileError::Open { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Some("check the path for a spelling mistake"),
                io::ErrorKind::PermissionDenied => Some("check who may read the file"),
                io::ErrorKind::IsADirectory => Some("give the path of one file in it"),
                io::ErrorKind::InvalidInput => Some("copy the data into an ordinary file first"),
                _ => None,
            },
            FileError::Format { source, .. } | FileError::Tensor { source, .. } => Some(hint_for(source)),
        }
    }
}

fn hint_for(error: &FormatError) -> &'static str {
    match error {
        FormatError::Truncated { .. } => {
            "the file is cut short: was the writer killed, or is the copy incomplete? write or copy it again"
        }
        FormatError::Refused(what) if what.starts_with("the pickle ") => {
            "only tensors and plain containers are read; re-save the file as a state_dict"
        }
        FormatError::Refused(_) => {
            "no honest file looks like this: check where it comes from, and write or copy it again"
        }
        FormatError::Unsupported(what) if what.contains("LFS") => "run `git lfs pull` to download it",
        FormatError::Unsupported(what) if what.contains("compress") => {
            "decompress the file, or save it again without compression"
        }
        FormatError::Unsupported(what) if what.starts_with("not a tensor file") => {
            "msprobe reads .npy, .pt/.pth/.bin and .safetensors"
        }
        FormatError::Unsupported(_) => "save it again as plain dense tensors in .npy, .pt or .safetensors",
        FormatError::Malformed(_) | FormatError::View(_) => {
            "the file is damaged, or not what its name says: write or copy it again"
        }
    }
}

/// A tensor file mapped into memory. Only headers are read when it is opened.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    format: Format,
    map: Mmap,
    index: Index,
    /// Indices into the entries, sorted by name.
    by_name: Vec<usize>,
}

impl TensorFile {
    /// Maps a file that the user named and indexes its tensors.
    pub fn open(path: &Path) -> Result<TensorFile, FileError> {
        TensorFile::index(path, open_regular(path, Links::Follow))
    }

    /// The same for a file that was found in a dump: a link is refused.
    pub fn open_found(path: &Path) -> Result<TensorFile, FileError> {
        TensorFile::index(path, open_regular(path, Links::Refuse))
    }

    /// The same for a file that a dump names: it has to lie in the directory, and no link leads to it.
    pub fn open_inside(directory: &Path, name: &str) -> Result<TensorFile, FileError> {
        TensorFile::index(&directory.join(name), open_inside(directory, name))
    }

    fn index(path: &Path, file: io::Result<File>) -> Result<TensorFile, FileError> {
        let map = file
            .and_then(|file| map_file(&file))
            .map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        let hint = path.extension().and_then(|extension| extension.to_str());
        let fail = |format, source| FileError::Format { path: path.to_owned(), format, source };
        let format = Format::detect(hint, &map).map_err(|error| fail(None, error))?;
        let index = parse_as(format, &map).map_err(|error| fail(Some(format), error))?;
        let mut by_name: Vec<usize> = (0..index.entries.len()).collect();
        by_name.sort_by_key(|&position| index.entries[position].name.as_str());
        Ok(TensorFile { path: path.to_owned(), format, map, index, by_name })
    }

    /// The path the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format its content has.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Bytes of the file.
    pub fn size_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// What a `.pt` file holds besides tensors: numbers, texts, settings. The other formats have no place for them.
    pub fn plain_values(&self) -> Result<Vec<PlainValue>, FileError> {
        if self.format != Format::Pt {
            return Ok(Vec::new());
        }
        let fail = |source| FileError::Format { path: self.path.clone(), format: Some(self.format), source };
        pt::load(&self.map).and_then(|document| document.plain_values()).map_err(fail)
    }

    /// Bytes of an `.npy` or `.safetensors` file that belong to no tensor: several may have been saved to one stream, or the
    /// header says less than there is.
    pub fn unclaimed_bytes(&self) -> u64 {
        self.index.unclaimed_bytes
    }

    /// The tensors, usable or not.
    pub fn entries(&self) -> &[TensorEntry] {
        &self.index.entries
    }

    /// The position of the (first) tensor of that name in [`entries`](Self::entries).
    pub fn find(&self, name: &str) -> Option<usize> {
        let name_at = |position: usize| self.index.entries[position].name.as_str();
        let first = self.by_name.partition_point(|&position| name_at(position) < name);
        self.by_name.get(first).copied().filter(|&position| name_at(position) == name)
    }

    /// Borrows one tensor from the file.
    pub fn view(&self, index: usize) -> Result<TensorView<'_>, FileError> {
        let fail = |tensor: &str, source| FileError::Tensor {
            path: self.path.clone(),
            tensor: tensor.to_owned(),
            source,
        };
        let Some(entry) = self.index.entries.get(index) else {
            let what = format!("there is no tensor number {index}, the file has {}", self.entries().len());
            return Err(fail("", FormatError::Malformed(what)));
        };
        match &entry.layout {
            Ok(layout) => layout.view(&self.map).map_err(|error| fail(&entry.name, error)),
            Err(error) => Err(fail(&entry.name, error.clone())),
        }
    }

    /// Tells the system that the pages of one tensor are not needed for now, so that walking through a large
    /// file does not keep all of it resident. Views stay valid: touching the tensor again faults its pages back
    /// in from the file. Does nothing for a tensor that cannot be used, or where the system has no such advice.
    pub fn release(&self, index: usize) {
        let Some(Ok(layout)) = self.index.entries.get(index).map(|entry| &entry.layout) else {
            return;
        };
        if layout.decoded.is_some() {
            return;
        }
        let (start, len) = (layout.storage_start, layout.storage_len);
        let inside = start.checked_add(len).is_some_and(|end| end <= self.map.len());
        if inside && len > 0 {
            drop_pages(&self.map, start, len);
        }
    }
}

pub(super) fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only and shared, and nothing in this process writes to the file while it lives.
    // Should another process overwrite the file, values read from it change; they are only ever interpreted
    // as numbers, after the header has been copied and checked. Should another process truncate it, touching a
    // page past its new end raises SIGBUS and ends this process: no tensor library that maps files can do
    // better without copying, and dumps are written once and then left alone.
    #[allow(unsafe_code, reason = "mapping a file is the point of this module; see SAFETY")]
    let map = unsafe { Mmap::map(file) }?;
    #[cfg(unix)]
    {
        // Kernels read tensors front to back. Merely advice: failing to follow it is no failure.
        let _ = map.advise(memmap2::Advice::Sequential);
    }
    Ok(map)
}

/// Drops the pages that hold `start..start + len`, and with them whatever else shares its first and last one.
#[cfg(unix)]
pub(super) fn drop_pages(map: &Mmap, start: usize, len: usize) {
    // SAFETY: `Mmap::map` makes a MAP_SHARED, PROT_READ mapping of a file. There MADV_DONTNEED only takes pages
    // out of this process's tables (madvise(2): "subsequent accesses … result in repopulating the memory
    // contents from the up-to-date contents of the underlying mapped file"), so borrowed views read the same
    // bytes before and after. It would discard data on private or anonymous mappings, which this is not. The
    // caller checked the range to lie inside the map.
    #[allow(unsafe_code, reason = "page advice on a shared read-only file mapping; see SAFETY")]
    let advised = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) };
    // Merely advice: pages that stay resident are no failure.
    let _ = advised;
}

#[cfg(not(unix))]
pub(super) fn drop_pages(_map: &Mmap, _start: usize, _len: usize) {}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NPY: &[u8] = b"\x93NUMPY\x01\x00\x37\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}abc";

    fn write(dir: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn content_decides_before_the_extension() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.npy", "a.pt", "a.safetensors", "a"] {
            let file = TensorFile::open(&write(&dir, name, NPY)).unwrap();
            assert_eq!((file.format(), file.size_bytes()), (Format::Npy, NPY.len() as u64));
            assert_eq!(file.path().file_name().unwrap(), name);
            assert_eq!(file.find(""), Some(0));
            assert_eq!(file.view(0).unwrap().as_bytes().unwrap(), b"abc");
            file.release(0);
            file.release(1);
            assert_eq!(file.view(0).unwrap().as_bytes().unwrap(), b"abc");
        }
    }

    #[test]
    fn a_header_length_that_looks_like_a_pickle_is_still_safetensors() {
        let header = format!("{:640}", "{}");
        let bytes = safetensors(&header, b"");
        assert_eq!(bytes[..2], [0x80, 2]);
        assert_eq!(Index::parse(Some("pt"), &bytes).unwrap(), (Format::Safetensors, Index::default()));
    }

    #[test]
    fn torch_files_are_known_by_content() {
        let legacy = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.";
        let framed = b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.";
        for bytes in [&legacy[..], framed, b"PK\x03\x04\0\0\0\0", b"PK\x05\x06"] {
            assert_eq!(Format::detect(None, bytes), Ok(Format::Pt));
        }
        assert_eq!(Format::detect(Some("PTH"), b"\x80\x02}."), Ok(Format::Pt));
    }

    #[test]
    fn strangers_are_named() {
        let tar = [&[b'a'; 257][..], b"ustar"].concat();
        let npz = b"PK\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.npy";
        for (bytes, piece) in [
            (&tar[..], "tar archive"),
            (npz, ".npz archive"),
            (b"\x1f\x8b\x08\0", "compressed"),
            (b"version https://git-lfs.github.com/spec/v1\n", "LFS pointer"),
            (b"hello, world", "starts with \"hello, w\""),
            (b"\x80\x02}.", "not a tensor file"),
        ] {
            let error = Format::detect(None, bytes).unwrap_err();
            assert!(
                matches!(error, FormatError::Unsupported(_)) && error.to_string().contains(piece),
                "{error}"
            );
        }
    }

    #[test]
    fn find_and_view_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = safetensors(
            r#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},
                "c":{"dtype":"F4","shape":[2],"data_offsets":[2,3]}}"#,
            b"xyz",
        );
        let file = TensorFile::open(&write(&dir, "x.safetensors", &bytes)).unwrap();
        assert_eq!(
            ["a", "b", "c", "d", ""].map(|name| file.find(name)),
            [Some(1), Some(0), Some(2), None, None]
        );
        assert_eq!(file.view(1).unwrap().as_bytes().unwrap(), b"y");
        let error = file.view(2).unwrap_err();
        assert!(error.to_string().starts_with("cannot read tensor \"c\" of "), "{error}");
        assert!(
            error.to_string().ends_with("x.safetensors: unsupported: safetensors dtype \"F4\""),
            "{error}"
        );
        assert!(file.view(3).unwrap_err().to_string().contains("no tensor number 3, the file has 3"));
        file.release(2);
        file.release(usize::MAX);
    }

    #[test]
    fn what_is_no_file_of_ours_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path| TensorFile::open(path).unwrap_err();

        let error = open(&dir.path().join("none.npy"));
        assert!(error.to_string().starts_with("cannot open ") && error.hint().unwrap().contains("spelling"));

        let error = open(dir.path());
        assert!(error.to_string().ends_with("it is a directory"), "{error}");

        let error = open(&write(&dir, "empty.pt", b""));
        assert!(error.to_string().contains("any tensor file needs 8 bytes, 0 are left"), "{error}");
        assert!(error.hint().unwrap().contains("cut short"));

        let error = open(&write(&dir, "cut.npy", &NPY[..NPY.len() - 1]));
        assert!(error.to_string().ends_with("truncated: array data needs 3 bytes, 2 are left"), "{error}");
        assert!(error.hint().unwrap().contains("cut short"));
        assert!(matches!(error, FileError::Format { format: Some(Format::Npy), .. }));

        let error = open(&write(&dir, "text.npy", b"hello, world"));
        assert!(error.to_string().contains("magic \\x93NUMPY is missing"), "{error}");

        let error = open(&write(&dir, "readme.md", b"hello, world"));
        assert_eq!(error.hint(), Some("msprobe reads .npy, .pt/.pth/.bin and .safetensors"));
        assert!(matches!(error, FileError::Format { format: None, .. }));

        let error = open(&write(&dir, "big.safetensors", &u64::MAX.to_le_bytes()));
        assert!(
            error.to_string().contains("refused: a safetensors header of 18446744073709551615"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("no honest file"));
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.npy");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, Path::new("/dev/zero")] {
            let error = TensorFile::open(path).unwrap_err();
            assert!(error.to_string().contains("not an ordinary file"), "{error}");
            assert!(error.hint().unwrap().contains("ordinary file"));
        }
    }

    #[test]
    fn refused_globals_get_the_hint_for_them() {
        let error = FileError::Format {
            path: "/x/y.pt".into(),
            format: Some(Format::Pt),
            source: FormatError::Refused("the pickle names the global os.system".into()),
        };
        assert_eq!(error.to_string(), "cannot read /x/y.pt: refused: the pickle names the global os.system");
        assert!(error.hint().unwrap().contains("state_dict"));
    }

    #[test]
    fn a_bare_tensor_is_called_by_its_file() {
        let source = FormatError::Unsupported("sparse layout".into());
        let error = FileError::Tensor { path: "/x/y.pt".into(), tensor: String::new(), source };
        assert_eq!(error.to_string(), "cannot read /x/y.pt: unsupported: sparse layout");
    }

    #[test]
    fn formats_have_names() {
        let names = [Format::Npy, Format::Pt, Format::Safetensors].map(|format| format.to_string());
        assert_eq!(names, ["npy", "pt", "safetensors"]);
    }
}
