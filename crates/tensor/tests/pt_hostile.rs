//! `.pt` files that no honest program writes (tests/fixtures/make_hostile_pt.py, and larger ones made here): each
//! is turned down with the right error, in little time and memory, and nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use msprobe_tensor::files::pt::{self, PtValueKind};
use msprobe_tensor::files::{FormatError, Index};
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/pt")
}

fn kind(error: &FormatError) -> &'static str {
    match error {
        FormatError::Truncated { .. } => "Truncated",
        FormatError::Malformed(_) => "Malformed",
        FormatError::Unsupported(_) => "Unsupported",
        FormatError::Refused(_) => "Refused",
        FormatError::View(_) => "View",
    }
}

#[test]
fn every_file_of_the_corpus_is_turned_down_as_expected() {
    let rows: Vec<Value> =
        serde_json::from_slice(&std::fs::read(corpus().join("expected.json")).unwrap()).unwrap();
    assert!(rows.len() > 100);
    let mut wrong = Vec::new();
    for row in &rows {
        let text = |key: &str| row[key].as_str().unwrap();
        let file = std::fs::read(corpus().join(text("file"))).unwrap();
        let started = Instant::now();
        let outcome = pt::parse(&file);
        if started.elapsed() > Duration::from_secs(10) {
            wrong.push(format!("{}: took {:?}", text("file"), started.elapsed()));
        }
        let error = match (row["entry"].as_str(), outcome) {
            (None, Err(error)) => error,
            (Some(bad), Ok(index)) => {
                let (bad, good): (Vec<_>, Vec<_>) = index.entries.iter().partition(|entry| entry.name == bad);
                if good.iter().any(|entry| entry.layout.is_err()) {
                    wrong.push(format!("{}: a neighbour is spoilt: {good:?}", text("file")));
                }
                match &bad[..] {
                    [entry] if entry.layout.is_err() => entry.layout.clone().unwrap_err(),
                    other => {
                        wrong.push(format!("{}: {other:?}", text("file")));
                        continue;
                    }
                }
            }
            (_, outcome) => {
                wrong.push(format!("{}: {outcome:?}", text("file")));
                continue;
            }
        };
        if kind(&error) != text("kind") || !error.to_string().contains(text("message")) {
            wrong.push(format!("{}: {error:?}, not {} {:?}", text("file"), text("kind"), text("message")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads every element of what is left of a damaged file.
fn touch(index: &Index, file: &[u8]) {
    for layout in index.entries.iter().filter_map(|entry| entry.layout.as_ref().ok()) {
        let view = layout.view(file).unwrap();
        if view.size_bytes() <= 1 << 16 {
            let mut out = std::io::Cursor::new(Vec::new());
            msprobe_tensor::files::pt_write::write_tensor(&mut out, &view).unwrap();
            let _ = (view.in_memory_order(), view.real_part());
        }
    }
}

#[test]
fn damaged_files_are_errors_or_tensors_but_never_a_panic() {
    for name in ["good.bin", "legacy_good.bin"] {
        let file = std::fs::read(corpus().join(name)).unwrap();
        assert!(pt::parse(&file).unwrap().entries.iter().all(|entry| entry.layout.is_ok()), "{name}");
        for len in 0..file.len() {
            assert!(pt::parse(&file[..len]).is_err(), "{name} cut at {len}");
        }
        let mut flipped = file.clone();
        for bit in 0..file.len() * 8 {
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(index) = pt::parse(&flipped) {
                touch(&index, &flipped);
            }
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        // Every byte replaced by every instruction there is.
        for at in 0..file.len() {
            for byte in 0..=255 {
                flipped[at] = byte;
                if let Ok(index) = pt::parse(&flipped) {
                    touch(&index, &flipped);
                }
            }
            flipped[at] = file[at];
        }
    }
}

/// A file in the legacy container: no checksums, no directory, any pickle.
fn legacy(object: &[u8]) -> Vec<u8> {
    let mut file =
        b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.".to_vec();
    file.extend_from_slice(object);
    file.extend_from_slice(b"\x80\x02].");
    file
}

fn refused(file: &[u8], message: &str) {
    let started = Instant::now();
    let error = pt::parse(file).unwrap_err();
    assert!(matches!(&error, FormatError::Refused(text) if text.contains(message)), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_million_levels_of_nesting_are_decoded_and_then_refused() {
    let depth = 1_000_000;
    let mut lists = vec![b']'; depth];
    lists.extend(vec![b'a'; depth - 1]);
    lists.push(b'.');
    let file = legacy(&lists);
    refused(&file, "nested deeper than 256 levels");
    // The value itself can be walked by a caller that has its own limits.
    let doc = pt::load(&file).unwrap();
    let (mut value, mut levels) = (doc.root(), 1);
    while let Some(inner) = value.nth(0) {
        (value, levels) = (inner, levels + 1);
    }
    assert_eq!((value.kind(), levels), (PtValueKind::List, depth));

    let mut tuples = b"N".to_vec();
    tuples.extend(vec![0x85; depth]);
    tuples.push(b'.');
    refused(&legacy(&tuples), "nested deeper than 256 levels");
    let depth = depth / 2;
    let mut dicts = b"}K\x00".repeat(depth);
    dicts.push(b'N');
    dicts.extend(vec![b's'; depth]);
    dicts.push(b'.');
    refused(&legacy(&dicts), "nested deeper than 256 levels");
    let mut marks = vec![b'('; depth];
    marks.extend(vec![b't'; depth]);
    marks.push(b'.');
    refused(&legacy(&marks), "nested deeper than 256 levels");
}

#[test]
fn memory_stays_in_proportion_to_the_file() {
    // Lists cost dozens of bytes each, their instruction one.
    let mut lists = b"]".repeat(20_000_000);
    lists.push(b'.');
    refused(&legacy(&lists), "out of proportion to the file");
    // Copying a dict again and again.
    let mut copies = b"}q\x00(".to_vec();
    copies.extend(b"NN".repeat(100_000));
    copies.extend_from_slice(b"u0ccollections\nOrderedDict\nq\x010");
    copies.extend(b"h\x01h\x00\x85R".repeat(100_000));
    copies.push(b'.');
    refused(&legacy(&copies), "out of proportion to the file");
    // Memo numbers far apart.
    let mut memo = b"]".to_vec();
    for key in 0..4_000_000u32 {
        memo.push(b'r');
        memo.extend_from_slice(&key.wrapping_mul(2_654_435_761).to_le_bytes());
    }
    memo.push(b'.');
    refused(&legacy(&memo), "out of proportion to the file");
}

#[test]
fn many_names_for_one_tensor_are_refused() {
    // A dict of 255 references to the level below, each under a key of 250 bytes.
    let mut object = b"]ctorch._utils\n_rebuild_meta_tensor_no_storage\n)Raq\x00".to_vec();
    for level in 1..4u8 {
        object.extend_from_slice(&[b'}', b'q', level, b'(']);
        for key in 0..255u8 {
            object.extend_from_slice(&[b'U', 250]);
            object.extend(vec![b'a' + key % 26; 249]);
            object.push(key % 128);
            object.extend_from_slice(&[b'h', level - 1]);
        }
        object.push(b'u');
    }
    object.push(b'.');
    refused(&legacy(&object), "far larger than the file");
}
