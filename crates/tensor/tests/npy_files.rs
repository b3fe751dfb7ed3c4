//! `.npy` files by real numpy, read bit for bit, and hostile ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod tensor_files;

use msprobe_tensor::DType;
use msprobe_tensor::files::{Format, FormatError, TensorFile, npy};

fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length = match version {
        1 => u16::try_from(header.len()).unwrap().to_le_bytes().to_vec(),
        _ => u32::try_from(header.len()).unwrap().to_le_bytes().to_vec(),
    };
    [b"\x93NUMPY", &[version, 0][..], &length, header.as_bytes(), data].concat()
}

fn with_shape(shape: &str) -> Vec<u8> {
    file(2, &format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"), &[0; 64])
}

#[test]
fn numpys_files_are_read_bit_for_bit() {
    let manifest = tensor_files::manifest("npy");
    assert!(manifest.len() > 90, "{} fixtures", manifest.len());
    for expected in &manifest {
        let file = TensorFile::open(&tensor_files::fixtures("npy").join(&expected.file)).unwrap();
        assert_eq!((file.format(), file.entries().len()), (Format::Npy, 1));
        let view = file.view(file.find(&expected.name).unwrap()).unwrap();
        let (dtype, hex) = expected.content.as_ref().unwrap();
        assert_eq!((view.dtype(), view.shape()), (*dtype, &expected.shape[..]), "{}", expected.file);
        assert_eq!(&tensor_files::hex(&view), hex, "{}", expected.file);
    }
    for dtype in DType::all() {
        assert!(manifest.iter().any(|expected| expected.content.as_ref().unwrap().0 == dtype), "{dtype}");
    }
}

#[test]
fn every_file_in_the_directory_is_in_the_manifest() {
    let manifest = tensor_files::manifest("npy");
    for entry in std::fs::read_dir(tensor_files::fixtures("npy")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "manifest.json" || manifest.iter().any(|expected| expected.file == name), "{name}");
    }
}

/// What we write of a row-major little-endian array is the very file numpy writes; of the float8 types that
/// numpy could not load again, the file it loads by their full name.
#[test]
fn written_files_are_numpys_own() {
    let by_name = ["named_float8_e5m2.npy", "named_float8_e4m3fnuz.npy", "named_float8_e5m2fnuz.npy"];
    let mut compared = 0;
    for expected in tensor_files::manifest("npy") {
        let file = expected.file.as_str();
        let plain =
            (file.starts_with("c_") || file.starts_with("scalar_")) && !file.ends_with("float8_e5m2.npy");
        if !plain && !by_name.contains(&file) {
            continue;
        }
        let path = tensor_files::fixtures("npy").join(file);
        let mut written = Vec::new();
        npy::write(&mut written, &TensorFile::open(&path).unwrap().view(0).unwrap()).unwrap();
        assert!(written == std::fs::read(&path).unwrap(), "{file}");
        compared += 1;
    }
    assert_eq!(compared, 2 * 16 + 3);
}

#[test]
fn damaged_files_never_panic() {
    for name in
        ["scalar_float64", "big_complex64", "f_bool", "version3_f", "unaligned3", "empty_f", "named_bfloat16"]
    {
        let bytes = std::fs::read(tensor_files::fixtures("npy").join(format!("{name}.npy"))).unwrap();
        tensor_files::maltreat(npy::parse, &bytes);
    }
}

#[test]
fn a_file_cut_anywhere_is_truncated() {
    let bytes = std::fs::read(tensor_files::fixtures("npy").join("c_float32.npy")).unwrap();
    for len in 0..bytes.len() {
        let error = npy::parse(&bytes[..len]).unwrap_err();
        assert!(matches!(error, FormatError::Truncated { .. }), "{len}: {error}");
    }
}

/// Committed files; the name of each says what is wrong with it.
#[test]
fn hostile_corpus() {
    let expected = [
        ("bad_magic.npy", "malformed: the npy magic"),
        ("escape_in_key.npy", "malformed: npy header, byte 1: a string with an escape"),
        ("eval.npy", "malformed: npy header, byte 50: expected '(', found '_'"),
        ("header_past_end.npy", "truncated: npy header needs 65535 bytes, 54 are left"),
        ("huge_header_v2.npy", "refused: an npy header of 4294967295 bytes"),
        ("negative_size.npy", "malformed: npy header, byte 51: a negative size in the shape"),
        (
            "object.npy",
            "unsupported: an array of Python objects (it would have to be unpickled), dtype \"|O\"",
        ),
        ("only_magic.npy", "truncated: npy version needs 2 bytes, 0 are left"),
        (
            "shape_overflow.npy",
            "malformed: shape [4294967296, 4294967296, 4294967296] is too large to address",
        ),
        (
            "shape_overflow_with_zero.npy",
            "malformed: shape [9223372036854775807, 9223372036854775807, 0] is too large",
        ),
        ("size_over_64_bits.npy", "malformed: npy header, byte 70: a size that does not fit into 64 bits"),
        ("structured.npy", "unsupported: a structured array"),
        ("two_shapes.npy", "malformed: npy header, byte 69: key \"shape\" appears twice"),
        ("version9.npy", "unsupported: npy version 9.0"),
    ];
    let corpus = tensor_files::hostile("npy");
    let names: Vec<_> = corpus.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    for ((name, bytes), (_, message)) in corpus.iter().zip(expected) {
        let error = npy::parse(bytes).unwrap_err().to_string();
        assert!(error.starts_with(message), "{name}: {error}");
        tensor_files::maltreat(npy::parse, bytes);
    }
}

#[test]
fn nesting_does_not_nest_the_parser() {
    for open in ["(", "[", "{", "((", "[("] {
        let many = open.repeat(1_000_000);
        for header in
            [many.clone(), format!("{{'shape': {many}"), format!("{{'descr': {many}"), format!("{{{many}")]
        {
            let error = npy::parse(&file(2, &header, &[])).unwrap_err();
            assert!(matches!(error, FormatError::Malformed(_) | FormatError::Unsupported(_)), "{error}");
        }
        let error = npy::parse(&with_shape(&many)).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
}

#[test]
fn many_keys_and_many_dimensions_are_refused_at_once() {
    let keys = "'k': 1, ".repeat(1_000_000);
    let error = npy::parse(&file(2, &format!("{{{keys}}}"), &[])).unwrap_err();
    assert!(error.to_string().contains("unknown key \"k\""), "{error}");

    let same = "'shape': (), ".repeat(1_000_000);
    let error = npy::parse(&file(2, &format!("{{{same}}}"), &[])).unwrap_err();
    assert!(error.to_string().contains("key \"shape\" appears twice"), "{error}");

    let error = npy::parse(&with_shape(&format!("({})", "1,".repeat(1_000_000)))).unwrap_err();
    assert!(error.to_string().contains("more than 64 dimensions"), "{error}");
    assert!(npy::parse(&with_shape(&format!("({})", "1,".repeat(64)))).is_ok());
}

#[test]
fn long_strings_do_not_flood_the_message() {
    let long = "x".repeat(1_000_000);
    for header in [
        format!("{{'{long}': 1}}"),
        format!("{{'descr': '{long}', 'fortran_order': False, 'shape': ()}}"),
        format!("{{'descr': '{long}"),
    ] {
        let error = npy::parse(&file(3, &header, &[])).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }
}

#[test]
fn size_products_just_past_the_limits() {
    for shape in [
        "(9223372036854775807,)",
        "(4611686018427387904,)",
        "(3037000500, 3037000500)",
        "(1, 18446744073709551615)",
    ] {
        let error = npy::parse(&with_shape(shape)).unwrap_err();
        assert!(
            matches!(error, FormatError::View(_) | FormatError::Truncated { what: "array data", .. }),
            "{shape}: {error}"
        );
    }
}
