//! Trees in the file.

use serde_json::json;

use super::super::*;
use super::{NASTY, described, page_of, scripts};
use crate::Tone;

fn node(parent: Option<usize>, label: &str) -> Node {
    Node { parent, tone: Tone::Bad, label: label.into(), note: "note".into(), detail: String::new() }
}

fn page(nodes: Vec<Node>) -> String {
    let tree = Tree { title: "Spread".into(), note: "one line".into(), nodes };
    page_of("Tree", vec![Block::Tree(tree)])
}

#[test]
fn nodes_name_their_parents() {
    // A parent that comes later, or is nobody, would make a loop or a hole: such a node is a root.
    let html = page(vec![
        node(None, "root"),
        node(Some(0), "child"),
        node(Some(1), "grandchild"),
        node(Some(9), "of nobody"),
        node(Some(4), "of itself"),
    ]);
    let parents: Vec<i64> = described(&html, "tree")[0]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node[0].as_i64().unwrap())
        .collect();
    assert_eq!(parents, [-1, 0, 1, -1, -1]);
    assert_eq!(described(&html, "tree")[0]["nodes"][1], json!([0, "bad", "child", "note", ""]));
}

#[test]
fn it_can_be_read_without_scripts() {
    let html = page(vec![node(None, "a"), node(None, "b"), node(Some(0), "a1"), node(Some(2), "a2")]);
    let list = html.split_once("<ul class=\"nodes\">\n").unwrap().1.split_once("</ul>").unwrap().0;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(
        lines,
        [
            "<li><b>a</b> note</li>",
            "<li>– <b>a1</b> note</li>",
            "<li>– – <b>a2</b> note</li>",
            "<li><b>b</b> note</li>"
        ]
    );
}

#[test]
fn deep_and_wide_trees_are_written() {
    let deep = (0..100_000_usize).map(|number| node(number.checked_sub(1), "x")).collect();
    let html = page(deep);
    assert!(html.contains("<p>and 99800 more</p>"));
    let wide = (0..1000).map(|number| node((number > 0).then_some(0), "x")).collect();
    assert!(page(wide).contains("<p>and 800 more</p>"));
}

#[test]
fn words_cannot_become_markup() {
    let nasty = Node { note: NASTY.into(), detail: NASTY.into(), ..node(None, NASTY) };
    let html = page(vec![nasty]);
    for content in scripts(&html, "application/json") {
        assert!(!content.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{content}");
    }
    assert!(!html.contains("alert(1)</script>") && !html.contains("<!--"));
    assert_eq!(described(&html, "tree")[0]["nodes"][0][4], NASTY);
}
