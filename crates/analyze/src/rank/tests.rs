//! Reading records: what is kept of them.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::communication::{BatchItem, Group, RankArgument};
use crate::record::{Argument, Kinds, PlainFindings, Role};

fn read(text: &str) -> RankDump {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("dump.json"), text).unwrap();
    RankDump::read(RankDir { rank: 0, path: dir.path().to_owned() }, &mut (), &|_| ()).unwrap()
}

fn dump_of(records: &str) -> RankDump {
    read(&format!(
        "{{\"task\": \"statistics\", \"level\": \"L1\", \"dump_data_dir\": null, \"data\": {{{records}}}}}"
    ))
}

fn tensor(max: &str, min: &str) -> String {
    format!(
        "{{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2, 3], \"Max\": {max}, \"Min\": {min}, \
         \"Mean\": 1.0, \"Norm\": 2.0, \"requires_grad\": true}}"
    )
}

#[test]
fn finite_records_keep_nothing_but_their_name() {
    let dump = dump_of(&format!(
        "\"Torch.add.0.forward\": {{\"input_args\": [{0}], \"input_kwargs\": {{}}, \"output\": [{0}]}}",
        tensor("1.0", "-1.0")
    ));
    assert_eq!(dump.level, "L1");
    let [record] = &dump.records[..] else { panic!("{dump:?}") };
    assert_eq!((record.parts().stem(), record.function()), ("Torch.add", "add"));
    assert!(record.bad.is_empty() && record.has_output && !record.has_bad_number);
}

#[test]
fn values_that_are_not_finite_are_kept_by_role_and_place() {
    let text = format!(
        "\"Torch.add.0.forward\": {{\"input_args\": [{0}, [{1}]], \"input_kwargs\": {{\"other\": {2}, \"value\": \
         {{\"type\": \"float\", \"value\": -Infinity}}}}, \"parameters\": {{\"weight\": {3}}}, \"output\": [{1}]}}",
        tensor("1.0", "0.0"),
        tensor("NaN", "NaN"),
        tensor("1.0", "-Infinity"),
        tensor("\"inf\\t\"", "0.0"),
    );
    let dump = dump_of(&text);
    let record = &dump.records[0];
    assert_eq!(record.kinds(Role::Input), Kinds::NAN | Kinds::NEGATIVE);
    assert_eq!(record.kinds(Role::Parameter), Kinds::POSITIVE);
    assert_eq!(record.kinds(Role::Output), Kinds::NAN);
    assert!(record.has_bad_number);
    assert_eq!(record.bad[0].argument, Argument::Position(1));
    assert_eq!(record.bad[0].fingerprint, record.bad[3].fingerprint);
    assert_ne!(record.bad[0].fingerprint, record.bad[1].fingerprint);
    // The nested one does not count for the reference.
    let plain = PlainFindings { input: false, input_args: false, input_kwargs: true, output: true };
    assert_eq!(record.plain, plain);
    let again = dump_of(&text);
    assert_eq!(again.records, dump.records);
}

#[test]
fn communication_tells_its_peers() {
    let dump = dump_of(&format!(
        "\"Distributed.broadcast.0.forward\": {{\"input_args\": [{0}, {{\"type\": \"int\", \"value\": 3}}], \
         \"input_kwargs\": {{\"group\": {{\"type\": \"torch.ProcessGroup\", \"group_ranks\": [1, 3], \"group_id\": \
         \"ab\"}}}}, \"output\": []}}, \
         \"Distributed.isend.0.forward\": {{\"input_args\": [], \"input_kwargs\": {{\"tensor\": {0}, \"dst\": {{\"type\": \
         \"int\", \"value\": 2}}, \"src\": null}}}}, \
         \"Distributed.barrier.0.forward\": {{\"input_args\": [], \"input_kwargs\": {{}}}}, \
         \"Distributed.batch_isend_irecv.0.forward\": {{\"input_args\": [[{{\"class_type\": \"torch.distributed.P2POp\", \
         \"tensor\": {0}, \"op\": \"irecv\", \"peer\": 1, \"tag\": 0, \"group_id\": \"x\"}}, {{\"class_type\": \
         \"torch.distributed.P2POp\", \"tensor\": {1}, \"op\": \"isend\", \"peer\": 2, \"tag\": 7, \"group_id\": \
         \"x\"}}]], \"input_kwargs\": {{}}, \"output\": []}}",
        tensor("1.0", "0.0"),
        tensor("NaN", "NaN"),
    ));
    let of = |index: usize| dump.records[index].communication.as_deref();
    let broadcast = of(0).unwrap();
    assert_eq!(broadcast.ints, [3]);
    assert_eq!(broadcast.group, Some(Group { ranks: vec![1, 3], id: "ab".into() }));
    let isend = of(1).unwrap();
    assert_eq!((isend.dst, isend.src), (RankArgument::Known(2), RankArgument::Unknown));
    assert!(!dump.records[1].has_output);
    assert_eq!(of(2), None);
    let batch = &of(3).unwrap().batch;
    assert_eq!(batch[0], BatchItem { is_send: false, peer: Some(1), tag: 0 });
    assert_eq!(batch[1], BatchItem { is_send: true, peer: Some(2), tag: 7 });
    assert_eq!(dump.records[3].bad[0].batch_item, Some(1));
    assert!(of(3).unwrap().has_list_argument);
}

#[test]
fn a_file_that_ends_early_gives_what_came_before() {
    let whole = format!(
        "{{\"task\": \"tensor\", \"level\": \"mix\", \"data\": {{\"Torch.a.0.forward\": {{\"output\": [{0}]}}, \
         \"Torch.b.0.forward\": {{\"output\": [{0}]}}",
        tensor("NaN", "NaN")
    );
    let dump = read(&whole[..whole.len() - 5]);
    assert_eq!(dump.records.len(), 1);
    assert!(dump.problems[0].contains("not written to its end"), "{:?}", dump.problems);
    assert!(read("").problems[0].contains("an empty file"));
    assert!(read("{}").problems[0].contains("no data"));
}

#[test]
fn a_repeated_record_counts_as_its_last_value_in_its_first_place() {
    let dump = dump_of(
        "\"Torch.a.0.forward\": {\"output\": []}, \"Torch.b.0.forward\": {}, \"Torch.a.0.forward\": {\"x\": 1}",
    );
    let names: Vec<&str> = dump.records.iter().map(|record| &*record.name).collect();
    assert_eq!(names, ["Torch.a.0.forward", "Torch.b.0.forward"]);
    assert!(!dump.records[0].has_output);
}

#[test]
fn rank_directories_are_found_in_order() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["rank10", "rank2", "rank", "ranks", "rank-1", "other", "proc12"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("rank7"), "a file").unwrap();
    let ranks: Vec<u32> = rank_dirs(dir.path()).unwrap().into_iter().map(|dir| dir.rank).collect();
    assert_eq!(ranks, [0, 2, 10]);
    let lone = tempfile::tempdir().unwrap();
    fs::create_dir(lone.path().join("proc99")).unwrap();
    assert_eq!(rank_dirs(lone.path()).unwrap()[0].rank, 0);
}

proptest! {
    /// A dump that is cut and damaged anywhere: what can be read is read, twice the same, and nothing panics.
    #[test]
    fn damaged_files_are_survived(cut in 0_usize..3000, changes in prop::collection::vec((0_usize..3000, any::<u8>()), 0..4)) {
        let records: Vec<String> = (0..6)
            .map(|number| {
                format!(
                    "\"Distributed.broadcast.{number}.forward\": {{\"input_args\": [{0}, [{0}], {{\"type\": \"int\", \"value\": \
                     1}}], \"input_kwargs\": {{\"group\": {{\"group_ranks\": [0, 1]}}}}, \"output\": [{0}]}}",
                    tensor("NaN", "-1.0")
                )
            })
            .collect();
        let mut text = format!("{{\"level\": \"L1\", \"data\": {{{}}}}}", records.join(",\n")).into_bytes();
        text.truncate(text.len().min(cut));
        let is_damaged = !changes.is_empty();
        for (at, byte) in changes {
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dump.json"), &text).unwrap();
        let read = || RankDump::read(RankDir { rank: 0, path: dir.path().to_owned() }, &mut (), &|_| ()).unwrap();
        let (first, second) = (read(), read());
        prop_assert_eq!(&first.records, &second.records);
        if !is_damaged {
            prop_assert!(first.records.len() == 6 || !first.problems.is_empty());
        }
        for record in &first.records {
            prop_assert_eq!(first.read_again(record).unwrap().len() as u32, record.length);
        }
    }
}
