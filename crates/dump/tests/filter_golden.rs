//! Runs of the reference with scope and list at level mix, replayed: the filter keeps what the reference kept.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod golden;

use std::collections::BTreeMap;

use msprobe_dump::config::{Config, Overrides};
use msprobe_dump::filter::Filter;
use msprobe_dump::names::{Direction, ModulePass, RecordName};
use serde_json::Value;

/// What was kept of a record.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    input: bool,
    output: bool,
    saved: bool,
}

/// A run, told from its `construct.json`: that has every API in the order of execution with the module around it,
/// whatever was recorded.
struct Replay<'a> {
    filter: Filter,
    parents: &'a serde_json::Map<String, Value>,
    /// Begun modules, innermost last.
    stack: Vec<&'a str>,
    kept: BTreeMap<&'a str, Kept>,
}

impl<'a> Replay<'a> {
    fn run(config: &Config, construct: &'a Value) -> BTreeMap<&'a str, Kept> {
        let parents = construct.as_object().unwrap();
        let mut replay =
            Replay { filter: Filter::new(config), parents, stack: Vec::new(), kept: BTreeMap::new() };
        for (name, parent) in parents {
            if let RecordName::Api(api) = RecordName::parse(name) {
                replay.enter(parent.as_str());
                replay.api(name, api.direction());
            }
        }
        replay.enter(None);
        replay.kept
    }

    /// Ends and begins modules until `module` is the innermost one.
    fn enter(&mut self, module: Option<&'a str>) {
        let mut path = Vec::new();
        let mut next = module;
        while let Some(name) = next {
            path.push(name);
            next = self.parents[name].as_str();
        }
        path.reverse();
        while !path.starts_with(&self.stack) {
            let name = self.stack.pop().unwrap();
            let RecordName::Module(module) = RecordName::parse(name) else { panic!("{name}") };
            let direction = match module.pass() {
                ModulePass::Forward(_) => Direction::Forward,
                ModulePass::Backward(_) => Direction::Backward,
                ModulePass::ParametersGrad(_) => panic!("{name}"),
            };
            let decision = self.filter.module_end(name, direction);
            self.keep(name, decision.input, decision.output);
        }
        for name in &path[self.stack.len()..] {
            self.filter.module_begin(name);
            self.stack.push(name);
        }
    }

    fn api(&mut self, name: &'a str, direction: Direction) {
        let (input, output) = match direction {
            Direction::Forward => (self.filter.api_begin(name).input, self.filter.api_end(name).output),
            Direction::Backward => {
                let decision = self.filter.api_backward(name);
                (decision.input, decision.output)
            }
        };
        self.keep(name, input, output);
    }

    fn keep(&mut self, name: &'a str, input: bool, output: bool) {
        if input || output {
            let saved = self.filter.saves_tensors(name);
            self.kept.insert(name, Kept { input, output, saved });
        }
    }
}

/// The records of a `dump.json`; those of gradients have no place in the replay.
fn recorded(dump: &Value) -> BTreeMap<&str, Kept> {
    let records = dump["data"].as_object().unwrap().iter();
    let kept = records.map(|(name, record)| {
        let input = record.get("input_args").or(record.get("input")).is_some();
        let saved = record.to_string().contains("data_name");
        (name.as_str(), Kept { input, output: record.get("output").is_some(), saved })
    });
    kept.filter(|(name, _)| !name.ends_with("parameters_grad")).collect()
}

fn config(case: &str) -> Config {
    let text = golden::json(&format!("{case}/config.json")).to_string();
    Config::from_json(&text, &Overrides::default(), &golden::framework()).unwrap().config
}

#[test]
fn a_scope_from_a_module_to_an_api() {
    let construct = golden::json("scope_mix/dump/step0/rank/construct.json");
    let dump = golden::json("scope_mix/dump/step0/rank/dump.json");
    let mut expected = recorded(&dump);
    assert_eq!(expected.len(), 13);
    // Here we differ: the reference loses the output of the closing call.
    let closing = expected.get_mut("Functional.softmax.0.forward").unwrap();
    assert_eq!(*closing, Kept { input: true, output: false, saved: false });
    closing.output = true;
    assert_eq!(Replay::run(&config("scope_mix"), &construct), expected);
}

#[test]
fn a_list_with_a_module_and_an_api() {
    let construct = golden::json("list_mix/dump/step0/rank/construct.json");
    let dump = golden::json("list_mix/dump/step0/rank/dump.json");
    let expected = recorded(&dump);
    assert_eq!(expected.len(), 24);
    assert_eq!(expected.values().filter(|kept| kept.saved).count(), 1);
    assert_eq!(Replay::run(&config("list_mix"), &construct), expected);
}
