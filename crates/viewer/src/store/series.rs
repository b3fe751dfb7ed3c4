//! One number of a node over all steps and ranks.

use serde_json::{Map, Value};

use super::detail::{cell_text, values_of};
use super::{Asking, Scope};
use crate::fault::Fault;
use crate::wire::{Num, Series, SeriesPoint, Side};

/// What a value is called in its node: `output.0` of `Torch.add.0.forward.output.0`.
fn short_name<'n>(name: &'n str, node: &str) -> &'n str {
    name.strip_prefix(node).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name)
}

/// A number of a text: `1.5`, `nan`, `12.5%`.
pub(crate) fn number_of(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.to_ascii_lowercase().as_str() {
        "nan" => return Some(f64::NAN),
        "inf" => return Some(f64::INFINITY),
        "-inf" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}

impl Asking<'_> {
    pub(crate) fn series(
        &self,
        node: &str,
        side: Side,
        value: Option<&str>,
        measure: Option<&str>,
    ) -> Result<Series, Fault> {
        let mut series =
            Series { node: node.to_owned(), values: Vec::new(), measures: Vec::new(), points: Vec::new() };
        let scopes: Vec<Scope> = self.store.scopes().filter(|scope| scope.side == side).collect();
        let (mut value, mut measure) = (value.map(str::to_owned), measure.map(str::to_owned));
        for scope in scopes {
            let Ok(stored) = self.stored(scope, node) else {
                series.points.push(SeriesPoint { step: scope.step, rank: scope.rank, number: None });
                continue;
            };
            let mut values = values_of(&stored.outputs);
            values.extend(values_of(&stored.inputs));
            if series.values.is_empty() {
                series.values = values.iter().map(|(name, _)| short_name(name, node).to_owned()).collect();
            }
            let value = value.get_or_insert_with(|| series.values.first().cloned().unwrap_or_default());
            let members = values.iter().find(|(name, _)| short_name(name, node) == value);
            let members = members.map(|(_, members)| members);
            if let Some(members) = members {
                add_measures(members, &mut series.measures);
            }
            if measure.is_none() {
                let preferred = series.measures.iter().find(|name| *name == "Norm");
                measure = preferred.or_else(|| series.measures.first()).cloned();
            }
            let number = if measure.as_deref() == Some("precision_index") {
                self.named(scope, node)?.index
            } else {
                measure
                    .as_ref()
                    .and_then(|measure| members?.get(measure))
                    .and_then(|number| number_of(&cell_text(number)))
            };
            series.points.push(SeriesPoint { step: scope.step, rank: scope.rank, number: number.map(Num) });
        }
        if series.values.is_empty() && series.points.iter().all(|point| point.number.is_none()) {
            // A node without values may still be one.
            let is_there =
                self.store.scopes().any(|scope| scope.side == side && self.named(scope, node).is_ok());
            if !is_there {
                return Err(Fault::missing(format!("there is no node {node}")));
            }
        }
        if self.store.facts.is_comparison && side == Side::Target {
            series.measures.push("precision_index".to_owned());
        }
        Ok(series)
    }
}

/// Members that are numbers.
fn add_measures(members: &Map<String, Value>, measures: &mut Vec<String>) {
    for (name, value) in members {
        if number_of(&cell_text(value)).is_some() && !measures.contains(name) && measures.len() < 64 {
            measures.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_table_shows_them() {
        assert_eq!(number_of("12.5%"), Some(0.125));
        assert_eq!(number_of("1.500000e-07"), Some(1.5e-7));
        assert_eq!(number_of("-inf\t"), Some(f64::NEG_INFINITY));
        assert!(number_of("nan").is_some_and(f64::is_nan));
        for text in ["", "N/A", "[2, 2]", "torch.float32", "null"] {
            assert_eq!(number_of(text), None, "{text}");
        }
    }
}
