//! Nodes judged by some of the statistics of their results: the choice comes with the question and is kept nowhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{NET, Place};
use msprobe_graph::names::Generation;
use serde_json::{Value, json};

const AT: &str = "step=1&rank=1";
const WRONG: &str = "Torch.b.0.forward";

/// Index and colour of the wrong call among the children of its module.
fn wrong(children: &Value) -> (Value, Value) {
    let nodes = children.as_array().unwrap();
    let node = nodes.iter().find(|node| node["name"] == WRONG).unwrap();
    (node["index"].clone(), node["tone"].clone())
}

#[test]
fn chosen_statistics_decide_on_index_and_colour() {
    for generation in [Generation::First, Generation::Third] {
        let place = Place::new(generation);
        let served = place.serve("out");
        let children = |stats: &str| {
            let answer = served.graph(&format!("/children?{AT}&node={NET}&stats={stats}"));
            wrong(&answer["children"])
        };
        // Largest value and norm are three times what they should be; the means are both 0.
        for stats in ["Max", "Norm", "Max,Mean", "Max,Min,Mean,Norm"] {
            assert_eq!(children(stats), (json!(1.0), json!("bad")), "{generation:?} {stats}");
        }
        assert_eq!(children("Mean"), (json!(0.0), json!("good")), "{generation:?}");
        let own = children("");
        assert_eq!(own.1, "bad", "{generation:?}: without a choice it is as the file says");
        // All other questions say the same.
        let node = served.graph(&format!("/node?{AT}&node={WRONG}&stats=Mean"));
        assert_eq!((&node["brief"]["index"], &node["brief"]["tone"]), (&json!(0.0), &json!("good")));
        let worst = |stats: &str| {
            let root = served.graph(&format!("/children?{AT}&stats={stats}"));
            let net = root["children"].as_array().unwrap().iter().find(|node| node["name"] == NET).unwrap();
            net["worst"]["tone"].clone()
        };
        assert_eq!(worst("Max"), "bad", "{generation:?}");
        assert_ne!(worst("Mean"), "bad", "{generation:?}");
        let errors =
            |stats: &str| served.graph(&format!("/findings?{AT}&kinds=error&stats={stats}"))["total"].clone();
        assert_eq!((errors("Max"), errors("Mean")), (json!(1), json!(0)), "{generation:?}");
        let hit = served.graph(&format!("/search?{AT}&side=target&q={WRONG}&stats=Mean"));
        assert_eq!(hit["hits"][0]["tone"], "good", "{generation:?}");
        let first = |stats: &str| {
            served.graph(&format!("/pairs?{AT}&sort=index&descending=1&stats={stats}"))["rows"][0]["index"]
                .clone()
        };
        assert_eq!((first("Max"), first("Mean")), (json!(1.0), json!(0.0)), "{generation:?}");
        let csv =
            served.get_reply(&format!("/api/graph/{}/pairs.csv?{AT}&stats=Mean", served.id("graph"))).text();
        let row = csv.lines().find(|line| line.contains(WRONG)).unwrap();
        assert!(row.contains(",good,0,"), "{row}");
        let opened = served.post(
            &format!("/api/graph/{}/open", served.id("graph")),
            &json!({"step": 1, "rank": 1, "side": "target", "nodes": [NET], "stats": "Mean"}),
        );
        assert_eq!(wrong(&opened["opened"][0]["children"]).1, "good", "{generation:?}");
        // Nothing of it is left behind.
        assert_eq!(children(""), own, "{generation:?}");
    }
}

#[test]
fn nodes_without_a_partner_stay_so_and_the_golden_side_has_no_index() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let inside = served.graph(&format!("/children?{AT}&node={NET}&stats=Max"));
    let only = &inside["children"][1];
    assert_eq!((&only["tone"], &only["index"]), (&json!("unknown"), &Value::Null));
    let golden = served.graph(&format!("/children?{AT}&side=golden&node={NET}&stats=Max"));
    assert!(golden["children"].as_array().unwrap().iter().all(|node| node["index"].is_null()));
}

#[test]
fn a_pair_made_by_hand_is_judged_by_them_too() {
    let place = Place::new(Generation::Third);
    let served = place.serve("out");
    let id = served.id("graph");
    let pair =
        json!({"step": 1, "rank": 1, "target": "Torch.only.0.forward", "golden": "Torch.only.7.forward"});
    served.post(&format!("/api/graph/{id}/match"), &pair);
    let inside = served.graph(&format!("/children?{AT}&node={NET}&stats=Max"));
    let only = &inside["children"][1];
    assert_eq!((&only["index"], &only["tone"]), (&json!(0.0), &json!("good")));
    let found = served.graph(&format!("/findings?{AT}&kinds=unmatched&stats=Max"));
    assert_eq!(found["total"], 0);
}

#[test]
fn what_cannot_be_chosen_is_refused() {
    let place = Place::new(Generation::Third);
    let served = place.serve("");
    let id = served.id("graph");
    for stats in ["max", "Max,,Min", "Cosine"] {
        let reply = served.get_reply(&format!("/api/graph/{id}/children?{AT}&stats={stats}"));
        assert_eq!(reply.status, 400, "{stats}");
    }
    let dump = served.id("dump");
    let reply = loop {
        let reply = served.get_reply(&format!("/api/graph/{dump}/children?stats=Max"));
        if reply.status != 503 {
            break reply;
        }
    };
    assert_eq!(reply.status, 409, "one side has no errors");
}
