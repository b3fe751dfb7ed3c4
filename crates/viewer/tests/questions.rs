//! Every question, asked over a real socket, of stores that the graph crate made.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::{BTreeMap, HashSet};
use std::fs;

use common::{NET, Place, encoded, with_output, write_dump};
use msprobe_graph::names::Generation;
use serde_json::{Value, json};

const AT: &str = "step=1&rank=1";

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect()
}

#[test]
fn the_list_has_one_line_for_a_run_and_one_for_its_comparison() {
    let place = Place::new(Generation::Third);
    let served = place.serve("");
    let catalogue = served.get("/api/catalogue");
    let items = catalogue["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "{catalogue}");
    let graph = items.iter().find(|item| item["kind"] == "graph").unwrap();
    assert_eq!((&graph["steps"], &graph["ranks"]), (&json!([0, 1]), &json!([0, 1])));
    assert_eq!(graph["answer"]["status"], "diverged");
    assert_eq!(graph["tone"], "bad");
    let cells = graph["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[3]["culprit"], "Torch.b.0.forward");
    for dump in items.iter().filter(|item| item["kind"] == "dump") {
        assert_eq!((&dump["steps"], &dump["ranks"]), (&json!([0, 1]), &json!([0, 1])));
        assert!(dump["bytes"].as_u64().unwrap() > 0);
    }
    let again = place.serve("");
    assert_eq!(again.id("graph"), served.id("graph"), "ids stay the same");
}

#[test]
fn a_graph_tells_what_it_is() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let info = served.graph("");
    for (member, value) in [
        ("kind", json!("compare")),
        ("task", json!("summary")),
        ("hasVerdicts", json!(true)),
        ("writable", json!(true)),
        ("overflowCheck", json!(true)),
        ("steps", json!([0, 1])),
        ("ranks", json!([0, 1])),
        ("microSteps", json!(1)),
    ] {
        assert_eq!(info[member], value, "{member}");
    }
    assert_eq!(info["colours"].as_array().unwrap().len(), 4);
    assert!(info["toolTips"]["Max diff"].is_string());
    assert_eq!(info["answers"][3]["node"], "Torch.b.0.forward");
    assert!(info["nodes"].as_u64().unwrap() > 40);
}

#[test]
fn children_come_in_order_with_what_is_worst_below_them() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let root = served.graph(&format!("/children?{AT}"));
    assert_eq!(root["node"]["name"], "DefaultModel");
    assert_eq!(names(&root["children"]), [NET, "Torch.loss.0.forward"]);
    let net = &root["children"][0];
    assert_eq!((&net["type"], &net["children"]), (&json!("module"), &json!(4)));
    assert_eq!(net["worst"]["name"], "Torch.b.0.forward");
    assert_eq!((&net["worst"]["tone"], &net["worst"]["verdict"]), (&json!("bad"), &json!("introduced")));
    let inside = served.graph(&format!("/children?{AT}&node={NET}"));
    let expected =
        ["Module.net.fc.Linear.forward.0", "Torch.only.0.forward", "Torch.b.0.forward", "Torch.b.1.forward"];
    assert_eq!(names(&inside["children"]), expected);
    let [fc, only, b, _] = [0, 1, 2, 3].map(|at| &inside["children"][at]);
    assert_eq!(fc["label"], "fc.Linear.forward.0");
    assert_eq!(
        (&only["verdict"], &only["tone"], &only["partner"]),
        (&json!("unmatched"), &json!("unknown"), &Value::Null)
    );
    assert_eq!(
        (&b["verdict"], &b["tone"], &b["partner"]),
        (&json!("introduced"), &json!("bad"), &json!("Torch.b.0.forward"))
    );
    assert!(b["errorOut"].as_f64().unwrap() > b["tolerated"].as_f64().unwrap());
    // A page at a time.
    let second = served.graph(&format!("/children?{AT}&node={NET}&offset=1&limit=2"));
    assert_eq!(names(&second["children"]), &expected[1..3]);
    assert_eq!(second["total"], 4);
    // The golden side has its own.
    let golden = served.graph(&format!("/children?{AT}&side=golden&node={NET}"));
    assert_eq!(names(&golden["children"])[1], "Torch.only.7.forward");
    let id = served.id("graph");
    let missing = served.get_reply(&format!("/api/graph/{id}/children?{AT}&node=nothing"));
    assert_eq!((missing.status, missing.json()["error"].is_string()), (404, true));
    assert_eq!(served.get_reply(&format!("/api/graph/{id}/children?step=9")).status, 404);
    assert_eq!(served.get_reply(&format!("/api/graph/{id}/children?step=x")).status, 400);
}

#[test]
fn children_of_all_nodes_give_each_node_once() {
    for generation in [Generation::First, Generation::Third] {
        let place = Place::new(generation);
        let served = place.serve("out");
        for side in ["target", "golden"] {
            let mut open = vec!["DefaultModel".to_owned()];
            let mut seen = HashSet::from(["DefaultModel".to_owned()]);
            while let Some(name) = open.pop() {
                let answer = served.graph(&format!("/children?{AT}&side={side}&node={}", encoded(&name)));
                for child in names(&answer["children"]) {
                    assert!(seen.insert(child.to_owned()), "{child} comes twice");
                    open.push(child.to_owned());
                }
            }
            let found = served.graph(&format!("/search?{AT}&side={side}&limit=500"));
            assert_eq!(found["total"].as_u64().unwrap() as usize, seen.len(), "{generation:?} {side}");
        }
    }
}

#[test]
fn an_expanded_set_is_opened_at_once_and_ways_lead_to_nodes() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let id = served.id("graph");
    let opened = served.post(
        &format!("/api/graph/{id}/open"),
        &json!({"step": 1, "rank": 1, "side": "target", "micro": -1, "nodes": ["DefaultModel", NET, "nothing"]}),
    );
    assert_eq!(opened["opened"].as_array().unwrap().len(), 2);
    assert_eq!(opened["opened"][1]["node"]["name"], NET);
    let path = served.graph(&format!("/path?{AT}&node=Torch.a.0.forward"));
    assert_eq!(
        path["path"],
        json!(["DefaultModel", NET, "Module.net.fc.Linear.forward.0", "Torch.a.0.forward"])
    );
}

#[test]
fn a_node_has_values_of_both_sides_and_where_it_was_called() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let detail = served.graph(&format!("/node?{AT}&node=Torch.b.0.forward"));
    assert_eq!(detail["partner"]["name"], "Torch.b.0.forward");
    let outputs = &detail["values"][1];
    assert_eq!(outputs["direction"], "output");
    let rows = outputs["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row["side"].as_str().unwrap()).collect::<Vec<_>>(),
        ["target", "golden"]
    );
    let columns: Vec<&str> =
        outputs["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let cell = |row: usize, column: &str| {
        rows[row]["cells"][columns.iter().position(|name| *name == column).unwrap()].clone()
    };
    assert_eq!((cell(0, "Max"), cell(1, "Max")), (json!("9.0"), json!("3.0")));
    assert_eq!((cell(0, "Max diff"), cell(1, "Max diff")), (json!("6.0"), Value::Null));
    assert!(rows.iter().all(|row| row["isMatched"] == true));
    let stacks = detail["stacks"].as_array().unwrap();
    assert_eq!(stacks.len(), 2);
    let users: Vec<bool> = stacks[0]["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["isUser"].as_bool().unwrap())
        .collect();
    assert_eq!(users, [true, false]);
    let alone = served.graph(&format!("/node?{AT}&node=Torch.only.0.forward"));
    assert_eq!(
        (&alone["partner"], &alone["values"][0]["rows"][0]["isMatched"]),
        (&Value::Null, &json!(false))
    );
}

#[test]
fn findings_come_in_order_and_can_be_filtered() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let find = |question: &str| served.graph(&format!("/findings?{AT}&{question}"));
    let introduced = find("kinds=introduced&leaves=1");
    assert_eq!(names(&introduced["findings"]), ["Torch.b.0.forward"]);
    assert_eq!(names(&find("kinds=unmatched")["findings"]), ["Torch.only.0.forward"]);
    assert_eq!(names(&find("kinds=unmatched&side=golden")["findings"]), ["Torch.only.7.forward"]);
    let both = find("kinds=introduced,unmatched&leaves=1");
    assert_eq!(names(&both["findings"]), ["Torch.only.0.forward", "Torch.b.0.forward"]);
    let first = both["findings"][0]["order"].as_i64().unwrap();
    let rest = find(&format!("kinds=introduced,unmatched&leaves=1&after={first}"));
    assert_eq!((names(&rest["findings"]), &rest["total"]), (vec!["Torch.b.0.forward"], &json!(2)));
    assert!(find("kinds=error")["total"].as_u64().unwrap() >= 1);
    assert_eq!(find("kinds=overflow")["total"], 0);
    // Ranges of the index: every node that has one is in exactly one of two that meet.
    let with_index = find("kinds=index:0:1:closed")["total"].as_u64().unwrap();
    let halves =
        ["kinds=index:0:0.5", "kinds=index:0.5:1:closed"].map(|kind| find(kind)["total"].as_u64().unwrap());
    assert!(halves[0] > 0 && halves[1] > 0 && halves[0] + halves[1] == with_index, "{halves:?} {with_index}");
    assert!(names(&find("kinds=index:1:1")["findings"]).contains(&"Torch.b.0.forward"));
    let id = served.id("graph");
    assert_eq!(served.get_reply(&format!("/api/graph/{id}/findings?kinds=odd")).status, 400);
}

#[test]
fn the_first_divergence_and_the_first_nan_are_found() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let found = served.graph("/jump?to=first_divergence");
    assert_eq!(found["found"], json!({"step": 1, "rank": 1, "side": "target", "node": "Torch.b.0.forward"}));
    assert_eq!(served.graph("/jump?to=first_divergence&step=0&rank=0")["found"], Value::Null);
    let none = served.graph("/jump?to=first_nan");
    assert!(none["found"].is_null() && none["why"].is_string());
    // Of a dump, built when it is asked for, the analysis says it.
    let place = Place::empty();
    let mut calls = with_output("Torch.b.0.forward", f64::NAN);
    calls[3].2 = f64::NAN;
    write_dump(&place.path("dump/step3/rank0"), &calls);
    write_dump(&place.path("dump/step3/rank1"), &common::CALLS);
    let served = place.serve("");
    let id = served.id("dump");
    let found = served.get(&format!("/api/graph/{id}/jump?to=first_nan"));
    assert_eq!(
        found["found"],
        json!({"step": 3, "rank": 0, "side": "target", "node": "Torch.b.0.forward"}),
        "{found}"
    );
    let of_rank = served.get(&format!("/api/graph/{id}/jump?to=first_nan&step=3&rank=0"));
    assert_eq!(of_rank["found"]["node"], "Torch.b.0.forward");
}

#[test]
fn searching_is_the_same_as_looking_at_every_name() {
    for generation in [Generation::First, Generation::Third] {
        let place = Place::new(generation);
        let served = place.serve("out");
        // All names, one by one.
        let mut all = Vec::new();
        for step in 0..2 {
            for rank in 0..2 {
                for side in ["target", "golden"] {
                    let found =
                        served.graph(&format!("/search?step={step}&rank={rank}&side={side}&limit=500"));
                    for hit in found["hits"].as_array().unwrap() {
                        all.push((step, rank, side, hit["name"].as_str().unwrap().to_owned()));
                    }
                }
            }
        }
        for (query, is_regex, case) in [
            ("torch", false, false),
            ("torch", false, true),
            ("Torch.b", false, true),
            ("b_0", false, false),
            ("%", false, false),
            (r"^Torch\.(a|b)\.\d", true, true),
            (r"^torch\.B", true, false),
            (r"forward$", true, true),
        ] {
            let regex = regex::RegexBuilder::new(query).case_insensitive(!case).build();
            let fits = |name: &str| match (is_regex, case) {
                (true, _) => regex.as_ref().unwrap().is_match(name),
                (false, true) => name.contains(query),
                (false, false) => name.to_ascii_lowercase().contains(&query.to_ascii_lowercase()),
            };
            let expected: HashSet<_> = all.iter().filter(|(.., name)| fits(name)).cloned().collect();
            let found = served.graph(&format!(
                "/search?q={}&regex={}&case={}&limit=500",
                encoded(query),
                u8::from(is_regex),
                u8::from(case)
            ));
            let hits: HashSet<_> = found["hits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hit| {
                    let side = if hit["side"] == "target" { "target" } else { "golden" };
                    let number = |key: &str| hit[key].as_i64().unwrap();
                    (number("step"), number("rank"), side, hit["name"].as_str().unwrap().to_owned())
                })
                .collect();
            assert_eq!(hits, expected, "{query}");
            assert_eq!(found["total"].as_u64().unwrap() as usize, expected.len(), "{query}");
            let grouped: u64 = found["groups"]
                .as_array()
                .unwrap()
                .iter()
                .map(|group| group["count"].as_u64().unwrap())
                .sum();
            assert_eq!(grouped as usize, expected.len());
            assert_eq!(found["isCapped"], false);
        }
    }
}

#[test]
fn facets_count_what_the_other_filters_leave() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let facets = |question: &str| -> BTreeMap<String, BTreeMap<String, u64>> {
        let found = served.graph(&format!("/search?{AT}&limit=500&{question}"));
        let facets = found["facets"].as_array().unwrap().clone();
        facets
            .iter()
            .map(|facet| {
                let values = facet["values"].as_array().unwrap().iter();
                let values = values.map(|value| {
                    (value["value"].as_str().unwrap().to_owned(), value["count"].as_u64().unwrap())
                });
                (facet["name"].as_str().unwrap().to_owned(), values.collect())
            })
            .collect()
    };
    let all = facets("");
    assert_eq!(all["type"]["api"], 10);
    assert_eq!(all["verdict"]["introduced"], 1);
    assert!(all["dtype"]["torch.float32"] > 10);
    let apis = facets("type=api");
    assert_eq!(apis["type"], all["type"], "its own filter does not count");
    assert_eq!(apis["side"]["target"], 5);
    let unmatched = served.graph("/search?verdict=unmatched&limit=500");
    assert_eq!(unmatched["total"], 8);
    assert_eq!(served.graph("/search?dtype=torch.int8")["total"], 0);
    let id = served.id("graph");
    let odd = served.get_reply(&format!("/api/graph/{id}/search?q=%28&regex=1"));
    assert_eq!((odd.status, odd.json()["hint"].is_string()), (400, true));
}

#[test]
fn pairs_are_sorted_filtered_and_written_as_csv() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let worst = served.graph(&format!("/pairs?{AT}&sort=errorOut&descending=1&limit=3"));
    assert_eq!(worst["total"], 7, "{worst}");
    let errors: Vec<f64> =
        worst["rows"].as_array().unwrap().iter().filter_map(|row| row["errorOut"].as_f64()).collect();
    assert!(errors.is_sorted_by(|one, other| one >= other), "{errors:?}");
    let by_name = served.graph(&format!("/pairs?{AT}&sort=name&q=torch.b"));
    assert_eq!(names(&by_name["rows"]), ["Torch.b.0.forward", "Torch.b.1.forward"]);
    let bad = served.graph(&format!("/pairs?{AT}&tones=unknown"));
    assert_eq!(names(&bad["rows"]), ["Torch.only.0.forward"]);
    let id = served.id("graph");
    let csv = served.get_reply(&format!("/api/graph/{id}/pairs.csv?{AT}&q=torch.b"));
    assert!(csv.header("content-type").unwrap().starts_with("text/csv"));
    assert!(csv.header("content-disposition").unwrap().contains("attachment"));
    let lines: Vec<String> = csv.text().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains(",Torch.b.0.forward,api,Torch.b.0.forward,introduced,bad,1,"), "{}", lines[1]);
}

#[test]
fn curves_and_lanes_have_their_data() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let profile = served.graph(&format!("/profile?{AT}"));
    assert_eq!((&profile["culprit"], &profile["isThinned"]), (&json!("Torch.b.0.forward"), &json!(false)));
    let points = profile["points"].as_array().unwrap();
    assert!(
        points
            .iter()
            .any(|point| point["name"] == "Torch.b.0.forward" && point["errorOut"].as_f64().unwrap() > 0.1)
    );
    assert!(points.is_sorted_by_key(|point| point["order"].as_i64().unwrap()));
    let series = served.graph("/series?node=Torch.b.0.forward&value=output.0&measure=Max");
    assert_eq!(series["values"], json!(["output.0", "input.0"]));
    assert!(series["measures"].as_array().unwrap().contains(&json!("Norm")));
    let numbers: Vec<f64> =
        series["points"].as_array().unwrap().iter().map(|point| point["number"].as_f64().unwrap()).collect();
    assert_eq!(numbers, [3.0, 3.0, 3.0, 9.0]);
    let timeline = served.graph("/timeline?step=1");
    assert_eq!(timeline["lanes"].as_array().unwrap().len(), 2);
    assert_eq!(timeline["lanes"][1][4][0][2], "Torch.b.0.forward");
    let id = served.id("graph");
    assert_eq!(served.get_reply(&format!("/api/graph/{id}/series?node=nothing")).status, 404);
}

#[test]
fn ranks_that_speak_with_one_another_are_linked() {
    let golden =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/graph/multi_rank_distributed_compare");
    let place = Place::empty();
    common::compare(
        Generation::Third,
        std::path::Path::new(&format!("{golden}/npu_dump")),
        std::path::Path::new(&format!("{golden}/bench_dump")),
        &place.path("out"),
    );
    let served = place.serve("out");
    let step = served.graph("")["steps"][0].as_i64().unwrap();
    let timeline = served.graph(&format!("/timeline?step={step}"));
    assert!(!timeline["links"].as_array().unwrap().is_empty(), "{timeline}");
    let found = served.graph(&format!("/search?q=Distributed&step={step}&rank=0&side=target"));
    let with_peers = found["hits"].as_array().unwrap().iter().find_map(|hit| {
        let name = hit["name"].as_str().unwrap();
        let detail = served.graph(&format!("/node?step={step}&rank=0&node={}", encoded(name)));
        let peers = detail["peers"].as_array().unwrap().clone();
        (!peers.is_empty()).then(|| {
            assert_eq!(detail["brief"]["hasPeers"], true);
            peers[0].clone()
        })
    });
    let peer = with_peers.unwrap();
    assert_ne!(peer["rank"], 0);
    let there = served.graph(&format!(
        "/node?step={step}&rank={}&node={}",
        peer["rank"],
        encoded(peer["node"].as_str().unwrap())
    ));
    assert!(there["peers"].as_array().unwrap().iter().any(|peer| peer["rank"] == 0));
}

#[test]
fn a_dump_becomes_a_graph_when_it_is_opened() {
    let place = Place::empty();
    write_dump(&place.path("run/step0/rank0"), &common::CALLS);
    write_dump(&place.path("alone"), &common::CALLS);
    let served = place.serve("");
    let catalogue = served.get("/api/catalogue");
    let items: Vec<&Value> = catalogue["items"].as_array().unwrap().iter().collect();
    assert_eq!(items.iter().map(|item| item["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["dump", "dump"]);
    for item in items {
        let id = item["id"].as_str().unwrap();
        let info = served.get(&format!("/api/graph/{id}"));
        assert_eq!((&info["kind"], &info["writable"]), (&json!("build"), &json!(false)));
        let root = served.get(&format!("/api/graph/{id}/children"));
        assert_eq!(names(&root["children"]), [NET, "Torch.loss.0.forward"]);
        assert_eq!(root["children"][0]["verdict"], Value::Null);
    }
    assert!(!place.path("run/step0/rank0").join("build.vis.db").exists());
    assert_eq!(fs::read_dir(place.path("run")).unwrap().count(), 1, "nothing is written beside a dump");
}

#[test]
fn answers_of_commands_are_listed_with_their_pages_and_tables() {
    let place = Place::empty();
    let answer = |command: &str, status: &str| {
        json!({"schema": 1, "command": command, "status": status, "headline": "h", "scope": {"step": 2, "rank": null, "against": null},
            "culprit": {"name": "Torch.x", "kind": "k", "direction": null, "facts": []}, "evidence": [{"record": "r", "measure": "max"}],
            "not_compared": [], "next_step": null, "files": ["out/compare_result.csv"]})
    };
    let write = |path: &str, value: &Value| {
        let path = place.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    };
    let parts = json!([{"step": 2, "rank": 0, "status": "identical", "culprit": null}, {"step": 2, "rank": 1, "status": "diverged", "culprit": "Torch.x"}]);
    write(
        "c/verdict.json",
        &json!({"status": "diverged", "dumps": parts, "answer": answer("compare", "diverged")}),
    );
    fs::write(place.path("c/compare_result.csv"), "a,b\n1,x\n,y\n").unwrap();
    fs::write(place.path("c/compare_result.html"), "<p>page</p>").unwrap();
    write(
        "g/verdict.json",
        &json!({"thresholds": {"first": 0.9, "floor": 0.5}, "answer": answer("grad compare", "diverged")}),
    );
    fs::create_dir_all(place.path("g/rank0")).unwrap();
    fs::write(place.path("g/rank0/similarities.csv"), "\u{feff}step,0,3\r\nw,1,0.25\r\nsummary,1,\r\n")
        .unwrap();
    let keys = json!([{"key": "loss", "state": "differs", "step": 1, "least_same_percentage": 50.0}]);
    write("k/summary.json", &json!({"keys": keys, "answer": answer("rl compare", "diverged")}));
    write(
        "o/overflow_report_1.json",
        &json!({"births": [{"rank": 0, "operation": "Torch.nan"}], "answer": answer("overflow_check", "anomaly")}),
    );
    write("x/verdict.json", &json!({"something": "else"}));
    let served = place.serve("");
    let catalogue = served.get("/api/catalogue");
    let kinds: Vec<&str> =
        catalogue["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["comparison", "overflow", "gradients", "keydata"], "{catalogue}");
    let comparison = &catalogue["items"][0];
    assert_eq!(comparison["cells"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&comparison["cells"][1]["tone"], &comparison["answer"]["culprit"]["name"]),
        (&json!("bad"), &json!("Torch.x"))
    );
    let page = served.get_reply(&format!("/report/{}", comparison["report"].as_str().unwrap()));
    assert_eq!((page.status, page.text().as_str()), (200, "<p>page</p>"));
    let tables = served.get(&format!("/api/item/{}/tables", served.id("comparison")));
    let named: Vec<&str> =
        tables["tables"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["evidence", "dumps", "compare_result.csv"]);
    assert_eq!(tables["tables"][2]["rows"], json!([[1.0, "x"], [null, "y"]]));
    let births = served.get(&format!("/api/item/{}/tables", served.id("overflow")));
    assert!(births["tables"].as_array().unwrap().iter().any(|table| table["name"] == "births"));
    let matrix = served.get(&format!("/api/gradients/{}", served.id("gradients")));
    assert_eq!((&matrix["rows"], &matrix["columns"]), (&json!(["w", "summary"]), &json!(["0", "3"])));
    let cells = matrix["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &cells[1]["number"], &cells[1]["tone"]), (3, &json!(0.25), &json!("bad")));
    let matrix = served.get(&format!("/api/keydata/{}", served.id("keydata")));
    assert_eq!(
        (&matrix["rows"], &matrix["columns"], &matrix["cells"][0]["tone"]),
        (&json!(["loss"]), &json!(["1"]), &json!("bad"))
    );
}
