//! Dumps of checksums: nothing is proved where there is none, or where the statistics contradict it.

use std::fs;

use msprobe_compare::verdict::{GapKind, Status};
use serde_json::Value;

use crate::sides::{LINEAR, Sides, run, statuses};

/// The run with checksums.
fn run_of_checksums() -> Value {
    fn add(value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(add),
            Value::Object(members) if members.contains_key("dtype") => {
                let checksum = format!("{:08x}", members["Max"].to_string().len() * 7919);
                members.insert("md5".to_owned(), checksum.into());
            }
            Value::Object(members) => members.values_mut().for_each(add),
            _ => {}
        }
    }
    let mut dump = run();
    add(&mut dump);
    dump
}

#[test]
fn values_without_checksum_are_not_compared_in_md5_mode() {
    let output = format!("{LINEAR}/output/0");
    let without = |max: f64| {
        let mut dump = run_of_checksums();
        let value = dump.pointer_mut(&output).unwrap();
        value.as_object_mut().unwrap().remove("md5").unwrap();
        value["Max"] = max.into();
        dump
    };
    let sides = Sides::new();
    sides.write("target", &run_of_checksums());
    sides.write("golden", &run_of_checksums());
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
    // On one side, on both, on both with other statistics.
    sides.write("target", &without(0.5));
    assert_eq!(statuses(&sides), [Some(Status::Incomplete); 2]);
    sides.write("golden", &without(0.5));
    assert_eq!(statuses(&sides), [Some(Status::Incomplete); 2]);
    let gaps = sides.compare("target", "golden").unwrap().parts[0].verdict.gaps.clone();
    assert_eq!((gaps.total(), gaps.count(GapKind::Unmeasured)), (1, 1));
    sides.write("golden", &without(0.6));
    assert_eq!(statuses(&sides), [Some(Status::Diverged); 2]);
    let text = sides.compare("target", "golden").unwrap().paragraph();
    assert!(!text.contains("checksums differ") && !text.contains("equal in the numbers"), "{text}");
    assert!(text.contains("max 0.5, bench 0.6"), "{text}");
}

#[test]
fn statistics_that_contradict_equal_checksums_are_told() {
    let cases = [
        ("NaN", Status::Diverged),
        ("Infinity", Status::Diverged),
        ("4.5", Status::Diverged),
        ("null", Status::Incomplete),
        ("\"text\"", Status::Incomplete),
    ];
    for (max, expected) in cases {
        let sides = Sides::new();
        sides.write("golden", &run_of_checksums());
        let mut dump = run_of_checksums();
        dump.pointer_mut(&format!("{LINEAR}/output/0")).unwrap()["Max"] = "MAX".into();
        fs::create_dir_all(sides.path("target")).unwrap();
        fs::write(sides.path("target/dump.json"), dump.to_string().replace("\"MAX\"", max)).unwrap();
        assert_eq!(statuses(&sides), [Some(expected); 2], "{max}");
    }
    // Checksums need no statistics.
    let sides = Sides::new();
    let mut dump = run_of_checksums();
    for key in ["Max", "Min", "Mean", "Norm"] {
        dump.pointer_mut(&format!("{LINEAR}/output/0"))
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key)
            .unwrap();
    }
    sides.write("golden", &dump);
    sides.write("target", &dump);
    assert_eq!(statuses(&sides), [Some(Status::Identical); 2]);
}
