//! `.vis`: one JSON document for a rank.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use msprobe_dump::hash::FastMap;
use msprobe_dump::write::JsonText;

use super::legend::{tool_tip, write_colours};
use super::{write_link, write_names};
use crate::compare::{Index, Task};
use crate::graph::Graph;
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::matching::Links;
use crate::names::{Generation, ROOT};
use crate::values::{BATCH_P2P, SharedValues, Showing};
use crate::walk::{Shown, Walk};

/// A text is given away when it is longer than this.
const FLUSH_BYTES: usize = 1 << 18;

/// Memory of the text of a node is used again up to this.
const KEPT_BYTES: usize = 1 << 16;

/// Links of communication by node, as JSON.
pub type NodeLinks = FastMap<NodeIndex, String>;

/// What goes into a file.
pub struct VisFile<'g> {
    /// The target, or the only graph.
    pub target: Walk<'g>,
    /// Its links with other ranks.
    pub target_links: &'g NodeLinks,
    /// The golden graph, what is compared, partners, and the links of the golden graph.
    pub golden: Option<(&'g Graph, Task, &'g Links, &'g NodeLinks)>,
}

impl VisFile<'_> {
    /// Writes it. `note` hears of each node of the target.
    pub fn write(&self, out: &mut dyn Write, mut note: impl FnMut(&Shown)) -> io::Result<()> {
        let mut json = JsonText::indented(4);
        json.begin_object();
        match self.golden {
            None => {
                let side =
                    Side { walk: self.target, links: self.target_links, other: None, checksums: false };
                side.write_members(&mut json, out, &mut note)?;
            }
            Some((golden, task, links, golden_links)) => {
                let checksums = task.has_checksums();
                let other = Some((&golden.hierarchy, links.to_golden.as_slice()));
                let target = Side { walk: self.target, links: self.target_links, other, checksums };
                let walk = Walk { graph: golden, against: None, overflow_check: self.target.overflow_check };
                let other = Some((&self.target.graph.hierarchy, links.to_target.as_slice()));
                let golden = Side { walk, links: golden_links, other, checksums };
                json.key("NPU");
                json.begin_object();
                target.write_members(&mut json, out, &mut note)?;
                json.end_object();
                json.key("Bench");
                json.begin_object();
                golden.write_members(&mut json, out, &mut |_| {})?;
                json.end_object();
                json.key("ToolTip");
                json.string(&tool_tip(task));
                json.key("Colors");
                write_colours(&mut json, task, Generation::First);
            }
        }
        json.key("MicroSteps");
        json.int(self.target.graph.hierarchy.micro_steps.into());
        if let Some((_, task, ..)) = self.golden {
            json.key("task");
            json.string(task.as_str());
        }
        json.key("OverflowCheck");
        json.bool(self.target.overflow_check);
        json.end_object();
        json.flush_to(out)?;
        out.flush()
    }
}

struct Side<'s, 'g> {
    walk: Walk<'g>,
    links: &'s NodeLinks,
    other: Option<(&'s Hierarchy, &'s [Option<NodeIndex>])>,
    checksums: bool,
}

impl Side<'_, '_> {
    fn write_members(
        &self,
        json: &mut JsonText,
        out: &mut dyn Write,
        note: &mut dyn FnMut(&Shown),
    ) -> io::Result<()> {
        json.key("root");
        json.string(ROOT);
        json.key("dump_data_dir");
        match &self.walk.graph.files.header.dump_data_dir {
            Some(text) => write_as_it_is(json, text),
            None => json.string(""),
        }
        json.key("node");
        json.begin_object();
        let order: Vec<NodeIndex> = (0..self.walk.graph.hierarchy.nodes.len() as NodeIndex).collect();
        // What stands around all nodes, for those who write one by itself.
        let around = json.for_members(true, String::new());
        // Memory of texts that are written, for those to come.
        let spare: Mutex<Vec<String>> = Mutex::default();
        let rooms = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        let text_of = |shown: &Shown| {
            let room = rooms().pop().unwrap_or_default();
            // The first one is the root, whose text has no comma before it.
            let mut text = around.for_members(shown.index == Hierarchy::ROOT, room);
            self.write_node(&mut text, shown);
            text.finish()
        };
        let is_collection = |shown: &Shown| self.walk.graph.hierarchy.node(shown.index).kind.is_collection();
        self.walk.each(
            &order,
            |shown| {
                // How bad it is comes of others, and is known when they are written.
                let text = if is_collection(shown) { None } else { Some(text_of(shown)) };
                if text.is_some() {
                    (shown.values, shown.result.extras) = (SharedValues::default(), Vec::new());
                }
                text
            },
            |shown, text| {
                note(&shown);
                let text = text.unwrap_or_else(|| text_of(&shown));
                json.add_members(&text);
                if text.capacity() <= KEPT_BYTES {
                    rooms().push(text);
                }
                if json.len() > FLUSH_BYTES { json.flush_to(out) } else { Ok(()) }
            },
        )?;
        json.end_object();
        Ok(())
    }

    fn write_node(&self, json: &mut JsonText, shown: &Shown) {
        let hierarchy = &self.walk.graph.hierarchy;
        let node = hierarchy.node(shown.index);
        let showing = Showing {
            generation: Generation::First,
            checksums: self.checksums,
            is_batch_p2p: node.name.contains(BATCH_P2P),
        };
        json.key(&node.name);
        json.begin_object();
        json.key("id");
        json.string(&node.name);
        json.key("node_type");
        json.int(node.kind.number().into());
        json.key("output_data");
        showing.write(json, &shown.values, &shown.result.extras, true);
        json.key("input_data");
        showing.write(json, &shown.values, &shown.result.extras, false);
        json.key("upnode");
        json.string(node.parent.map_or("None", |parent| &hierarchy.node(parent).name));
        json.key("subnodes");
        write_names(json, hierarchy, &node.children);
        json.key("matched_node_link");
        write_link(json, self.other.map(|(hierarchy, links)| (hierarchy, links[shown.index as usize])));
        json.key("suggestions");
        json.begin_object();
        if let Some(orphan) = node.orphan {
            json.key("orphan");
            json.string(orphan.as_str());
        }
        json.end_object();
        json.key("stack_info");
        json.begin_array();
        node.stack.lines().for_each(|line| json.string(line));
        json.end_array();
        if let Some(step) = node.micro_step {
            json.key("micro_step_id");
            json.int(step.into());
        }
        json.key("data");
        json.begin_object();
        if let Some(index) = shown.result.index {
            json.key("precision_index");
            match index {
                Index::Whole(number) => json.int(number.into()),
                Index::Share(number) => json.float(number),
            }
        }
        if let Some(agree) = shown.result.checksums_agree {
            json.key("Result");
            json.string(if agree { "pass" } else { "Different" });
        }
        if let Some(level) = shown.overflow {
            json.key("overflow_level");
            json.string(level.as_str());
        }
        json.end_object();
        if let Some(links) = self.links.get(&shown.index) {
            json.key("matched_distributed");
            json.raw(links);
        }
        json.end_object();
    }
}

/// A member of the dump, as it was written there.
fn write_as_it_is(json: &mut JsonText, text: &str) {
    use msprobe_dump::read::Json;
    match Json::parse(text.as_bytes()) {
        Ok(Json::Text(text)) => json.string(&text),
        Ok(Json::Null) | Err(_) => json.null(),
        Ok(_) => json.raw(text),
    }
}
