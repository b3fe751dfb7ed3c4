//! Counting against a loop over elements, in every combination of forms; files that mean harm.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::view::Endian;

/// A `.npy` of bool as numpy lays it out, in either order.
fn npy(shape: &[usize], fortran: bool, bytes: &[u8]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '|b1', 'fortran_order': {order}, 'shape': ({sizes}), }}");
    if shape.is_empty() {
        header = header.replace("()", "( )");
    }
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(bytes);
    file
}

/// Row-major bytes of a matrix as Fortran has them.
fn transposed(rows: usize, columns: usize, bytes: &[u8]) -> Vec<u8> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| bytes[row * columns + column])).collect()
}

fn bits(shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_bits(&mut out, &TensorView::contiguous(DType::Bool, shape.to_vec(), bytes).unwrap()).unwrap();
    out
}

fn file(directory: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn truth() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0u8), Just(1u8), Just(0u8), Just(1u8), any::<u8>()]
}

fn two_matrices() -> impl Strategy<Value = (usize, usize, Vec<u8>, Vec<u8>)> {
    (0usize..70, 0usize..90).prop_flat_map(|(rows, columns)| {
        let bytes = || prop::collection::vec(truth(), rows * columns);
        (Just(rows), Just(columns), bytes(), bytes())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn counting_agrees_with_a_loop((rows, columns, a, b) in two_matrices()) {
        let expected = a.iter().zip(&b).filter(|&(&a, &b)| (a != 0) == (b != 0)).count() as u64;
        let directory = tempfile::tempdir().unwrap();
        let shape = [rows, columns];
        let forms = |name: &str, bytes: &[u8]| {
            [
                file(&directory, &format!("{name}_c.npy"), &npy(&shape, false, bytes)),
                file(&directory, &format!("{name}_f.npy"), &npy(&shape, true, &transposed(rows, columns, bytes))),
                file(&directory, &format!("{name}.bits"), &bits(&shape, bytes)),
            ]
        };
        let (ours, theirs) = (forms("a", &a), forms("b", &b));
        for ours in &ours {
            for theirs in &theirs {
                let (ours, theirs) = (read_direction(ours).unwrap(), read_direction(theirs).unwrap());
                prop_assert_eq!(ours.equal_elements(&theirs), Some(expected));
                prop_assert_eq!(theirs.equal_elements(&ours), Some(expected));
            }
        }
    }

    #[test]
    fn nothing_panics_on_any_file(mut bytes in prop::collection::vec(any::<u8>(), 0..80), ours: bool) {
        if ours {
            bytes.splice(..0, MAGIC.iter().copied());
        }
        let directory = tempfile::tempdir().unwrap();
        if let Ok(found) = read_direction(&file(&directory, "x.bits", &bytes)) {
            prop_assert_eq!(found.equal_elements(&found), Some(found.numel() as u64));
        }
    }
}

#[test]
fn long_files_are_counted_in_spans() {
    let numel = 2 * SPAN_ELEMENTS + 4099;
    let a: Vec<u8> = (0..numel).map(|index| u8::from(index % 3 == 0)).collect();
    let b: Vec<u8> = (0..numel).map(|index| u8::from(index % 5 == 0)).collect();
    let expected = a.iter().zip(&b).filter(|(a, b)| a == b).count() as u64;
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str, bytes: &[u8]| read_direction(&file(&directory, name, bytes)).unwrap();
    let ours = [open("a.npy", &npy(&[numel], false, &a)), open("a.bits", &bits(&[numel], &a))];
    let theirs = [open("b.npy", &npy(&[numel], false, &b)), open("b.bits", &bits(&[numel], &b))];
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for (ours, theirs) in ours.iter().flat_map(|ours| theirs.iter().map(move |theirs| (ours, theirs))) {
            assert_eq!(pool.install(|| ours.equal_elements(theirs)), Some(expected));
        }
    }
    assert!(ours[1].size_bytes() < ours[0].size_bytes() / 7);
}

#[test]
fn shapes_have_to_be_equal() {
    let directory = tempfile::tempdir().unwrap();
    let wide = read_direction(&file(&directory, "a.npy", &npy(&[2, 3], false, &[1; 6]))).unwrap();
    let high = read_direction(&file(&directory, "b.bits", &bits(&[3, 2], &[1; 6]))).unwrap();
    assert_eq!(wide.equal_elements(&high), None);
    assert_eq!((wide.shape(), high.numel()), (&[2, 3][..], 6));
}

#[test]
fn scalars_and_empty_gradients() {
    let directory = tempfile::tempdir().unwrap();
    let scalar = read_direction(&file(&directory, "s.bits", &bits(&[], &[1]))).unwrap();
    let bytes = read_direction(&file(&directory, "s.npy", &npy(&[], false, &[7]))).unwrap();
    assert_eq!((scalar.numel(), scalar.equal_elements(&bytes)), (1, Some(1)));
    let empty = read_direction(&file(&directory, "e.bits", &bits(&[0, 4], &[]))).unwrap();
    assert_eq!((empty.numel(), empty.equal_elements(&empty)), (0, Some(0)));
}

#[test]
fn a_view_in_any_order_becomes_row_major_bits() {
    let bytes = [1, 0, 0, 1, 1, 1];
    let columns = TensorView::new(DType::Bool, vec![2, 3], vec![1, 2], &bytes, 0, Endian::Little).unwrap();
    let mut out = Vec::new();
    write_bits(&mut out, &columns).unwrap();
    assert_eq!(&out[..12], b"MSPBITS1\x02\0\0\0");
    // Rows are 1 0 1 and 0 1 1.
    assert_eq!(&out[28..], [0b11_0101]);
    let numbers = TensorView::contiguous(DType::F32, vec![1], &[0; 4]).unwrap();
    assert_eq!(write_bits(&mut out, &numbers).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn unused_bits_do_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let clean = bits(&[3], &[1, 0, 1]);
    let mut dirty = clean.clone();
    *dirty.last_mut().unwrap() |= 0b1111_1000;
    let open = |name: &str, bytes: &[u8]| read_direction(&file(&directory, name, bytes)).unwrap();
    let (clean, dirty) = (open("a.bits", &clean), open("b.bits", &dirty));
    let bytes = open("c.npy", &npy(&[3], false, &[1, 0, 1]));
    assert_eq!([clean.equal_elements(&dirty), dirty.equal_elements(&bytes)], [Some(3), Some(3)]);
}

#[test]
fn what_holds_no_directions_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let error = |bytes: &[u8]| read_direction(&file(&directory, "x.npy", bytes)).unwrap_err().to_string();
    let with = |dimensions: u32, sizes: &[u64], rest: &[u8]| {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&dimensions.to_le_bytes());
        for size in sizes {
            bytes.extend_from_slice(&size.to_le_bytes());
        }
        bytes.extend_from_slice(rest);
        bytes
    };
    for (bytes, piece) in [
        (b"".to_vec(), "npy magic needs 6 bytes"),
        (b"hello".to_vec(), "magic \\x93NUMPY is missing"),
        (MAGIC.to_vec(), "number of dimensions needs 4 bytes, 0 are left"),
        (with(2, &[1], b""), "shape needs 16 bytes, 8 are left"),
        (with(u32::MAX, &[], b""), "refused: 4294967295 dimensions"),
        (with(2, &[u64::MAX, 2], b""), "too large to address"),
        (with(1, &[u64::MAX], b"x"), "bits needs"),
        (with(1, &[9], b"x"), "bits needs 2 bytes, 1 are left"),
        (with(1, &[8], b"xy"), "1 bytes after the bits"),
        (npy(&[4], false, b"abc"), "array data needs 4 bytes, 3 are left"),
    ] {
        let text = error(&bytes);
        assert!(text.contains(piece), "{text}");
    }
    assert!(error(&npy(&[1], false, b"x")[..20]).contains("truncated"));
    let mut bytes = npy(&[4], false, b"abcd");
    let at = bytes.windows(3).position(|three| three == b"|b1").unwrap();
    bytes[at + 1] = b'u';
    assert!(error(&bytes).starts_with("tensor type is not bool: "));
    assert!(read_direction(directory.path()).unwrap_err().to_string().contains("it is a directory"));
}
