//! Mapping of cells: MindSpore's `Cell.{name}.{Class}` to PyTorch's `Module.{name}.{Class}`.

use std::collections::HashMap;

use msprobe_compare::side::{Leaf, Record, Side};
use msprobe_report::console::Console;
use msprobe_report::error::CompareError;

use super::{MappingSource, read_names};
use crate::names::{cell_parts, is_of_call_or_gradients};

/// The name each target row is looked up by; none for rows that belong to no call and no parameter.
pub fn cell_keys(
    target: &Side,
    source: MappingSource<'_>,
    console: &dyn Console,
) -> Result<Vec<Option<String>>, CompareError> {
    let cells = match source {
        MappingSource::BuiltIn => HashMap::new(),
        MappingSource::File(file) => {
            let cells = read_names(file, "{cell name}.{Class}: {module name}.{Class}")?;
            if cells.is_empty() {
                console.warning(&format!("The mapping file {} is empty.", file.display()));
            }
            cells
        }
    };
    let mut keys = Vec::with_capacity(target.rows.len());
    for record in &target.records {
        let rows = target.rows.get(record.rows.clone()).unwrap_or_default();
        keys.extend(rows.iter().map(|leaf| cell_key(leaf, record, &cells)));
    }
    Ok(keys)
}

fn cell_key(leaf: &Leaf, record: &Record, cells: &HashMap<String, Option<String>>) -> Option<String> {
    let name = &*leaf.name;
    if !is_of_call_or_gradients(name) {
        return None;
    }
    // Names of cells can hold the word, too; the first one stands for the kind of the record.
    let key = name.replacen("Cell", "Module", 1);
    let Some((kind, cell, behind)) = cell_parts(&key, name, &record.name) else { return Some(key) };
    match cells.get(cell) {
        None => Some(key),
        Some(None) => None,
        Some(Some(module)) => Some(format!("{kind}.{module}{behind}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use msprobe_compare::side::{Which, read_side};
    use msprobe_report::console::Silent;

    fn keys(records: &[&str], file: Option<&str>) -> Vec<Option<String>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.json");
        let data: Vec<String> = records
            .iter()
            .map(|record| {
                if record.ends_with("parameters_grad") {
                    format!(r#""{record}": {{"weight": [null]}}"#)
                } else {
                    format!(r#""{record}": {{"output": [null]}}"#)
                }
            })
            .collect();
        let text = format!(r#"{{"task": "statistics", "data": {{{}}}}}"#, data.join(","));
        std::fs::write(&path, text).unwrap();
        let side = read_side(&path, Which::Target, &Silent).unwrap();
        let mapping = dir.path().join("cells.yaml");
        let source = match file {
            Some(text) => {
                std::fs::write(&mapping, text).unwrap();
                MappingSource::File(&mapping)
            }
            None => MappingSource::BuiltIn,
        };
        cell_keys(&side, source, &Silent).unwrap()
    }

    #[test]
    fn cells_become_modules() {
        let records =
            ["Cell.fc.Dense.forward.0", "Cell.fc.Dense.parameters_grad", "Functional.relu.0.forward"];
        assert_eq!(
            keys(&records, None),
            [
                Some("Module.fc.Dense.forward.0.output.0".to_owned()),
                Some("Module.fc.Dense.parameters_grad.weight".to_owned()),
                Some("Functional.relu.0.forward.output.0".to_owned()),
            ]
        );
    }

    #[test]
    fn cells_of_the_file_are_replaced_as_a_whole() {
        let records = [
            "Cell.fc.Dense.forward.0",
            "Cell.fc.Dense.parameters_grad",
            "Cell.fc.Dense.backward.0",
            "Cell.fc.Dense2.forward.0",
            "Cell.a.forward.Dense.forward.1",
            "Cell.none.Dense.forward.0",
        ];
        let file = "fc.Dense: x.Linear\na.forward.Dense: y.Linear\nnone.Dense:\n7: 8";
        assert_eq!(
            keys(&records, Some(file)),
            [
                Some("Module.x.Linear.forward.0.output.0".to_owned()),
                Some("Module.x.Linear.parameters_grad.weight".to_owned()),
                Some("Module.x.Linear.backward.0.output.0".to_owned()),
                Some("Module.fc.Dense2.forward.0.output.0".to_owned()),
                Some("Module.y.Linear.forward.1.output.0".to_owned()),
                None,
            ]
        );
    }
}
