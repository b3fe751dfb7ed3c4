//! What is recorded of made-up runs. Recorded runs are in `tests/filter_golden.rs`.

use serde_json::json;

use super::*;
use crate::config::Overrides;
use crate::framework::Framework;

const FORWARD: Direction = Direction::Forward;
const BACKWARD: Direction = Direction::Backward;

fn filter(level: &str, section: &serde_json::Value) -> Filter {
    let file = json!({ "dump_path": "out", "level": level, "statistics": section });
    Filter::new(
        &Config::from_json(&file.to_string(), &Overrides::default(), &Framework::known()).unwrap().config,
    )
}

fn scope(level: &str, ends: [&str; 2]) -> Filter {
    filter(level, &json!({ "scope": ends }))
}

fn list(level: &str, names: &[&str]) -> Filter {
    filter(level, &json!({ "list": names }))
}

/// A forward call: whether its input and its output are recorded.
fn call(filter: &mut Filter, name: &str) -> (bool, bool) {
    let (begin, end) = (filter.api_begin(name), filter.api_end(name));
    assert!(!begin.output && !end.input);
    (begin.input, end.output)
}

/// Whether the whole call is recorded; half a call fails the test.
fn calls(filter: &mut Filter, name: &str) -> bool {
    let (input, output) = call(filter, name);
    assert_eq!(input, output, "{name}");
    input
}

fn backward(filter: &mut Filter, name: &str) -> bool {
    let decision = filter.api_backward(name);
    assert_eq!((decision.input, decision.output), (decision.selected, decision.selected));
    decision.any()
}

/// A module with something in it: whether it is recorded, and what the inside says.
fn module<T>(
    filter: &mut Filter,
    name: &str,
    direction: Direction,
    inside: impl FnOnce(&mut Filter) -> T,
) -> (bool, T) {
    filter.module_begin(name);
    let inside = inside(filter);
    (filter.module_end(name, direction).any(), inside)
}

fn leaf(filter: &mut Filter, name: &str, direction: Direction) -> bool {
    module(filter, name, direction, |_| ()).0
}

#[test]
fn without_filters_everything_is_recorded() {
    for level in ["L0", "L1", "mix"] {
        let mut filter = filter(level, &json!({}));
        assert!(calls(&mut filter, "Torch.relu.0.forward"));
        assert!(backward(&mut filter, "Torch.relu.0.backward"));
        assert!(leaf(&mut filter, "Module.a.B.forward.0", FORWARD));
        assert!(filter.parameters_grad("Module.a.B.parameters_grad"));
        assert!(!filter.saves_tensors("Torch.relu.0.forward"));
    }
}

#[test]
fn an_api_scope_includes_both_ends_whole() {
    let mut filter = scope("L1", ["Torch.add.1.forward", "Torch.mul.0.forward"]);
    let names = ["Torch.add.0.forward", "Torch.add.1.forward", "Torch.sub.0.forward", "Torch.mul.0.forward"];
    assert_eq!(names.map(|name| calls(&mut filter, name)), [false, true, true, true]);
    assert!(!calls(&mut filter, "Torch.sub.1.forward"));
    assert!(!backward(&mut filter, "Torch.add.1.backward"));
}

#[test]
fn what_runs_inside_the_closing_call_is_outside() {
    let mut filter = scope("mix", ["Torch.add.0.forward", "Torch.mul.0.forward"]);
    assert!(calls(&mut filter, "Torch.add.0.forward"));
    assert!(filter.api_begin("Torch.mul.0.forward").input);
    assert!(!leaf(&mut filter, "Module.a.B.forward.0", FORWARD));
    // Its output may come late, and more than once.
    assert!(!calls(&mut filter, "Torch.sub.0.forward"));
    assert!(filter.api_end("Torch.mul.0.forward").output);
    assert!(filter.api_end("Torch.mul.0.forward").output);
}

#[test]
fn an_opening_call_that_completes_late_does_not_open_again() {
    let mut filter = scope("L1", ["Distributed.all_reduce.0.forward", "Torch.mul.0.forward"]);
    assert!(filter.api_begin("Distributed.all_reduce.0.forward").input);
    assert!(calls(&mut filter, "Torch.mul.0.forward"));
    assert!(filter.api_end("Distributed.all_reduce.0.forward").output);
    assert!(!calls(&mut filter, "Torch.sub.0.forward"));
}

#[test]
fn equal_ends_are_one_record_every_time() {
    let mut filter = scope("L1", ["Torch.add.0.forward", "Torch.add.0.forward"]);
    for _step in 0..3 {
        assert!(!calls(&mut filter, "Torch.sub.0.forward"));
        assert!(calls(&mut filter, "Torch.add.0.forward"));
        assert!(!calls(&mut filter, "Torch.sub.1.forward"));
    }
    let mut filter = scope("L1", ["Torch.add.0.backward", "Torch.add.0.backward"]);
    for _step in 0..3 {
        assert!(!calls(&mut filter, "Torch.add.0.forward"));
        assert!(backward(&mut filter, "Torch.add.0.backward"));
        assert!(!backward(&mut filter, "Torch.sub.0.backward"));
    }
    let mut filter = scope("L0", ["Module.a.B.forward.0", "Module.a.B.forward.0"]);
    for _step in 0..3 {
        assert!(!leaf(&mut filter, "Module.b.B.forward.0", FORWARD));
        let inner = |filter: &mut Filter| leaf(filter, "Module.a.c.C.forward.0", FORWARD);
        assert_eq!(module(&mut filter, "Module.a.B.forward.0", FORWARD, inner), (true, true));
        assert!(!leaf(&mut filter, "Module.b.B.forward.1", FORWARD));
    }
}

#[test]
fn a_scope_opens_again_when_its_first_name_recurs() {
    let mut filter = scope("L1", ["Torch.add.0.forward", "Torch.mul.0.forward"]);
    for _step in 0..2 {
        assert!(!calls(&mut filter, "Torch.sub.0.forward"));
        assert!(calls(&mut filter, "Torch.add.0.forward"));
        assert!(calls(&mut filter, "Torch.mul.0.forward"));
    }
    // The last name before the first one is no end, nor is its output left over from the step before.
    assert!(!calls(&mut filter, "Torch.mul.0.forward"));
    assert!(calls(&mut filter, "Torch.add.0.forward"));
    assert!(calls(&mut filter, "Torch.sub.1.forward"));
}

#[test]
fn a_scope_that_was_never_closed_is_closed_by_a_reset() {
    let mut filter = scope("L1", ["Torch.add.0.forward", "Torch.mul.0.forward"]);
    assert!(calls(&mut filter, "Torch.add.0.forward"));
    assert!(calls(&mut filter, "Torch.sub.0.forward"));
    filter.reset();
    assert!(!calls(&mut filter, "Torch.sub.0.forward"));

    let mut filter = list("mix", &["layers.0"]);
    filter.module_begin("Module.layers.0.B.forward.0");
    assert!(calls(&mut filter, "Torch.sub.0.forward"));
    filter.reset();
    assert!(!calls(&mut filter, "Torch.sub.0.forward"));
}

#[test]
fn an_api_scope_can_span_the_passes() {
    let mut filter = scope("L1", ["Torch.mul.0.forward", "Torch.mul.0.backward"]);
    assert!(!calls(&mut filter, "Torch.add.0.forward"));
    assert!(calls(&mut filter, "Torch.mul.0.forward"));
    assert!(calls(&mut filter, "Torch.sum.0.forward"));
    assert!(backward(&mut filter, "Torch.sum.0.backward"));
    assert!(backward(&mut filter, "Torch.mul.0.backward"));
    assert!(!backward(&mut filter, "Torch.add.0.backward"));
}

#[test]
fn a_module_scope_lasts_until_its_last_module_ends() {
    let mut filter = scope("L0", ["Module.a.A.forward.0", "Module.b.B.forward.0"]);
    assert!(!leaf(&mut filter, "Module.x.X.forward.0", FORWARD));
    assert!(leaf(&mut filter, "Module.a.A.forward.0", FORWARD));
    assert!(leaf(&mut filter, "Module.x.X.forward.1", FORWARD));
    let inner = |filter: &mut Filter| leaf(filter, "Module.b.c.C.forward.0", FORWARD);
    assert_eq!(module(&mut filter, "Module.b.B.forward.0", FORWARD, inner), (true, true));
    assert!(!leaf(&mut filter, "Module.x.X.forward.2", FORWARD));
    assert!(!filter.parameters_grad("Module.a.A.parameters_grad"));
}

#[test]
fn a_backward_end_closes_when_the_modules_backward_has_finished() {
    let mut filter = scope("L0", ["Module.b.B.forward.0", "Module.b.B.backward.0"]);
    assert!(!leaf(&mut filter, "Module.a.A.forward.0", FORWARD));
    assert!(leaf(&mut filter, "Module.b.B.forward.0", FORWARD));
    let inner = |filter: &mut Filter| {
        let inner = leaf(filter, "Module.b.c.C.backward.0", BACKWARD);
        (inner, filter.parameters_grad("Module.b.c.C.parameters_grad"))
    };
    let outer = module(&mut filter, "Module.b.B.backward.0", BACKWARD, inner);
    assert_eq!(outer, (true, (true, true)));
    assert!(!filter.parameters_grad("Module.b.B.parameters_grad"));
    assert!(!leaf(&mut filter, "Module.a.A.backward.0", BACKWARD));
}

#[test]
fn a_first_module_around_the_last_record_is_kept_and_does_not_open_again() {
    for (level, last) in [("L0", "Module.a.b.B.forward.0"), ("mix", "Torch.mul.0.forward")] {
        let mut filter = scope(level, ["Module.a.A.forward.0", last]);
        let outer = module(&mut filter, "Module.a.A.forward.0", FORWARD, |filter| {
            let inner = module(filter, "Module.a.b.B.forward.0", FORWARD, |filter| {
                let end = if level == "mix" { calls(filter, last) } else { true };
                (end, calls(filter, "Torch.sub.0.forward"))
            });
            (inner, leaf(filter, "Module.a.c.C.forward.0", FORWARD))
        });
        let inner = if level == "mix" { (false, (true, false)) } else { (true, (true, true)) };
        assert_eq!(outer, (true, (inner, false)), "{level}");
        assert!(!calls(&mut filter, "Torch.sub.1.forward"));
        assert!(!leaf(&mut filter, "Module.d.D.forward.0", FORWARD));
    }
}

#[test]
fn mixed_ends_act_together() {
    let mut filter = scope("mix", ["Torch.add.0.forward", "Module.b.B.forward.0"]);
    // The scope opens within the module that ends it.
    let inside = |filter: &mut Filter| {
        ["Torch.sub.0.forward", "Torch.add.0.forward", "Torch.sub.1.forward"].map(|name| calls(filter, name))
    };
    assert_eq!(module(&mut filter, "Module.b.B.forward.0", FORWARD, inside), (true, [false, true, true]));
    assert!(!calls(&mut filter, "Torch.sub.2.forward"));

    let mut filter = scope("mix", ["Module.b.B.backward.0", "Torch.add.0.backward"]);
    assert!(!leaf(&mut filter, "Module.b.B.forward.0", FORWARD));
    assert!(leaf(&mut filter, "Module.b.B.backward.0", BACKWARD));
    assert!(backward(&mut filter, "Torch.add.0.backward"));
    assert!(!backward(&mut filter, "Torch.sub.0.backward"));
}

#[test]
fn a_list_is_of_substrings() {
    for level in ["L0", "L1", "mix"] {
        let mut filter = list(level, &["relu", "Torch.add.1.backward", "m+"]);
        let names =
            ["Torch.relu.0.forward", "Tensor.relu_.7.forward", "Torch.add.1.forward", "Torch.mm.0.forward"];
        assert_eq!(names.map(|name| calls(&mut filter, name)), [true, true, false, false]);
        assert!(backward(&mut filter, "Torch.add.1.backward"));
        assert!(!backward(&mut filter, "Torch.add.11.backward"));
        assert!(!filter.parameters_grad("Module.fc.Linear.parameters_grad"));
        assert!(filter.parameters_grad("Module.prelu.PReLU.parameters_grad"));
    }
}

#[test]
fn at_mix_a_listed_module_is_recorded_with_all_in_it() {
    for (level, expands) in [("L0", false), ("L1", false), ("mix", true)] {
        let mut filter = list(level, &["layers.1", "nothing"]);
        assert!(!leaf(&mut filter, "Module.layers.0.B.forward.0", FORWARD));
        let outer = module(&mut filter, "Module.layers.1.B.forward.0", FORWARD, |filter| {
            // Expansion lasts until the outermost listed module ends.
            let inner = module(filter, "Module.layers.1.fc.Linear.forward.0", FORWARD, |filter| {
                let other = leaf(filter, "Module.shared.C.forward.0", FORWARD);
                (calls(filter, "Torch.add.0.forward"), other)
            });
            (inner, calls(filter, "Torch.add.1.forward"))
        });
        assert_eq!(outer, (true, ((true, (expands, expands)), expands)), "{level}");
        assert!(!calls(&mut filter, "Torch.add.2.forward"));
        // Backward names differ, and so do their beginnings and ends.
        let inside = |filter: &mut Filter| backward(filter, "Torch.add.1.backward");
        let outer = module(&mut filter, "Module.layers.1.B.backward.0", BACKWARD, inside);
        assert_eq!(outer, (true, expands));
        assert!(!backward(&mut filter, "Torch.add.0.backward"));
    }
}

#[test]
fn one_direction_of_a_module_can_be_listed() {
    let mut filter = list("mix", &["B.backward"]);
    let inside = |filter: &mut Filter| calls(filter, "Torch.add.0.forward");
    assert_eq!(module(&mut filter, "Module.a.B.forward.0", FORWARD, inside), (false, false));
    let inside = |filter: &mut Filter| backward(filter, "Torch.add.0.backward");
    assert_eq!(module(&mut filter, "Module.a.B.backward.0", BACKWARD, inside), (true, true));
}

#[test]
fn an_end_without_a_beginning_ends_nothing_else() {
    let mut filter = list("mix", &["layers"]);
    filter.module_begin("Module.layers.0.B.forward.0");
    filter.module_begin("Module.layers.0.B.forward.0");
    assert!(filter.module_end("Module.layers.1.B.forward.0", FORWARD).any());
    assert!(calls(&mut filter, "Torch.add.0.forward"));
    assert!(filter.module_end("Module.layers.0.B.forward.0", FORWARD).any());
    assert!(!calls(&mut filter, "Torch.add.1.forward"));
}

#[test]
fn scope_and_list_must_both_want_it() {
    let section = json!({ "scope": ["Torch.add.0.forward", "Torch.add.1.forward"], "list": ["mul", "fc"] });
    let mut filter = filter("mix", &section);
    let names = ["Torch.mul.0.forward", "Torch.add.0.forward", "Torch.mul.1.forward", "Torch.sub.0.forward"];
    assert_eq!(names.map(|name| calls(&mut filter, name)), [false, false, true, false]);
    let inside = |filter: &mut Filter| {
        ["Torch.sub.1.forward", "Torch.add.1.forward", "Torch.mul.2.forward"].map(|name| calls(filter, name))
    };
    assert_eq!(
        module(&mut filter, "Module.fc.Linear.forward.0", FORWARD, inside),
        (false, [true, true, false])
    );
}

#[test]
fn data_mode_takes_sides_of_what_is_selected() {
    let section = json!({ "list": ["relu"], "data_mode": ["forward", "output"] });
    let mut filter = filter("L1", &section);
    assert_eq!(call(&mut filter, "Torch.relu.0.forward"), (false, true));
    assert_eq!(call(&mut filter, "Torch.add.0.forward"), (false, false));
    let begin = filter.api_begin("Torch.relu.1.forward");
    assert_eq!((begin.selected, begin.any()), (true, false), "stacks are recorded of it");
    let backward = filter.api_backward("Torch.relu.0.backward");
    assert_eq!((backward.selected, backward.any()), (true, false));
    filter.module_begin("Module.relu.ReLU.forward.0");
    let end = filter.module_end("Module.relu.ReLU.forward.0", FORWARD);
    assert_eq!(end, Decision { selected: true, input: false, output: true });
    assert!(!filter.parameters_grad("Module.relu.ReLU.parameters_grad"));
}

#[test]
fn data_mode_input_leaves_gradients_of_parameters() {
    let mut filter = filter("mix", &json!({ "data_mode": ["input"] }));
    assert_eq!(call(&mut filter, "Torch.relu.0.forward"), (true, false));
    let backward = filter.api_backward("Torch.relu.0.backward");
    assert_eq!(backward, Decision { selected: true, input: true, output: false });
    assert!(filter.parameters_grad("Module.fc.Linear.parameters_grad"));
}

#[test]
fn a_tensor_list_is_of_substrings_too() {
    let section = json!({ "tensor_list": ["softmax", "fc.Linear.parameters_grad"] });
    let filter = filter("mix", &section);
    assert!(filter.saves_tensors("Functional.log_softmax.0.backward"));
    assert!(filter.saves_tensors("Module.fc.Linear.parameters_grad"));
    assert!(!filter.saves_tensors("Module.fc.Linear.forward.0"));
    assert!(!self::filter("mix", &json!({})).saves_tensors("softmax"));
}

#[test]
fn a_free_benchmark_takes_the_names_it_is_given() {
    let file = json!({
        "task": "free_benchmark", "dump_path": "out", "free_benchmark": { "scope": ["Torch.add.1.forward"] },
    });
    let config =
        Config::from_json(&file.to_string(), &Overrides::default(), &Framework::known()).unwrap().config;
    let mut filter = Filter::new(&config);
    assert!(!calls(&mut filter, "Torch.add.0.forward"));
    assert!(calls(&mut filter, "Torch.add.1.forward"));
    assert!(!calls(&mut filter, "Torch.add.11.forward"));
    assert!(!backward(&mut filter, "Torch.add.1.backward"));
    filter.reset();
    assert!(calls(&mut filter, "Torch.add.1.forward"));
}

#[test]
fn what_is_at_hand_while_a_module_runs() {
    let wants = |filter: &Filter, name: &str, direction| filter.module_running(name, direction).selected;
    let listed = list("L0", &["fc1"]);
    assert!(wants(&listed, "Module.fc1.Linear.forward.0", FORWARD));
    assert!(!wants(&listed, "Module.fc2.Linear.backward.0", BACKWARD));
    let mut ranged = scope("L0", ["Module.a.fc.Linear.backward.0", "Module.a.A.backward.0"]);
    // Around the first record: its gradients come before the scope opens, its record after.
    assert!(wants(&ranged, "Module.a.A.backward.0", BACKWARD));
    assert!(!wants(&ranged, "Module.ab.B.backward.0", BACKWARD));
    assert!(!wants(&ranged, "Module.a.A.forward.0", FORWARD));
    ranged.module_begin("Module.a.fc.Linear.backward.0");
    assert!(wants(&ranged, "Module.ab.B.backward.0", BACKWARD));
    let forward = scope("L0", ["Module.a.fc.Linear.forward.0", "Module.b.B.forward.0"]);
    assert!(!wants(&forward, "Module.a.A.backward.0", BACKWARD));
}

#[test]
fn families_match_in_any_case() {
    for word in ["distributed", "DISTRIBUTED", "Distributed", "distributed.all_reduce"] {
        let mut filter = list("L1", &[word]);
        assert!(calls(&mut filter, "Distributed.all_reduce.0.forward"), "{word}");
        assert!(backward(&mut filter, "Distributed.all_reduce.0.backward"), "{word}");
        assert!(!calls(&mut filter, "Torch.add.0.forward"), "{word}");
    }
    // Of families only: the rest of a name keeps its case, and a part of a family is none.
    for word in ["distributed.ALL_REDUCE", "distributed.reduce", "dist", "all_Reduce", "istributed.All"] {
        assert!(!calls(&mut list("L1", &[word]), "Distributed.all_reduce.0.forward"), "{word}");
    }
    assert!(calls(&mut list("L1", &["npu"]), "NPU.npu_swiglu.0.forward"));
    assert!(calls(&mut list("L1", &["torch.relu"]), "Torch.relu_.0.forward"));
    assert!(leaf(&mut list("L0", &["module"]), "Module.fc.Linear.forward.0", FORWARD));
    assert!(!calls(&mut list("L1", &["torch"]), "Functional.relu.0.forward"));
    let mut saving = filter("L1", &json!({ "tensor_list": ["functional.relu"] }));
    saving.reset();
    assert!(saving.saves_tensors("Functional.relu.0.forward"));
    assert!(!saving.saves_tensors("Torch.relu.0.forward"));
}

#[test]
fn a_list_that_matched_nothing_names_what_is_near() {
    let mut filter = list("L1", &["Functional.rleu", "linear"]);
    for name in ["Functional.relu.0.forward", "Functional.linear.0.forward", "Functional.relu.1.forward"] {
        filter.api_begin(name);
    }
    let told = filter.take_unmatched();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].wanted.as_str(), told[0].nearest[0].as_str()),
        ("Functional.rleu", "Functional.relu.1.forward")
    );
    let text = told[0].to_string();
    assert!(
        text.starts_with("list has \"Functional.rleu\", which is in no name in this step so far"),
        "{text}"
    );
    // Once in a run, unless it is of another element.
    assert_eq!(filter.take_unmatched(), []);
    filter.reset();
    filter.api_begin("Functional.relu.0.forward");
    let wanted: Vec<_> = filter.take_unmatched().into_iter().map(|told| told.wanted).collect();
    assert_eq!(wanted, ["linear"]);
}

#[test]
fn a_list_that_matched_is_not_told_of() {
    let mut filter = list("mix", &["fc"]);
    leaf(&mut filter, "Module.fc.Linear.forward.0", FORWARD);
    assert_eq!(filter.take_unmatched(), []);
    assert_eq!(Filter::take_unmatched(&mut list("L1", &[])), []);
}

#[test]
fn many_elements_are_counted_and_nothing_seen_is_said() {
    let mut filter = list("L1", &["a", "b", "c", "d", "e"]);
    let told = filter.take_unmatched();
    assert_eq!(told.iter().map(|one| one.further).collect::<Vec<_>>(), [0, 0, 2]);
    assert!(told[2].to_string().ends_with("and 2 more of its elements are in none; no call was seen at all"));
}

#[test]
fn a_scope_that_did_not_open_names_what_is_near() {
    let mut filter = scope("L1", ["Torch.matmul.7.forward", "Torch.add.9.forward"]);
    for name in ["Torch.add.0.forward", "Torch.matmul.0.forward", "Torch.matmul.1.forward"] {
        filter.api_begin(name);
    }
    let told = filter.take_unmatched();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].nearest, ["Torch.matmul.1.forward", "Torch.add.0.forward"]);
    assert!(told[0].to_string().starts_with("scope has not opened: in this step so far there was no"));
    filter.reset();
    filter.api_begin("Torch.matmul.7.forward");
    assert_eq!(filter.take_unmatched(), []);
}

#[test]
fn inside_a_scope_only_its_names_are_near() {
    let section = json!({ "scope": ["Torch.add.0.forward", "Torch.add.1.forward"], "list": ["linear"] });
    let mut filter = filter("L1", &section);
    for name in ["Functional.linear.0.forward", "Torch.add.0.forward", "Torch.mul.0.forward"] {
        filter.api_begin(name);
    }
    let told = filter.take_unmatched();
    assert_eq!(told[0].nearest, ["Torch.add.0.forward", "Torch.mul.0.forward"]);
    assert!(told[0].to_string().contains("in no name inside the scope"));
}

#[test]
fn what_is_remembered_is_bounded() {
    let nearest_to = |wanted: &str| {
        let mut filter = list("L1", &[wanted]);
        for index in 0..10_000 {
            filter.api_begin(&format!("Custom.function{index}.0.forward"));
        }
        filter.take_unmatched().remove(0).nearest
    };
    assert_eq!(nearest_to("function_4000")[0], "Custom.function4000.0.forward");
    assert_ne!(nearest_to("function_9999")[0], "Custom.function9999.0.forward");
}
