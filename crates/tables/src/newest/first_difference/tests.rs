use std::path::Path;

use msprobe_report::console::Silent;

use super::super::tests::sides;
use super::super::{Mode, NewestOptions, NewestTable};
use super::*;

const SAME: f64 = 1.0;
const DIFFERENT: f64 = 9.0;

fn call(name: &str, arguments: &str, max: f64) -> String {
    format!(
        r#""{name}.forward": {{"input_args": [{arguments}], "output": [{{"type": "torch.Tensor",
            "dtype": "torch.float32", "shape": [2], "Max": {max:?}, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}}]}}"#
    )
}

fn group(ranks: &str) -> String {
    format!(r#"{{"type": "torch.ProcessGroup", "group_ranks": {ranks}}}"#)
}

fn rank_argument(rank: u32) -> String {
    format!(r#"{{"type": "int", "value": {rank}}}"#)
}

fn batch(operations: &[(&str, u32)]) -> String {
    let operations = operations.iter().map(|(operation, peer)| {
        format!(
            r#"{{"class_type": "torch.distributed.P2POp", "op": "{operation}", "peer": {peer}, "tensor":
                {{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0}}}}"#
        )
    });
    format!("[{}]", operations.collect::<Vec<_>>().join(", "))
}

/// What is found in ranks that made these calls: name, arguments, largest result.
fn found(ranks: &[&[(&str, String, f64)]]) -> Vec<(u32, String)> {
    with_ranks(ranks, |ranks| {
        let name = |place: OperationAt| ranks[place.rank].operations[place.operation].name;
        search(ranks).into_iter().map(|place| (ranks[place.rank].number, name(place).to_owned())).collect()
    })
}

fn with_ranks<T>(ranks: &[&[(&str, String, f64)]], then: impl FnOnce(&[Rank<'_>]) -> T) -> T {
    let inputs: Vec<_> = ranks
        .iter()
        .map(|calls| {
            let side = |of: fn(f64) -> f64| -> String {
                let calls = calls.iter().map(|(name, arguments, max)| call(name, arguments, of(*max)));
                calls.collect::<Vec<_>>().join(", ")
            };
            sides(&side(|max| max), &side(|_| SAME))
        })
        .collect();
    let options = NewestOptions::default();
    let compare =
        |(target, golden)| NewestTable::compare(target, golden, Mode::Summary, None, &options, &Silent);
    let tables: Vec<NewestTable<'_>> =
        inputs.iter().map(|(target, golden)| compare((target, golden))).collect();
    let ranks =
        tables.iter().enumerate().map(|(rank, table)| Rank::new(&RankTable { rank: rank as u32, table }));
    then(&ranks.collect::<Vec<_>>())
}

fn none() -> String {
    String::new()
}

fn named(rank: u32, name: &str) -> (u32, String) {
    (rank, format!("{name}.forward"))
}

#[test]
fn before_communication_every_rank_counts() {
    let rank: &[_] = &[
        ("Torch.empty_like.0", none(), DIFFERENT),
        ("Tensor.__setitem__.0", none(), DIFFERENT),
        ("Torch.mul.0", none(), SAME),
        ("Torch.add.0", none(), DIFFERENT),
        ("Torch.sub.0", none(), DIFFERENT),
        ("Distributed.all_reduce.0", none(), SAME),
    ];
    let late: &[_] = &[("Distributed.all_reduce.0", none(), DIFFERENT)];
    assert_eq!(found(&[rank, late, rank]), [named(0, "Torch.add.0"), named(2, "Torch.add.0")]);
}

#[test]
fn a_computation_comes_before_the_communication_behind_it() {
    let comm = |max| ("Distributed.all_reduce.0", group("[0, 1]"), max);
    let comm2 = |max| ("Distributed.all_reduce.1", group("[0, 1]"), max);
    let first: &[_] =
        &[comm(SAME), ("Torch.a.0", none(), SAME), ("Torch.b.0", none(), DIFFERENT), comm2(DIFFERENT)];
    let second: &[_] = &[comm(SAME), ("Torch.c.0", none(), SAME), comm2(DIFFERENT)];
    assert_eq!(found(&[first, second]), [named(0, "Torch.b.0")]);
    let only: &[_] = &[comm(SAME), comm2(DIFFERENT)];
    let both = found(&[only, only]);
    assert_eq!(both, [named(0, "Distributed.all_reduce.1"), named(1, "Distributed.all_reduce.1")]);
}

#[test]
fn layers_follow_messages_between_ranks() {
    // Rank 1 waits for rank 0 before its first own difference, which therefore is the later one.
    let first: &[_] = &[
        ("Distributed.all_reduce.0", group("[0, 2]"), SAME),
        ("Torch.cause.0", none(), DIFFERENT),
        ("Distributed.send.0", rank_argument(1), DIFFERENT),
    ];
    let second: &[_] = &[
        ("Distributed.recv.0", rank_argument(0), DIFFERENT),
        ("Torch.effect.0", none(), DIFFERENT),
        ("Distributed.barrier_reduce.0", none(), SAME),
    ];
    let third: &[_] = &[("Distributed.all_reduce.0", group("[0, 2]"), SAME)];
    assert_eq!(found(&[first, second, third]), [named(0, "Torch.cause.0")]);
}

#[test]
fn batches_link_ranks_by_operation_and_peer() {
    let first: &[_] = &[
        ("Distributed.all_reduce.0", group("[0, 2]"), SAME),
        ("Torch.cause.0", none(), DIFFERENT),
        ("Distributed.batch_isend_irecv.0", batch(&[("isend", 1)]), DIFFERENT),
    ];
    let second: &[_] = &[("Distributed.batch_isend_irecv.0", batch(&[("irecv", 0)]), DIFFERENT)];
    let third: &[_] = &[("Distributed.all_reduce.0", group("[0, 2]"), SAME)];
    assert_eq!(found(&[first, second, third]), [named(0, "Torch.cause.0")]);
}

#[test]
fn calls_that_do_not_line_up_end_all_the_same() {
    let first: &[_] = &[
        ("Distributed.send.0", rank_argument(1), SAME),
        ("Distributed.recv.0", rank_argument(1), DIFFERENT),
    ];
    let second: &[_] =
        &[("Distributed.send.0", rank_argument(0), SAME), ("Distributed.recv.0", rank_argument(0), SAME)];
    assert_eq!(found(&[first, second]), [named(0, "Distributed.recv.0")]);
    let alone: &[_] = &[("Distributed.send.0", none(), SAME), ("Distributed.recv.0", rank_argument(7), SAME)];
    assert_eq!(found(&[alone, alone]), []);
}

#[test]
fn after_communication_comes_last() {
    let first: &[_] = &[("Distributed.all_reduce.0", none(), SAME), ("Torch.add.0", none(), DIFFERENT)];
    let second: &[_] = &[("Distributed.all_reduce.0", none(), SAME), ("Torch.mul.0", none(), DIFFERENT)];
    assert_eq!(found(&[first, second]), [named(0, "Torch.add.0"), named(1, "Torch.mul.0")]);
    assert_eq!(found(&[&[("Torch.add.0", none(), 1.5)]]), [], "half is no more than half");
    assert_eq!(found(&[]), []);
}

fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn nothing_found_leaves_no_analysis() {
    let (target, golden) = sides(&call("Torch.add.0", "", SAME), &call("Torch.add.0", "", SAME));
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    let output = tempfile::tempdir().unwrap();
    let found =
        first_difference(&[RankTable { rank: 3, table: &table }], output.path(), &Silent).unwrap().answer;
    assert_eq!(found, None);
    let files = files(output.path());
    assert!(files.len() == 1 && files[0].starts_with("compare_result_rank3_"), "{files:?}");
}

#[test]
fn checksums_and_batches_in_files() {
    let tensor = |md5: &str| {
        format!(r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": "{md5}"}}"#)
    };
    let record = |md5: &str| {
        let p2p = format!(
            r#"[{{"class_type": "torch.distributed.P2POp", "op": "isend", "peer": 1, "tag": 0, "group_id": null,
                "tensor": {}}}]"#,
            tensor("11111111")
        );
        let name = "Distributed.batch_isend_irecv.0.forward";
        format!(r#""{name}": {{"input_args": [{p2p}], "output": [{}]}}"#, tensor(md5))
    };
    let (target, golden) = sides(&record("22222222"), &record("33333333"));
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::Md5, None, &options, &Silent);
    let output = tempfile::tempdir().unwrap();
    let found =
        first_difference(&[RankTable { rank: 0, table: &table }], output.path(), &Silent).unwrap().answer;
    let analysis = std::fs::read_to_string(found.unwrap()).unwrap();
    assert_eq!(
        analysis,
        r#"{
  "rank_0": [
    {
      "op_name": "Distributed.batch_isend_irecv.0.forward",
      "data_info": {
        "input": {
          "Distributed.batch_isend_irecv.0.forward.input.0.0.group_id": {
            "NPU MD5": "N/A",
            "NPU P2POp peer": "None"
          },
          "Distributed.batch_isend_irecv.0.forward.input.0.0.tensor": {
            "NPU MD5": "11111111",
            "NPU P2POp peer": "1"
          }
        },
        "output": {
          "Distributed.batch_isend_irecv.0.forward.output.0": {
            "NPU MD5": "22222222",
            "NPU P2POp peer": "None"
          }
        }
      },
      "stack_info": "N/A"
    }
  ]
}"#
    );
    let names = files(output.path());
    let operations = std::fs::read_to_string(output.path().join(&names[0])).unwrap();
    for part in [
        "\"is_same\": false",
        "\"Result\": \"pass\"",
        "\"Result\": \"Different\"",
        "\"NPU P2POp op\": \"isend\"",
    ] {
        assert!(operations.contains(part), "{part} in {operations}");
    }
}

#[test]
fn random_state_of_fused_attention_does_not_count() {
    let output = |max: f64| {
        format!(r#"{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": {max:?}}}"#)
    };
    let record = |max: f64| {
        let outputs: Vec<String> = (0..6).map(|index| output(if index < 4 { 1.0 } else { max })).collect();
        format!(r#""NPU.npu_fusion_attention.0.forward": {{"output": [{}]}}"#, outputs.join(", "))
    };
    let (target, golden) = sides(&record(9.0), &record(1.0));
    let options = NewestOptions::default();
    let table = NewestTable::compare(&target, &golden, Mode::Summary, None, &options, &Silent);
    assert!(Rank::new(&RankTable { rank: 0, table: &table }).operations[0].is_same);
}
