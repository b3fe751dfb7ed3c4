//! Walking a large file and releasing each tensor keeps resident memory bounded.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]
#![cfg(target_os = "linux")]

use std::io::Write as _;

use msprobe_tensor::files::TensorFile;

const TENSORS: usize = 4;
const TENSOR_BYTES: usize = 32 << 20;

/// Bytes of mapped files that count as resident in this process.
fn resident_file_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssFile:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn walk(file: &TensorFile, release: bool) -> usize {
    let mut peak = 0;
    for index in 0..file.entries().len() {
        let view = file.view(index).unwrap();
        let bytes = view.as_bytes().unwrap();
        assert_eq!(bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 0);
        peak = peak.max(resident_file_bytes());
        if release {
            file.release(index);
            // A view taken before still reads the same bytes.
            assert_eq!(bytes[TENSOR_BYTES / 2], 0);
        }
    }
    peak
}

#[test]
fn released_tensors_leave_memory() {
    let entries: Vec<String> = (0..TENSORS)
        .map(|n| {
            let (begin, end) = (n * TENSOR_BYTES, (n + 1) * TENSOR_BYTES);
            format!(r#""t{n}":{{"dtype":"U8","shape":[{TENSOR_BYTES}],"data_offsets":[{begin},{end}]}}"#)
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let mut out = tempfile::NamedTempFile::new().unwrap();
    out.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    out.write_all(header.as_bytes()).unwrap();
    // The data is a hole: no disk is used.
    out.as_file().set_len((8 + header.len() + TENSORS * TENSOR_BYTES) as u64).unwrap();

    let file = TensorFile::open(out.path()).unwrap();
    let before = resident_file_bytes();
    let bounded = walk(&file, true) - before;
    assert!(bounded < TENSOR_BYTES * 3 / 2, "{bounded} bytes resident");
    let unbounded = walk(&file, false) - before;
    assert!(unbounded > TENSOR_BYTES * 3, "without release only {unbounded} bytes were resident");
}
