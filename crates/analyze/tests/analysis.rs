//! Whole analyses of small dumps made by hand: rules, ranks that are missing, files that end early, steps, communication.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::Path;

use msprobe_analyze::outcome::{Outcome, Status};
use msprobe_analyze::rules::{Rule, Rules};
use msprobe_analyze::run::{Options, analyze};
use msprobe_report::console::Silent;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tempfile::TempDir;

/// Tensors by letter: `f` finite, `n` NaN, `i` Inf, `m` a mask; the number is its size.
fn tensor(spec: &str) -> String {
    let (kind, size) = spec.split_at(1);
    let (max, min) = match kind {
        "n" => ("NaN", "NaN"),
        "i" => ("Infinity", "0.0"),
        "m" => ("1.0", "-Infinity"),
        _ => ("1.0", "-1.0"),
    };
    format!(
        "{{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [{size}], \"Max\": {max}, \"Min\": {min}, \
         \"Mean\": 0.5, \"Norm\": 1.5, \"requires_grad\": false}}"
    )
}

fn tensors(specs: &str) -> String {
    specs.split_whitespace().map(tensor).collect::<Vec<_>>().join(", ")
}

/// `name: inputs > outputs`, with further arguments as JSON after `|` and arguments by name after `#`.
fn record(line: &str) -> String {
    let (name, rest) = line.split_once(": ").unwrap();
    let (rest, named) = rest.split_once('#').unwrap_or((rest, ""));
    let (values, more) = rest.split_once('|').unwrap_or((rest, ""));
    let (inputs, outputs) = values.split_once('>').unwrap();
    let mut args = tensors(inputs);
    if !more.trim().is_empty() {
        args = [args, more.trim().to_owned()]
            .iter()
            .filter(|part| !part.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
    }
    if name.contains(".backward") {
        return format!("\"{name}\": {{\"input\": [{args}], \"output\": [{}]}}", tensors(outputs));
    }
    format!(
        "\"{name}\": {{\"input_args\": [{args}], \"input_kwargs\": {{{named}}}, \"output\": [{}], \"is_recompute\": false}}",
        tensors(outputs)
    )
}

fn dump(lines: &[&str]) -> String {
    let records: Vec<String> = lines.iter().map(|line| record(line)).collect();
    format!(
        "{{\"task\": \"statistics\", \"level\": \"L1\", \"framework\": \"pytorch\", \"dump_data_dir\": null, \"data\": \
         {{{}}}}}",
        records.join(",\n")
    )
}

fn write_rank(step: &Path, rank: usize, lines: &[&str]) {
    let dir = step.join(format!("rank{rank}"));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("dump.json"), dump(lines)).unwrap();
    fs::write(dir.join("construct.json"), "{}").unwrap();
    fs::write(dir.join("stack.json"), "{}").unwrap();
}

fn step(ranks: &[&[&str]]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (rank, lines) in ranks.iter().enumerate() {
        write_rank(dir.path(), rank, lines);
    }
    dir
}

fn look_at(step: &Path) -> Outcome {
    analyze(step, &Options::default(), &Silent).unwrap()
}

fn origins(outcome: &Outcome) -> Vec<(u32, &str, &str)> {
    outcome.origins.iter().map(|origin| (origin.rank, &*origin.operation, origin.kind.as_str())).collect()
}

fn without(rules: &[Rule]) -> Options {
    Options { rules: Rules::without(rules), ..Options::default() }
}

const FILL: &str = "{\"type\": \"float\", \"value\": -Infinity}";

#[test]
fn rules_excuse_until_they_are_switched_off() {
    let masked = format!("Tensor.masked_fill.0.forward: f4 > m4 | {FILL}");
    let lines = [
        "Torch.empty.0.forward: > n9",
        "Tensor.view.0.forward: n9 > n3",
        &masked,
        "Torch.softmax.0.forward: m4 > f4",
    ];
    let dir = step(&[&lines]);
    let outcome = look_at(dir.path());
    assert_eq!(outcome.status(), Status::Clean);
    assert_eq!(
        outcome.harmless().iter().map(|excused| excused.rule).collect::<Vec<_>>(),
        [Rule::Uninitialized, Rule::Uninitialized, Rule::Mask]
    );
    let outcome = analyze(dir.path(), &without(&[Rule::Uninitialized]), &Silent).unwrap();
    assert_eq!(origins(&outcome), [(0, "Torch.empty.0.forward", "produced")]);
    // Without the rule for masks, the one for numbers given on purpose still holds: the softmax ends it.
    let outcome = analyze(dir.path(), &without(&[Rule::Mask]), &Silent).unwrap();
    assert_eq!(outcome.status(), Status::Clean);
    let outcome = analyze(dir.path(), &without(&[Rule::Mask, Rule::ExplicitFill]), &Silent).unwrap();
    assert_eq!(origins(&outcome), [(0, "Tensor.masked_fill.0.forward", "produced")]);
}

#[test]
fn harm_that_goes_on_is_no_excuse() {
    let filled = format!("Torch.full.0.forward: > m4 | {FILL}");
    let dir = step(&[&[&filled, "Torch.mul.0.forward: m4 f4 > n4"]]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Torch.full.0.forward", "produced")]);
    assert!(outcome.origins[0].reason.contains("argument"), "{}", outcome.origins[0].reason);
    let dir = step(&[&["Torch.empty.0.forward: > n9", "Torch.mul.0.forward: n9 f9 > n9"]]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Torch.mul.0.forward", "produced")]);
    assert!(outcome.origins[0].reason.contains("written"), "{}", outcome.origins[0].reason);
    let dir = step(&[&[&filled, "Torch.softmax.0.forward: m4 > n4"]]);
    assert_eq!(origins(&look_at(dir.path())), [(0, "Torch.softmax.0.forward", "produced")]);
}

#[test]
fn receive_buffers_count_only_without_their_rule() {
    let to_1 = "Distributed.send.0.forward: f4 > f4 | {\"type\": \"int\", \"value\": 1}";
    let from_0 = "Distributed.recv.0.forward: n4 > f4 | {\"type\": \"int\", \"value\": 0}";
    let dir = step(&[&[to_1], &[from_0, "Torch.add.0.forward: f4 > f4"]]);
    assert_eq!(look_at(dir.path()).status(), Status::Clean);
    let outcome = analyze(dir.path(), &without(&[Rule::ReceiveBuffer]), &Silent).unwrap();
    assert_eq!(origins(&outcome), [(1, "Distributed.recv.0.forward", "input")]);
}

#[test]
fn what_comes_from_a_rank_without_a_dump_is_said_once() {
    let call = "Distributed.all_reduce.0.forward: f4 > n4 # \"group\": {\"type\": \"torch.ProcessGroup\", \"group_ranks\": \
                [0, 1, 2], \"group_id\": \"ab\"}";
    let dir = step(&[&[call, "Torch.add.0.forward: n4 > n4"], &[call]]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Distributed.all_reduce.0.forward", "missing_rank")]);
    assert!(outcome.origins[0].reason.contains("rank 2"), "{}", outcome.origins[0].reason);
    assert_eq!(outcome.spread.len(), 1);
    // With the third rank there and finite, the communication itself is to blame.
    write_rank(dir.path(), 2, &[call]);
    assert_eq!(origins(&look_at(dir.path())), [(0, "Distributed.all_reduce.0.forward", "communication")]);
}

#[test]
fn one_rank_of_many_cannot_blame_the_communication() {
    let dir = step(&[&["Distributed.all_reduce.0.forward: f4 > n4", "Torch.add.0.forward: n4 > n4"]]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Distributed.all_reduce.0.forward", "missing_rank")]);
    assert!(outcome.origins[0].reason.contains("no other rank"), "{}", outcome.origins[0].reason);
}

#[test]
fn a_dump_that_ends_early_and_a_rank_without_one_are_reported() {
    let lines =
        ["Torch.log.0.forward: f4 > n4", "Torch.add.0.forward: n4 > n4", "Torch.add.1.forward: n4 > n4"];
    let dir = step(&[&lines, &["Torch.add.0.forward: f4 > f4"]]);
    let path = dir.path().join("rank0/dump.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 60]).unwrap();
    fs::create_dir(dir.path().join("rank7")).unwrap();
    fs::remove_file(dir.path().join("rank0/construct.json")).unwrap();
    fs::remove_file(dir.path().join("rank0/stack.json")).unwrap();
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Torch.log.0.forward", "produced")]);
    assert_eq!(outcome.unreadable, [7]);
    for part in ["not written to its end", "rank 7", "construct.json", "stack"] {
        assert!(
            outcome.problems.iter().any(|problem| problem.contains(part)),
            "{part}: {:?}",
            outcome.problems
        );
    }
}

#[test]
fn posted_receives_that_wait_for_each_other_are_followed() {
    let receive = |from: usize, out: &str| {
        format!("Distributed.irecv.0.forward: f4 > {out} # \"src\": {{\"type\": \"int\", \"value\": {from}}}")
    };
    let send = |to: usize, value: &str| {
        format!(
            "Distributed.isend.0.forward: {value} > {value} # \"dst\": {{\"type\": \"int\", \"value\": {to}}}"
        )
    };
    let zero = [receive(1, "n4"), send(1, "f4"), "Torch.add.0.forward: n4 > n4".to_owned()];
    let one = [receive(0, "f4"), "Torch.log.0.forward: f4 > n4".to_owned(), send(0, "n4")];
    let zero: Vec<&str> = zero.iter().map(String::as_str).collect();
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let dir = step(&[&zero, &one]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(1, "Torch.log.0.forward", "produced")]);
    assert_eq!((outcome.spread[0].rank, outcome.spread[0].from_rank), (0, Some(1)));
    let chain: Vec<&str> = outcome.origins[0].chain.iter().map(|hop| &*hop.operation).collect();
    assert_eq!(chain, ["Torch.log.0.forward", "Distributed.isend.0.forward", "Distributed.irecv.0.forward"]);
}

#[test]
fn backward_of_a_forward_that_was_not_finite_is_no_origin() {
    let dir = step(&[&[
        "Torch.exp.0.forward: f4 > i4",
        "Torch.sum.0.forward: i4 > i1",
        "Torch.sum.0.backward: f1 > f4",
        "Torch.exp.0.backward: f4 > n5",
    ]]);
    assert_eq!(origins(&look_at(dir.path())), [(0, "Torch.exp.0.forward", "produced")]);
    let dir = step(&[&["Torch.sqrt.0.forward: f4 > f4", "Torch.sqrt.0.backward: f4 > i4"]]);
    assert_eq!(origins(&look_at(dir.path())), [(0, "Torch.sqrt.0.backward", "produced")]);
}

#[test]
fn the_first_step_with_something_is_told_and_clean_ones_leave_no_files() {
    let root = tempfile::tempdir().unwrap();
    for number in [0, 2, 10] {
        let lines: &[&str] = match number {
            0 => &["Torch.log.0.forward: f4 > f4"],
            2 => &["Torch.log.0.forward: f4 > n4"],
            _ => &["Torch.exp.0.forward: f4 > i4"],
        };
        write_rank(&root.path().join(format!("step{number}")), 0, lines);
    }
    let output = root.path().join("out");
    let options = Options { output: Some(output.clone()), ..Options::default() };
    let outcome = analyze(root.path(), &options, &Silent).unwrap();
    assert_eq!(origins(&outcome), [(0, "Torch.log.0.forward", "produced")]);
    assert!(outcome.step.ends_with("step2"));
    assert_eq!(outcome.clean_steps.len(), 1);
    assert_eq!(fs::read_dir(&output).unwrap().count(), 3);
    let clean = root.path().join("clean");
    let options = Options { output: Some(clean.clone()), ..Options::default() };
    let outcome = analyze(&root.path().join("step0"), &options, &Silent).unwrap();
    assert_eq!((outcome.status(), clean.exists()), (Status::Clean, false));
    // One rank by itself.
    let outcome = look_at(&root.path().join("step10/rank0"));
    assert_eq!(origins(&outcome), [(0, "Torch.exp.0.forward", "produced")]);
}

#[test]
fn infinities_that_are_no_masks_are_told() {
    // The logarithm of zero goes into the loss; what only looks at it proves nothing.
    let dir = step(&[&[
        "Torch.log.0.forward: f4 > m4",
        "Torch.mean.0.forward: m4 > m1",
        "Torch.isfinite.0.forward: m1 > f1",
        "Torch.ones_like.0.forward: m1 > f1",
    ]]);
    assert_eq!(origins(&look_at(dir.path())), [(0, "Torch.log.0.forward", "produced")]);
    // Scores that do not fit: the softmax is not to blame, whatever it makes of them.
    for result in ["f4", "n4"] {
        let softmax = format!("Torch.softmax.0.forward: m5 > {result}");
        let dir =
            step(&[&["Torch.matmul.0.forward: f4 f4 > m4", "Tensor.__mul__.0.forward: m4 > m5", &softmax]]);
        assert_eq!(origins(&look_at(dir.path())), [(0, "Torch.matmul.0.forward", "produced")]);
    }
    // A logarithm that is made an integer and chosen from later: positions of some models.
    let dir = step(&[&[
        "Torch.log.0.forward: f4 > m4",
        "Tensor.__mul__.0.forward: m4 > m5",
        "Tensor.to.0.forward: m5 > f5",
    ]]);
    assert_eq!(look_at(dir.path()).status(), Status::Clean);
}

#[test]
fn a_write_on_purpose_is_not_blamed_for_what_it_did_not_make() {
    let write = |number: usize| format!("Tensor.__setitem__.{number}.forward: f9 > | {FILL}");
    let dir = step(&[&[&write(0), &write(1), "Functional.linear.0.forward: n4 f4 > n4"]]);
    assert_eq!(origins(&look_at(dir.path())), [(0, "Functional.linear.0.forward", "input")]);
}

#[test]
fn causes_in_a_circle_still_have_an_origin() {
    let of = |name: &str, values: &str, peer: usize| {
        format!("Distributed.{name}.0.forward: {values} | {{\"type\": \"int\", \"value\": {peer}}}")
    };
    let zero = [of("recv", "f4 > n4", 1), of("send", "n4 > n4", 1)];
    let one = [
        of("irecv", "f4 > n4", 0),
        "Functional.linear.0.forward: n4 f3 > n4".to_owned(),
        of("isend", "n4 > n4", 0),
    ];
    let zero: Vec<&str> = zero.iter().map(String::as_str).collect();
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let dir = step(&[&zero, &one]);
    assert_eq!(origins(&look_at(dir.path())), [(1, "Functional.linear.0.forward", "input")]);
}

#[test]
fn what_was_taken_for_harmless_and_does_harm_is_an_origin() {
    // A mask that is broadcast, and then computed with on the other rank only.
    let sent = "Distributed.broadcast.0.forward: m4 > m4 | {\"type\": \"int\", \"value\": 0}";
    let taken = "Distributed.broadcast.0.forward: f4 > m4 | {\"type\": \"int\", \"value\": 0}";
    let filled = format!("Torch.full.0.forward: > m4 | {FILL}");
    let dir = step(&[
        &[&filled, sent, "Torch.softmax.0.forward: m4 > f4"],
        &[taken, "Torch.mul.0.forward: m4 f4 > n4"],
    ]);
    let outcome = look_at(dir.path());
    assert_eq!(outcome.status(), Status::Anomaly);
    assert_eq!(origins(&outcome), [(0, "Distributed.broadcast.0.forward", "input")]);
    assert_eq!((outcome.spread[0].rank, outcome.spread[0].from_rank), (1, Some(0)));
}

#[test]
fn dumps_without_their_beginning_are_paired_by_number() {
    let call = |number: usize, values: &str| format!("Distributed.all_reduce.{number}.forward: {values}");
    let zero = [call(1, "f4 > f4"), "Torch.log.9.forward: f4 > n4".to_owned(), call(2, "n4 > n4")];
    let one = [call(2, "f4 > n4")];
    let zero: Vec<&str> = zero.iter().map(String::as_str).collect();
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let dir = step(&[&zero, &one]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Torch.log.9.forward", "produced")]);
    assert_eq!((outcome.spread[0].rank, outcome.spread[0].from_rank), (1, Some(0)));
}

#[test]
fn a_rank_whose_dump_ends_before_the_call_gave_it() {
    let dir = step(&[&["Distributed.all_reduce.0.forward: f4 > n4"], &["Torch.log.0.forward: f4 > n4"]]);
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(1, "Torch.log.0.forward", "produced")]);
    assert_eq!(outcome.spread[0].from_rank, Some(1));
}

#[test]
fn without_inputs_only_the_first_is_blamed() {
    let dir = step(&[&[]]);
    let lines = ["Torch.log.0.forward", "Torch.add.0.forward", "Torch.sum.0.forward"];
    let records: Vec<String> =
        lines.iter().map(|name| format!("\"{name}\": {{\"output\": [{}]}}", tensor("n4"))).collect();
    let text = format!("{{\"task\": \"statistics\", \"data\": {{{}}}}}", records.join(", "));
    fs::write(dir.path().join("rank0/dump.json"), text).unwrap();
    let outcome = look_at(dir.path());
    assert_eq!(origins(&outcome), [(0, "Torch.log.0.forward", "produced")]);
    assert!(outcome.origins[0].reason.contains("not recorded"), "{}", outcome.origins[0].reason);
    assert_eq!(outcome.origins[0].chain.len(), 3);
}

#[test]
fn a_dump_without_records_is_not_called_clean() {
    let dir = step(&[&[]]);
    let outcome = look_at(dir.path());
    assert_eq!(outcome.headline(), "nothing to judge: there are no records of values on 1 rank");
}

#[test]
fn many_origins_are_counted_and_leave_a_page_of_bounded_size() {
    let lines: Vec<String> =
        (0..5000).map(|number| format!("Torch.log.{number}.forward: f4 > n{}", number + 1)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let dir = step(&[&lines, &lines]);
    let output = dir.path().join("out");
    let options = Options { output: Some(output), ..Options::default() };
    let outcome = analyze(dir.path(), &options, &Silent).unwrap();
    assert_eq!(outcome.origins.len() + outcome.more_origins(), 10_000);
    let lines = outcome.answer().text(&outcome.sections()).lines().count();
    assert!(lines < 60, "{lines}");
    let page = outcome.files.iter().find(|path| path.extension().is_some_and(|end| end == "html")).unwrap();
    assert!(fs::metadata(page).unwrap().len() < 1 << 20);
}

#[test]
fn errors_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    for input in [dir.path().to_owned(), dir.path().join("nowhere")] {
        let error = analyze(&input, &Options::default(), &Silent).unwrap_err();
        assert!(error.hint.contains("rank0"), "{error:?}");
    }
    fs::create_dir(dir.path().join("rank0")).unwrap();
    let error = analyze(dir.path(), &Options::default(), &Silent).unwrap_err();
    assert!(error.message.contains("no rank"), "{error:?}");
}

fn any_line() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "(Torch|Tensor|Functional)\\.(log|softmax|empty|view|__setitem__|exp)\\.[0-3]\\.(forward|backward)",
        "Distributed\\.(all_reduce|send|irecv|broadcast|scatter|batch_isend_irecv|gather)\\.[0-3]\\.forward",
        "Module\\.(a|a\\.b)\\.C\\.(forward|backward)\\.[01]",
        Just("Module.a.C.parameters_grad".to_owned()),
    ];
    let values = "([fnim][1-3] ){0,3}";
    let more = prop_oneof![
        Just(String::new()),
        (0..4).prop_map(|rank| format!("| {{\"type\": \"int\", \"value\": {rank}}}")),
        Just(format!("| {FILL}")),
        Just("| [null, [1, {\"class_type\": \"torch.distributed.P2POp\", \"peer\": 9}]]".to_owned()),
    ];
    (name, values, values, more)
        .prop_map(|(name, inputs, outputs, more)| format!("{name}: {inputs} > {outputs} {more}"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    /// Whatever is in the dumps: the same answer twice, every chain begins at its origin, nothing panics.
    #[test]
    fn any_dump_has_an_answer(ranks in prop::collection::vec(prop::collection::vec(any_line(), 0..14), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        for (rank, lines) in ranks.iter().enumerate() {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            write_rank(dir.path(), rank, &lines);
        }
        let output = dir.path().join("out");
        let options = Options { output: Some(output), ..Options::default() };
        let outcome = analyze(dir.path(), &options, &Silent).unwrap();
        let again = look_at(dir.path());
        // As text: NaN is no number to compare.
        prop_assert_eq!(format!("{:?}", outcome.origins), format!("{:?}", again.origins));
        prop_assert_eq!(&outcome.spread, &again.spread);
        for origin in &outcome.origins {
            prop_assert_eq!(&origin.chain[0].operation, &origin.operation);
        }
        let is_bad = |word: &str| word.len() == 2 && word.starts_with(['n', 'i', 'm']);
        if !ranks.iter().flatten().flat_map(|line| line.split_whitespace()).any(is_bad) {
            prop_assert!(matches!(outcome.status(), Status::Clean | Status::Incomplete));
        }
        prop_assert!(!outcome.answer().headline.is_empty());
        // Whatever is called polluted has somebody to blame.
        let is_polluted = outcome.ranks.iter().any(|rank| rank.anomalies > 0);
        prop_assert_eq!(is_polluted, !outcome.origins.is_empty());
    }
}
