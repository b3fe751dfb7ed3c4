//! Names as the reference takes them apart: by the text of a row's or a record's name, wherever its words stand in it.
//!
//! Its tables, mappings and pairs have to come out as it makes them, so that these rules stay what they are, and stay here.
//! What a record really is, `msprobe_dump::names` says; which value a row is, its record and its place.

use msprobe_dump::names::{is_of_communication, segments};

/// What ends the path of a module or cell in a name.
const ENDS: [&str; 3] = [".forward", ".backward", ".parameters_grad"];
const GRADIENTS: &str = "parameters_grad";

/// Whether a record is of a call that ranks make together, under either framework.
pub(crate) fn is_distributed(record: &str) -> bool {
    is_of_communication(record) || segments(record).next() == Some("MintDistributed")
}

/// The function of a record: its second segment, though the prefix of an API may have dots itself.
pub(crate) fn function_of(record: &str) -> &str {
    segments(record).nth(1).unwrap_or_default()
}

/// Prefix and function of an API: the first two segments of a name.
pub(crate) fn api_of(name: &str) -> Option<&str> {
    let (kind, rest) = name.split_once('.')?;
    let api = segments(rest).next()?;
    name.get(..kind.len() + 1 + api.len())
}

/// The first segment of a name.
pub(crate) fn kind_of(name: &str) -> &str {
    segments(name).next().unwrap_or_default()
}

/// The argument a place ends with: `src` of `input.src`.
pub(crate) fn argument_of(place: &str) -> &str {
    segments(place).next_back().unwrap_or_default()
}

/// Where the segment just before the first direction begins and ends, which fuzzy matching leaves out: the number of an
/// API's call, or the class of a module. Nothing without a direction.
pub(crate) fn before_direction(name: &str) -> Option<(usize, usize)> {
    let direction = [".forward", ".backward"].iter().filter_map(|word| name.find(word)).min()?;
    Some((name[..direction].rfind('.')?, direction))
}

/// API, number and what follows `backward`, of the name of a row of a backward call.
pub(crate) fn backward_call(row: &str) -> Option<(&str, &str, &str)> {
    let (call, rest) = row.split_once(".backward.")?;
    let (api, number) = call.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some((api, number, rest))
}

/// The name of the forward record a backward one belongs to: one of its last two segments is `backward`.
pub(crate) fn forward_name(record: &str) -> Option<String> {
    let mut parts: Vec<&str> = segments(record).collect();
    let start = parts.len().saturating_sub(2);
    let last_two = parts.get_mut(start..)?;
    if !last_two.contains(&"backward") {
        return None;
    }
    for part in last_two {
        if *part == "backward" {
            *part = "forward";
        }
    }
    Some(parts.join("."))
}

/// Advice goes by these words anywhere in the name of a row, those of modules included.
pub(crate) fn says_forward(row: &str) -> bool {
    row.contains("forward")
}

/// See [`says_forward`].
pub(crate) fn says_input(row: &str) -> bool {
    row.contains("input")
}

/// Whether a row is of a call or of gradients, by the words in its name.
pub(crate) fn is_of_call_or_gradients(row: &str) -> bool {
    row.contains(".forward.") || row.contains(".backward.") || segments(row).any(|part| part == GRADIENTS)
}

/// The key of a cell's row on the other side, cut after its kind and its `{name}.{Class}`: `Module`, `fc.Dense`,
/// `.forward.0.output.0`. A key without a dot is none.
///
/// The record's own direction ends the class, so that a cell may have a part called `forward`; without the record it is
/// the first one.
pub(crate) fn cell_parts<'k>(key: &'k str, row: &str, record: &str) -> Option<(&'k str, &'k str, &'k str)> {
    let (kind, rest) = key.split_once('.')?;
    let of_record = row.strip_prefix(record).and_then(|suffix| {
        let end = ENDS.iter().filter_map(|end| last_part(record, end)).max()?;
        // Counted from behind, because the first word may have become longer.
        rest.len().checked_sub(record.len() - end + suffix.len())
    });
    let first = || ENDS.iter().filter_map(|end| rest.find(&format!("{end}."))).min();
    let end = of_record.or_else(first).unwrap_or(rest.len());
    let (cell, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    Some((kind, cell, behind))
}

/// Where the last whole part of a name that is `.{word}` begins.
fn last_part(name: &str, part: &str) -> Option<usize> {
    let is_whole = |&(at, _): &(usize, &str)| {
        name.get(at + part.len()..).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    name.rmatch_indices(part).find(is_whole).map(|(at, _)| at)
}

/// The name of a row cut before the place that `word` (`.input.`) leads to. It is looked for behind the name of the record,
/// so that a part of that is not taken for it.
pub(crate) fn split_at_place<'r>(row: &'r str, record: &str, word: &str) -> Option<(&'r str, &'r str)> {
    let from = if row.starts_with(record) { record.len() } else { 0 };
    let at = match row.get(from..).and_then(|rest| rest.find(word)) {
        Some(at) => from + at + word.len(),
        None => row.find(word)? + word.len(),
    };
    row.split_at_checked(at)
}

/// A record's name for the mapping of layers, by its segments counted from behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LayerName<'a> {
    /// What it is of.
    pub(crate) kind: LayerKind,
    /// Names from the root to the layer around its own; nothing of an API, whose scope is its parent's.
    pub(crate) scope: &'a str,
    /// Its own name.
    pub(crate) own: &'a str,
    /// Class of the layer, or the name of the API.
    pub(crate) class: &'a str,
    /// `forward`, `backward` or `parameters_grad`.
    pub(crate) state: &'a str,
}

/// What a record is of, for the mapping of layers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LayerKind {
    /// Gradients of a layer's parameters.
    Gradients,
    /// A layer.
    Layer,
    /// An API that Python code calls.
    Api,
    /// An API that the framework calls below Python.
    Inner,
}

impl<'a> LayerName<'a> {
    /// Takes a name apart; none if it has less than four segments.
    pub(crate) fn of(name: &'a str) -> Option<LayerName<'a>> {
        let mut behind = segments(name).rev();
        let [last, second, third, fourth] = [behind.next()?, behind.next()?, behind.next()?, behind.next()?];
        let kind = match kind_of(name) {
            _ if last == GRADIENTS => LayerKind::Gradients,
            "Cell" | "Module" => LayerKind::Layer,
            "Primitive" | "Jit" => LayerKind::Inner,
            _ => LayerKind::Api,
        };
        let (scope, own, class, state) = match kind {
            LayerKind::Gradients => (without_last(name, 3), third, second, last),
            LayerKind::Layer => (without_last(name, 4), fourth, third, second),
            LayerKind::Api | LayerKind::Inner => ("", third, third, last),
        };
        Some(LayerName { kind, scope, own, class, state })
    }
}

/// The scope of a module's record: its name without class, direction and number of the call.
pub(crate) fn scope_of_parent(parent: &str) -> &str {
    without_last(parent, 3)
}

/// A name without its last segments; nothing if it has no more than these.
fn without_last(name: &str, count: usize) -> &str {
    name.rsplitn(count + 1, '.').nth(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_apis_are_segments_by_number() {
        assert_eq!((function_of("Torch.exp.0.forward"), function_of("x")), ("exp", ""));
        assert_eq!((api_of("Torch.exp.0.forward"), api_of("Torch")), (Some("Torch.exp"), None));
        assert_eq!((kind_of("Mint.exp.0"), argument_of("input.src"), argument_of("")), ("Mint", "src", ""));
        assert!(
            is_distributed("MintDistributed.send.0.forward")
                && !is_distributed("MyDistributed.send.0.forward")
        );
    }

    #[test]
    fn calls_are_cut_by_their_words() {
        let cut = |name: &'static str| before_direction(name).map(|(from, to)| &name[from..to]);
        assert_eq!(cut("Torch.exp.3.forward.input.0"), Some(".3"));
        assert_eq!(cut("Module.fc.Linear.backward.0.output.0"), Some(".Linear"));
        assert_eq!((cut("x.0.debug"), cut("x.forward")), (None, None));
        assert_eq!(backward_call("Torch.exp.3.backward.input.0"), Some(("Torch.exp", "3", "input.0")));
        assert_eq!(backward_call("Module.fc.Linear.backward.0.input.0"), None);
        assert_eq!(forward_name("Module.a.B.backward.1").as_deref(), Some("Module.a.B.forward.1"));
        assert_eq!(forward_name("Torch.backward.0.forward"), None);
    }

    #[test]
    fn gradients_apis_and_layers_have_their_parts_at_other_places() {
        let parts = |name| LayerName::of(name).map(|it| (it.kind, it.scope, it.own, it.class, it.state));
        assert_eq!(
            parts("Cell.a.b.Dense.forward.0"),
            Some((LayerKind::Layer, "Cell.a", "b", "Dense", "forward"))
        );
        assert_eq!(
            parts("Cell.a.b.Dense.parameters_grad"),
            Some((LayerKind::Gradients, "Cell.a", "b", "Dense", "parameters_grad"))
        );
        assert_eq!(parts("Jit.relu.0.forward"), Some((LayerKind::Inner, "", "relu", "relu", "forward")));
        assert_eq!(parts("Cell.x.forward"), None);
    }
}
