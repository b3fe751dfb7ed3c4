//! "Identical" of two runs of key data is a proof: whatever is changed, removed, added or retyped on one side, in either
//! direction, the answer is another one. Equal runs are identical.
//!
//! What does not count by definition:
//! - `KEY.json`: statistics of the arrays beside it, made of them;
//! - `configurations.json`: settings, not data;
//! - hidden files, times and permissions;
//! - the sign of zero and the payload of NaN; the byte order and memory order in which an array is stored.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use msprobe_keydata::{Status, compare_keys};
use msprobe_report::console::Silent;
use msprobe_tensor::files::npy;
use msprobe_tensor::{DType, TensorView};

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::I64, DType::Bool, DType::F16, DType::U8];
/// Keys and the names of their files: tensors, lists in both spellings, the members of a dict.
const KEYS: [(&str, &[&str]); 5] = [
    ("prompts", &["prompts"]),
    ("responses", &["responses.0", "responses.1", "responses.2"]),
    ("response", &["response0", "response1"]),
    ("d", &["d.a", "d.b"]),
    ("loss", &["loss"]),
];

fn write_array(path: &Path, dtype: DType, shape: &[usize], bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let view = TensorView::contiguous(dtype, shape.to_vec(), bytes).unwrap();
    npy::write(&mut fs::File::create(path).unwrap(), &view).unwrap();
}

/// Elements whose bytes stand for numbers that differ from one another: small whole numbers in every dtype.
fn elements(dice: &mut Rng, dtype: DType, count: usize) -> Vec<u8> {
    (0..count).flat_map(|_| element(dtype, dice.usize(..2) as u8)).collect()
}

fn element(dtype: DType, value: u8) -> Vec<u8> {
    match dtype {
        DType::F32 => f32::from(value).to_le_bytes().to_vec(),
        DType::F64 => f64::from(value).to_le_bytes().to_vec(),
        DType::I64 => (i64::from(value) + (1 << 60)).to_le_bytes().to_vec(),
        DType::F16 => if value == 0 { [0, 0] } else { [0, 0x3c] }.to_vec(),
        _ => vec![value],
    }
}

struct Written {
    path: PathBuf,
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// A run in `root/data`, and what was written.
fn write_run(root: &Path, seed: u64) -> Vec<Written> {
    let mut dice = Rng::with_seed(seed);
    let mut written = Vec::new();
    for (key, files) in KEYS {
        let dtype = DTYPES[dice.usize(..DTYPES.len())];
        for (step, ranks) in [(0, 2), (1, 1)] {
            for rank in 0..ranks {
                for file in files {
                    let shape = [vec![], vec![3], vec![2, 2], vec![0, 2]][dice.usize(..4)].clone();
                    let count: usize = shape.iter().product();
                    let bytes = elements(&mut dice, dtype, count);
                    let path = root.join(format!("data/{key}/step{step}/rank{rank}/micro_step0/{file}.npy"));
                    write_array(&path, dtype, &shape, &bytes);
                    written.push(Written { path, dtype, shape, bytes });
                }
                let json = root.join(format!("data/{key}/step{step}/rank{rank}/micro_step0/{key}.json"));
                fs::write(json, "{}").unwrap();
            }
        }
    }
    written
}

/// Changes one thing of a run and says what. Nothing if this one cannot be changed so.
fn change(run: &Path, written: &[Written], dice: &mut Rng) -> Option<String> {
    let one = &written[dice.usize(..written.len())];
    let shown = one.path.strip_prefix(run).unwrap().display().to_string();
    let what = match dice.usize(..11) {
        0 => {
            let count = one.bytes.len() / one.dtype.size_bytes();
            let at = (count > 0).then(|| dice.usize(..count))? * one.dtype.size_bytes();
            let mut bytes = one.bytes.clone();
            let here = at..at + one.dtype.size_bytes();
            let other = u8::from(bytes[here.clone()] == *element(one.dtype, 0));
            bytes[here].copy_from_slice(&element(one.dtype, other));
            write_array(&one.path, one.dtype, &one.shape, &bytes);
            "an element"
        }
        1 => {
            fs::remove_file(&one.path).unwrap();
            "file removed"
        }
        2 => {
            let extra = one.path.with_file_name("another.npy");
            fs::copy(&one.path, extra).unwrap();
            "file added"
        }
        3 => {
            // The same numbers in another dtype.
            let other = if one.dtype == DType::F32 { DType::F64 } else { DType::F32 };
            let size = one.dtype.size_bytes();
            let is_zero = |bytes: &[u8]| *bytes == *element(one.dtype, 0);
            let bytes: Vec<u8> =
                one.bytes.chunks(size).flat_map(|bytes| element(other, u8::from(!is_zero(bytes)))).collect();
            write_array(&one.path, other, &one.shape, &bytes);
            "dtype"
        }
        4 => {
            let mut shape = one.shape.clone();
            shape.push(1);
            write_array(&one.path, one.dtype, &shape, &one.bytes);
            "shape"
        }
        5 => {
            let text = fs::read(&one.path).unwrap();
            fs::write(&one.path, &text[..dice.usize(..text.len())]).unwrap();
            "file cut"
        }
        6 => {
            let mut text = fs::read(&one.path).unwrap();
            text.push(0);
            fs::write(&one.path, text).unwrap();
            "file longer"
        }
        7 => {
            let level = 1 + dice.usize(..4);
            let dir = one.path.ancestors().nth(level)?.to_owned();
            fs::remove_dir_all(dir).unwrap();
            ["micro step", "rank", "step", "key"][level - 1]
        }
        8 => {
            let rank = one.path.ancestors().nth(2)?;
            fs::rename(rank, rank.with_file_name("rank9")).unwrap();
            "rank renamed"
        }
        9 => {
            let key = one.path.ancestors().nth(4)?;
            fs::rename(key, key.with_file_name("other_key")).unwrap();
            "key renamed"
        }
        _ => {
            fs::write(one.path.with_extension("npy.part"), b"half of it").unwrap();
            "half a file"
        }
    };
    Some(format!("{shown}: {what}"))
}

fn status(first: &Path, second: &Path) -> Status {
    compare_keys([&first.join("data"), &second.join("data")], &Silent).unwrap().status()
}

#[test]
fn whatever_differs_is_not_identical() {
    let mut cases = 0;
    for seed in 1..=60_u64 {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = ["a", "b"].map(|name| dir.path().join(name));
        write_run(&first, seed);
        write_run(&second, seed);
        assert_eq!(status(&first, &second), Status::Identical, "seed {seed}");
        let mut dice = Rng::with_seed(seed * 7919);
        for _ in 0..20 {
            fs::remove_dir_all(&second).ok();
            let written = write_run(&second, seed);
            let Some(what) = change(&second, &written, &mut dice) else { continue };
            for (a, b) in [(&first, &second), (&second, &first)] {
                assert_ne!(status(a, b), Status::Identical, "seed {seed}: {what}");
                cases += 1;
            }
        }
    }
    assert!(cases > 2000, "{cases}");
}

#[test]
fn empty_directories_are_not_compared() {
    for place in ["step2", "step1/rank1", "step1/rank0/micro_step1"] {
        for both in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let sides = ["a", "b"].map(|name| dir.path().join(name));
            for side in &sides {
                let path = side.join("data/loss/step1/rank0/micro_step0/loss.npy");
                write_array(&path, DType::Bool, &[3], &[1, 0, 1]);
            }
            let statuses = || [status(&sides[0], &sides[1]), status(&sides[1], &sides[0])];
            assert_eq!(statuses(), [Status::Identical; 2]);
            for side in sides.iter().take(if both { 2 } else { 1 }) {
                fs::create_dir_all(side.join("data/loss").join(place)).unwrap();
            }
            assert_eq!(statuses(), [Status::Incomplete; 2], "{place}");
        }
    }
}
