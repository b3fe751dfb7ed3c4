//! What the tests of tensor files share: the fixtures and their manifests, and ways to maltreat bytes.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};

use msprobe_tensor::files::{FormatError, Index, npy};
use msprobe_tensor::{DType, TensorView};
use serde_json::Value;

pub(crate) fn fixtures(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(kind)
}

/// One tensor that a real library wrote.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    /// `Err`: the tag of a dtype we do not decode.
    pub(crate) content: Result<(DType, String), String>,
}

pub(crate) fn manifest(kind: &str) -> Vec<Expected> {
    let text = std::fs::read(fixtures(kind).join("manifest.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
    rows.iter()
        .map(|row| {
            let text =
                |key: &str| row[key].as_str().unwrap_or_else(|| panic!("no {key} in {row}")).to_owned();
            let shape = row["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize);
            let content = match row["unsupported"].as_str() {
                Some(tag) => Err(tag.to_owned()),
                None => Ok((DType::from_numpy_name(&text("dtype")).unwrap(), text("hex"))),
            };
            Expected { file: text("file"), name: text("name"), shape: shape.collect(), content }
        })
        .collect()
}

/// Hex of the elements in row-major order and little-endian bytes, as a written file holds them.
pub(crate) fn hex(view: &TensorView<'_>) -> String {
    let mut file = Vec::new();
    npy::write(&mut file, view).unwrap();
    file[file.len() - view.size_bytes()..]
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Touches all of every usable tensor that is not absurdly large.
pub(crate) fn touch(index: &Index, file: &[u8]) {
    for layout in index.entries.iter().filter_map(|entry| entry.layout.as_ref().ok()) {
        if let Ok(view) = layout.view(file)
            && view.size_bytes() <= 1 << 20
        {
            npy::write(&mut std::io::sink(), &view).unwrap();
        }
    }
}

type Parse = fn(&[u8]) -> Result<Index, FormatError>;

/// The file cut at every byte, and with every one of its bits flipped: anything but a panic.
pub(crate) fn maltreat(parse: Parse, file: &[u8]) {
    for len in 0..file.len() {
        if let Ok(index) = parse(&file[..len]) {
            touch(&index, &file[..len]);
        }
    }
    let mut flipped = file.to_vec();
    for bit in 0..file.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(index) = parse(&flipped) {
            touch(&index, &flipped);
        }
        flipped[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Every file of the hostile corpus, by name.
pub(crate) fn hostile(kind: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile").join(kind);
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}
