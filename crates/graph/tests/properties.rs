//! What holds for every hierarchy, however odd its files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use msprobe_graph::graph::Graph;
use msprobe_graph::hierarchy::{Form, Hierarchy};
use msprobe_graph::matching::{Matching, match_nodes};
use msprobe_graph::names::Generation;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that collide often: parents that are no calls, circles, functions at the top, calls in both directions.
fn name() -> impl Strategy<Value = String> {
    let module = (0..6_u8, 0..3_u8, prop::bool::ANY).prop_map(|(path, number, back)| {
        let direction = if back { "backward" } else { "forward" };
        format!("Module.m{path}.Block.{direction}.{number}")
    });
    let api = (0..4_u8, 0..4_u8, prop::bool::ANY).prop_map(|(function, number, back)| {
        let direction = if back { "backward" } else { "forward" };
        format!("Torch.f{function}.{number}.{direction}")
    });
    prop_oneof![4 => module, 4 => api, 1 => Just("DefaultModel".to_owned()), 1 => Just("odd".to_owned())]
}

fn construct() -> impl Strategy<Value = Vec<(String, Option<String>)>> {
    prop::collection::vec((name(), prop::option::of(name())), 1..60)
}

fn write(dir: &Path, entries: &[(String, Option<String>)]) {
    let mut construct = Map::new();
    let mut data = Map::new();
    for (child, parent) in entries {
        construct.insert(child.clone(), json!(parent));
        let output = json!([{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0,
            "Mean": 0.5, "Norm": 1.0}]);
        data.insert(child.clone(), json!({"input_args": [], "input_kwargs": {}, "output": output}));
        if let Some(module) = child.split(".backward.").next().filter(|stem| stem.starts_with("Module")) {
            data.insert(format!("{module}.parameters_grad"), json!({"weight": []}));
        }
    }
    let files = [
        ("construct.json", Value::Object(construct)),
        ("stack.json", json!({})),
        ("dump.json", json!({"task": "statistics", "level": "mix", "framework": "pytorch", "data": data})),
    ];
    for (name, value) in files {
        fs::write(dir.join(name), value.to_string()).unwrap();
    }
}

fn build(entries: &[(String, Option<String>)], generation: Generation) -> (tempfile::TempDir, Graph) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), entries);
    let graph = Graph::read(dir.path(), None, Form { generation, complete_stacks: true }).unwrap();
    (dir, graph)
}

fn check(hierarchy: &Hierarchy) -> Result<(), TestCaseError> {
    let orders = [hierarchy.pre_order(Hierarchy::ROOT), hierarchy.post_order(), hierarchy.level_order()];
    for order in &orders {
        // Every node once.
        prop_assert_eq!(order.len(), hierarchy.nodes.len());
        prop_assert_eq!(order.iter().collect::<HashSet<_>>().len(), hierarchy.nodes.len());
    }
    let mut place = vec![0; hierarchy.nodes.len()];
    for (at, &node) in orders[1].iter().enumerate() {
        place[node as usize] = at;
    }
    prop_assert_eq!(orders[1].last(), Some(&Hierarchy::ROOT));
    for (index, node) in hierarchy.nodes.iter().enumerate() {
        prop_assert_eq!(hierarchy.find(&node.name), Some(index as u32));
        prop_assert_eq!(node.parent.is_none(), index == 0);
        for &child in &node.children {
            // Both sides of a link agree, and children come before their parent.
            prop_assert_eq!(hierarchy.node(child).parent, Some(index as u32));
            prop_assert!(place[child as usize] < place[index]);
        }
        let path = hierarchy.path(index as u32);
        prop_assert_eq!((path[0], path[path.len() - 1]), (Hierarchy::ROOT, index as u32));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_node_hangs_below_the_root_once(entries in construct()) {
        for generation in [Generation::First, Generation::Third] {
            let (_dir, graph) = build(&entries, generation);
            check(&graph.hierarchy)?;
            for (name, _) in &entries {
                prop_assert!(graph.hierarchy.find(name).is_some(), "{} is lost", name);
            }
        }
    }

    #[test]
    fn links_are_symmetric(one in construct(), two in construct()) {
        for (generation, matching) in [
            (Generation::First, Matching::Exact),
            (Generation::First, Matching::Fuzzy),
            (Generation::Third, Matching::Exact),
            (Generation::Third, Matching::Fuzzy),
        ] {
            let (_one, target) = build(&one, generation);
            let (_two, golden) = build(&two, generation);
            let links = match_nodes(&target, &golden, &matching, generation, None);
            for (index, partner) in links.to_golden.iter().enumerate() {
                if let Some(partner) = partner {
                    prop_assert_eq!(links.to_target[*partner as usize], Some(index as u32));
                }
            }
            let count = |links: &[Option<u32>]| links.iter().filter(|link| link.is_some()).count();
            prop_assert_eq!(count(&links.to_golden), count(&links.to_target));
            // The root always has its partner.
            prop_assert_eq!(links.to_golden[0], Some(0));
        }
    }

    #[test]
    fn a_dump_matches_itself(entries in construct()) {
        let (_dir, graph) = build(&entries, Generation::First);
        let links = match_nodes(&graph, &graph, &Matching::Exact, Generation::First, None);
        prop_assert!(links.to_golden.iter().enumerate().all(|(at, link)| *link == Some(at as u32)));
    }
}
