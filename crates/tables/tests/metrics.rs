//! Every row of a recorded table of tensors that are hard to compare.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use msprobe_compare::metrics::{Metric, Note, TensorComparison, compare_tensors};
use msprobe_tables::metrics::{Accuracy, METRIC_HEADERS, in_columns, message};
use msprobe_tensor::files::TensorFile;

fn golden(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/compare").join(case)
}

fn compare_files(case: &str, target: &str, golden_name: &str) -> TensorComparison {
    match (target, golden_name) {
        ("-1", _) | (_, "N/A") => return TensorComparison::refused(Note::NoGolden),
        (_, "-1") => return TensorComparison::refused(Note::NoGoldenFile),
        _ => {}
    }
    let open = |side: &str, name: &str| {
        let file = TensorFile::open(&golden(case).join(side).join("dump_tensor_data").join(name)).ok()?;
        (file.entries().len() == 1 && file.entries()[0].name.is_empty()).then_some(file)
    };
    match (open("npu", target), open("bench", golden_name)) {
        (Some(target), Some(golden)) => compare_tensors(&target.view(0).unwrap(), &golden.view(0).unwrap()),
        _ => TensorComparison::refused(Note::NotRead([target.to_owned(), golden_name.to_owned()])),
    }
}

/// The message without the reasons of colours, each sentence once.
fn own_message(recorded: &str) -> String {
    let colours = ["The input/parameter's", "The output's", "maximum or minimum is"];
    let own = recorded.split('\n').filter(|line| !colours.iter().any(|start| line.starts_with(start)));
    let own = own.collect::<Vec<_>>().join("\n");
    let scalar = "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', \
                  'One Thousandth Err Ratio' and 'Five Thousandths Err Ratio'. ";
    if !own.starts_with(scalar) {
        return own;
    }
    let rest: Vec<&str> = own.split(scalar).filter(|rest| !rest.is_empty()).collect();
    assert!(rest.windows(2).all(|pair| pair[0] == pair[1]));
    format!("{scalar}{}", rest.first().unwrap_or(&""))
}

fn assert_metric(metric: Metric, recorded: &str, context: &str) {
    match metric {
        Metric::Missing(why) => assert_eq!(why.as_str(), recorded, "{context}"),
        Metric::Number(value) => {
            let expected: f64 = recorded.trim().parse().unwrap();
            let close = (value - expected).abs() <= 1e-9 * expected.abs();
            assert!(close, "{context}: {value} instead of {expected}");
        }
    }
}

#[test]
fn recorded_rows() {
    assert_eq!(assert_case("tensor_edge"), 50);
    assert_eq!(assert_case("mindspore_tensor_npy"), 7);
}

fn assert_case(case: &str) -> usize {
    let mut table = csv::Reader::from_path(golden(case).join("expected/compare_result.csv")).unwrap();
    let headers = table.headers().unwrap().clone();
    let position = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let mut count = 0;
    for row in table.records() {
        let row = row.unwrap();
        let names = row[position("Data_name")].replace(['[', ']', '\''], "");
        let (target, golden_name) = names.split_once(", ").unwrap();
        let comparison = compare_files(case, target, golden_name);
        for (header, metric) in METRIC_HEADERS.iter().zip(in_columns(&comparison.metrics)) {
            assert_metric(metric, &row[position(header)], &format!("{header} of {}", &row[0]));
        }
        let accuracy = Accuracy::of(&comparison.metrics).as_str();
        assert_eq!(accuracy, &row[position("Accuracy Reached or Not")], "{}", &row[0]);
        assert_eq!(message(&comparison), own_message(&row[position("Err_message")]), "{}", &row[0]);
        count += 1;
    }
    count
}

#[test]
fn verdicts_see_the_imaginary_parts() {
    let comparison =
        compare_files("tensor_edge", "Torch.cplx.0.forward.output.0.pt", "Torch.cplx.0.forward.output.0.pt");
    assert_eq!(comparison.metrics.max_abs, Metric::Number(0.0));
    assert!(!comparison.pair.unwrap().is_identical());
}
