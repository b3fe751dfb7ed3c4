//! Partners for a node that has none: of the same kind and class, with results of the same shape, near its place.

use msprobe_graph::names::{Generation, without_counts};

use super::detail::{cell_text, values_of};
use super::marks::Mark;
use super::{Asking, Scope, short_label};
use crate::fault::Fault;
use crate::wire::{Suggestion, Suggestions};

/// Nodes of the other side that are looked at, the nearest first.
const MOST_TRIED: usize = 3000;
/// Suggestions given.
const MOST: usize = 8;

/// What is compared of two nodes.
struct Traits {
    class: String,
    label: String,
    shapes: Vec<String>,
}

/// The class of a module, or the function of a call.
fn class_of(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let direction = parts.iter().position(|part| matches!(*part, "forward" | "backward"));
    let is_module = matches!(parts.first(), Some(&"Module" | &"Cell"));
    match direction {
        Some(at) if is_module && at > 0 => format!("{}.{}", parts[at - 1], parts[at]),
        Some(at) => format!("{}.{}", parts.get(1).unwrap_or(&""), parts[at]),
        None => parts.get(1).unwrap_or(&name).to_string(),
    }
}

impl Asking<'_> {
    pub(crate) fn suggestions(&self, scope: Scope, name: &str) -> Result<Suggestions, Fault> {
        let own = self.named(scope, name)?;
        if !self.store.facts.is_comparison || own.partner.is_some() || own.kind.is_collection() {
            return Ok(Suggestions { suggestions: Vec::new() });
        }
        let there = Scope { side: scope.side.other(), ..scope };
        let (here, others) = (self.store.marks.require(self, scope)?, self.store.marks.require(self, there)?);
        let share = |order: i64, nodes: usize| order as f64 / nodes.max(1) as f64;
        let own_share = share(own.order, here.len());
        let own_parent = match &own.parent {
            Some(parent) => self.named(scope, parent).ok().and_then(|parent| parent.partner),
            None => None,
        };
        let traits = self.traits(scope, &own.name, own.parent.as_deref())?;
        let is_candidate = |mark: &Mark| mark.is_alone && mark.kind == own.kind && !mark.is_root;
        let mut candidates: Vec<(f64, i64)> = others
            .iter()
            .filter(is_candidate)
            .map(|mark| ((share(mark.order, others.len()) - own_share).abs(), mark.order))
            .collect();
        candidates.sort_by(|one, other| one.0.total_cmp(&other.0));
        candidates.truncate(MOST_TRIED);
        let mut scored = Vec::new();
        for (distance, order) in candidates {
            let Some(raw) = self.raw(there, super::Wanted::Order(order))? else { continue };
            if class_of(&raw.name) != traits.class {
                continue;
            }
            let other = self.traits(there, &raw.name, raw.parent.as_deref())?;
            let mut reasons = vec!["the same class"];
            let mut score = 1.0 - distance;
            for (holds, weight, reason) in [
                (other.label == traits.label, 3.0, "the same name in its parent"),
                (
                    !traits.shapes.is_empty() && other.shapes == traits.shapes,
                    2.0,
                    "results of the same shape",
                ),
                (own_parent.is_some() && raw.parent == own_parent, 2.0, "parents that belong together"),
                (distance < 0.01, 1.0, "about the same place in the order of calls"),
            ] {
                if holds {
                    score += weight;
                    reasons.push(reason);
                }
            }
            scored.push((score, raw, reasons.join(", ")));
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let suggestions = scored
            .into_iter()
            .take(MOST)
            .map(|(_, raw, reason)| Ok(Suggestion { node: self.brief(there, raw, None)?, reason }));
        Ok(Suggestions { suggestions: suggestions.collect::<Result<_, Fault>>()? })
    }

    fn traits(&self, scope: Scope, name: &str, parent: Option<&str>) -> Result<Traits, Fault> {
        let stored = self.stored(scope, name)?;
        let shapes = values_of(&stored.outputs)
            .iter()
            .filter_map(|(_, members)| members.get("shape").map(cell_text))
            .collect();
        let label = without_counts(&short_label(name, parent), Generation::Third);
        Ok(Traits { class: class_of(name), label, shapes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_modules_and_functions() {
        assert_eq!(class_of("Module.a.b.Linear.forward.0"), "Linear.forward");
        assert_eq!(class_of("Torch.add.3.backward"), "add.backward");
        assert_eq!(class_of("odd"), "odd");
    }
}
