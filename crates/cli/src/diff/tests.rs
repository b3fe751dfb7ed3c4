//! "Identical" of two tensor files is a proof: whatever is changed, removed, added or retyped in one of them, in either
//! direction, the answer is another one. Equal files are identical.
//!
//! What does not count by definition: the sign of zero and the payload of NaN, memory order and byte order, the names of two
//! lone tensors, unused bytes of the container of a `.pt`, and what is no tensor where only one file is a `.pt`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::Path;

use fastrand::Rng;
use msprobe_tensor::DType;
use msprobe_tensor::files::{npy, pt_write};

use super::*;

#[derive(Clone)]
struct Tensor {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::I64, DType::Bool, DType::BF16, DType::I32];

fn tensors_of(dice: &mut Rng, count: usize) -> Vec<Tensor> {
    (0..count)
        .map(|index| {
            let dtype = DTYPES[dice.usize(..DTYPES.len())];
            let shape = [vec![], vec![3], vec![2, 2], vec![0]][dice.usize(..4)].clone();
            let elements: usize = shape.iter().product();
            // 0 and 1, as bytes; one in the lowest byte is a number above zero in every dtype.
            let bytes = (0..elements)
                .flat_map(|_| {
                    let mut bytes = vec![0; dtype.size_bytes()];
                    bytes[0] = dice.usize(..2) as u8;
                    bytes
                })
                .collect();
            Tensor { name: format!("layer.{index}"), dtype, shape, bytes }
        })
        .collect()
}

fn write(path: &Path, tensors: &[Tensor]) {
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|one| {
            let view = TensorView::contiguous(one.dtype, one.shape.clone(), &one.bytes).unwrap();
            (one.name.as_str(), view)
        })
        .collect();
    let mut out = fs::File::create(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "npy") {
        npy::write(&mut out, &views[0].1).unwrap();
    } else {
        pt_write::write_state_dict(&mut out, &views).unwrap();
    }
}

/// Changes one thing and says what; nothing if this one cannot be changed so.
fn change(tensors: &mut Vec<Tensor>, dice: &mut Rng) -> Option<&'static str> {
    let count = tensors.len();
    let at = dice.usize(..count);
    let one = &mut tensors[at];
    Some(match dice.usize(..6) {
        0 => {
            let size = one.dtype.size_bytes();
            let elements = one.bytes.len() / size;
            let element = (elements > 0).then(|| dice.usize(..elements))?;
            one.bytes[element * size] ^= 1;
            "an element"
        }
        1 => {
            one.shape.push(1);
            "shape"
        }
        2 => {
            one.dtype = match one.dtype {
                DType::F32 => DType::I32,
                DType::F64 => DType::I64,
                DType::I64 => DType::F64,
                DType::I32 => DType::F32,
                DType::Bool => DType::U8,
                _ => DType::F16,
            };
            "dtype"
        }
        3 => {
            if count < 2 {
                return None;
            }
            tensors.remove(at);
            "tensor removed"
        }
        4 => {
            let mut more = one.clone();
            more.name.push_str(".more");
            tensors.push(more);
            "tensor added"
        }
        _ => {
            if count < 2 {
                return None;
            }
            one.name.push('x');
            "name"
        }
    })
}

/// Nothing if a file cannot be opened, which is an error and no answer.
fn answer(a: &Path, b: &Path) -> Option<Status> {
    let (a, b) = (TensorFile::open(a).ok()?, TensorFile::open(b).ok()?);
    Some(answer::status(&compare_files(&a, &b, &[]).ok()?.0))
}

#[test]
fn whatever_differs_is_not_identical() {
    let dir = tempfile::tempdir().unwrap();
    let mut cases = 0;
    for seed in 1..=1500_u64 {
        let mut dice = Rng::with_seed(seed.wrapping_mul(6_364_136_223_846_793_005));
        let form = ["pt", "npy"][usize::from(seed % 5 == 0)];
        let [a, b] = ["a", "b"].map(|name| dir.path().join(format!("{name}.{form}")));
        let count = if form == "npy" { 1 } else { 1 + dice.usize(..4) };
        let tensors = tensors_of(&mut dice, count);
        write(&a, &tensors);
        write(&b, &tensors);
        assert_eq!(answer(&a, &b), Some(Status::Identical), "seed {seed}");
        let mut other = tensors.clone();
        let what = match dice.usize(..8) {
            0 => {
                let bytes = fs::read(&b).unwrap();
                fs::write(&b, &bytes[..dice.usize(..bytes.len())]).unwrap();
                Some("cut")
            }
            1 if form == "npy" => {
                let mut bytes = fs::read(&b).unwrap();
                bytes.push(0);
                fs::write(&b, bytes).unwrap();
                Some("longer")
            }
            _ => {
                let what = change(&mut other, &mut dice);
                // An array file has room for one.
                let what = what.filter(|_| form == "pt" || other.len() == 1);
                write(&b, &other);
                what
            }
        };
        let Some(what) = what else { continue };
        for (a, b) in [(&a, &b), (&b, &a)] {
            assert_ne!(answer(a, b), Some(Status::Identical), "seed {seed} {form}: {what}");
            cases += 1;
        }
    }
    assert!(cases > 2000, "{cases}");
}

#[test]
fn what_is_missing_is_incomplete_and_what_differs_is_worse() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a.pt", "b.pt"].map(|name| dir.path().join(name));
    let mut dice = Rng::with_seed(7);
    let mut tensors = tensors_of(&mut dice, 3);
    tensors[0] = Tensor { name: "w".to_owned(), dtype: DType::F32, shape: vec![1], bytes: vec![0; 4] };
    write(&a, &tensors);
    write(&b, &tensors[..2]);
    assert_eq!(answer(&a, &b), Some(Status::Incomplete));
    assert_eq!(answer(&b, &a), Some(Status::Incomplete));
    tensors[0].bytes[3] = 0x40;
    write(&b, &tensors[..2]);
    assert_eq!(answer(&a, &b), Some(Status::Diverged));
    assert_eq!((Status::Incomplete.exit(), Status::Failed.exit()), (Exit::Differs, Exit::Failed));
}

#[test]
fn bytes_of_no_tensor_are_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, header: &str, data: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()).unwrap();
        path
    };
    let header = |begin: usize| {
        format!(
            r#"{{"w":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},
                "v":{{"dtype":"U8","shape":[2],"data_offsets":[{begin},{}]}}}}"#,
            begin + 2
        )
    };
    let whole = write("whole.safetensors", &header(2), &[1, 2, 3, 4]);
    let behind = write("behind.safetensors", &header(2), &[1, 2, 3, 4, 0]);
    let between = write("between.safetensors", &header(4), &[1, 2, 7, 7, 3, 4]);
    assert_eq!(answer(&whole, &whole), Some(Status::Identical));
    for (a, b) in [(&whole, &behind), (&between, &whole), (&behind, &behind), (&between, &between)] {
        assert_eq!(answer(a, b), Some(Status::Incomplete), "{} {}", a.display(), b.display());
        assert_eq!(answer(b, a), Some(Status::Incomplete), "{} {}", b.display(), a.display());
    }
    // Who asks for a tensor gets an answer about that tensor.
    let (a, b) = (TensorFile::open(&whole).unwrap(), TensorFile::open(&behind).unwrap());
    let named = compare_files(&a, &b, &["w".to_owned()]).unwrap().0;
    assert_eq!(answer::status(&named), Status::Identical);
}
