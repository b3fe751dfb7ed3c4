//! `.pt` files written by real PyTorch (tests/fixtures/make_pt.py), checked bit by bit against its manifest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use msprobe_tensor::files::pt::{self, PtDocument, PtValueKind, ValueRef};
use msprobe_tensor::files::{Format, FormatError, TensorFile, TensorLayout};
use msprobe_tensor::{DType, DTypeClass, Endian, checked_numel};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/pt")
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(file)).unwrap()
}

/// The elements in row-major order and little-endian bytes, gathered one by one.
fn hex(layout: &TensorLayout, file: &[u8]) -> String {
    let size = layout.dtype.size_bytes();
    let storage = &layout.decoded.as_deref().unwrap_or(file)[layout.storage_start..][..layout.storage_len];
    let mut text = String::new();
    for logical in 0..checked_numel(&layout.shape).unwrap() {
        let (mut rest, mut element) = (logical, layout.offset as isize);
        for (&length, &stride) in layout.shape.iter().zip(&layout.strides).rev() {
            element += (rest % length) as isize * stride;
            rest /= length;
        }
        let mut bytes = storage[element as usize * size..][..size].to_vec();
        if layout.endian == Endian::Big {
            let parts = if layout.dtype.class() == DTypeClass::Complex { 2 } else { 1 };
            bytes.chunks_mut(size / parts).for_each(<[u8]>::reverse);
        }
        for byte in bytes {
            write!(text, "{byte:02x}").unwrap();
        }
    }
    text
}

#[test]
fn every_fixture_matches_its_manifest() {
    let rows: Vec<Value> = serde_json::from_slice(&read("manifest.json")).unwrap();
    let mut by_file: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for row in &rows {
        by_file.entry(row["file"].as_str().unwrap()).or_default().push(row);
    }
    let on_disk = std::fs::read_dir(fixtures()).unwrap().count() - 1;
    assert_eq!(by_file.len(), on_disk, "every fixture has rows");
    for (name, rows) in by_file {
        let file = read(name);
        let index = pt::parse(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let names: Vec<&str> = index.entries.iter().map(|entry| entry.name.as_str()).collect();
        let expected: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{name}");
        for (entry, row) in index.entries.iter().zip(rows) {
            let at = format!("{name}: {}", entry.name);
            if let Some(reason) = row["unsupported"].as_str() {
                let error = entry.layout.as_ref().expect_err(&at);
                assert!(
                    matches!(error, FormatError::Unsupported(text) if text.contains(reason)),
                    "{at}: {error}"
                );
                continue;
            }
            let layout = entry.layout.as_ref().unwrap_or_else(|error| panic!("{at}: {error}"));
            let shape: Vec<usize> =
                row["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
            assert_eq!(layout.dtype.name(), row["dtype"].as_str().unwrap(), "{at}");
            assert_eq!(layout.shape, shape, "{at}");
            assert_eq!(hex(layout, &file), row["hex"].as_str().unwrap(), "{at}");
            assert!(layout.view(&file).is_ok(), "{at}");
        }
    }
}

#[test]
fn views_of_one_storage_share_its_bytes() {
    let file = read("layouts.pt");
    let index = pt::parse(&file).unwrap();
    let layout = |name: &str| {
        let entry = index.entries.iter().find(|entry| entry.name == name).unwrap();
        entry.layout.clone().unwrap()
    };
    assert_eq!(layout("base").storage_start, layout("transposed").storage_start);
    assert_eq!(layout("base").storage_start, layout("expanded").storage_start);
    assert_eq!(layout("transposed").strides, [1, 4]);
    assert_eq!(layout("slice").offset, 5);
    assert_eq!(layout("expanded").strides, [4, 0]);
}

fn get<'d>(doc: &'d PtDocument<'_>, key: &str) -> ValueRef<'d> {
    doc.root().get(key).unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn values_next_to_the_tensors_are_readable() {
    for name in ["values.pt", "legacy_values.pt"] {
        let file = read(name);
        let doc = pt::load(&file).unwrap();
        let root = doc.root();
        assert_eq!(root.kind(), PtValueKind::Dict);
        assert_eq!(root.items().len(), root.len());
        let int = |key| get(&doc, key).as_int();
        let float = |key| get(&doc, key).as_float();
        assert_eq!(get(&doc, "none").kind(), PtValueKind::None);
        assert_eq!(get(&doc, "true").as_bool(), Some(true));
        assert_eq!(get(&doc, "false").as_bool(), Some(false));
        assert_eq!((int("int"), int("negative"), int("short")), (Some(41), Some(-7), Some(1000)));
        assert_eq!((int("long"), int("min")), (Some(1 << 40), Some(i64::MIN)));
        assert_eq!((get(&doc, "max").kind(), int("max"), int("huge")), (PtValueKind::Int, None, None));
        assert_eq!((float("float"), float("inf")), (Some(0.1), Some(f64::INFINITY)));
        assert_eq!(get(&doc, "text").as_str(), Some("détente ✓"));
        assert_eq!(get(&doc, "empty_text").as_str(), Some(""));
        assert_eq!(get(&doc, "bytes").as_bytes().unwrap(), &b"\x00\xff\x80abc"[..]);
        assert_eq!(get(&doc, "no_bytes").as_bytes().unwrap(), &b""[..]);
        assert_eq!(get(&doc, "bytearray").as_bytes().unwrap(), &b"\x01\xfe"[..]);
        let list: Vec<PtValueKind> = get(&doc, "list").members().map(ValueRef::kind).collect();
        assert_eq!(list, [PtValueKind::Int, PtValueKind::Float, PtValueKind::Str]);
        let inner = get(&doc, "tuple").nth(1).unwrap().nth(1).unwrap();
        assert_eq!((inner.kind(), inner.nth(0).unwrap().as_int()), (PtValueKind::Tuple, Some(3)));
        assert_eq!(get(&doc, "set").members().next().unwrap().as_int(), Some(5));
        assert_eq!(get(&doc, "frozenset").kind(), PtValueKind::Set);
        assert_eq!(get(&doc, "complex").class_name().unwrap(), "builtins.complex");
        let parts: Vec<f64> = get(&doc, "complex").arguments().filter_map(ValueRef::as_float).collect();
        assert_eq!(parts, [1.0, 2.0]);
        assert_eq!(get(&doc, "counter").get("a").unwrap().as_int(), Some(2));
        assert!(get(&doc, "default").get("a").unwrap().nth(0).unwrap().tensor().unwrap().is_ok());
        assert_eq!(get(&doc, "dtype").as_dtype(), Some(DType::BF16));
        assert_eq!(get(&doc, "dtype").class_name().unwrap(), "torch.bfloat16");
        assert_eq!(get(&doc, "size").members().filter_map(ValueRef::as_int).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(get(&doc, "device").arguments().next().unwrap().as_str(), Some("cpu"));
        let path: Vec<&str> = get(&doc, "path").arguments().filter_map(ValueRef::as_str).collect();
        assert_eq!(path, ["/", "tmp", "run", "1"]);
        let namespace = get(&doc, "namespace");
        assert_eq!((namespace.kind(), namespace.attributes().count()), (PtValueKind::Object, 3));
        assert_eq!(namespace.class_name().unwrap(), "argparse.Namespace");
        assert_eq!(namespace.get("a").unwrap().as_int(), Some(1));
        assert_eq!(get(&doc, "simple").get("x").unwrap().as_float(), Some(0.5));
        assert_eq!((int("np_int"), float("np_float"), float("np_half")), (Some(-3), Some(1.5), Some(0.5)));
        assert_eq!(get(&doc, "np_bool").as_bool(), Some(true));
        assert_eq!(get(&doc, "int").tensor(), None);
    }
}

#[test]
fn shared_tensors_keep_their_identity() {
    let file = read("nested_protocol4.pt");
    let doc = pt::load(&file).unwrap();
    let weight = get(&doc, "model").get("layers").unwrap().nth(0).unwrap().get("weight").unwrap();
    assert_eq!(weight.identity(), get(&doc, "tied").identity());
    assert_ne!(weight.identity(), get(&doc, "view").identity());
    assert_eq!(weight.tensor().unwrap().unwrap().shape, [2, 2]);
}

#[test]
fn numpy_arrays_that_the_file_keeps_as_text_are_decoded() {
    let (two, four) = (read("numpy_protocol2.pt"), read("numpy_protocol4.pt"));
    let (two_doc, four_doc) = (pt::load(&two).unwrap(), pt::load(&four).unwrap());
    let mut decoded = 0;
    for key in
        ["f4", "fortran", "transposed", "big", "i8", "u2", "b", "c16", "f2", "scalar", "empty", "bf16", "f8"]
    {
        let a = get(&two_doc, key).tensor().unwrap().unwrap();
        let b = get(&four_doc, key).tensor().unwrap().unwrap();
        assert_eq!((a.dtype, a.endian, &a.shape), (b.dtype, b.endian, &b.shape), "{key}");
        assert_eq!(hex(&a, &two), hex(&b, &four), "{key}");
        assert!(b.decoded.is_none(), "{key}");
        decoded += usize::from(a.decoded.is_some());
    }
    assert!(decoded > 5, "{decoded}");
}

#[test]
fn a_checkpoint_has_its_settings_too() {
    for name in ["training.pt", "legacy_training.pt"] {
        let file = read(name);
        let doc = pt::load(&file).unwrap();
        let group = get(&doc, "optimizer").get("param_groups").unwrap().nth(0).unwrap();
        assert_eq!(group.get("lr").unwrap().as_float(), Some(1e-3));
        assert_eq!(group.get("amsgrad").unwrap().as_bool(), Some(false));
        assert_eq!(get(&doc, "args").get("name").unwrap().as_str(), Some("tiny"));
        assert_eq!(get(&doc, "args").get("params_dtype").unwrap().as_dtype(), Some(DType::BF16));
        // The attribute that torch hangs on every state dict.
        assert!(get(&doc, "model").attributes().any(|(key, _)| key.as_str() == Some("_metadata")));
    }
}

#[test]
fn files_open_by_their_content() {
    for name in ["layouts.pt", "legacy_layouts.pt"] {
        let file = TensorFile::open(&fixtures().join(name)).unwrap();
        assert_eq!(file.format(), Format::Pt);
        let index = file.find("permuted").unwrap();
        assert_eq!(file.view(index).unwrap().shape(), [4, 2, 3]);
    }
}
