//! Matching by hand, undoing it, and saving it where the reference's plugin finds it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::fs;

use common::{Place, Served};
use msprobe_graph::names::Generation;
use rusqlite::Connection;
use serde_json::{Value, json};

fn ask(served: &Served, action: &str, target: &str, golden: Option<&str>) -> Value {
    let id = served.id("graph");
    let body = json!({"step": 0, "rank": 1, "target": target, "golden": golden, "descendants": false});
    served.post(&format!("/api/graph/{id}/{action}"), &body)
}

fn partner(served: &Served, name: &str) -> Value {
    served.graph(&format!("/node?step=0&rank=1&node={name}"))["brief"]["partner"].clone()
}

const ONLY: &str = "Torch.only.0.forward";
const OTHER: &str = "Torch.only.7.forward";

#[test]
fn pairs_are_made_taken_apart_undone_and_redone() {
    for generation in [Generation::First, Generation::Third] {
        let place = Place::new(generation);
        let served = place.serve("out");
        let id = served.id("graph");
        let edits = served.get(&format!("/api/graph/{id}/edits?step=0&rank=1"));
        assert_eq!((&edits["edition"], &edits["isUnsaved"]), (&json!(0), &json!(false)));
        let suggestions = served.graph(&format!("/suggestions?step=0&rank=1&node={ONLY}"));
        assert_eq!(suggestions["suggestions"][0]["node"]["name"], OTHER, "{suggestions}");
        let changed = ask(&served, "match", ONLY, Some(OTHER));
        assert_eq!(
            (&changed["pairs"], &changed["isUnsaved"], &changed["canUndo"]),
            (&json!(1), &json!(true), &json!(true))
        );
        let detail = served.graph(&format!("/node?step=0&rank=1&node={ONLY}"));
        assert_eq!(detail["brief"]["partner"], OTHER);
        assert_eq!(detail["brief"]["modified"], true);
        assert_eq!(detail["brief"]["index"].as_f64(), Some(0.0), "{generation:?}: the values are the same");
        let columns = detail["values"][1]["columns"].as_array().unwrap();
        let at = columns.iter().position(|column| column == "Max diff").unwrap();
        assert_eq!(detail["values"][1]["rows"][0]["cells"][at], "0.0");
        let golden = served.graph(&format!("/node?step=0&rank=1&side=golden&node={OTHER}"));
        assert_eq!(golden["brief"]["partner"], ONLY, "both sides know");
        assert_eq!(served.graph("/findings?step=0&rank=1&kinds=unmatched")["total"], 0, "lists know");
        let id = served.id("graph");
        let taken = served.post_reply(
            &format!("/api/graph/{id}/match"),
            &json!({"step": 0, "rank": 1, "target": ONLY, "golden": OTHER}),
        );
        assert_eq!((taken.status, taken.json()["hint"].is_string()), (409, true));
        let undone = served.post(&format!("/api/graph/{id}/undo"), &json!({"step": 0, "rank": 1}));
        assert_eq!((&undone["isUnsaved"], &undone["canRedo"]), (&json!(false), &json!(true)));
        assert_eq!(partner(&served, ONLY), Value::Null);
        assert_eq!(served.graph("/findings?step=0&rank=1&kinds=unmatched")["total"], 1);
        served.post(&format!("/api/graph/{id}/redo"), &json!({"step": 0, "rank": 1}));
        assert_eq!(partner(&served, ONLY), OTHER);
        let apart = ask(&served, "unmatch", ONLY, None);
        assert_eq!(apart["pairs"], 1);
        let detail = served.graph(&format!("/node?step=0&rank=1&node={ONLY}"));
        assert_eq!((&detail["brief"]["partner"], &detail["brief"]["index"]), (&Value::Null, &Value::Null));
        let columns = detail["values"][1]["columns"].as_array().unwrap();
        assert!(!columns.iter().any(|column| column == "Max diff"), "metrics are gone: {columns:?}");
        let kinds = served.post_reply(
            &format!("/api/graph/{id}/match"),
            &json!({"step": 0, "rank": 1, "target": ONLY, "golden": "Module.net.Net.forward.0"}),
        );
        assert_eq!(kinds.status, 409, "a function is no module");
    }
}

#[test]
fn metrics_of_a_pair_by_hand_are_those_of_the_comparison() {
    for generation in [Generation::First, Generation::Third] {
        let place = Place::new(generation);
        let served = place.serve("out");
        let name = "Torch.b.0.forward";
        let detail = || {
            let mut detail = served.graph(&format!("/node?step=1&rank=1&node={name}"));
            detail["brief"]
                .as_object_mut()
                .unwrap()
                .retain(|key, _| matches!(key.as_str(), "index" | "partner"));
            json!([detail["brief"], detail["values"]])
        };
        let before = detail();
        let id = served.id("graph");
        let body = json!({"step": 1, "rank": 1, "target": name, "golden": name, "descendants": false});
        served.post(&format!("/api/graph/{id}/unmatch"), &body);
        assert_ne!(detail(), before);
        served.post(&format!("/api/graph/{id}/match"), &body);
        assert_eq!(detail(), before, "{generation:?}");
    }
}

#[test]
fn what_is_inside_is_matched_with_it() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let id = served.id("graph");
    let net = "Module.net.Net.forward.0";
    let body = json!({"step": 0, "rank": 1, "target": net, "golden": net, "descendants": true});
    let apart = served.post(&format!("/api/graph/{id}/unmatch"), &body);
    assert_eq!(apart["pairs"], 5, "{apart}");
    let again = served.post(&format!("/api/graph/{id}/match"), &body);
    // Those without a number of their own are put together too.
    assert_eq!((&again["pairs"], &again["failed"]), (&json!(6), &json!(0)), "{again}");
    assert_eq!(partner(&served, ONLY), OTHER);
    assert_eq!(partner(&served, "Torch.b.1.forward"), "Torch.b.1.forward");
}

#[test]
fn a_store_is_saved_so_that_the_plugin_reads_it() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    ask(&served, "match", ONLY, Some(OTHER));
    let id = served.id("graph");
    let saved = served.post(&format!("/api/graph/{id}/save"), &json!({}));
    assert_eq!(saved["isUnsaved"], false);
    let path = fs::read_dir(place.path("out")).unwrap().next().unwrap().unwrap().path();
    let db = Connection::open(&path).unwrap();
    let row = |source: &str, name: &str| -> (String, Option<f64>, i64, String) {
        db.query_row(
            "SELECT matched_node_link, precision_index, modified, output_data FROM tb_nodes WHERE step = 0 AND rank = 1 \
             AND data_source = ?1 AND node_name = ?2",
            [source, name],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .unwrap()
    };
    let (link, index, modified, outputs) = row("NPU", ONLY);
    assert_eq!(link, format!(r#"["DefaultModel", "Module.net.Net.forward.0", "{OTHER}"]"#));
    assert_eq!((index, modified), (Some(0.0), 1));
    assert!(outputs.contains("\"Result\": \"pass\""), "{outputs}");
    assert_eq!(row("Bench", OTHER).0, format!(r#"["DefaultModel", "Module.net.Net.forward.0", "{ONLY}"]"#));
    let touched: i64 =
        db.query_row("SELECT count(*) FROM tb_nodes WHERE modified = 1", [], |row| row.get(0)).unwrap();
    assert_eq!(touched, 2);
    // Another server reads it.
    let other = place.serve("out");
    assert_eq!(partner(&other, ONLY), OTHER);
    // What was saved can be taken back, and saved again.
    let undone = served.post(&format!("/api/graph/{id}/undo"), &json!({"step": 0, "rank": 1}));
    assert_eq!(undone["isUnsaved"], true);
    served.post(&format!("/api/graph/{id}/save"), &json!({}));
    assert_eq!(row("NPU", ONLY).0, "[]");
}

#[test]
fn a_vis_file_is_written_anew_and_nothing_else_in_it_changes() {
    let place = Place::new(Generation::First);
    let served = place.serve("out");
    let files = || -> Vec<(String, Value, String)> {
        let mut files: Vec<_> =
            fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let file = |path: &std::path::PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                serde_json::from_str(&text).unwrap(),
                text,
            )
        };
        files.iter().map(file).collect()
    };
    let before = files();
    assert_eq!(before.len(), 4);
    ask(&served, "match", ONLY, Some(OTHER));
    let id = served.id("graph");
    served.post(&format!("/api/graph/{id}/save"), &json!({}));
    let after = files();
    let changed: Vec<usize> = (0..4).filter(|&at| before[at].2 != after[at].2).collect();
    assert_eq!(changed.len(), 1, "one rank of one step");
    let (name, now, text) = &after[changed[0]];
    assert!(name.contains("step0_rank1"), "{name}");
    let node = &now["NPU"]["node"][ONLY];
    assert_eq!(node["matched_node_link"], json!(["DefaultModel", "Module.net.Net.forward.0", OTHER]));
    assert_eq!(node["data"]["precision_index"].as_f64(), Some(0.0));
    assert!(
        text.contains("\n            \"Torch.only.0.forward\": {\n                \"id\""),
        "indented as before"
    );
    let mut restored = now.clone();
    for (side, name) in [("NPU", ONLY), ("Bench", OTHER)] {
        restored[side]["node"][name] = before[changed[0]].1[side]["node"][name].clone();
    }
    assert_eq!(restored, before[changed[0]].1);
    let leftovers = fs::read_dir(place.path("out")).unwrap().count();
    assert_eq!(leftovers, 4, "no temporary files are left");
}

#[test]
fn files_of_pairs_are_written_and_done() {
    for (generation, file) in [(Generation::Third, "_0_1.vis.config"), (Generation::First, ".vis.config")] {
        let place = Place::new(generation);
        let served = place.serve("out");
        let id = served.id("graph");
        ask(&served, "match", ONLY, Some(OTHER));
        let written = served.post(&format!("/api/graph/{id}/config/save"), &json!({"step": 0, "rank": 1}));
        let path = written["path"].as_str().unwrap();
        assert!(path.ends_with(file), "{path}");
        let pairs: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(pairs, json!({ONLY: OTHER}));
        // The same can be done to another step and rank.
        let body = json!({"step": 1, "rank": 0, "pairs": {ONLY: OTHER, "gone": "gone"}});
        let applied = served.post(&format!("/api/graph/{id}/config/apply"), &body);
        assert_eq!((&applied["pairs"], &applied["failed"]), (&json!(1), &json!(1)), "{applied}");
        assert_eq!(served.graph(&format!("/node?step=1&rank=0&node={ONLY}"))["brief"]["partner"], OTHER);
    }
}

/// Saves, which is refused; what is unsaved stays so.
fn refused(served: &Served) -> u16 {
    let id = served.id("graph");
    let saved = served.post_reply(&format!("/api/graph/{id}/save"), &json!({}));
    assert!(saved.status >= 400 && saved.json()["error"].is_string(), "{}", saved.text());
    let edits = served.get(&format!("/api/graph/{id}/edits?step=0&rank=1"));
    assert_eq!(edits["isUnsaved"], true);
    saved.status
}

fn only_file(place: &Place, holds: &str) -> std::path::PathBuf {
    let mut files = fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().contains(holds)).unwrap()
}

#[test]
fn what_cannot_be_saved_wholly_is_not_saved_at_all() {
    // Another program takes away one node of the pair: whichever is written first, nothing of the other stays.
    for (source, name) in [("NPU", ONLY), ("Bench", OTHER)] {
        let place = Place::new(Generation::Third);
        let served = place.serve("out");
        ask(&served, "match", ONLY, Some(OTHER));
        let db = Connection::open(only_file(&place, ".vis.db")).unwrap();
        let gone = db
            .execute(
                "DELETE FROM tb_nodes WHERE step = 0 AND rank = 1 AND data_source = ?1 AND node_name = ?2",
                [source, name],
            )
            .unwrap();
        assert_eq!((gone, refused(&served)), (1, 409), "{source}");
        let touched: i64 = db
            .query_row(
                "SELECT count(*) FROM tb_nodes WHERE modified = 1 OR (node_name IN (?1, ?2) AND matched_node_link != '[]')",
                [ONLY, OTHER],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(touched, 0, "{source}");
    }
    let place = Place::new(Generation::First);
    let served = place.serve("out");
    ask(&served, "match", ONLY, Some(OTHER));
    let path = only_file(&place, "step0_rank1");
    let changed = fs::read_to_string(&path).unwrap().replace(OTHER, "Torch.gone.7.forward");
    fs::write(&path, &changed).unwrap();
    assert_eq!(refused(&served), 409);
    assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 4, "no temporary files are left");
}

#[test]
fn nothing_is_written_through_a_link() {
    for (generation, holds) in [(Generation::Third, ".vis.db"), (Generation::First, "step0_rank1")] {
        let (place, outside) = (Place::new(generation), Place::empty());
        let served = place.serve("out");
        ask(&served, "match", ONLY, Some(OTHER));
        let id = served.id("graph");
        let path = only_file(&place, holds);
        let away = outside.path("away");
        fs::rename(&path, &away).unwrap();
        std::os::unix::fs::symlink(&away, &path).unwrap();
        let before = fs::read(&away).unwrap();
        let saved = served.post_reply(&format!("/api/graph/{id}/save"), &json!({}));
        assert!(saved.status >= 400, "{generation:?}: {}", saved.text());
        assert!(fs::read(&away).unwrap() == before, "{generation:?}");
    }
}
