//! One leaf of any dump changed, removed, added or retyped: the answer must not be identical.

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use msprobe_compare::verdict::Status;
use serde_json::{Value, json};

use crate::sides::{Sides, run, statuses};

fn one_of<'a, T>(random: &mut Rng, all: &'a [T]) -> &'a T {
    &all[random.usize(..all.len())]
}

pub(crate) fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    let mut add = |key: &str, inner: &Value| {
        let place = format!("{here}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(inner, &place, found);
        found.push(place);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, inner)| add(key, inner)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, inner)| add(&index.to_string(), inner));
        }
        _ => {}
    }
}

/// Changes, removes, adds or retypes one random place of the records. `None` if nothing has changed.
pub(crate) fn mutated(dump: &Value, random: &mut Rng) -> Option<(String, Value)> {
    let mut dump = dump.clone();
    let data = dump.get("data")?.clone();
    let mut all = Vec::new();
    pointers(&data, "", &mut all);
    if all.is_empty() {
        return None;
    }
    let place = one_of(random, &all).clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    // Where data lies is compared by what lies there.
    if key == "data_name" {
        return None;
    }
    let old = data.pointer(&place).unwrap().clone();
    let others = [
        json!(null),
        json!("text"),
        json!(7),
        json!(2.5),
        json!(true),
        json!([]),
        json!({}),
        json!({"type": "float", "value": 1.0}),
    ];
    let new = match (random.usize(..4), &old) {
        (0, _) => None,
        (1, _) => Some(one_of(random, &others).clone()),
        (_, Value::Bool(old)) => Some((!old).into()),
        (_, Value::Number(old)) => Some(match (old.as_i64(), old.as_f64()) {
            (Some(old), _) => old.wrapping_add(*one_of(random, &[1, -1, 1000])).into(),
            (None, Some(old)) => one_of(random, &[json!(old * 2.0 + 1.0), json!(-old), json!(0.0)]).clone(),
            (None, None) => return None,
        }),
        (_, Value::String(old)) => Some(format!("{old}x").into()),
        _ => None,
    };
    let holder = dump.get_mut("data")?.pointer_mut(parent)?;
    match (holder, new) {
        (Value::Object(members), Some(new)) => {
            members.insert(key, new);
        }
        (Value::Object(members), None) if random.usize(..2) == 0 => {
            members.insert("extra".to_owned(), one_of(random, &others).clone());
        }
        (Value::Object(members), None) => {
            members.remove(&key);
        }
        (Value::Array(elements), Some(new)) => elements[key.parse::<usize>().unwrap()] = new,
        (Value::Array(elements), None) if random.usize(..2) == 0 => elements.push(old),
        (Value::Array(elements), None) => {
            elements.remove(key.parse::<usize>().unwrap());
        }
        _ => return None,
    }
    (dump["data"] != data).then_some((place, dump))
}

pub(crate) fn recorded_dumps() -> Vec<Value> {
    let mut dumps = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")];
    while let Some(directory) = open.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let is_small = || path.metadata().unwrap().len() < 60_000;
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().unwrap() == "dump.json" && is_small() {
                let dump = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap_or_default();
                let is_statistics = |dump: &Value| dump["task"] == "statistics" && dump["data"].is_object();
                dumps.extend(Some(dump).filter(is_statistics));
            }
        }
    }
    assert!(dumps.len() > 30, "{}", dumps.len());
    dumps
}

/// `MSPROBE_PROOF_CASES` for more than a test can afford.
pub(crate) fn cases() -> u64 {
    std::env::var("MSPROBE_PROOF_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

#[test]
fn any_change_of_one_leaf_is_noticed_both_ways_round() {
    let mut dumps = recorded_dumps();
    dumps.extend(std::iter::repeat_n(run(), dumps.len()));
    let sides = Sides::new();
    let mut tried = 0;
    for seed in 0..cases() {
        let mut random = Rng::with_seed(seed);
        let dump = one_of(&mut random, &dumps).clone();
        let Some((place, other)) = mutated(&dump, &mut random) else { continue };
        sides.write("target", &dump);
        sides.write("golden", &other);
        tried += 1;
        for status in statuses(&sides) {
            assert_ne!(status, Some(Status::Identical), "seed {seed}: {place} was changed");
        }
    }
    assert!(tried > cases() / 2, "{tried}");
}
