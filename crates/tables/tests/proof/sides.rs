//! Two sides to compare, and a small run with everything a record can hold.

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_compare::verdict::{Allowed, Status, Tolerances};
use msprobe_report::Formats;
use msprobe_report::console::Silent;
use msprobe_tables::run::{Form, Mappings, Options, Outcome, StackSource, compare_dumps};
use serde_json::{Value, json};

/// The newer form without any file.
pub(crate) fn options(output: &Path, stack: StackSource, allowed: Allowed) -> Options {
    Options {
        form: Form::Newest,
        output: output.to_owned(),
        formats: Formats::default(),
        stack,
        advisor: false,
        fuzzy: false,
        mappings: Mappings::default(),
        log_rows: false,
        first_difference: false,
        tolerances: Tolerances::default(),
        noise: Vec::new(),
        allowed,
    }
}

/// Two sides in a directory of their own.
pub(crate) struct Sides {
    dir: tempfile::TempDir,
}

impl Sides {
    pub(crate) fn new() -> Sides {
        Sides { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, side: &str) -> PathBuf {
        self.dir.path().join(side)
    }

    pub(crate) fn write(&self, place: &str, dump: &Value) {
        let path = self.path(place).join("dump.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, dump.to_string()).unwrap();
    }

    pub(crate) fn compare(&self, target: &str, golden: &str) -> Result<Outcome, String> {
        self.compare_allowing(target, golden, "")
    }

    pub(crate) fn compare_allowing(
        &self,
        target: &str,
        golden: &str,
        allowed: &str,
    ) -> Result<Outcome, String> {
        let options = options(&self.path("out"), StackSource::Off, Allowed::parse(allowed).unwrap());
        compare_dumps(&self.path(target), &self.path(golden), &options, &Silent)
            .map_err(|error| error.message)
    }
}

pub(crate) fn tensor(shape: &[usize], max: f64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": max, "Min": -max, "Mean": 0.25 * max,
           "Norm": 3.0 * max, "requires_grad": false})
}

pub(crate) fn integer(max: i64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4], "Max": max, "Min": 0, "Mean": 1.5, "Norm": 3.0,
           "requires_grad": false})
}

/// A small run with everything a record can hold.
pub(crate) fn run() -> Value {
    json!({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
        "Functional.embedding.0.forward": {
            "input_args": [integer(9_007_199_254_740_993), tensor(&[10, 4], 2.0)],
            "input_kwargs": {"padding_idx": {"type": "int", "value": 3}, "scale": {"type": "float", "value": 0.3606},
                             "name": {"type": "str", "value": "table"}, "shape": {"type": "torch.Size", "value": [2, 3]},
                             "requires_grad": {"type": "bool", "value": true}},
            "output": [tensor(&[4, 4], 1.5)], "is_recompute": false},
        "Module.fc.Linear.forward.0": {
            "input_args": [tensor(&[4, 4], 1.5)], "input_kwargs": {},
            "output": [tensor(&[4, 2], 0.5), null], "parameters": {"weight": tensor(&[2, 4], 0.7), "bias": tensor(&[2], 0.1)},
            "is_recompute": false},
        "Tensor.item.0.forward": {
            "input_args": [tensor(&[], 0.5)], "input_kwargs": {}, "output": [{"type": "float", "value": 0.5}],
            "is_recompute": false},
        "Tensor.any.0.forward": {
            "input_args": [tensor(&[4, 2], 0.5)], "input_kwargs": {},
            "output": [{"type": "bool", "value": true}, {"type": "str", "value": "a"}, {"type": "int", "value": 1}],
            "is_recompute": false},
        "Module.fc.Linear.backward.0": {"input": [tensor(&[4, 2], 0.2)], "output": [tensor(&[4, 4], 0.3)], "is_recompute": false},
        "Module.fc.Linear.parameters_grad": {"weight": [tensor(&[2, 4], 0.01)], "bias": [tensor(&[2], 0.02)]},
    }})
}

/// The status of one way, or `None` where the comparison was refused.
pub(crate) fn statuses(sides: &Sides) -> [Option<Status>; 2] {
    [("target", "golden"), ("golden", "target")]
        .map(|(target, golden)| sides.compare(target, golden).ok().map(|outcome| outcome.status()))
}

/// Changes `/data/…` of the target.
pub(crate) fn changed(pointer: &str, value: Value) -> Value {
    let mut dump = run();
    *dump.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    dump
}

pub(crate) fn removed(pointer: &str, key: &str) -> Value {
    let mut dump = run();
    dump.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    dump
}

pub(crate) const LINEAR: &str = "/data/Module.fc.Linear.forward.0";
