//! Where in the model each record of a dump belongs, in words that both frameworks share.

use std::collections::HashMap;

use msprobe_dump::read::Members;

use msprobe_compare::side::{Construct, Framework, Side, Stacks, read_construct};
use msprobe_dump::names::segments;
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;

use crate::names::{LayerKind, LayerName, forward_name, scope_of_parent};

/// The class of the root of the model, and the scope of what belongs to no layer.
pub(super) const TOP_LAYER: &str = "TopLayer";

/// Files of the frameworks themselves.
const FRAMEWORK_FILES: [&str; 4] =
    ["site-packages/torch", "package/torch", "site-packages/mindspore", "package/mindspore"];
/// Files that are between the framework and the user.
const IN_BETWEEN_FILES: [&str; 2] = ["msprobe", "MindSpeed"];
/// Functions that are the same for every layer.
const ENTRY_FUNCTIONS: [&str; 2] = ["construct", "__call__"];

/// A record's place in the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordScope {
    /// Index of the record.
    pub(super) record: usize,
    /// Names from the root down to the record's own.
    pub(super) scope: Vec<String>,
    /// Class of the layer, or the name of the API.
    pub(super) class: String,
    /// `forward`, `backward` or `parameters_grad`.
    pub(super) state: String,
}

/// The places of all records that have one, in order. None at all without stack.json and construct.json.
pub(super) fn places(side: &Side, console: &dyn Console) -> Result<Vec<RecordScope>, CompareError> {
    let Some((stacks, construct)) = read_neighbours(side, console)? else { return Ok(Vec::new()) };
    let framework = framework_of(side);
    let mut places = Vec::with_capacity(side.records.len());
    for (index, record) in side.records.iter().enumerate() {
        let parent = construct.parent(&record.name);
        let stack = stacks.as_ref().and_then(|stacks| stacks.of(&record.name));
        let function = stack.and_then(|stack| framework_function(&stack.frames, framework));
        match place(index, &record.name, parent, function) {
            Some(place) => places.push(place),
            None => console.warning(&format!(
                "{} has less than four parts, so that its layer is unknown; it stays unmatched",
                record.name
            )),
        }
    }
    let by_name: HashMap<&str, usize> = places
        .iter()
        .enumerate()
        .filter_map(|(at, place)| Some((&*side.records.get(place.record)?.name, at)))
        .collect();
    let copies: Vec<(usize, Vec<String>)> = places
        .iter()
        .enumerate()
        .filter_map(|(at, place)| {
            let forward = forward_name(&side.records.get(place.record)?.name)?;
            Some((at, places.get(*by_name.get(&*forward)?)?.scope.clone()))
        })
        .collect();
    for (at, scope) in copies {
        if let Some(place) = places.get_mut(at) {
            place.scope = scope;
        }
    }
    renumber_layers(&mut places);
    Ok(places)
}

/// stack.json, if it says which record each stack belongs to, and construct.json; nothing if one of them is not there
/// or empty.
fn read_neighbours(
    side: &Side,
    console: &dyn Console,
) -> Result<Option<(Option<Stacks>, Construct)>, CompareError> {
    let [stack_path, construct_path] =
        ["stack.json", "construct.json"].map(|name| side.directory().join(name));
    for path in [&stack_path, &construct_path] {
        if !path.is_file() {
            console.warning(&format!("Layer mapping needs {}, which is not there.", path.display()));
            return Ok(None);
        }
    }
    let stacks = Stacks::read(&stack_path, console)?;
    let construct = read_construct(&construct_path)?;
    for (path, is_empty) in [(&stack_path, stacks.is_empty()), (&construct_path, construct.is_empty())] {
        if is_empty {
            console.warning(&format!("Layer mapping needs {}, which is empty.", path.display()));
            return Ok(None);
        }
    }
    // In the new form the reference finds no stack by the name of a record, so that functions of the framework are
    // part of a scope only in the old form.
    let grouped = Members::open(&stack_path, "")
        .and_then(|mut members| Ok(members.next_member()?.is_some_and(|member| &*member.key == "0")))
        .unwrap_or(false);
    Ok(Some(((!grouped).then_some(stacks), construct)))
}

fn framework_of(side: &Side) -> Framework {
    side.framework.unwrap_or_else(|| {
        if side.rows.iter().any(|leaf| leaf.dtype.starts_with("torch.")) {
            Framework::PyTorch
        } else {
            Framework::MindSpore
        }
    })
}

fn place(record: usize, name: &str, parent: Option<&str>, function: Option<&str>) -> Option<RecordScope> {
    let LayerName { kind, scope, own, class, state } = LayerName::of(name)?;
    let scope = match (&kind, parent) {
        (LayerKind::Layer | LayerKind::Gradients, _) => scope,
        (LayerKind::Api | LayerKind::Inner, Some(parent)) if !parent.is_empty() => scope_of_parent(parent),
        (LayerKind::Api | LayerKind::Inner, _) => TOP_LAYER,
    };
    // Layers have no stack of their own.
    let function = function.filter(|_| matches!(kind, LayerKind::Api | LayerKind::Gradients));
    let mut scope: Vec<String> = segments(scope).map(str::to_owned).collect();
    scope.extend(function.into_iter().flat_map(segments).map(str::to_owned));
    scope.push(own.to_owned());
    Some(RecordScope { record, scope, class: class.to_owned(), state: state.to_owned() })
}

/// The function of the framework that the user's code called: in the last of the leading frames that are the
/// framework's own.
fn framework_function(frames: &[Box<str>], framework: Framework) -> Option<&str> {
    let frame = regarded(frames, framework)
        .iter()
        .take_while(|frame| FRAMEWORK_FILES.iter().any(|file| file_of(frame).contains(file)))
        .last()?;
    if IN_BETWEEN_FILES.iter().any(|file| file_of(frame).contains(file)) {
        return None;
    }
    let function = frame.split(',').nth(2)?;
    if ENTRY_FUNCTIONS.iter().any(|entry| function.contains(entry)) {
        return None;
    }
    // `in softmax`
    function.split_whitespace().nth(1)
}

/// The frames between the wrapper of the API, if it is among them, and the next method of a layer.
fn regarded(frames: &[Box<str>], framework: Framework) -> &[Box<str>] {
    let mut wrapper = None;
    let mut end = frames.len();
    for (index, frame) in frames.iter().enumerate() {
        if frame.contains("Template") {
            wrapper = Some(index);
        } else if wrapper.is_some() && is_layer_method(frame, framework) {
            end = index;
            break;
        }
    }
    frames.get(wrapper.map_or(0, |index| index + 1)..end).unwrap_or_default()
}

fn is_layer_method(frame: &str, framework: Framework) -> bool {
    match framework {
        Framework::MindSpore => frame.contains("construct"),
        Framework::PyTorch => frame.contains("in forward,") || frame.contains("in backward,"),
    }
}

fn file_of(frame: &str) -> &str {
    frame.split(',').next().unwrap_or(frame)
}

/// Numbers the children of `layers` under every `ParallelTransformer` from its smallest number on: with pipeline
/// parallelism one framework counts them over the whole model, the other from zero in each stage.
fn renumber_layers(places: &mut [RecordScope]) {
    let mut containers: HashMap<Vec<String>, (usize, Option<u64>)> = HashMap::new();
    for place in places.iter().filter(|place| place.class == "ParallelTransformer") {
        let mut container = place.scope.clone();
        container.push("layers".to_owned());
        let order = containers.len();
        containers.entry(container).or_insert((order, None));
    }
    if containers.is_empty() {
        return;
    }
    for place in places.iter() {
        for (length, number) in numbered_children(&place.scope) {
            if let Some((_, smallest)) = place.scope.get(..length).and_then(|scope| containers.get_mut(scope))
            {
                *smallest = Some(smallest.map_or(number, |smallest| smallest.min(number)));
            }
        }
    }
    for place in places {
        // A container within a container is found only as long as the outer one has its old number, as in the
        // reference: what comes first in the dump is renumbered first.
        let mut next = 0;
        while let Some((order, length, relative)) = first_container(&place.scope, &containers, next) {
            if let Some(child) = place.scope.get_mut(length) {
                *child = relative.to_string();
            }
            next = order + 1;
        }
    }
}

/// The first container from `next` on that a scope goes through, with its length and the new number of its child.
fn first_container(
    scope: &[String],
    containers: &HashMap<Vec<String>, (usize, Option<u64>)>,
    next: usize,
) -> Option<(usize, usize, u64)> {
    numbered_children(scope)
        .filter_map(|(length, number)| {
            let (order, smallest) = containers.get(scope.get(..length)?)?;
            (*order >= next).then_some((*order, length, number.checked_sub((*smallest)?)?))
        })
        .min()
}

/// Where a scope goes through `layers` to a child with a number: the length of the scope that far, and the number.
fn numbered_children(scope: &[String]) -> impl Iterator<Item = (usize, u64)> {
    scope.windows(2).enumerate().filter_map(|(index, pair)| match pair {
        [layers, child] if layers == "layers" => Some((index + 1, last_number(child)?)),
        _ => None,
    })
}

/// The last run of digits in a name.
fn last_number(name: &str) -> Option<u64> {
    name.split(|character: char| !character.is_ascii_digit()).rfind(|digits| !digits.is_empty())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lines: &[&str]) -> Vec<Box<str>> {
        lines.iter().map(|&line| line.into()).collect()
    }

    fn scope(name: &str, parent: Option<&str>, function: Option<&str>) -> String {
        place(0, name, parent, function).unwrap().scope.join(".")
    }

    #[test]
    fn scopes_come_from_names_of_layers_and_parents_of_apis() {
        assert_eq!(scope("Cell.a.b.Dense.forward.0", None, Some("f")), "Cell.a.b");
        assert_eq!(scope("Cell.a.b.Dense.parameters_grad", None, None), "Cell.a.b");
        assert_eq!(scope("Module.Net.forward.0", None, None), ".Module");
        assert_eq!(
            scope("Functional.relu.0.forward", Some("Cell.a.b.Dense.forward.0"), None),
            "Cell.a.b.relu"
        );
        assert_eq!(
            scope("Functional.relu.0.forward", Some("Cell.a.b.Dense.forward.0"), Some("f")),
            "Cell.a.b.f.relu"
        );
        assert_eq!(scope("Functional.relu.0.forward", None, None), "TopLayer.relu");
        assert_eq!(scope("Primitive.relu.0.forward", None, Some("f")), "TopLayer.relu");
        assert_eq!(place(0, "Cell.x.forward", None, None), None);
        assert_eq!(place(0, "", None, None), None);
    }

    #[test]
    fn the_last_leading_frame_of_the_framework_names_the_function() {
        let function =
            |lines: &[&str]| framework_function(&frames(lines), Framework::PyTorch).map(str::to_owned);
        assert_eq!(
            function(&[
                "File /site-packages/torch/a.py, line 1, in inner, \n x",
                "File /site-packages/torch/b.py, line 2, in outer, \n x",
                "File net.py, line 3, in forward, \n x",
                "File /site-packages/torch/c.py, line 4, in later, \n x",
            ])
            .as_deref(),
            Some("outer")
        );
        assert_eq!(function(&["File net.py, line 3, in forward, \n x"]), None);
        assert_eq!(function(&["File /site-packages/torch/a.py, line 1, in __call__, \n x"]), None);
        assert_eq!(function(&["File /site-packages/torch/msprobe/a.py, line 1, in f, \n x"]), None);
        assert_eq!(function(&["File /site-packages/torch/a.py"]), None);
        assert_eq!(function(&["File /site-packages/torch/a.py, line 1, in"]), None);
        assert_eq!(function(&[]), None);
    }

    #[test]
    fn frames_above_the_wrapper_are_left_out() {
        let lines = [
            "File /site-packages/torch/a.py, line 1, in hidden, \n x",
            "File x.py, line 1, in FunctionalTemplate, \n x",
            "File /site-packages/torch/a.py, line 1, in seen, \n x",
            "File /site-packages/torch/a.py, line 1, in forward, \n x",
        ];
        assert_eq!(framework_function(&frames(&lines), Framework::PyTorch), Some("seen"));
    }

    #[test]
    fn layers_are_numbered_from_their_smallest_number_on() {
        let at = |scope: &str, class: &str| RecordScope {
            record: 0,
            scope: scope.split('.').map(str::to_owned).collect(),
            class: class.to_owned(),
            state: "forward".to_owned(),
        };
        let mut places = [
            at("Cell.m", "ParallelTransformer"),
            at("Cell.m.layers.14.a", "Attention"),
            at("Cell.m.layers.layer_4.a.layers.7", "Attention"),
            at("Cell.m.layers.names.a", "Attention"),
            at("Cell.n.layers.14.a", "Attention"),
            at("Cell.m.layers.99999999999999999999999", "Attention"),
        ];
        renumber_layers(&mut places);
        let scopes: Vec<String> = places.iter().map(|place| place.scope.join(".")).collect();
        assert_eq!(
            scopes,
            [
                "Cell.m",
                "Cell.m.layers.10.a",
                "Cell.m.layers.0.a.layers.7",
                "Cell.m.layers.names.a",
                "Cell.n.layers.14.a",
                "Cell.m.layers.99999999999999999999999",
            ]
        );
    }
}
