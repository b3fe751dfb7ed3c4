//! Which APIs the MindSpore check runs.

use std::path::Path;

use msprobe_dump::model::DumpFile;

use super::{Plan, PlanError};
use crate::names::Call;

/// Methods of `mindspore.Tensor` that are checked.
pub const MINDSPORE_TENSOR: [&str; 59] = [
    "add_",
    "add",
    "addmm_",
    "all",
    "allclose",
    "any",
    "bool",
    "byte",
    "ceil",
    "clamp",
    "contiguous",
    "copy_",
    "cos",
    "clone",
    "cumprod",
    "expand_as",
    "flatten",
    "float",
    "half",
    "int",
    "is_contiguous",
    "isnan",
    "item",
    "log",
    "log2",
    "long",
    "masked_fill",
    "max",
    "mean",
    "min",
    "numel",
    "numpy",
    "repeat",
    "repeat_interleave",
    "reshape",
    "round",
    "select",
    "sin",
    "size",
    "split",
    "sqrt",
    "square",
    "sub",
    "swapaxes",
    "to",
    "t",
    "tolist",
    "topk",
    "transpose",
    "trunc",
    "type",
    "unsqueeze",
    "view",
    "view_as",
    "fill_",
    "floor_",
    "clamp_",
    "type_as",
    "zero_",
];

/// The API of a key and whether it is a backward entry; nothing of what is of no kind that any framework checks.
pub(super) fn checked(key: &str) -> Option<(String, bool)> {
    let segments: Vec<&str> = key.split('.').collect();
    let [kind, .., direction] = segments.as_slice() else { return None };
    if segments.len() < 4 || !matches!(*direction, "forward" | "backward") {
        return None;
    }
    let is_known = matches!(*kind, "Mint" | "MintFunctional" | "Tensor" | "Functional" | "Torch");
    let (name, _) = key.rsplit_once('.')?;
    is_known.then(|| (name.to_owned(), *direction == "backward"))
}

/// Kind and name of an API, however many segments it has.
pub(super) fn call(full_name: &str) -> Option<Call> {
    let (kind, rest) = full_name.split_once('.')?;
    let (name, index) = rest.rsplit_once('.')?;
    Some(Call { kind: kind.to_owned(), name: name.to_owned(), index: index.to_owned() })
}

/// Whether the framework's check knows the API.
fn is_checked(framework: &str, full_name: &str) -> bool {
    let Some(call) = call(full_name) else { return false };
    match (framework, call.kind.as_str()) {
        ("mindtorch", kind) => matches!(kind, "Torch" | "Functional" | "Tensor"),
        (_, "Mint" | "MintFunctional") => true,
        (_, "Tensor") => MINDSPORE_TENSOR.contains(&call.name.as_str()),
        (_, "Functional") => call.name == "flash_attention_score",
        _ => false,
    }
}

/// Task, framework and directory of the dump.
pub(super) fn check_header(plan: &mut Plan, file: &DumpFile, directory: &Path) -> Result<(), PlanError> {
    let header = file.header();
    let failed = |what: &str| PlanError::MindSpore(what.to_owned());
    let task = header.task.as_deref().unwrap_or_default();
    plan.framework = match header.framework.as_deref() {
        Some(known @ ("mindspore" | "mindtorch")) => known.to_owned(),
        other => {
            let what = other.unwrap_or("nothing");
            plan.notes.push(("warning", format!("framework is {what}, taken for mindspore")));
            "mindspore".to_owned()
        }
    };
    match task {
        "statistics" => {}
        "tensor" => {
            let text =
                header.dump_data_dir.as_deref().and_then(|text| serde_json::from_str::<String>(text).ok());
            let text =
                text.filter(|text| !text.is_empty()).ok_or_else(|| failed("dump_data_dir is missing"))?;
            // Literally, as the reference takes it; what is beside the dump where that is not there.
            let said = Path::new(&text).to_owned();
            let beside = directory.join(super::TENSORS);
            plan.data_dir = Some(if said.is_dir() || !beside.is_dir() { said } else { beside });
        }
        other => return Err(failed(&format!("task must be statistics or tensor, got {other}"))),
    }
    let framework = plan.framework.clone();
    plan.entries.retain(|entry| is_checked(&framework, &entry.full_name));
    Ok(())
}
