//! The advisor file: the first row whose accuracy is not reached, and what to look at.

use msprobe_report::console::Console;

use crate::metrics::Accuracy;
use crate::names::{says_forward, says_input};
use crate::table::{RowResult, Table};

const FORWARD_INPUT: &str = "1. Analyze the model to view the input source.\n\
    2. Check whether an inplace API causes the output result to overwrite the input result. That is, the fault is \
    actually caused by a computation error.\n\
    3. The fault may be caused by memory corruption and further analysis is required.";
const FORWARD_OUTPUT: &str = "This is a forward API computation error. Check the computation implementation.";
const BACKWARD_INPUT: &str = "Check whether the forward computation result is affected.";
const BACKWARD_OUTPUT: &str =
    "This is a backward API computation error. Check the computation implementation.";
const NOT_DETERMINISTIC: &str = "This torch api may be uncertainty in the calculation, can seed_all(mode=True) to \
    enable deterministic computing.";
const ALL_REACHED: &str = "All data in comparison result meets the accuracy requirements.";
const MAY_VARY: [&str; 6] = ["conv2d", "conv3d", "matmul", "nll_loss", "layer_norm", "lstm"];

/// Text of the advisor file for a table.
pub fn advice(table: &Table<'_>, console: &dyn Console) -> String {
    for (row, pair) in table.pairs.iter().enumerate() {
        if table.result(row) == RowResult::Accuracy(Accuracy::Unmatched) {
            let name = &table.leaves(pair).0.name;
            console
                .warning(&format!("The tensor name matches but the shape or dtype does not match: {name}"));
        }
    }
    let Some(row) = (0..table.pairs.len()).find(|&row| table.result(row).is_failure()) else {
        console.info("All data from api input/output accuracy reached");
        return entries("NA", "NA", ALL_REACHED);
    };
    let name = &table.leaves(&table.pairs[row]).0.name;
    console.warning(&format!("Find {name} accuracy not reached, the line is {row}"));
    entries(&row.to_string(), name, advice_for(name))
}

fn entries(line: &str, node: &str, advice: &str) -> String {
    format!("Line: {line}\nSuspect Nodes: {node}\nExpert Advice: {advice}\n")
}

fn advice_for(name: &str) -> &'static str {
    let computed = |text| {
        if MAY_VARY.iter().any(|api| name.contains(api)) { NOT_DETERMINISTIC } else { text }
    };
    match (says_forward(name), says_input(name)) {
        (true, true) => FORWARD_INPUT,
        (true, false) => computed(FORWARD_OUTPUT),
        (false, true) => BACKWARD_INPUT,
        (false, false) => computed(BACKWARD_OUTPUT),
    }
}
