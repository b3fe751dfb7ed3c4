//! A tree of a page: nodes to open and close.
//!
//! Nodes are a list in which each names its parent, so that depth costs nothing, however deep the data is.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::escaped;
use crate::Tone;

/// The text is for people: more lines than this nobody reads, or prints.
const MOST_LINES: usize = 200;
/// Deeper nodes are not set further to the right.
const DEEPEST_INDENT: usize = 20;

/// Nodes under nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Shown on its tab.
    pub title: String,
    /// One line above it.
    pub note: String,
    /// Parents stand before their children, and children in the order in which they are shown.
    pub nodes: Vec<Node>,
}

/// A node of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The number of its parent. A node whose parent does not stand before it is a root.
    pub parent: Option<usize>,
    /// Its colour.
    pub tone: Tone,
    /// What it is called.
    pub label: String,
    /// A few words beside it.
    pub note: String,
    /// More about it, in as many lines as needed; shown when it is open.
    pub detail: String,
}

impl Tree {
    fn parent(&self, number: usize) -> Option<usize> {
        self.nodes.get(number)?.parent.filter(|&parent| parent < number)
    }

    /// `nodes` are `[parent or -1,tone,label,note,detail]`.
    pub(super) fn described(&self) -> Value {
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(number, node)| {
                let parent = self.parent(number).map_or(json!(-1), |parent| json!(parent));
                json!([parent, node.tone.as_str(), node.label, node.note, node.detail])
            })
            .collect();
        json!({ "name": self.title, "note": self.note, "count": nodes.len(), "nodes": nodes })
    }

    /// The first nodes as lines, each below its parent.
    pub(super) fn text(&self) -> String {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut waiting = Vec::new();
        for number in (0..self.nodes.len()).rev() {
            match self.parent(number) {
                Some(parent) => children[parent].push(number),
                None => waiting.push((number, 0)),
            }
        }
        let mut text = format!(
            "<section class=\"in-words\">\n<h2>{}</h2>\n<ul class=\"nodes\">\n",
            escaped(&self.title)
        );
        let mut lines = 0;
        while let Some((number, depth)) = waiting.pop() {
            if lines == MOST_LINES {
                break;
            }
            lines += 1;
            let node = &self.nodes[number];
            let indent = "– ".repeat(depth.min(DEEPEST_INDENT));
            let _ = write!(text, "<li>{indent}<b>{}</b>", escaped(&node.label));
            if !node.note.trim().is_empty() {
                let _ = write!(text, " {}", escaped(&node.note));
            }
            text.push_str("</li>\n");
            waiting.extend(children[number].iter().map(|&child| (child, depth + 1)));
        }
        text.push_str("</ul>\n");
        if self.nodes.len() > lines {
            let _ = writeln!(text, "<p>and {} more</p>", self.nodes.len() - lines);
        }
        text.push_str("</section>\n");
        text
    }
}
