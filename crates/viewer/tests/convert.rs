//! Graph files made of dumps from the browser: what is written, where, and for whom.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use common::{CALLS, Place, Served, with_output, write_dump};
use serde_json::{Value, json};

/// Two runs of two ranks, the first one wrong in a call.
fn runs() -> Place {
    let place = Place::empty();
    for rank in 0..2 {
        write_dump(&place.path(&format!("runs/own/rank{rank}")), &with_output("Torch.b.0.forward", 9.0));
        write_dump(&place.path(&format!("runs/other/rank{rank}")), &CALLS);
    }
    place
}

fn item(served: &Served, title: &str) -> String {
    let catalogue = served.get("/api/catalogue");
    let items = catalogue["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["title"] == title).unwrap_or_else(|| panic!("{catalogue}"));
    item["id"].as_str().unwrap().to_owned()
}

fn wait(served: &Served) -> Value {
    let patience = Instant::now() + Duration::from_mins(1);
    loop {
        let now = served.get("/api/convert");
        if now["state"] != "running" {
            return now;
        }
        assert!(Instant::now() < patience, "{now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_dumps_become_a_graph_that_is_found() {
    let place = runs();
    let served = place.serve("runs");
    assert_eq!(served.get("/api/convert")["state"], "idle");
    let asked = json!({"target": item(&served, "own"), "golden": item(&served, "other"), "output": "graphs",
        "fuzzy": true, "overflowCheck": true});
    let begun = served.post("/api/convert", &asked);
    assert!(begun["state"] != "idle", "{begun}");
    let done = wait(&served);
    assert_eq!((&done["state"], &done["percent"]), (&json!("done"), &json!(100)), "{done}");
    let files: Vec<_> =
        fs::read_dir(place.path("runs/graphs")).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(done["path"].as_str().unwrap().ends_with(".vis.db"), "{done}");
    assert!(done["headline"].as_str().unwrap().contains("Torch.b.0.forward"), "{done}");
    let id = done["item"].as_str().unwrap();
    let found = served.get("/api/catalogue");
    let found = found["items"].as_array().unwrap().iter().find(|item| item["id"] == id);
    assert_eq!(found.unwrap()["ranks"], json!([0, 1]));
    let info = served.get(&format!("/api/graph/{id}"));
    assert_eq!((&info["kind"], &info["overflowCheck"]), (&json!("compare"), &json!(true)));
}

#[test]
fn ranks_are_merged_on_demand_and_what_does_not_fit_is_told() {
    let place = runs();
    let served = place.serve("runs");
    let own = item(&served, "own");
    let merge = |size: u32| json!({"rankSize": size, "tp": size, "pp": 1});
    served.post("/api/convert", &json!({"target": own, "output": "merged", "merge": [merge(2)]}));
    let done = wait(&served);
    assert_eq!(done["state"], "done", "{done}");
    let info = served.get(&format!("/api/graph/{}", done["item"].as_str().unwrap()));
    assert_eq!((&info["ranks"], &info["kind"]), (&json!([0]), &json!("build")));
    // Other numbers of ranks than there are: the engine says so.
    served.post("/api/convert", &json!({"target": own, "output": "merged", "merge": [merge(4)]}));
    let failed = wait(&served);
    assert_eq!((&failed["state"], &failed["item"]), (&json!("failed"), &Value::Null), "{failed}");
    assert!(failed["error"].is_string() && failed["hint"].is_string(), "{failed}");
    let two = json!({"target": own, "output": "merged", "merge": [merge(2), merge(2)]});
    assert_eq!(served.post_reply("/api/convert", &two).status, 400);
}

#[test]
fn mappings_are_files_below_the_path() {
    let place = runs();
    fs::write(place.path("secret.yaml"), "a: b").unwrap();
    symlink(place.path("secret.yaml"), place.path("runs/link.yaml")).unwrap();
    fs::write(place.path("runs/layers.yaml"), "TopLayer:\n  net: net\n").unwrap();
    let served = place.serve("runs");
    let (own, other) = (item(&served, "own"), item(&served, "other"));
    let asked =
        |mapping: &str| json!({"target": own, "golden": other, "output": "mapped", "mapping": mapping});
    let absolute = place.path("secret.yaml").display().to_string();
    for mapping in ["../secret.yaml", "link.yaml", "nothing.yaml", "own", &absolute] {
        let refused = served.post_reply("/api/convert", &asked(mapping));
        assert_eq!(refused.status, 404, "{mapping}: {}", refused.text());
    }
    assert!(!place.path("runs/mapped").exists(), "nothing is made for what is refused");
    for mapping in ["", "layers.yaml"] {
        served.post("/api/convert", &asked(mapping));
        assert_eq!(wait(&served)["state"], "done", "{mapping}");
    }
}

#[test]
fn results_lie_below_the_path_and_nowhere_else() {
    let place = runs();
    fs::create_dir(place.path("outside")).unwrap();
    symlink(place.path("outside"), place.path("runs/away")).unwrap();
    let served = place.serve("runs");
    let own = item(&served, "own");
    let status =
        |output: &str| served.post_reply("/api/convert", &json!({"target": own, "output": output})).status;
    for output in ["", ".", "..", ".hidden", "../outside", "a/b", "/tmp", "a b", "a\u{0}b", &"x".repeat(101)]
    {
        assert_eq!(status(output), 400, "{output:?}");
    }
    assert_eq!(status("away"), 403, "a link");
    assert_eq!(status("own"), 409, "a dump would be changed");
    assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 0);
    let unknown = json!({"target": "0123456789abcdef", "output": "x"});
    assert_eq!(served.post_reply("/api/convert", &unknown).status, 404);
    // Where the path is the dump itself there is no room beside it.
    let alone = place.serve("runs/own");
    let own = alone.id("dump");
    let refused = alone.post_reply("/api/convert", &json!({"target": own, "output": "x"}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(!place.path("runs/own/x").exists());
}

#[test]
fn only_the_page_itself_may_ask_for_it() {
    let place = runs();
    let served = place.serve("runs");
    let body = json!({"target": item(&served, "own"), "output": "made"}).to_string();
    let json = ("Content-Type", "application/json");
    let own = format!("http://127.0.0.1:{}", served.port);
    let status = |headers: &[(&str, &str)]| served.request("POST", "/api/convert", headers, &body).status;
    assert_eq!(status(&[json]), 403, "no origin");
    assert_eq!(status(&[json, ("Origin", "http://evil.example")]), 403);
    assert_eq!(status(&[("Content-Type", "text/plain"), ("Origin", &own)]), 415);
    assert_eq!(served.request("PUT", "/api/convert", &[json, ("Origin", &own)], &body).status, 405);
    assert!(!place.path("runs/made").exists());
    assert_eq!(status(&[json, ("Origin", &own)]), 200);
    assert_eq!(wait(&served)["state"], "done");
}
