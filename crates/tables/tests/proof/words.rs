//! What the answer says of what was not compared.

use std::path::Path;

use msprobe_compare::verdict::Status;
use serde_json::Value;

use crate::sides::{LINEAR, Sides, changed, run, tensor};

#[test]
fn what_was_left_out_is_not_said_to_be_equal() {
    let output = format!("{LINEAR}/output/0");
    let sides = Sides::new();
    let mut value = tensor(&[4, 2], 900.0);
    value["dtype"] = "torch.int32".into();
    sides.write("golden", &run());
    sides.write("target", &changed(&output, value));
    let outcome = sides.compare_allowing("target", "golden", "dtype").unwrap();
    assert_eq!(outcome.status(), Status::WithinTolerance);
    let first = outcome.answer(Path::new("out")).headline;
    assert_eq!(
        first,
        "Within tolerance: what was compared of 6 records is equal; 1 thing was not compared, as allowed"
    );

    let sides = Sides::new();
    for place in ["golden/rank0", "golden/rank1", "target/rank0"] {
        sides.write(place, &run());
    }
    let outcome = sides.compare_allowing("target", "golden", "ranks").unwrap();
    let first = outcome.answer(Path::new("out")).headline;
    assert!(first.contains("what was compared of 6 records is equal; 1 thing was not compared"), "{first}");
}

#[test]
fn a_table_without_rows_is_left_out() {
    let sides = Sides::new();
    sides.write("golden", &run());
    sides.write(
        "target",
        &changed("/data/Functional.embedding.0.forward/input_kwargs/padding_idx/value", 4.into()),
    );
    let outcome = sides.compare("target", "golden").unwrap();
    assert_eq!(outcome.status(), Status::DiffersAtInput);
    let text = outcome.answer(Path::new("out")).text(&outcome.sections(80));
    assert!(!text.contains("Records that differ"), "{text}");
}

#[test]
fn a_record_that_is_null_counts_alike_both_ways_round() {
    let sides = Sides::new();
    sides.write("golden", &run());
    for record in run()["data"].as_object().unwrap().keys() {
        sides.write("target", &changed(&format!("/data/{record}"), Value::Null));
        let totals = [("target", "golden"), ("golden", "target")].map(|(target, golden)| {
            let outcome = sides.compare(target, golden).unwrap();
            assert_eq!(outcome.status(), Status::Incomplete, "{record}");
            outcome.parts[0].verdict.gaps.total()
        });
        assert_eq!(totals[0], totals[1], "{record}");
    }
}
