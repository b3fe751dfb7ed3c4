//! Layers that are on several ranks, put one behind the other: stages, chunks of stages, experts.

use msprobe_dump::hash::FastMap;

use super::classes::Classes;
use super::members::{Member, renamed, with_rank};
use crate::graph::NodeReader;
use crate::hierarchy::{Hierarchy, NodeIndex};
use crate::names::{NodeKind, split_call};
use crate::values::NodeValue;

/// Where the number of a layer stands in a name: `Module.decoder.layers.`, `3`, `.Layer.forward.0`.
fn layer_number<'n>(name: &'n str, words: &[String]) -> Option<(&'n str, u64, &'n str)> {
    for word in words {
        let marker = format!(".{word}.");
        let Some(at) = name.find(&marker) else { continue };
        let from = at + marker.len();
        let digits = name[from..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && name[from + digits..].starts_with('.') {
            let number = name[from..from + digits].parse().ok()?;
            return Some((&name[..from], number, &name[from + digits..]));
        }
    }
    None
}

/// The top nodes of layers in a parent: `layers.3.Layer.forward.0`, not what is in them.
fn layers_of(hierarchy: &Hierarchy, parent: NodeIndex, words: &[String]) -> Vec<(NodeIndex, String, u64)> {
    let layer = |&child: &NodeIndex| {
        let node = hierarchy.node(child);
        if node.kind != NodeKind::Module {
            return None;
        }
        let (before, number, _) = layer_number(&node.name, words)?;
        Some((child, before.to_owned(), number))
    };
    hierarchy.node(parent).children.iter().filter_map(layer).collect()
}

fn is_backward(name: &str) -> bool {
    split_call(name, "backward").is_some() || name.ends_with(".parameters_grad")
}

/// Puts the layers of later stages behind those of the first, in backward before them; what later stages alone have is added,
/// and what goes through all of them comes out of the last.
pub(super) fn merge_stages(members: &mut [Member], classes: &Classes) {
    let [main, others @ ..] = members else { return };
    let mut reader = NodeReader::default();
    let mut offsets: FastMap<String, u64> = FastMap::default();
    count_layers(main, classes, &mut offsets);
    for stage in others.iter() {
        let known = offsets.clone();
        merge_stage(main, stage, &known, classes, &mut reader);
        count_layers_of(stage, classes, &known, &mut offsets);
    }
    take_ends(main, others, classes, &mut reader);
}

/// How many layers there are behind each beginning of a name.
fn count_layers(member: &Member, classes: &Classes, counts: &mut FastMap<String, u64>) {
    for node in &member.graph.hierarchy.nodes {
        if let Some((before, number, _)) = layer_number(&node.name, &classes.layers) {
            let count = counts.entry(before.to_owned()).or_default();
            *count = (*count).max(number.saturating_add(1));
        }
    }
}

fn count_layers_of(
    stage: &Member,
    classes: &Classes,
    known: &FastMap<String, u64>,
    counts: &mut FastMap<String, u64>,
) {
    let mut own = FastMap::default();
    count_layers(stage, classes, &mut own);
    for (before, count) in own {
        let offset = known.get(&before).copied().unwrap_or(0);
        counts.insert(before, offset.saturating_add(count));
    }
}

fn merge_stage(
    main: &mut Member,
    stage: &Member,
    offsets: &FastMap<String, u64>,
    classes: &Classes,
    reader: &mut NodeReader,
) {
    let rank = stage.rank;
    let rename = |name: &str, kind: NodeKind| {
        if kind != NodeKind::Module {
            return with_rank(name, rank);
        }
        match layer_number(name, &classes.layers) {
            Some((before, number, behind)) => {
                let offset = offsets.get(before).copied().unwrap_or(0);
                format!("{before}{}{behind}", number.saturating_add(offset))
            }
            None => name.to_owned(),
        }
    };
    let mut open = vec![Hierarchy::ROOT];
    while let Some(node) = open.pop() {
        let Some(parent) = main.graph.hierarchy.find(&stage.graph.hierarchy.node(node).name) else {
            continue;
        };
        let before = main.graph.hierarchy.node(parent).children.len();
        let is_back = is_backward(&stage.graph.hierarchy.node(node).name);
        let mut added: Vec<NodeIndex> = Vec::new();
        for child in stage.graph.hierarchy.node(node).children.clone() {
            let name = stage.graph.hierarchy.node(child).name.clone();
            let kind = stage.graph.hierarchy.node(child).kind;
            let is_layer = kind == NodeKind::Module && layer_number(&name, &classes.layers).is_some();
            let is_known = main.graph.hierarchy.find(&name).is_some();
            if kind == NodeKind::Module && is_known && !is_layer {
                open.push(child);
            } else if is_layer || kind == NodeKind::Module && !is_known {
                added.push(main.copy(stage, child, parent, &rename, reader));
            }
        }
        if added.is_empty() {
            continue;
        }
        put_in_order(&mut main.graph.hierarchy, parent, before, is_back, &classes.layers);
    }
}

/// Puts children that were added behind the first so many where they belong among those.
fn put_in_order(
    hierarchy: &mut Hierarchy,
    parent: NodeIndex,
    before: usize,
    is_backward: bool,
    words: &[String],
) {
    let children = &mut hierarchy.node_mut(parent).children;
    let added = children.split_off(before.min(children.len()));
    let place = place_of_layers(hierarchy, parent, is_backward, words, &added);
    let children = &mut hierarchy.node_mut(parent).children;
    let at = place.unwrap_or(children.len()).min(children.len());
    children.splice(at..at, added);
}

/// Where the layers of a later stage go: behind those that are there, in backward before them. Likewise experts.
fn place_of_layers(
    hierarchy: &Hierarchy,
    parent: NodeIndex,
    is_backward: bool,
    words: &[String],
    copied: &[NodeIndex],
) -> Option<usize> {
    let is_layer = |child: &NodeIndex| layer_number(&hierarchy.node(*child).name, words).is_some();
    if !copied.iter().any(is_layer) {
        return is_backward.then_some(0);
    }
    let children = &hierarchy.node(parent).children;
    let backward = copied.first().is_some_and(|first| self::is_backward(&hierarchy.node(*first).name));
    if is_backward || backward {
        let is_same = |child: &NodeIndex| is_layer(child) && self::is_backward(&hierarchy.node(*child).name);
        children.iter().position(is_same)
    } else {
        let is_same = |child: &NodeIndex| is_layer(child) && !self::is_backward(&hierarchy.node(*child).name);
        children.iter().rposition(is_same).map(|at| at + 1)
    }
}

/// Modules that all stages have take what goes out of the last one; in backward, what comes into it. Layers and experts are others
/// on each stage, whatever they are called there.
fn take_ends(main: &mut Member, others: &[Member], classes: &Classes, reader: &mut NodeReader) {
    let Some(last) = others.last() else { return };
    let is_own = |name: &str| {
        name.contains(".parameters_grad")
            || layer_number(name, &classes.layers).is_some()
            || layer_number(name, &classes.experts).is_some()
    };
    for node in main.graph.hierarchy.pre_order(Hierarchy::ROOT) {
        let found = main.graph.hierarchy.node(node);
        let (name, kind) = (found.name.clone(), found.kind);
        if kind != NodeKind::Module || node == Hierarchy::ROOT || is_own(&name) {
            continue;
        }
        let Some(there) = last.graph.hierarchy.find(&name) else { continue };
        if others.iter().all(|other| other.graph.hierarchy.find(&name).is_some()) {
            let sentences = last.graph.merge_info.get(&there).cloned().unwrap_or_default();
            let end = End {
                values: &last.values(there, reader),
                sentences,
                from: &format!("rank {}, the last stage", last.rank),
            };
            take_end(main, node, end, reader);
        }
    }
}

/// What goes out of the last of several modules that are one, or in backward comes into it.
struct End<'e> {
    values: &'e [NodeValue],
    sentences: Vec<String>,
    /// What is said of it where it is not as expected.
    from: &'e str,
}

/// Gives a module the results of the last of those it stands for; in backward, the inputs.
fn take_end(main: &mut Member, node: NodeIndex, end: End<'_>, reader: &mut NodeReader) {
    let name = main.graph.hierarchy.node(node).name.clone();
    let takes_outputs = split_call(&name, "forward").is_some();
    let own = main.values(node, reader);
    if !differ(&own, end.values, takes_outputs) {
        return;
    }
    let is_taken = |value: &&NodeValue| value.is_output() == takes_outputs;
    let kept = own.iter().filter(|value| !is_taken(value));
    let values: Vec<NodeValue> = kept.chain(end.values.iter().filter(is_taken)).cloned().collect();
    let is_chained = differ(&own, end.values, !takes_outputs);
    main.set_values(node, values);
    // What was merged of each side is said of the side that has it now.
    let what = if takes_outputs { "output" } else { "input" };
    let (of_taken, is_that_of) = (format!(" for {what}"), format!("The {what} of this data is that of "));
    let is_about = |sentence: &String| sentence.contains(&of_taken);
    let mut sentences = main.graph.merge_info.remove(&node).unwrap_or_default();
    if sentences.is_empty() {
        sentences.extend(end.sentences.first().filter(|_| end.sentences.iter().any(is_about)).cloned());
    } else {
        sentences.retain(|sentence| !is_about(sentence) && !sentence.starts_with(&is_that_of));
    }
    sentences.extend(end.sentences.into_iter().filter(is_about));
    if is_chained {
        sentences.push(format!("{is_that_of}{}.", end.from));
    }
    // A first sentence alone says nothing.
    if sentences.len() > 1 || is_chained {
        main.graph.merge_info.insert(node, sentences);
    }
}

fn differ(one: &[NodeValue], two: &[NodeValue], outputs: bool) -> bool {
    let of = |values: &[NodeValue]| -> Vec<_> {
        let wanted = values.iter().filter(|value| value.is_output() == outputs);
        wanted.map(|value| (value.leaf.place.clone(), format!("{:?}", value.leaf.statistics))).collect()
    };
    let two = of(two);
    !two.is_empty() && of(one) != two
}

/// The number of a chunk, and what stands in its name for the first one: `1` and `Module.0.GPT.forward.0` of
/// `Module.1.GPT.forward.0`.
fn in_first_chunk(name: &str) -> Option<(u64, String)> {
    let (kind, rest) = name.split_once('.').filter(|(kind, _)| matches!(*kind, "Module" | "Cell"))?;
    let (number, rest) = rest.split_once('.')?;
    Some((number.parse().ok()?, format!("{kind}.0.{rest}")))
}

/// Puts chunks, `Module.1.…`, behind the first one, whose stages are together already: chunk by chunk and stage by stage is the
/// order in which layers follow each other.
pub(super) fn fold_chunks(member: &mut Member, classes: &Classes) {
    let mut reader = NodeReader::default();
    let mut offsets: FastMap<(String, u64), u64> = FastMap::default();
    let hierarchy = &member.graph.hierarchy;
    let chunk = |&top: &NodeIndex| {
        in_first_chunk(&hierarchy.node(top).name).map(|(number, home)| (number, top, home))
    };
    let mut chunks: Vec<(u64, NodeIndex, String)> = hierarchy
        .node(Hierarchy::ROOT)
        .children
        .iter()
        .filter_map(chunk)
        .filter(|(number, ..)| *number > 0)
        .collect();
    // In backward the last one comes first.
    chunks.sort_by_key(|(number, ..)| *number);
    for (number, top, home) in chunks {
        let name = member.graph.hierarchy.node(top).name.clone();
        let Some(first) = member.graph.hierarchy.find(&home) else { continue };
        let mut open = vec![(top, first)];
        while let Some((node, home)) = open.pop() {
            take_end_of_chunk(member, home, (node, number), &mut reader);
            let layers = layers_of(&member.graph.hierarchy, home, &classes.layers);
            let own = layers.iter().map(|(_, _, number)| number.saturating_add(1)).max();
            let before = layers.first().map(|(_, before, _)| before.clone());
            let offset =
                before.map_or(0, |before| *offsets.entry((before, number)).or_insert(own.unwrap_or(0)));
            let mut moved = Vec::new();
            for child in member.graph.hierarchy.node(node).children.clone() {
                let child_node = member.graph.hierarchy.node(child);
                let Some((_, there)) = in_first_chunk(&child_node.name) else { continue };
                let is_layer = layer_number(&child_node.name, &classes.layers).is_some();
                match member.graph.hierarchy.find(&there).filter(|_| !is_layer) {
                    Some(there) => open.push((child, there)),
                    None => moved.push(child),
                }
            }
            move_into(member, &moved, home, !is_backward(&name), classes);
            let below = |child| member.graph.hierarchy.pre_order(child);
            let renamed: Vec<NodeIndex> = moved.into_iter().flat_map(below).collect();
            for index in renamed {
                let renamed =
                    renamed_in_first_chunk(&member.graph.hierarchy.node(index).name, offset, classes);
                if let Some(name) = renamed {
                    member.rename(index, &name, &mut reader);
                }
            }
        }
        member.graph.hierarchy.detach(top);
    }
}

/// What a module of a later chunk is called in the first one, where so many layers come before it.
fn renamed_in_first_chunk(name: &str, offset: u64, classes: &Classes) -> Option<String> {
    let (_, name) = in_first_chunk(name)?;
    Some(match layer_number(&name, &classes.layers) {
        Some((before, number, behind)) => format!("{before}{}{behind}", number.saturating_add(offset)),
        None => name,
    })
}

/// Puts nodes behind the layers of their new parent and all that follows those; in backward, before everything there.
fn move_into(member: &mut Member, moved: &[NodeIndex], home: NodeIndex, is_forward: bool, classes: &Classes) {
    let hierarchy = &mut member.graph.hierarchy;
    for &node in moved {
        hierarchy.detach(node);
        hierarchy.attach(node, home);
    }
    let before = hierarchy.node(home).children.len().saturating_sub(moved.len());
    put_in_order(hierarchy, home, before, !is_forward, &classes.layers);
}

/// The module of the first chunk takes what goes out of that of this one; in backward, what comes into it.
fn take_end_of_chunk(
    member: &mut Member,
    first: NodeIndex,
    (chunk, number): (NodeIndex, u64),
    reader: &mut NodeReader,
) {
    let names = [chunk, first].map(|node| member.graph.hierarchy.node(node).name.clone());
    let values = renamed(&member.values(chunk, reader), &names[0], &names[1]);
    let sentences = member.graph.merge_info.get(&chunk).cloned().unwrap_or_default();
    let end = End { values: &values, sentences, from: &format!("chunk {number}, the last one") };
    take_end(member, first, end, reader);
}

/// Puts the experts of all ranks into the first one, numbered on; what experts share is the same on all.
pub(super) fn merge_experts(members: &mut [Member], classes: &Classes) {
    let [main, others @ ..] = members else { return };
    let mut reader = NodeReader::default();
    let mut counts: FastMap<String, u64> = FastMap::default();
    let count = |member: &Member, counts: &mut FastMap<String, u64>, offsets: &FastMap<String, u64>| {
        for node in &member.graph.hierarchy.nodes {
            if let Some((before, number, _)) = layer_number(&node.name, &classes.experts) {
                let next = offsets.get(before).copied().unwrap_or(0).saturating_add(number).saturating_add(1);
                let known = counts.entry(before.to_owned()).or_default();
                *known = (*known).max(next);
            }
        }
    };
    count(main, &mut counts, &FastMap::default());
    for other in others.iter() {
        let offsets = counts.clone();
        let rank = other.rank;
        let rename = |name: &str, kind: NodeKind| match layer_number(name, &classes.experts) {
            Some((before, number, behind)) if kind == NodeKind::Module => {
                let offset = offsets.get(before).copied().unwrap_or(0);
                format!("{before}{}{behind}", number.saturating_add(offset))
            }
            _ => with_rank(name, rank),
        };
        let mut open = vec![Hierarchy::ROOT];
        while let Some(node) = open.pop() {
            let Some(parent) = main.graph.hierarchy.find(&other.graph.hierarchy.node(node).name) else {
                continue;
            };
            let before = main.graph.hierarchy.node(parent).children.len();
            for child in other.graph.hierarchy.node(node).children.clone() {
                let there = other.graph.hierarchy.node(child);
                if there.kind != NodeKind::Module {
                    continue;
                }
                if layer_number(&there.name, &classes.experts).is_some() {
                    let copy = main.copy(other, child, parent, &rename, &mut reader);
                    main.say(copy, [format!("This expert is that of rank {rank}.")]);
                } else {
                    open.push(child);
                }
            }
            let is_back = is_backward(&main.graph.hierarchy.node(parent).name);
            put_in_order(&mut main.graph.hierarchy, parent, before, is_back, &classes.experts);
        }
        count(other, &mut counts, &offsets);
    }
}
