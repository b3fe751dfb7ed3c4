//! The first anomaly across ranks, against recorded results of the reference.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_analyze::phases::{Findings, Phase, find, write};
use msprobe_analyze::rank::{RankDir, RankDump, rank_dirs};
use msprobe_dump::read::Json;
use msprobe_report::console::Silent;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/nan_analyze").join(name)
}

fn read(dirs: Vec<RankDir>) -> Vec<RankDump> {
    dirs.into_iter().map(|dir| RankDump::read(dir, &mut (), &|_| ()).unwrap()).collect()
}

/// The text of the file, or nothing if there was nothing to write.
fn text_of(findings: &Findings, ranks: &[RankDump]) -> Option<String> {
    findings.phase?;
    let output = tempfile::tempdir().unwrap();
    let path = write(findings, ranks, &output.path().join("deep/er"), 17, &Silent).unwrap();
    assert_eq!(path.file_name().unwrap(), "anomaly_analyze_17.json");
    Some(fs::read_to_string(path).unwrap())
}

/// Maps without order; NaN equals NaN.
fn same(left: &Json<'_>, right: &Json<'_>) -> bool {
    match (left, right) {
        (Json::Float(left), Json::Float(right)) => left == right || left.is_nan() && right.is_nan(),
        (Json::List(left), Json::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Json::Map(members), Json::Map(others)) => {
            members.len() == others.len()
                && members.iter().all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

/// The text in blocks of one rank each: the recordings have them in the order of directories.
fn blocks(text: &str) -> Vec<String> {
    let inside = text.strip_prefix("{\n  ").and_then(|text| text.strip_suffix("\n}")).unwrap_or(text);
    let mut blocks: Vec<String> = inside.split(",\n  \"").map(|block| block.replace('"', "")).collect();
    blocks.sort();
    blocks
}

const CASES: [(&str, Option<Phase>); 6] = [
    ("after_comm", Some(Phase::After)),
    ("all_reduce_4ranks", Some(Phase::During)),
    ("comm_output", Some(Phase::During)),
    ("no_anomaly", None),
    ("p2p_pipeline", Some(Phase::During)),
    ("pre_comm", Some(Phase::Before)),
];

#[test]
fn recorded_results_are_reproduced() {
    for (name, phase) in CASES {
        let ranks = read(rank_dirs(&case(name).join("input")).unwrap());
        let findings = find(&ranks);
        assert_eq!(findings.phase, phase, "{name}");
        assert!(findings.notes.is_empty(), "{name}: {:?}", findings.notes);
        let expected = fs::read_to_string(case(name).join("output/anomaly_analyze_TIMESTAMP.json")).ok();
        let text = text_of(&findings, &ranks);
        if let (Some(text), Some(expected)) = (&text, &expected) {
            let parsed = [text, expected].map(|text| Json::parse(text.as_bytes()).unwrap());
            assert!(same(&parsed[0], &parsed[1]), "{name}: {text}");
        }
        let [text, expected] = [text, expected].map(|text| text.map(|text| blocks(&text)));
        assert_eq!(text, expected, "{name}");
    }
}

#[test]
fn the_order_of_ranks_and_directories_does_not_matter() {
    for (name, _) in CASES {
        let mut dirs = rank_dirs(&case(name).join("input")).unwrap();
        let expected = {
            let ranks = read(dirs.clone());
            text_of(&find(&ranks), &ranks)
        };
        for _ in 0..dirs.len() {
            dirs.rotate_left(1);
            for reversed in [false, true] {
                let mut dirs = dirs.clone();
                if reversed {
                    dirs.reverse();
                }
                let ranks = read(dirs.clone());
                assert_eq!(text_of(&find(&ranks), &ranks), expected, "{name}");
                // The same directories, made in this order.
                let step = tempfile::tempdir().unwrap();
                for dir in &dirs {
                    let copy = step.path().join(format!("rank{}", dir.rank));
                    fs::create_dir(&copy).unwrap();
                    for file in ["dump.json", "construct.json", "stack.json"] {
                        fs::copy(dir.path.join(file), copy.join(file)).unwrap();
                    }
                }
                let ranks = read(rank_dirs(step.path()).unwrap());
                assert_eq!(text_of(&find(&ranks), &ranks), expected, "{name}");
            }
        }
    }
}

#[test]
fn a_rank_that_is_missing_is_noted_and_survived() {
    let mut dirs = rank_dirs(&case("all_reduce_4ranks").join("input")).unwrap();
    dirs.remove(1);
    let ranks = read(dirs);
    let findings = find(&ranks);
    let [anomaly] = findings.anomalies[..] else { panic!("{findings:?}") };
    let dump = &ranks[anomaly.rank_index];
    assert_eq!((dump.dir.rank, &*dump.records[anomaly.record].name), (2, "Torch.sqrt.0.forward"));
    assert!(findings.notes.iter().any(|note| note.contains("no dump here: 1.")), "{:?}", findings.notes);
}
