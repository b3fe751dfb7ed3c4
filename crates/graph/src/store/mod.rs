//! Graphs as files: `.vis` for the viewer of the first generation, `.vis.db` for that of the third.

pub mod db;
mod legend;
pub mod vis;

use msprobe_dump::write::JsonText;

use crate::hierarchy::{Hierarchy, NodeIndex};

/// Writes the names of nodes as a list.
fn write_names(json: &mut JsonText, hierarchy: &Hierarchy, nodes: &[NodeIndex]) {
    json.begin_array();
    for &node in nodes {
        json.string(&hierarchy.node(node).name);
    }
    json.end_array();
}

/// Writes the way to a partner on the other side, from its root on; nothing for a node without one.
fn write_link(json: &mut JsonText, other: Option<(&Hierarchy, Option<NodeIndex>)>) {
    match other {
        Some((hierarchy, Some(partner))) => write_names(json, hierarchy, &hierarchy.path(partner)),
        _ => {
            json.begin_array();
            json.end_array();
        }
    }
}
