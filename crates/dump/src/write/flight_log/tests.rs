//! What is held, what goes, and what is written of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::super::{Header, StepSink, StepWriter};
use super::*;
use crate::names::{Rank, Step};

const UNBOUND: HeldLimits = HeldLimits { steps: usize::MAX, records: usize::MAX, bytes: usize::MAX };

fn header() -> Header {
    let word = |text: &str| text.to_owned();
    Header { task: word("statistics"), level: word("mix"), framework: word("pytorch"), dump_data_dir: None }
}

fn place(dump_path: &Path, step: u64) -> HeldPlace {
    HeldPlace { dump_path: dump_path.to_owned(), step: Step(step), rank: Rank(Some(3)) }
}

fn frames(stack: usize) -> Vec<String> {
    vec![format!("frame {stack}")]
}

fn read(dump_path: &Path, step: u64, file: &str) -> Value {
    let path = dump_path.join(format!("step{step}/rank3/{file}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// A module with two calls in it, as the collector tells it.
fn tell_module(sink: &StepSink, index: usize) {
    let module = format!("Module.m.M.forward.{index}");
    sink.construct(&module, Some("Module.top.T.forward.0"));
    for call in [2 * index, 2 * index + 1] {
        let name = format!("Torch.add.{call}.forward");
        let id = sink.open_record(&name);
        sink.stack_name(call % 2, &name, || frames(call % 2));
        sink.construct(&name, Some(&module));
        sink.close(id, &name, format!("{{\"call\": {call}}}").into());
    }
    sink.stack_name(7, &module, || frames(7));
    sink.append(&module, "{}".into());
}

fn write_all(log: &FlightLog) -> usize {
    let (steps, _) = log.take(|_, _| true);
    let count = steps.len();
    for step in steps {
        step.write(&header(), frames).unwrap().writer.finish().unwrap();
    }
    count
}

#[test]
fn what_was_held_is_written_as_if_it_had_never_been() {
    let dir = tempfile::tempdir().unwrap();
    let (held_path, plain_path) = (dir.path().join("held"), dir.path().join("plain"));
    let log = Arc::new(FlightLog::new(UNBOUND));
    log.begin_step(place(&held_path, 4));
    let plain_dir = plain_path.join("step4/rank3");
    fs::create_dir_all(&plain_dir).unwrap();
    let writer = StepWriter::create(&plain_dir, &header(), super::super::Files::Dump).unwrap();
    let (held, plain) = (StepSink::Memory(Arc::clone(&log)), StepSink::from(writer));
    for sink in [&held, &plain] {
        sink.construct("Module.top.T.forward.0", None);
        let open = sink.open_record("late");
        let changing = sink.open_record("changing");
        sink.set(changing, "changing", "{\"n\": 1}".into(), 100);
        let gone = sink.open_record("gone");
        tell_module(sink, 0);
        sink.remove(gone);
        sink.close(open, "late", "{\"late\": true}".into());
        sink.set(changing, "changing", "{\"n\": 2}".into(), 100);
        sink.open_record("never");
    }
    assert!(!held_path.exists());
    assert_eq!(write_all(&log), 1);
    drop(plain);
    for file in ["dump", "stack", "construct"] {
        assert_eq!(read(&held_path, 4, file), read(&plain_path, 4, file), "{file}");
    }
}

#[test]
fn a_step_goes_on_in_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(FlightLog::new(HeldLimits { records: 2, ..UNBOUND }));
    log.begin_step(place(dir.path(), 0));
    let sink = StepSink::Memory(Arc::clone(&log));
    let dropped = sink.open_record("dropped");
    let kept = sink.open_record("kept");
    sink.append("done", "1".into());
    let (mut steps, is_running) = log.take(|_, _| true);
    assert!(is_running);
    let written = steps.remove(0).write(&header(), frames).unwrap();
    assert_eq!(written.skipped, 1);
    let sink = StepSink::Files { writer: written.writer, skipped: written.skipped };
    assert!(!sink.is_memory());
    sink.close(kept, "kept", "2".into());
    sink.close(dropped, "dropped", "3".into());
    let new = sink.open_record("new");
    sink.close(new, "new", "4".into());
    sink.flush().unwrap();
    drop(sink);
    let dump = read(dir.path(), 0, "dump");
    assert_eq!(dump["data"], serde_json::json!({"kept": 2, "done": 1, "dropped": 3, "new": 4}));
}

#[test]
fn old_steps_go() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(FlightLog::new(HeldLimits { steps: 1, ..UNBOUND }));
    let sink = StepSink::Memory(Arc::clone(&log));
    for step in 0..9 {
        log.begin_step(place(dir.path(), step));
        tell_module(&sink, 0);
        log.end_step();
        assert!(log.holding().steps <= 2);
    }
    let one = log.holding().bytes / 2;
    log.begin_step(place(dir.path(), 8));
    assert_eq!(log.holding(), Holding { steps: 2, records: 3, bytes: one }, "begun again");
    log.end_step();
    sink.append("after the end", "{}".into());
    assert_eq!(write_all(&log), 2);
    assert_eq!(log.holding(), Holding { steps: 0, records: 0, bytes: 0 });
    assert!(dir.path().join("step7").exists() && !dir.path().join("step6").exists());
}

#[test]
fn the_last_records_have_their_stacks_and_a_whole_tree() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(FlightLog::new(HeldLimits { records: 5, ..UNBOUND }));
    let sink = StepSink::Memory(Arc::clone(&log));
    for step in 0..3 {
        log.begin_step(place(dir.path(), step));
        sink.construct("Module.top.T.forward.0", None);
        for index in 0..40 {
            tell_module(&sink, index);
        }
        sink.append("Module.top.T.forward.0", "{}".into());
        assert_eq!(log.holding().records, 5);
    }
    assert_eq!(write_all(&log), 1);
    let dump = read(dir.path(), 2, "dump");
    let kept =
        ["Module.m.M.forward.38", "Torch.add.78.forward", "Torch.add.79.forward", "Module.m.M.forward.39"];
    let mut expected = kept.to_vec();
    expected.push("Module.top.T.forward.0");
    expected.sort_unstable();
    let mut records = keys(&dump["data"]);
    records.sort_unstable();
    assert_eq!(records, expected);
    let mut tree = read(dir.path(), 2, "construct");
    let mut names = keys(&tree);
    names.sort_unstable();
    assert_eq!(names, expected);
    let tree = tree.as_object_mut().unwrap();
    assert!(tree.values().all(|parent| parent.is_null() || expected.contains(&parent.as_str().unwrap())));
    let mut stacked: Vec<String> = Vec::new();
    for group in read(dir.path(), 2, "stack").as_object().unwrap().values() {
        stacked.extend(group[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()));
    }
    stacked.sort_unstable();
    let mut expected = kept.to_vec();
    expected.sort_unstable();
    assert_eq!(stacked, expected);
}

#[test]
fn records_of_several_steps_are_counted_together() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(FlightLog::new(HeldLimits { records: 4, ..UNBOUND }));
    let sink = StepSink::Memory(Arc::clone(&log));
    for step in 0..3 {
        log.begin_step(place(dir.path(), step));
        tell_module(&sink, 0);
    }
    for step in 3..1000 {
        log.begin_step(place(dir.path(), step));
    }
    assert_eq!((log.holding().steps, log.holding().records), (3, 4));
    log.clear();
    assert_eq!((log.holding().steps, log.holding().records), (1, 0));
}

#[test]
fn memory_is_bounded_and_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(FlightLog::new(HeldLimits { steps: 2, bytes: 100_000, ..UNBOUND }));
    let sink = StepSink::Memory(Arc::clone(&log));
    assert!(!log.take_too_much());
    for step in 0..4 {
        log.begin_step(place(dir.path(), step));
        for index in 0..2000 {
            tell_module(&sink, index);
            assert!(log.holding().bytes <= 100_000);
        }
    }
    assert!(log.take_too_much() && !log.take_too_much());
    assert!(log.holding().records > 100);
    assert_eq!(write_all(&log), 1);
    assert!(read(dir.path(), 3, "dump")["data"]["Torch.add.3999.forward"].is_object());
    // One record that is too much by itself.
    log.begin_step(place(dir.path(), 9));
    sink.append("large", "x".repeat(200_000).into());
    assert_eq!(log.holding().records, 0);
}

#[test]
fn records_that_an_accelerator_owes_wait() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(FlightLog::new(HeldLimits { records: 3, ..UNBOUND }));
    let sink = StepSink::Memory(Arc::clone(&log));
    log.begin_step(place(dir.path(), 0));
    let ids: Vec<RecordId> = (0..9)
        .map(|index| {
            let id = sink.open_record(&index.to_string());
            sink.wait_for(id);
            id
        })
        .collect();
    assert_eq!(log.holding().records, 9);
    log.make_newest(ids[4]);
    assert_eq!(log.holding().records, 7, "2 to 4, and those after them");
    for (index, id) in ids.iter().enumerate().skip(2) {
        sink.close(*id, "", index.to_string().into());
    }
    assert_eq!(log.holding().records, 3);
}
