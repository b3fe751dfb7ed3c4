//! A step's JSON files, seen from outside.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use msprobe_dump::names::TensorFormat;
use msprobe_dump::write::{
    FLUSH_INTERVAL, Files, HOLD_BYTES, HOLD_TIME, Header, JsonText, QUEUE_BYTES, RecordBody, StepSink,
    StepWriter, Target, TensorPool,
};
use msprobe_tensor::{DType, TensorView};
use serde_json::{Value, json};

fn header() -> Header {
    Header { task: "statistics".into(), level: "L1".into(), framework: "pytorch".into(), dump_data_dir: None }
}

fn writer(dir: &Path) -> StepWriter {
    StepWriter::create(dir, &header(), Files::Dump).unwrap()
}

fn read(dir: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

fn data(dir: &Path) -> Vec<(String, Value)> {
    let Value::Object(data) = read(dir, "dump.json")["data"].take() else { panic!("no data") };
    data.into_iter().collect()
}

fn names(dir: &Path) -> Vec<String> {
    data(dir).into_iter().map(|(name, _)| name).collect()
}

/// A record's body of about so many bytes.
fn body(value: usize, bytes: usize) -> String {
    let mut text = JsonText::new(2);
    text.begin_object();
    text.key("value");
    text.int(value as i128);
    text.key("text");
    text.string(&"x".repeat(bytes));
    text.end_object();
    text.finish()
}

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(1);

fn comes_true(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if is_so() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Whether something comes soon can only be told while nothing else stops the machine: one attempt of a few must do.
fn assert_soon(what: &str, attempt: impl Fn() -> bool) {
    assert!((0..5).any(|_| attempt()), "{what}");
}

#[test]
fn files_begin_empty_and_end_as_python_writes_them() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let head = "{\n \"task\": \"statistics\",\n \"level\": \"L1\",\n \"framework\": \"pytorch\",\n \"dump_data_dir\": null,\n";
    assert_eq!(text("dump.json"), format!("{head} \"data\": {{}}\n}}"));
    assert_eq!((text("stack.json"), text("construct.json")), ("{}".into(), "{}".into()));
    let id = writer.open_record("b");
    writer.append("a", body(1, 1));
    writer.set(id, "null".into(), 400);
    writer.construct("b", None);
    writer.construct("a\u{e9}", Some("b"));
    writer.construct("b", Some("c"));
    writer.finish().unwrap();
    writer.append("late", "{}".into());
    assert_eq!(writer.failure(), None);
    let data = "\n  \"b\": null,\n  \"a\": {\n   \"value\": 1,\n   \"text\": \"x\"\n  }\n }\n}";
    assert_eq!(text("dump.json"), format!("{head} \"data\": {{{data}"));
    assert_eq!(text("construct.json"), "{\n \"b\": null,\n \"a\\u00e9\": \"b\"\n}");
    let mut files: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["construct.json", "dump.json", "stack.json"]);
}

#[test]
fn a_debug_step_has_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let writer = StepWriter::create(dir.path(), &header(), Files::Debug).unwrap();
    writer.append("x.0.debug", "1".into());
    writer.construct("x", None);
    writer.stack_name(0, "x", Vec::new);
    writer.flush().unwrap();
    assert_eq!(read(dir.path(), "debug.json")["data"], json!({"x.0.debug": 1}));
    writer.finish().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_is_new_shows_by_itself() {
    assert_soon("calls are visible while a record is held back", || {
        let dir = tempfile::tempdir().unwrap();
        let writer = writer(dir.path());
        writer.append("a", "1".into());
        assert!(comes_true(PATIENCE, || names(dir.path()) == ["a"]));
        let open = writer.open_record("open");
        writer.append("b", "2".into());
        thread::sleep(Duration::from_millis(20));
        writer.construct("b", None);
        let is_soon = comes_true(FLUSH_INTERVAL * 3, || read(dir.path(), "construct.json") != json!({}))
            && names(dir.path()) == ["a"];
        writer.close(open, "3".into());
        assert!(comes_true(PATIENCE, || names(dir.path()) == ["a", "open", "b"]));
        is_soon
    });
}

#[test]
fn a_record_without_body_holds_back_for_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let first = writer.open_record("first");
    let gone = writer.open_record("gone");
    writer.append("second", "2".into());
    let start = Instant::now();
    assert!(comes_true(PATIENCE, || names(dir.path()).len() == 3));
    assert!(start.elapsed() > HOLD_TIME / 2);
    assert_eq!(data(dir.path())[0], ("first".into(), json!({})));
    writer.close(first, body(1, 9000));
    writer.abandon(gone);
    writer.flush().unwrap();
    let text = fs::read_to_string(dir.path().join("dump.json")).unwrap();
    assert_eq!(text.matches("\"first\"").count(), 2, "too large for the place it had");
    assert_eq!(names(dir.path()), ["first", "second"]);
    assert_eq!(data(dir.path())[0].1["value"], 1);
}

#[test]
fn much_is_not_held_back() {
    assert_soon("much is visible before the time of holding is over", || {
        let dir = tempfile::tempdir().unwrap();
        let writer = writer(dir.path());
        let late = writer.open_record("late");
        for index in 0..3 {
            writer.append(&format!("large{index}"), body(index, HOLD_BYTES / 2));
        }
        let is_soon = comes_true(HOLD_TIME / 2, || names(dir.path()).len() == 4);
        writer.abandon(late);
        writer.finish().unwrap();
        assert_eq!(names(dir.path()), ["large0", "large1", "large2"]);
        is_soon
    });
}

#[test]
fn a_flush_shows_open_records_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let ids: Vec<_> = (0..4).map(|index| writer.open_record(&index.to_string())).collect();
    writer.set(ids[1], "[1]".into(), 20);
    writer.flush().unwrap();
    assert_eq!(data(dir.path()), [("0".into(), json!({})), ("1".into(), json!([1]))]);
    writer.set(ids[1], "[1, 1]".into(), 20);
    writer.set(ids[3], "[3]".into(), 0);
    writer.remove(ids[0]);
    writer.flush().unwrap();
    assert_eq!(names(dir.path()), ["1", "2", "3"]);
    assert_eq!(data(dir.path())[0].1, json!([1, 1]));
    writer.set(ids[2], "[2]".into(), 0);
    writer.abandon(ids[2]);
    writer.set(ids[2], "[9]".into(), 0);
    writer.remove(ids[1]);
    writer.set(ids[3], "[3, 3, 3]".into(), 0);
    writer.finish().unwrap();
    assert_eq!(data(dir.path()), [("2".into(), json!([2])), ("3".into(), json!([3, 3, 3]))]);
}

#[test]
fn stacks_are_asked_for_once_and_numbered_as_seen() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let asked = AtomicUsize::new(0);
    for call in 0..3000usize {
        let stack = [70, 3, 12][call % 3];
        writer.stack_name(stack, &format!("call{call}"), || {
            asked.fetch_add(1, Ordering::Relaxed);
            vec![format!("File {stack}"), "last".into()]
        });
        if call % 100 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    let stacks = read(dir.path(), "stack.json");
    assert_eq!(stacks.as_object().unwrap().keys().collect::<Vec<_>>(), ["0", "1", "2"]);
    for (number, stack) in [70, 3, 12].into_iter().enumerate() {
        let names: Vec<String> = (0..1000).map(|call| format!("call{}", 3 * call + number)).collect();
        assert_eq!(stacks[number.to_string()], json!([names, [format!("File {stack}"), "last"]]));
    }
}

#[test]
fn the_cost_of_a_record_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let mut content = 0u64;
    for index in 0..20_000usize {
        let name = format!("Tensor.add.{index}.forward");
        let id = writer.open_record(&name);
        let text = body(index, 300);
        content += (3 * name.len() + text.len()) as u64;
        writer.set(id, "{}".into(), 600);
        writer.stack_name(index % 7, &name, || vec!["File model.py, line 1, in forward".into()]);
        writer.construct(&name, None);
        if index % 50 == 0 {
            writer.flush().unwrap();
        }
        writer.close(id, text);
    }
    writer.finish().unwrap();
    let names = names(dir.path());
    assert!(names.iter().enumerate().all(|(index, name)| *name == format!("Tensor.add.{index}.forward")));
    assert_eq!(names.len(), 20_000);
    let written = writer.bytes_written();
    assert!(written < 4 * content, "{written} bytes written for {content}");
}

#[test]
fn threads_share_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    thread::scope(|scope| {
        for number in 0..8 {
            let writer = &writer;
            scope.spawn(move || {
                for call in 0..500 {
                    let id = writer.open_record(&format!("{number}.{call}"));
                    writer
                        .stack_name(call % 5, &format!("{number}.{call}"), || vec![format!("{}", call % 5)]);
                    writer.set(id, body(call, 100), 300);
                    match call % 4 {
                        0 => writer.remove(id),
                        1 => writer.abandon(id),
                        _ => writer.close(id, body(call + 1, 400)),
                    }
                    if call % 97 == 0 {
                        writer.flush().unwrap();
                    }
                }
            });
        }
    });
    writer.finish().unwrap();
    let data = data(dir.path());
    assert_eq!(data.len(), 8 * 500 * 3 / 4);
    for number in 0..8 {
        let prefix = format!("{number}.");
        let calls: Vec<usize> = data
            .iter()
            .filter_map(|(name, value)| {
                let call: usize = name.strip_prefix(&prefix)?.parse().unwrap();
                assert_eq!(value["value"], call + usize::from(call % 4 > 1));
                Some(call)
            })
            .collect();
        assert!(calls.is_sorted() && calls.len() == 375);
    }
    let stacks = read(dir.path(), "stack.json");
    let grouped: usize =
        stacks.as_object().unwrap().values().map(|group| group[0].as_array().unwrap().len()).sum();
    assert_eq!(grouped, 8 * 500);
}

#[test]
fn much_at_once_is_written_with_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let text = body(1, 1 << 20);
    for index in 0..150 {
        writer.append(&index.to_string(), text.clone());
    }
    writer.finish().unwrap();
    assert_eq!(names(dir.path()).len(), 150);
}

#[test]
fn nobody_waits_for_records_that_have_nothing_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let writer = writer(dir.path());
    let name = "x".repeat(200);
    let ids: Vec<_> = (0..300_000).map(|_| writer.open_record(&name)).collect();
    writer.flush().unwrap();
    assert_eq!(data(dir.path()), []);
    writer.close(ids[1], "1".into());
    writer.flush().unwrap();
    for id in ids {
        writer.abandon(id);
    }
    writer.finish().unwrap();
    assert_eq!(data(dir.path()), [(name, json!(1))]);
}

#[test]
fn a_failure_is_told_and_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("step0");
    fs::create_dir(&place).unwrap();
    let writer = writer(&place);
    writer.append("a", "1".into());
    writer.flush().unwrap();
    fs::remove_dir_all(&place).unwrap();
    writer.append("b", "1".into());
    let error = writer.flush().unwrap_err();
    assert_eq!(error.path, place.join("dump.json"));
    assert!(writer.failure().unwrap().contains("hint: the directory was removed"));
    for _ in 0..1000 {
        writer.append("c", body(1, 100_000));
    }
    assert_eq!(writer.flush(), Err(error.clone()));
    assert_eq!(writer.finish(), Err(error));
    let missing = StepWriter::create(&place, &header(), Files::Dump).unwrap_err();
    assert_eq!(missing.path, place.join("dump.json"));
}

#[test]
fn files_that_are_created_later_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(1, 1 << 20).unwrap();
    let place = |name: &str| {
        let place = dir.path().join(name);
        fs::create_dir(&place).unwrap();
        place
    };
    let (now, soon) = (place("now"), place("soon"));
    for writer in [
        StepWriter::create_with_tensors(&now, &header(), Files::Dump, &pool).unwrap(),
        StepWriter::create_soon(&soon, header(), Files::Dump, Some(&pool)).unwrap(),
    ] {
        writer.append("a", "1".into());
        writer.construct("a", None);
        writer.finish().unwrap();
    }
    for name in ["dump.json", "stack.json", "construct.json"] {
        assert_eq!(fs::read(now.join(name)).unwrap(), fs::read(soon.join(name)).unwrap());
    }
    assert_eq!(fs::read_dir(&soon).unwrap().count(), 3);
    let writer = StepWriter::create_soon(&dir.path().join("missing"), header(), Files::Dump, None).unwrap();
    writer.append("a", "1".into());
    let error = writer.flush().unwrap_err();
    assert_eq!(error.path, dir.path().join("missing/dump.json"));
    assert!(writer.failure().is_some());
    assert_eq!(writer.finish(), Err(error));
}

/// A record that names a file which this pool is about to write.
fn naming(pool: &TensorPool, dir: &Path, name: &str, bytes: usize) -> RecordBody {
    let data = vec![1u8; bytes];
    let view = TensorView::contiguous(DType::U8, vec![bytes], &data).unwrap();
    let file = pool.save(dir.join(name), &view, TensorFormat::Pt);
    let mut text = JsonText::new(2);
    text.begin_object();
    text.key("data_name");
    let at = text.len();
    text.string(name);
    let len = text.len() - at;
    text.end_object();
    let mut body = RecordBody::from(text.finish());
    body.name_file(at, len, file);
    body
}

/// Keeps the only thread of a pool busy until told otherwise.
fn stop_pool(pool: &TensorPool, dir: &Path) -> std::sync::mpsc::Sender<()> {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    pool.save_text(Target { path: dir.join("stopper"), modified: None }, move || {
        let _ = wait.recv();
        String::new()
    });
    go
}

#[test]
fn records_come_after_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(1, 64 << 20).unwrap();
    let sink =
        StepSink::from(StepWriter::create_with_tensors(dir.path(), &header(), Files::Dump, &pool).unwrap());
    sink.append("first", "1".into());
    sink.flush().unwrap();
    let go = stop_pool(&pool, dir.path());
    let open = sink.open_record("open");
    let id = sink.set(open, "open", "2".into(), 60);
    sink.append("second", naming(&pool, dir.path(), "second.pt", 9));
    sink.append("third", "3".into());
    sink.set(id, "open", naming(&pool, dir.path(), "open.pt", 9), 60);
    // Everything that can be seen is seen by now, and nothing else.
    assert!(comes_true(PATIENCE, || names(dir.path()) == ["first", "open"]));
    thread::sleep(FLUSH_INTERVAL * 2);
    assert_eq!(data(dir.path())[1], ("open".into(), json!(2)));
    assert_eq!(names(dir.path()), ["first", "open"]);
    go.send(()).unwrap();
    assert!(comes_true(PATIENCE, || names(dir.path()) == ["first", "open", "second", "third"]));
    sink.flush().unwrap();
    assert_eq!(data(dir.path())[1].1, json!({"data_name": "open.pt"}));
    assert_eq!(data(dir.path())[2].1, json!({"data_name": "second.pt"}));
}

#[test]
fn a_flush_and_the_end_wait_for_files() {
    for by_flush in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let pool = TensorPool::new(1, 64 << 20).unwrap();
        let sink = StepSink::from(writer(dir.path()));
        let go = stop_pool(&pool, dir.path());
        sink.append("a", naming(&pool, dir.path(), "a.pt", 9));
        let thread = thread::spawn(move || {
            if by_flush {
                sink.flush().unwrap();
            }
            drop(sink);
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!thread.is_finished());
        go.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(data(dir.path()), [("a".to_owned(), json!({"data_name": "a.pt"}))]);
    }
}

#[test]
fn files_that_could_not_be_written_are_not_named() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(2, 64 << 20).unwrap();
    let sink = StepSink::from(writer(dir.path()));
    sink.append("good", naming(&pool, dir.path(), "good.pt", 9));
    pool.wait();
    sink.append("bad", naming(&pool, &dir.path().join("missing"), "bad.pt", 9));
    pool.wait();
    sink.append("late", naming(&pool, dir.path(), "late.pt", 9));
    sink.flush().unwrap();
    let data = data(dir.path());
    assert_eq!(data[0].1, json!({"data_name": "good.pt"}));
    for (_, record) in &data[1..] {
        assert_eq!(record["data_name"], Value::Null);
        assert!(record["unwritten"].as_str().unwrap().contains("No such file"), "{record}");
    }
}

/// Who records more than the disk takes waits: for the files of the pool, and for records that wait for files.
#[test]
fn much_of_everything_neither_grows_nor_gets_stuck() {
    let dir = tempfile::tempdir().unwrap();
    let pool = TensorPool::new(2, 64 << 10).unwrap();
    let sink = StepSink::from(writer(dir.path()));
    let text = "x".repeat(QUEUE_BYTES / 100);
    thread::scope(|scope| {
        for worker in 0..3 {
            let (sink, pool, dir, text) = (&sink, &pool, dir.path(), &text);
            scope.spawn(move || {
                for call in 0..60 {
                    let name = format!("{worker}.{call}");
                    let id = sink.open_record(&name);
                    let body = naming(pool, dir, &format!("{name}.pt"), 30_000);
                    let id = sink.set(id, &name, format!("\"{text}\"").into(), 0);
                    if call % 3 == 0 {
                        sink.flush().unwrap();
                    }
                    sink.close(id, &name, body);
                }
            });
        }
    });
    sink.flush().unwrap();
    let data = data(dir.path());
    assert_eq!(data.len(), 180);
    for (name, record) in data {
        assert_eq!(record, json!({"data_name": format!("{name}.pt")}));
        assert!(dir.path().join(format!("{name}.pt")).is_file());
    }
}
