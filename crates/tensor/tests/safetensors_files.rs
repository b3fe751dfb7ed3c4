//! `.safetensors` files by the real library, read bit for bit, and hostile ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod tensor_files;

use std::collections::BTreeMap;

use msprobe_tensor::DType;
use msprobe_tensor::files::{Format, FormatError, TensorFile, safetensors};

fn file(header: &str, buffer_len: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0x5a; buffer_len]].concat()
}

#[test]
fn the_librarys_files_are_read_bit_for_bit() {
    let manifest = tensor_files::manifest("safetensors");
    let mut tensors_of = BTreeMap::<&str, usize>::new();
    for expected in &manifest {
        *tensors_of.entry(&expected.file).or_default() += 1;
        let file = TensorFile::open(&tensor_files::fixtures("safetensors").join(&expected.file)).unwrap();
        assert_eq!(file.format(), Format::Safetensors);
        let view = file.view(file.find(&expected.name).unwrap());
        match &expected.content {
            Ok((dtype, hex)) => {
                let view = view.unwrap();
                assert_eq!((view.dtype(), view.shape()), (*dtype, &expected.shape[..]), "{expected:?}");
                assert_eq!(&tensor_files::hex(&view), hex, "{} {}", expected.file, expected.name);
            }
            Err(tag) => {
                let error = view.unwrap_err().to_string();
                assert!(error.ends_with(&format!("unsupported: safetensors dtype {tag:?}")), "{error}");
            }
        }
    }
    for (file, tensors) in tensors_of {
        let file = TensorFile::open(&tensor_files::fixtures("safetensors").join(file)).unwrap();
        assert_eq!(file.entries().len(), tensors, "{}", file.path().display());
    }
    // The format has every dtype but one.
    for dtype in DType::all().filter(|&dtype| dtype != DType::C128) {
        let is_it = |content: &Result<(DType, String), String>| content.as_ref().is_ok_and(|c| c.0 == dtype);
        assert!(manifest.iter().any(|expected| is_it(&expected.content)), "{dtype}");
    }
}

#[test]
fn a_file_without_tensors_is_a_file() {
    let file =
        TensorFile::open(&tensor_files::fixtures("safetensors").join("no_tensors.safetensors")).unwrap();
    assert_eq!(file.entries(), []);
    assert_eq!(file.find(""), None);
}

#[test]
fn damaged_files_never_panic() {
    for name in ["one_float32", "with_metadata", "empty_tensors", "unknown_dtypes", "unaligned5", "scalars"] {
        let bytes =
            std::fs::read(tensor_files::fixtures("safetensors").join(format!("{name}.safetensors"))).unwrap();
        tensor_files::maltreat(safetensors::parse, &bytes);
    }
}

/// Cut in its header, the file is lost; cut in its data, only the tensors past the cut are.
#[test]
fn a_cut_file_keeps_what_is_whole() {
    let bytes = std::fs::read(tensor_files::fixtures("safetensors").join("every_dtype.safetensors")).unwrap();
    let buffer_start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for len in 0..buffer_start {
        let error = safetensors::parse(&bytes[..len]).unwrap_err();
        assert!(matches!(error, FormatError::Truncated { .. }), "{len}: {error}");
    }
    let whole = safetensors::parse(&bytes).unwrap();
    for len in buffer_start..bytes.len() {
        let cut = safetensors::parse(&bytes[..len]).unwrap();
        for (entry, before) in cut.entries.iter().zip(&whole.entries) {
            let layout = before.layout.as_ref().unwrap();
            assert_eq!(entry.name, before.name);
            if layout.storage_start + layout.storage_len <= len {
                assert_eq!(entry.layout, before.layout);
            } else {
                assert!(matches!(entry.layout, Err(FormatError::Truncated { what: "tensor data", .. })));
            }
        }
    }
}

/// Committed files; the name of each says what is wrong with it. These spoil the file.
#[test]
fn hostile_corpus() {
    let expected = [
        ("duplicate_name.safetensors", "malformed: tensor \"a\" appears twice in the header"),
        ("header_2_to_63.safetensors", "refused: a safetensors header of 9223372036854775808 bytes"),
        ("header_cut.safetensors", "malformed: safetensors header: EOF while parsing"),
        ("header_is_a_list.safetensors", "malformed: the safetensors header does not start with '{'"),
        ("header_over_limit.safetensors", "refused: a safetensors header of 100000001 bytes"),
        ("header_past_end.safetensors", "truncated: safetensors header needs 100000000 bytes, 2 are left"),
        ("header_zero.safetensors", "malformed: the safetensors header does not start with '{'"),
        ("missing_offsets.safetensors", "malformed: safetensors header: tensor \"a\" has no data_offsets"),
        ("negative_shape.safetensors", "malformed: safetensors header: invalid value: integer `-1`"),
        ("not_utf8.safetensors", "malformed: safetensors header: "),
        (
            "one_offset.safetensors",
            "malformed: safetensors header: data_offsets of tensor \"a\" are not two numbers",
        ),
        ("overlap.safetensors", "malformed: tensors \"a\" and \"b\" overlap"),
        (
            "three_offsets.safetensors",
            "malformed: safetensors header: invalid length 3, expected a list of at most 2",
        ),
        ("trailing_json.safetensors", "malformed: safetensors header: trailing characters"),
    ];
    let corpus = tensor_files::hostile("safetensors");
    let names: Vec<_> = corpus.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected.map(|(name, _)| name));
    for ((name, bytes), (_, message)) in corpus.iter().zip(expected) {
        let error = safetensors::parse(bytes).unwrap_err().to_string();
        assert!(error.starts_with(message), "{name}: {error}");
        tensor_files::maltreat(safetensors::parse, bytes);
    }
}

/// One hostile entry between two good ones: they stay usable.
#[test]
fn hostile_entries_spoil_only_themselves() {
    for (entry, message) in [
        (r#""dtype":"U8","shape":[2],"data_offsets":[6,4]"#, "malformed: data_offsets [6, 4] run backwards"),
        (
            r#""dtype":"U8","shape":[2],"data_offsets":[7,9]"#,
            "truncated: tensor data needs 2 bytes, 1 are left",
        ),
        (
            r#""dtype":"U8","shape":[2],"data_offsets":[18446744073709551613,18446744073709551615]"#,
            "truncated: tensor data needs 2 bytes, 0 are left",
        ),
        (r#""dtype":"F32","shape":[2],"data_offsets":[4,6]"#, "malformed: shape [2] of F32 takes 8 bytes"),
        (
            r#""dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[4,4]"#,
            "malformed: shape [4294967296, 4294967296] is too large to address",
        ),
        (
            r#""dtype":"F64","shape":[2305843009213693952],"data_offsets":[4,4]"#,
            "malformed: shape [2305843009213693952] is too large to address",
        ),
        (
            r#""dtype":"U8","shape":[9223372036854775807,9223372036854775807,0],"data_offsets":[4,4]"#,
            "malformed: shape [9223372036854775807, 9223372036854775807, 0] is too large to address",
        ),
        (
            r#""dtype":"F8_E8M0","shape":[2],"data_offsets":[4,6]"#,
            "unsupported: safetensors dtype \"F8_E8M0\"",
        ),
        (r#""dtype":"C128","shape":[0],"data_offsets":[4,4]"#, "unsupported: safetensors dtype \"C128\""),
        (r#""dtype":"","shape":[],"data_offsets":[4,5]"#, "unsupported: safetensors dtype \"\""),
    ] {
        let bytes = file(
            &format!(
                r#"{{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},"bad":{{{entry}}},
                    "z":{{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}}}"#
            ),
            8,
        );
        let index = safetensors::parse(&bytes).unwrap();
        for entry in &index.entries {
            match &entry.layout {
                Ok(layout) => assert_eq!(layout.view(&bytes).unwrap().as_bytes().unwrap(), [0x5a; 2]),
                Err(error) => {
                    assert_eq!(entry.name, "bad");
                    assert!(error.to_string().starts_with(message), "{error}");
                }
            }
        }
        assert_eq!(index.entries.iter().filter(|entry| entry.layout.is_ok()).count(), 2, "{entry}");
        tensor_files::maltreat(safetensors::parse, &bytes);
    }
}

#[test]
fn nesting_does_not_overflow_the_stack() {
    for open in ["[", r#"{"a":"#] {
        let many = open.repeat(1_000_000);
        for header in [
            format!(r#"{{"__metadata__":{many}"#),
            format!(r#"{{"a":{many}"#),
            format!(r#"{{"a":{{"shape":{many}"#),
            format!(r#"{{"a":{{"dtype":{many}"#),
            format!(r#"{{"a":{{"unknown":{many}"#),
            format!("{{{many}"),
        ] {
            let error = safetensors::parse(&file(&header, 0)).unwrap_err();
            assert!(matches!(error, FormatError::Malformed(_)), "{error}");
        }
    }
}

#[test]
fn a_million_keys() {
    let entry = r#"{"dtype":"U8","shape":[],"data_offsets":[0,0]}"#;
    let header: Vec<String> = (0..1_000_000).map(|n| format!("\"k{n}\":{entry}")).collect();
    // None of them is a scalar of one byte, yet all are listed.
    let index = safetensors::parse(&file(&format!("{{{}}}", header.join(",")), 0)).unwrap();
    assert_eq!(index.entries.len(), 1_000_000);
    assert!(index.entries.iter().all(|entry| matches!(entry.layout, Err(FormatError::Malformed(_)))));

    let same = vec![format!("\"k\":{entry}"); 1_000_000].join(",");
    let error = safetensors::parse(&file(&format!("{{{same}}}"), 0)).unwrap_err();
    assert_eq!(error.to_string(), "malformed: tensor \"k\" appears twice in the header");
}

#[test]
fn a_shape_without_end_is_refused_early() {
    let many = "1,".repeat(1_000_000);
    let header = format!(r#"{{"a":{{"dtype":"U8","shape":[{many}1],"data_offsets":[0,1]}}}}"#);
    let error = safetensors::parse(&file(&header, 1)).unwrap_err();
    assert!(error.to_string().contains("at most 64 sizes"), "{error}");
}

#[test]
fn long_names_do_not_flood_the_message() {
    let long = "x".repeat(1_000_000);
    let error = safetensors::parse(&file(&format!(r#"{{"{long}":{{}}}}"#), 0)).unwrap_err();
    assert!(error.to_string().len() < 500);
    let header = format!(r#"{{"a":{{"dtype":"{long}","shape":[],"data_offsets":[0,1]}}}}"#);
    let index = safetensors::parse(&file(&header, 1)).unwrap();
    assert!(index.entries[0].layout.as_ref().unwrap_err().to_string().len() < 500);
}
