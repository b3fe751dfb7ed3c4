//! Recorded compares of the reference, byte for byte.

use std::fs;

use msprobe_report::console::Remembered;

use super::*;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/precheck").join(name)
}

fn compared(target: &Path, reference: &Path, is_strict: bool) -> (FinalOutcome, [String; 2], Remembered) {
    let dir = tempfile::tempdir().unwrap();
    let console = Remembered::default();
    let outcome = final_compare(target, reference, dir.path(), is_strict, &console).unwrap();
    let texts = [0, 1].map(|index| fs::read_to_string(&outcome.answer.files[index]).unwrap());
    (outcome, texts, console)
}

#[test]
fn tables_are_those_of_the_reference() {
    for name in ["apc_standards", "apc_edges", "apc_from_run_ut"] {
        let dir = case(name);
        let (_, [result, details], _) = compared(&dir.join("npu.csv"), &dir.join("gpu.csv"), false);
        let expected = |kind: &str| {
            fs::read_to_string(dir.join(format!("expected/api_precision_compare_{kind}.csv"))).unwrap()
        };
        for (found, expected) in [(details, expected("details")), (result, expected("result"))] {
            for (line, (found, expected)) in found.split("\r\n").zip(expected.split("\r\n")).enumerate() {
                assert_eq!(found, expected, "{name}, record {line}");
            }
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn a_duplicate_ends_it_and_is_told() {
    let dir = case("apc_edges");
    let (outcome, [result, _], console) = compared(&dir.join("npu.csv"), &dir.join("gpu.csv"), false);
    assert!(!outcome.is_all_read && !result.contains("Torch.abs.5"));
    let said = console.said(|level| level == msprobe_report::console::Level::Error);
    assert!(
        said.iter().any(|text| text.contains("Torch.abs.6.forward.output.0 has multiple records")),
        "{said:?}"
    );
}

#[test]
fn strictly_nothing_is_lost() {
    let dir = case("apc_edges");
    let (outcome, [result, _], _) = compared(&dir.join("npu.csv"), &dir.join("gpu.csv"), true);
    assert!(outcome.is_all_read);
    let row = |name: &str| {
        let start = format!("{name},");
        result
            .lines()
            .find(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("{name}: {result}"))
            .to_owned()
    };
    // A float64 row at the end hides no error, a duplicate ends nothing, and rows do not stand for their API.
    assert_eq!(row("Tensor.add.0"), "Tensor.add.0,error,SKIP,");
    assert_eq!(row("Torch.abs.5"), "Torch.abs.5,pass, ,");
    assert_eq!(row("Torch.abs.7"), "Torch.abs.7,pass, ,");
    assert_eq!(row("Torch.exp.0"), "Torch.exp.0,error, ,");
    assert_eq!(row("Torch.exp.2"), "Torch.exp.2,SKIP, ,ERROR: Input data is an empty string");
    assert_eq!(row("Functional.softmax.4"), "Functional.softmax.4,error, ,");
}

#[test]
fn missing_columns_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("npu.csv");
    fs::write(&path, "API Name,Status\nx,y\n").unwrap();
    let error = final_compare(&path, &path, dir.path(), false, &Remembered::default()).unwrap_err();
    assert!(error.message.starts_with("The following columns DEVICE Dtype,小值域错误占比,"), "{error}");
    assert!(error.message.ends_with("双千指标 are missing innpu_csv"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn hostile_tables_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let header = fs::read_to_string(case("apc_edges").join("npu.csv")).unwrap();
    let header = header.lines().next().unwrap();
    let path = dir.path().join("npu.csv");
    for body in
        ["", "\n\n", "a.b.c.d.e.f\n", "\"unclosed", "=1.x.0.forward.output.0,,torch.float32\n", "\u{0},,,\n"]
    {
        fs::write(&path, format!("{header}\n{body}")).unwrap();
        let outcome = final_compare(&path, &path, dir.path(), false, &Remembered::default()).unwrap();
        assert!(outcome.answer.files.iter().all(|file| file.exists()));
    }
    fs::write(&path, [0xff, 0xfe, b',', b'\n']).unwrap();
    assert!(final_compare(&path, &path, dir.path(), false, &Remembered::default()).is_err());
}
