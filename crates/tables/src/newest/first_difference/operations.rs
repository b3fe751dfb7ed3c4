//! A rank as a sequence of operations, each the same on both sides or not, and as json.

use std::io::{self, Write};
use std::ops::Range;

use msprobe_compare::pairing::RowPair;
use msprobe_compare::side::{Leaf, Role, Scalar};
use msprobe_dump::write::JsonText;

use super::super::leaf::{differences, requires_grad_text};
use super::super::{Difference, Mode, NOT_MATCHED, NewestTable};
use super::{OperationAt, RankTable};
use crate::metrics::NO_GOLDEN;
use crate::names::{function_of, is_distributed};
use crate::table::{COMMON_HEADERS, DIFFERENCE_HEADERS, STATISTICS_HEADERS, shape_text};

/// Operations whose results are whatever memory held before.
const IGNORED: [&str; 3] = ["Torch.empty", "Torch.fill", "Tensor.__setitem__"];
/// What the names of communication have in them.
const COMMUNICATION: [&str; 8] =
    ["send", "recv", "broadcast", "reduce", "gather", "scatter", "all_to_all", "isend_irecv"];
/// A relative error from which results count as different.
const DIFFERENT: f64 = 0.5;

/// A rank and what it did, in order.
pub(super) struct Rank<'a> {
    pub(super) number: u32,
    pub(super) table: &'a NewestTable<'a>,
    pub(super) operations: Vec<Operation<'a>>,
}

/// One record of a rank.
pub(super) struct Operation<'a> {
    pub(super) name: &'a str,
    /// Its rows in the table.
    pub(super) rows: Range<usize>,
    pub(super) is_same: bool,
}

impl Operation<'_> {
    pub(super) fn is_communication(&self) -> bool {
        let api = self.api();
        is_distributed(self.name) && COMMUNICATION.iter().any(|word| api.contains(word))
    }

    pub(super) fn is_ignored(&self) -> bool {
        IGNORED.iter().any(|name| self.name.contains(name))
    }

    /// Its function.
    pub(super) fn api(&self) -> &str {
        function_of(self.name)
    }

    fn differs(&self) -> bool {
        !self.is_same && !self.is_ignored()
    }
}

impl<'a> Rank<'a> {
    pub(super) fn new(rank: &RankTable<'a>) -> Rank<'a> {
        let table = rank.table;
        let mut operations: Vec<Operation<'a>> = Vec::new();
        let mut last = None;
        for (row, pair) in table.pairs.iter().enumerate() {
            let record = table.target.rows[pair.target].record;
            if last != Some(record) {
                last = Some(record);
                let name = table.target.records.get(record as usize).map_or("", |record| &*record.name);
                operations.push(Operation { name, rows: row..row, is_same: true });
            }
            if let Some(operation) = operations.last_mut() {
                operation.rows.end = row + 1;
                operation.is_same &= !result_differs(table, operation.name, pair);
            }
        }
        Rank { number: rank.rank, table, operations }
    }

    /// The first operation in a stretch whose results differ.
    pub(super) fn first_difference(&self, stretch: Range<usize>) -> Option<usize> {
        let start = stretch.start;
        let found = self.operations.get(stretch)?.iter().position(Operation::differs)?;
        Some(start + found)
    }

    /// Where communication begins; the end if there is none.
    pub(super) fn first_communication(&self) -> usize {
        self.operations.iter().position(Operation::is_communication).unwrap_or(self.operations.len())
    }

    /// What comes after communication; the end if there is none.
    pub(super) fn after_communication(&self) -> usize {
        let last = self.operations.iter().rposition(Operation::is_communication);
        last.map_or(self.operations.len(), |last| last + 1)
    }

    /// All operations, each with all that tables show of its rows.
    pub(super) fn write_operations(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut json = JsonText::indented(4);
        json.begin_object();
        for operation in &self.operations {
            json.key(operation.name);
            json.begin_object();
            json.key("is_same");
            json.bool(operation.is_same);
            json.key("op_items");
            json.begin_array();
            for pair in self.table.pairs.get(operation.rows.clone()).unwrap_or_default() {
                self.put_row(operation, pair, &mut json);
            }
            json.end_array();
            json.end_object();
            json.flush_to(out)?;
        }
        json.end_object();
        json.flush_to(out)
    }

    fn put_row(&self, operation: &Operation<'_>, pair: &RowPair, json: &mut JsonText) {
        let table = self.table;
        let (target, golden) = table.leaves(pair);
        let (shown_target, shown_golden) = table.shown(pair);
        let other = |of: fn(&Leaf) -> &str| golden.map_or(NOT_MATCHED, of);
        json.begin_object();
        let golden_dtype = shown_golden.as_ref().map_or(NOT_MATCHED, |golden| golden.dtype);
        let golden_shape = golden.map_or(NOT_MATCHED.into(), |golden| shape_text(&golden.shape));
        let common = [
            &*target.name,
            other(|leaf| &leaf.name),
            shown_target.dtype,
            golden_dtype,
            &shape_text(&target.shape),
            &golden_shape,
        ];
        for (header, text) in COMMON_HEADERS.iter().zip(common) {
            put_text(json, header, text);
        }
        let (target_grad, golden_grad) = (requires_grad_text(target), other(requires_grad_text));
        put_text(json, "NPU Requires_grad", target_grad);
        put_text(json, "Bench Requires_grad", golden_grad);
        if table.mode == Mode::Md5 {
            put_text(json, "NPU MD5", target.md5.as_deref().unwrap_or(NOT_MATCHED));
            let golden = golden.and_then(|golden| golden.md5.as_deref());
            put_text(json, "BENCH MD5", golden.unwrap_or(NOT_MATCHED));
        } else {
            let differences = differences(&shown_target, shown_golden.as_ref());
            let texts = differences.map(Difference::text).into_iter();
            let relative = differences.map(Difference::relative_text);
            for (header, text) in DIFFERENCE_HEADERS.iter().zip(texts.chain(relative)) {
                put_text(json, header, &text);
            }
            let (of_target, of_golden) = STATISTICS_HEADERS.split_at(4);
            put_statistics(json, of_target, &shown_target.statistics);
            match &shown_golden {
                Some(golden) => put_statistics(json, of_golden, &golden.statistics),
                None => of_golden.iter().for_each(|header| put_text(json, header, NOT_MATCHED)),
            }
        }
        json.key("Requires_grad Consistent");
        json.bool(target_grad == golden_grad);
        put_text(json, "Result", result(table, pair));
        put_text(json, "Err_message", if golden.is_some() { "" } else { NO_GOLDEN });
        if table.stacks.is_some() {
            put_stack(json, "NPU_Stack_Info", table.frames(pair));
        }
        put_text(json, "state", state(target.role));
        put_text(json, "api_origin_name", operation.name);
        let operation_of =
            |leaf: &Leaf| leaf.p2p.as_ref().map_or("None".to_owned(), |p2p| p2p.operation.to_string());
        let of_golden = |of: &dyn Fn(&Leaf) -> String| golden.map_or(NOT_MATCHED.to_owned(), of);
        put_text(json, "NPU P2POp op", &operation_of(target));
        put_text(json, "Bench P2POp op", &of_golden(&operation_of));
        put_text(json, "NPU P2POp peer", &peer(target));
        put_text(json, "Bench P2POp peer", &of_golden(&peer));
        json.end_object();
    }

    /// What is known about an operation that differs.
    fn put_finding(&self, operation: &Operation<'_>, json: &mut JsonText) {
        let pairs = self.table.pairs.get(operation.rows.clone()).unwrap_or_default();
        json.begin_object();
        put_text(json, "op_name", operation.name);
        json.key("data_info");
        json.begin_object();
        for (key, roles) in [("input", [Role::Input, Role::Parameters]), ("output", [Role::Output; 2])] {
            json.key(key);
            json.begin_object();
            let mut last = None;
            // A row stands there once, however many partners it has.
            for pair in pairs.iter().filter(|pair| last.replace(pair.target) != Some(pair.target)) {
                let (target, _) = self.table.leaves(pair);
                if roles.contains(&target.role) {
                    self.put_data(pair, json);
                }
            }
            json.end_object();
        }
        json.end_object();
        put_stack(json, "stack_info", pairs.first().and_then(|pair| self.table.frames(pair)));
        json.end_object();
    }

    fn put_data(&self, pair: &RowPair, json: &mut JsonText) {
        let (target, _) = self.table.leaves(pair);
        json.key(&target.name);
        json.begin_object();
        if self.table.mode == Mode::Md5 {
            put_text(json, "NPU MD5", target.md5.as_deref().unwrap_or(NOT_MATCHED));
        } else {
            let (shown, _) = self.table.shown(pair);
            put_statistics(json, &STATISTICS_HEADERS, &shown.statistics);
        }
        put_text(json, "NPU P2POp peer", &peer(target));
        json.end_object();
    }
}

/// Writes what was found, by rank.
pub(super) fn write_findings(
    ranks: &[Rank<'_>],
    found: &[OperationAt],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut json = JsonText::indented(2);
    json.begin_object();
    for (index, rank) in ranks.iter().enumerate() {
        let mut of_rank = found.iter().filter(|place| place.rank == index).peekable();
        if of_rank.peek().is_none() {
            continue;
        }
        json.key(&format!("rank_{}", rank.number));
        json.begin_array();
        for place in of_rank {
            if let Some(operation) = rank.operations.get(place.operation) {
                rank.put_finding(operation, &mut json);
            }
        }
        json.end_array();
    }
    json.end_object();
    json.flush_to(out)
}

fn put_text(json: &mut JsonText, key: &str, text: &str) {
    json.key(key);
    json.string(text);
}

fn put_statistics(json: &mut JsonText, headers: &[&str], statistics: &[Scalar; 4]) {
    for (header, scalar) in headers.iter().zip(statistics) {
        json.key(header);
        match scalar {
            Scalar::Null => json.null(),
            Scalar::Bool(value) => json.bool(*value),
            Scalar::Int(value) => json.int((*value).into()),
            Scalar::Large(value) => json.float(**value as f64),
            Scalar::Float(value) => json.float(*value),
            Scalar::Text(text) => json.string(text),
        }
    }
}

fn put_stack(json: &mut JsonText, key: &str, frames: Option<&[Box<str>]>) {
    let Some(frames) = frames else { return put_text(json, key, NOT_MATCHED) };
    json.key(key);
    json.begin_array();
    for frame in frames {
        json.string(frame);
    }
    json.end_array();
}

/// Whether a row is a result that differs from its partner.
fn result_differs(table: &NewestTable<'_>, operation: &str, pair: &RowPair) -> bool {
    let (target, golden) = table.leaves(pair);
    let Some(golden) = golden else { return false };
    if target.role != Role::Output || is_unused_result(operation, &target.place) {
        return false;
    }
    if table.mode == Mode::Md5 {
        return target.md5 != golden.md5;
    }
    let (shown_target, shown_golden) = table.shown(pair);
    // NaN on one side only has no relative error, and is a difference nevertheless.
    differences(&shown_target, shown_golden.as_ref()).into_iter().any(|difference| {
        difference == Difference::Nan || difference.relative().is_some_and(|error| error > DIFFERENT)
    })
}

/// Results 4 and 5 of fused attention are its random state.
fn is_unused_result(operation: &str, place: &str) -> bool {
    operation.contains("npu_fusion_attention") && matches!(place, "output.4" | "output.5")
}

fn result(table: &NewestTable<'_>, pair: &RowPair) -> &'static str {
    let (target, golden) = table.leaves(pair);
    match (table.mode, golden) {
        (_, None) => NOT_MATCHED,
        (Mode::Md5, Some(golden)) if target.md5 == golden.md5 => "pass",
        (Mode::Md5, Some(_)) => "Different",
        (_, Some(_)) => "",
    }
}

fn state(role: Role) -> &'static str {
    match role {
        Role::Input => "input",
        Role::Parameters => "parameters",
        Role::Output => "output",
        Role::ParametersGrad => "parameters_grad",
    }
}

fn peer(leaf: &Leaf) -> String {
    leaf.p2p.as_ref().and_then(|p2p| p2p.peer).map_or("None".to_owned(), |peer| peer.to_string())
}
