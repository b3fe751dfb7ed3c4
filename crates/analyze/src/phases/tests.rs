//! The rules of the three searches, one by one.

use std::fs;

use tempfile::TempDir;

use super::nodes::Direction;
use super::*;
use crate::communication::{Communication, Group, RankArgument};
use crate::rank::{RankDir, rank_dirs};

/// A step's directory and what was read of it.
struct Step {
    _dir: TempDir,
    ranks: Vec<RankDump>,
}

impl Step {
    /// Each rank with its records: name and text.
    fn new(ranks: &[(u32, &[(&str, String)])]) -> Step {
        let dir = tempfile::tempdir().unwrap();
        for (rank, records) in ranks {
            let records: Vec<String> =
                records.iter().map(|(name, text)| format!("{name:?}: {text}")).collect();
            let path = dir.path().join(format!("rank{rank}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("dump.json"), format!("{{\"data\": {{{}}}}}", records.join(", "))).unwrap();
        }
        let read = |dir: RankDir| RankDump::read(dir, &mut (), &|_| ()).unwrap();
        let ranks = rank_dirs(dir.path()).unwrap().into_iter().map(read).collect();
        Step { _dir: dir, ranks }
    }

    /// What is found: `rank name` of each; the same whatever the order of ranks.
    fn found(&mut self) -> (Option<Phase>, Vec<String>) {
        let findings = find(&self.ranks);
        let names = |ranks: &[RankDump], findings: &Findings| -> Vec<String> {
            let of = |anomaly: &Anomaly| {
                let dump = &ranks[anomaly.rank_index];
                format!("{} {}", dump.dir.rank, dump.records[anomaly.record].name)
            };
            findings.anomalies.iter().map(of).collect()
        };
        let found = (findings.phase, names(&self.ranks, &findings));
        for _ in 0..self.ranks.len() {
            self.ranks.rotate_left(1);
            let again = find(&self.ranks);
            assert_eq!((again.phase, names(&self.ranks, &again)), found);
            assert_eq!(again.notes, findings.notes);
        }
        found
    }
}

const GOOD: &str = "{\"type\": \"torch.Tensor\", \"Max\": 1.0, \"Min\": 0.0}";
const BAD: &str = "{\"type\": \"torch.Tensor\", \"Max\": NaN, \"Min\": NaN}";

/// A record with one argument and one result, and more arguments as text.
fn call(input: &str, more: &str, kwargs: &str, output: &str) -> String {
    format!("{{\"input_args\": [{input}{more}], \"input_kwargs\": {{{kwargs}}}, \"output\": [{output}]}}")
}

fn op(input: &str, output: &str) -> String {
    call(input, "", "", output)
}

fn grouped(ranks: &str, input: &str, output: &str) -> String {
    call(input, "", &format!("\"group\": {{\"group_ranks\": {ranks}, \"group_id\": \"g\"}}"), output)
}

fn int(value: i64) -> String {
    format!("{{\"type\": \"int\", \"value\": {value}}}")
}

fn one(phase: Phase, name: &str) -> (Option<Phase>, Vec<String>) {
    (Some(phase), vec![name.to_owned()])
}

#[test]
fn before_communication_each_rank_tells_its_first() {
    let reduce = grouped("[0, 1, 2]", BAD, BAD);
    let mut step = Step::new(&[
        (
            0,
            &[
                ("Torch.a.0.forward", op(BAD, BAD)),
                ("Torch.b.0.forward", op(GOOD, BAD)),
                ("Torch.c.0.forward", op(GOOD, BAD)),
            ],
        ),
        (1, &[("Distributed.all_reduce.0.forward", reduce), ("Torch.b.0.forward", op(GOOD, BAD))]),
        (2, &[("Distributed.barrier.0.forward", op(GOOD, GOOD)), ("Torch.d.0.forward", op(GOOD, BAD))]),
    ]);
    let expected = ["0 Torch.b.0.forward", "2 Torch.d.0.forward"].map(str::to_owned).to_vec();
    assert_eq!(step.found(), (Some(Phase::Before), expected));
}

#[test]
fn some_records_are_no_anomalies() {
    let backward = |input: &str| format!("{{\"input\": [{input}], \"output\": [{BAD}]}}");
    let mut step = Step::new(&[(
        0,
        &[
            ("Torch.empty.0.forward", op(GOOD, BAD)),
            ("Torch.empty_like.0.forward", op(GOOD, BAD)),
            ("Torch.fill_.0.forward", op(GOOD, BAD)),
            ("Torch.nested.0.forward", op(GOOD, &format!("[{BAD}]"))),
            ("Torch.keyword.0.forward", call(GOOD, "", &format!("\"x\": {BAD}"), BAD)),
            ("Torch.back.0.backward", backward(BAD)),
            ("Torch.list.0.forward", op(&format!("[{BAD}]"), BAD)),
        ],
    )]);
    // Of arguments in lists the reference knows nothing either.
    assert_eq!(step.found(), one(Phase::Before, "0 Torch.list.0.forward"));
    let mut step = Step::new(&[(0, &[("Torch.back.0.backward", backward(GOOD))])]);
    assert_eq!(step.found(), one(Phase::Before, "0 Torch.back.0.backward"));
}

#[test]
fn during_communication_the_one_before_the_earliest_bad_call_is_told() {
    let name = "Distributed.all_reduce";
    let (first, second) = (format!("{name}.0.forward"), format!("{name}.1.forward"));
    for reduce in [grouped as fn(&str, &str, &str) -> String, |_, input, output| op(input, output)] {
        let good = || (&*first, reduce("[0, 1]", GOOD, GOOD));
        let mut step = Step::new(&[
            (0, &[good(), (&*second, reduce("[0, 1]", GOOD, BAD)), ("Torch.late.0.forward", op(GOOD, BAD))]),
            (1, &[good(), ("Torch.exp.0.forward", op(GOOD, BAD)), (&*second, reduce("[0, 1]", BAD, BAD))]),
        ]);
        // Both are of layer 1; the reduction of rank 0 has no record before it, as has the one that made the NaN.
        assert_eq!(step.found(), one(Phase::During, "1 Torch.exp.0.forward"));
    }
}

#[test]
fn a_receiver_does_not_answer_for_what_it_did_before() {
    let before = || ("Torch.exp.0.forward", op(GOOD, BAD));
    let start = || ("Distributed.all_gather.0.forward", op(GOOD, GOOD));
    let peer = |rank| format!(", {}", int(rank));
    let mut step = Step::new(&[
        (0, &[start(), before(), ("Distributed.recv.0.forward", call(BAD, &peer(1), "", GOOD))]),
        (1, &[start(), ("Distributed.send.0.forward", call(GOOD, &peer(0), "", GOOD))]),
    ]);
    assert_eq!(step.found(), (None, vec![]));
    let mut step = Step::new(&[
        (0, &[start(), before(), ("Distributed.send.0.forward", call(BAD, &peer(1), "", GOOD))]),
        (1, &[start(), ("Distributed.recv.0.forward", call(GOOD, &peer(0), "", BAD))]),
    ]);
    assert_eq!(step.found(), one(Phase::During, "0 Torch.exp.0.forward"));
}

/// The layer of the receiver becomes that of the sender, far earlier than its own: then it is the first.
#[test]
fn partners_share_the_layer() {
    let reduce =
        |number| (["Distributed.reduce.0.forward", "Distributed.reduce.1.forward"][number], op(GOOD, GOOD));
    let keyword = |key: &str, rank| format!("\"{key}\": {}", int(rank));
    let mut step = Step::new(&[
        (0, &[("Distributed.isend.0.forward", call(GOOD, "", &keyword("dst", 1), GOOD))]),
        (
            1,
            &[reduce(0), reduce(1), ("Distributed.irecv.0.forward", call(GOOD, "", &keyword("src", 0), BAD))],
        ),
        (
            2,
            &[
                ("Distributed.all_gather.0.forward", op(GOOD, GOOD)),
                ("Distributed.all_to_all.0.forward", op(GOOD, BAD)),
            ],
        ),
    ]);
    assert_eq!(step.found(), one(Phase::During, "1 Distributed.irecv.0.forward"));
    let layers: Vec<u32> = connected(&step).nodes.iter().map(|node| node.layer).collect();
    assert_eq!(layers, [0, 0, 1, 0, 0, 1]);
}

fn connected(step: &Step) -> Graph<'_> {
    let order: Vec<usize> = (0..step.ranks.len()).collect();
    let mut graph = Graph::new(&step.ranks, &order);
    graph.connect();
    graph
}

#[test]
fn calls_of_other_groups_and_functions_are_no_partners() {
    let records = |group: &str, names: [&'static str; 3]| {
        names.map(|name| (name, grouped(if name.contains("gather") { "[0, 1]" } else { group }, BAD, BAD)))
    };
    let step = Step::new(&[
        (
            0,
            &records(
                "[0, 1]",
                [
                    "Distributed.all_gather.0.forward",
                    "Distributed.reduce.0.forward",
                    "Distributed.reduce.1.forward",
                ],
            ),
        ),
        (
            1,
            &records(
                "[1, 2]",
                [
                    "Distributed.all_gather_into_tensor.0.forward",
                    "Distributed.reduce.0.forward",
                    "Distributed.all_gather.1.forward",
                ],
            ),
        ),
        (
            2,
            &records(
                "[1, 2]",
                [
                    "Distributed.reduce.0.forward",
                    "Distributed.reduce.1.forward",
                    "Distributed.reduce.2.forward",
                ],
            ),
        ),
    ]);
    // all_gather of rank 0 with that of rank 1; reduce of rank 1 with the first of rank 2.
    assert_eq!(connected(&step).leaders, [0, 1, 2, 3, 4, 0, 4, 7, 8]);
}

#[test]
fn the_next_call_is_taken_each_time_and_finite_ones_hold_nothing_together() {
    let names = [
        "Distributed.all_reduce.0.forward",
        "Distributed.all_reduce.1.forward",
        "Distributed.all_reduce.2.forward",
    ];
    let of = |values: [&str; 3]| [0, 1, 2].map(|at| (names[at], op(values[at], values[at])));
    let step =
        Step::new(&[(0, &of([BAD, GOOD, BAD])), (1, &of([BAD, BAD, BAD])), (2, &of([GOOD, BAD, BAD]))]);
    assert_eq!(connected(&step).leaders, [0, 1, 2, 0, 4, 2, 6, 4, 2]);
}

#[test]
fn every_component_of_a_round_is_looked_at() {
    let pair = |ranks, output| ("Distributed.all_reduce.0.forward", grouped(ranks, GOOD, output));
    let passed = |ranks| ("Distributed.all_reduce.0.forward", grouped(ranks, BAD, BAD));
    let mut step = Step::new(&[
        (0, &[passed("[0, 1]")]),
        (1, &[passed("[0, 1]")]),
        (2, &[pair("[2, 3]", GOOD)]),
        (3, &[pair("[2, 3]", BAD)]),
    ]);
    assert_eq!(step.found(), one(Phase::During, "3 Distributed.all_reduce.0.forward"));
}

#[test]
fn of_equals_the_lower_rank_is_told() {
    let reduce = |output| ("Distributed.all_reduce.0.forward", op(GOOD, output));
    let mut step = Step::new(&[(3, &[reduce(BAD)]), (2, &[reduce(BAD)]), (1, &[reduce(GOOD)])]);
    assert_eq!(step.found(), one(Phase::During, "2 Distributed.all_reduce.0.forward"));
}

#[test]
fn after_communication_each_rank_tells_its_first() {
    let reduce = || ("Distributed.all_reduce.0.forward", op(GOOD, GOOD));
    let (early, late) = (("Torch.a.0.forward", op(GOOD, BAD)), ("Torch.b.0.forward", op(GOOD, BAD)));
    let mut step = Step::new(&[
        (0, &[reduce(), ("Torch.x.0.forward", op(BAD, BAD)), early.clone(), late.clone()]),
        (1, &[reduce(), late, early]),
        (2, &[reduce()]),
    ]);
    let expected = ["0 Torch.a.0.forward", "1 Torch.b.0.forward"].map(str::to_owned).to_vec();
    assert_eq!(step.found(), (Some(Phase::After), expected));
}

#[test]
fn keywords_tell_the_direction_before_numbers_do() {
    use Direction::{Destination, Link, Source};
    let known = RankArgument::Known;
    let empty = Communication::default;
    let cases = [
        ("broadcast", Communication { src: known(1), ..empty() }, Source),
        ("broadcast", Communication { src: known(0), ints: vec![1], ..empty() }, Destination),
        ("gather", Communication { dst: known(1), ..empty() }, Destination),
        ("gather", Communication { dst_group: known(0), ..empty() }, Source),
        ("reduce", Communication { dst: known(0), src: known(1), ..empty() }, Source),
        ("all_reduce", Communication { src: RankArgument::Unknown, dst: known(1), ..empty() }, Destination),
        ("send", Communication { ints: vec![0, 1], ..empty() }, Source),
        ("recv", Communication { ints: vec![0], ..empty() }, Destination),
        ("scatter", Communication { ints: vec![1], src: RankArgument::Unknown, ..empty() }, Source),
        ("reduce", Communication { ints: vec![1], ..empty() }, Link),
        ("isend", empty(), Link),
    ];
    for (function, call, expected) in cases {
        assert_eq!(nodes::direction(function, &call, 1).0, expected, "{function} {call:?}");
    }
}

#[test]
fn peers_are_those_of_keywords_or_numbers_and_of_the_group() {
    let mut peers = peers::Peers::new([0, 1, 5].into_iter());
    let group = Some(Group { ranks: vec![5, 0], id: "g".into() });
    let known = RankArgument::Known;
    let numbers = Communication { ints: vec![1, 7], ..Communication::default() };
    let cases = [
        (Communication { dst: known(5), ..numbers.clone() }, Some(vec![2])),
        (Communication { dst: known(5), src: known(0), ..numbers.clone() }, Some(vec![0, 2])),
        // The first keyword that is there counts, even if it says nothing.
        (Communication { dst: RankArgument::Unknown, dst_group: known(0), ..numbers.clone() }, Some(vec![1])),
        (Communication { dst_group: known(0), ..numbers.clone() }, Some(vec![0])),
        (Communication { group: group.clone(), ..numbers.clone() }, Some(vec![0, 1, 2])),
        (Communication { group: group.clone(), ..Communication::default() }, Some(vec![0, 2])),
        (Communication { positional_group: group, ..Communication::default() }, None),
        (Communication { ints: vec![-1], ..Communication::default() }, Some(vec![])),
    ];
    for (call, expected) in cases {
        let id = peers.of(&call);
        assert_eq!(peers.positions(id).map(<[u32]>::to_vec), expected, "{call:?}");
        assert_eq!(peers.of(&call.clone()), id);
        let all = expected.unwrap_or_default();
        assert!((0..3).all(|position| peers.contains(id, position) == all.contains(&position)));
    }
    assert_eq!(peers.missing().collect::<BTreeSet<_>>(), BTreeSet::from([-1, 7]));
}

#[test]
fn what_stops_the_reference_is_noted() {
    let list = format!(", [{GOOD}], {}", int(0));
    let mut step = Step::new(&[
        (
            0,
            &[
                ("Distributed.scatter.0.forward", call(GOOD, &list, "", GOOD)),
                ("Distributed.send", op(GOOD, BAD)),
            ],
        ),
        (3, &[("Distributed.all_reduce.0.forward", grouped("[0, 3, 4, 9]", GOOD, GOOD))]),
        (4, &[]),
    ]);
    assert_eq!(step.found(), one(Phase::During, "0 Distributed.send"));
    let notes = find(&step.ranks).notes.join("\n");
    for expected in [
        "Rank 4 has no dump data!",
        "1 communication call(s) have no number and direction in their names, such as rank 0 Distributed.send",
        "1 communication call(s) with a root are given lists by position, such as rank 0 Distributed.scatter.0.forward",
        "no dump here: 9.",
        "2 communication call(s) have no partner on another rank, such as rank 0 Distributed.send",
    ] {
        assert!(notes.contains(expected), "{expected}\n{notes}");
    }
    assert_eq!(find(&[]), Findings::default());
}

#[test]
fn names_with_empty_or_fill_are_passed_over() {
    for name in [
        "Torch.empty",
        "Torch.empty_like.0.forward",
        "Torch.fill_.1.backward",
        "Module.Torch.fill.X.forward.0",
    ] {
        assert!(is_ignored(name), "{name}");
    }
    for name in ["", ".", "Torch.", "Torch.full.0.forward", "Tensor.fill_.0.forward", "torch.empty.0.forward"]
    {
        assert!(!is_ignored(name), "{name}");
    }
}

#[test]
fn long_lists_of_ranks_are_shortened() {
    assert_eq!(shortened(&(0..3).collect()), "0, 1, 2");
    assert!(shortened(&(0..100).collect()).ends_with("15, and 84 more"));
}
