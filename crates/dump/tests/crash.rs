//! Processes that come to a bad end leave whole files. Without a test harness, because this program is also the
//! process that is killed: `crash child DIR` writes until somebody stops it, `crash tensors DIR` with tensor files;
//! `starved`, `filling` and `memory` run out of file descriptors, disk and memory, and end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use msprobe_dump::names::{Rank, Step, TensorFormat};
use msprobe_dump::write::{
    Files, FlightLog, Header, HeldLimits, HeldPlace, JsonText, RecordBody, StepSink, StepWriter, TensorPool,
};
use msprobe_tensor::files::TensorFile;
use msprobe_tensor::memory::{self, Fund};
use msprobe_tensor::{DType, TensorView};
use serde_json::Value;

#[global_allocator]
static MEMORY: Fund = Fund;

const KILLS: u64 = 50;
/// Calls between two flushes of the child.
const ROUND: usize = 20;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, dir] = args.as_slice() {
        let dir = Path::new(dir);
        match word.as_str() {
            "child" => return child(dir),
            "tensors" => return with_tensors(dir, Trouble::Kill),
            "starved" => return with_tensors(dir, Trouble::NoDescriptors),
            "filling" => return with_tensors(dir, Trouble::FullDisk),
            "memory" => return without_memory(dir),
            _ => {}
        }
    }
    // Whoever runs tests asks for their names first.
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            println!("crash: test");
        }
        return Ok(());
    }
    killed_at_any_moment()?;
    killed_while_saving_tensors()?;
    disk_full()?;
    out_of_file_descriptors()?;
    disk_full_of_tensors()?;
    out_of_memory()?;
    println!("crash: killed {KILLS} times twice, and out of everything: every file is whole");
    Ok(())
}

/// Writes records, and says after each round how many of them are safe; ends when writing fails.
fn child(dir: &Path) -> Outcome {
    let header = Header {
        task: "statistics".into(),
        level: "mix".into(),
        framework: "pytorch".into(),
        dump_data_dir: None,
    };
    let writer = StepWriter::create(dir, &header, Files::Dump)?;
    let mut held = writer.open_record("held");
    for call in 0.. {
        let name = format!("Tensor.add.{call}.forward");
        let id = writer.open_record(&name);
        writer.set(id, "{}".into(), 100);
        writer.stack_name(call % 5, &name, || vec![format!("File model.py, line {}", call % 5)]);
        writer.construct(&name, None);
        if call % ROUND == 0 {
            // An error comes back at the end of the round.
            let _ = writer.flush();
        }
        writer.close(id, body(call));
        if call % 7 == 0 {
            writer.remove(held);
            held = writer.open_record("held");
        }
        if call % ROUND == ROUND - 1 {
            if let Err(error) = writer.flush() {
                println!("failed {:?} {}", error.kind, writer.failure().unwrap_or_default());
                return Ok(());
            }
            println!("safe {}", call + 1);
            std::io::stdout().flush()?;
        }
    }
    Ok(())
}

fn body(call: usize) -> String {
    let mut text = JsonText::new(2);
    text.begin_array();
    text.int(call as i128);
    // Some outgrow the room they were given.
    text.string(&"x".repeat((call * 37) % 300));
    text.end_array();
    text.finish()
}

/// Reads the three files and tells how many calls are in all of them, without a gap.
fn calls_in(dir: &Path) -> Result<usize, Box<dyn std::error::Error>> {
    let read = |name: &str| -> Result<Value, Box<dyn std::error::Error>> {
        let text = fs::read_to_string(dir.join(name))?;
        serde_json::from_str(&text).map_err(|error| format!("{name}: {error}\n{text}").into())
    };
    let (dump, stack, construct) = (read("dump.json")?, read("stack.json")?, read("construct.json")?);
    let mut calls = 0;
    let records = dump["data"].as_object().ok_or("no data")?;
    for (name, value) in records.iter().filter(|(name, _)| *name != "held") {
        assert_eq!(*name, format!("Tensor.add.{calls}.forward"));
        // The last one may not have got its body yet.
        if value[0] == calls {
            calls += 1;
        } else {
            assert_eq!(value, &Value::Object(serde_json::Map::new()), "{name}");
            break;
        }
    }
    for call in 0..calls {
        let name = format!("Tensor.add.{call}.forward");
        assert!(construct.get(&name).is_some(), "{name} has no place");
        let group = &stack[(call % 5).to_string()];
        assert_eq!(group[0][call / 5], *name);
        assert_eq!(group[1][0], *format!("File model.py, line {}", call % 5));
    }
    Ok(calls)
}

fn killed_at_any_moment() -> Outcome {
    let program = std::env::current_exe()?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut most = 0;
    let dir = tempfile::tempdir()?;
    for kill in 0..KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let delay = Duration::from_micros((state >> 33) % 60_000);
        let mut child = Command::new(&program).arg("child").arg(dir.path()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        // Half of them may die before they have written anything.
        let first = if kill % 2 == 0 { lines.next().transpose()? } else { None };
        std::thread::sleep(delay);
        child.kill()?;
        child.wait()?;
        let said: Vec<String> = first.into_iter().map(Ok).chain(lines).collect::<Result<_, _>>()?;
        if let Some(safe) = said.iter().rev().find_map(|line| line.strip_prefix("safe ")?.parse().ok()) {
            let calls = calls_in(dir.path())?;
            assert!(calls >= safe, "{safe} calls were safe, {calls} are there");
            most = most.max(calls);
        } else {
            // Killed so early that a file may be the one of the run before.
            for name in ["dump.json", "stack.json", "construct.json"] {
                serde_json::from_str::<Value>(&fs::read_to_string(dir.path().join(name))?)?;
            }
        }
    }
    assert!(most > 2 * ROUND, "at most {most} calls");
    Ok(())
}

/// With a limit on the size of files in place of a full disk.
fn disk_full() -> Outcome {
    let dir = tempfile::tempdir()?;
    let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" child \"$1\"";
    let output =
        Command::new("bash").arg("-c").arg(script).arg(std::env::current_exe()?).arg(dir.path()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().unwrap_or_default();
    assert!(output.status.success(), "{last} {}", String::from_utf8_lossy(&output.stderr));
    assert!(last.starts_with("failed FileTooLarge cannot write ") && last.contains("hint: "), "{last}");
    let safe = text.lines().rev().find_map(|line| line.strip_prefix("safe ")?.parse::<usize>().ok());
    let calls = calls_in(dir.path())?;
    assert!(calls >= safe.ok_or("nothing was written")?);
    let names = fs::read_dir(dir.path())?.count();
    assert_eq!(names, 3, "no spare is left");
    Ok(())
}

/// What a process that saves tensors comes across.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Kill,
    NoDescriptors,
    FullDisk,
}

/// Calls after trouble began.
const LATER_CALLS: usize = 200;

/// Writes records that name tensor files, and says after each round how many of them are safe.
fn with_tensors(dir: &Path, trouble: Trouble) -> Outcome {
    let header = Header {
        task: "tensor".into(),
        level: "mix".into(),
        framework: "pytorch".into(),
        dump_data_dir: Some(dir.to_string_lossy().into_owned()),
    };
    let pool = TensorPool::new(2, 1 << 20)?;
    let sink = StepSink::from(StepWriter::create_with_tensors(dir, &header, Files::Dump, &pool)?);
    // A record that gets new bodies again and again, as gradients do.
    let gradients = sink.open_record("gradients");
    let gradients = sink.set(gradients, "gradients", "{}".into(), 200);
    let mut descriptors = Vec::new();
    let mut end = usize::MAX;
    let mut call = 0;
    while call < end {
        let name = format!("Tensor.add.{call}.forward");
        let id = sink.open_record(&name);
        let data = vec![1u8; 1 + (call * 7919) % 60_000];
        sink.close(id, &name, naming(&pool, dir, &format!("{name}.pt"), &data)?);
        if call % 3 == 0 {
            sink.set(gradients, "gradients", naming(&pool, dir, &format!("gradients.{call}.pt"), &data)?, 0);
        }
        call += 1;
        if call % ROUND == 0 && trouble == Trouble::Kill {
            sink.flush()?;
            println!("safe {call}");
            std::io::stdout().flush()?;
        }
        if call == 2 * ROUND && trouble == Trouble::NoDescriptors {
            pool.wait();
            while let Ok(file) = File::open("/dev/null") {
                descriptors.push(file);
            }
        }
        if end == usize::MAX && !pool.is_open() {
            end = call + LATER_CALLS;
        }
    }
    sink.flush()?;
    drop(sink);
    println!("ended {call} {}", pool.failure().unwrap_or_default());
    Ok(())
}

fn naming(
    pool: &TensorPool,
    dir: &Path,
    file: &str,
    data: &[u8],
) -> Result<RecordBody, Box<dyn std::error::Error>> {
    let saved = pool.save(
        dir.join(file),
        &TensorView::contiguous(DType::U8, vec![data.len()], data)?,
        TensorFormat::Pt,
    );
    let mut text = JsonText::new(2);
    text.begin_object();
    text.key("size");
    text.int(data.len() as i128);
    text.key("data_name");
    let at = text.len();
    text.string(file);
    let len = text.len() - at;
    text.end_object();
    let mut body = RecordBody::from(text.finish());
    body.name_file(at, len, saved);
    Ok(body)
}

/// Calls without a gap, how many files there are, and how many there are not for a reason.
struct Named {
    calls: usize,
    there: usize,
    unwritten: usize,
}

/// Looks at every file that is named: it must be there, and whole.
fn named_in(dir: &Path) -> Result<Named, Box<dyn std::error::Error>> {
    let text = fs::read_to_string(dir.join("dump.json"))?;
    let dump: Value = serde_json::from_str(&text).map_err(|error| format!("{error}\n{text}"))?;
    let mut named = Named { calls: 0, there: 0, unwritten: 0 };
    for (name, value) in dump["data"].as_object().ok_or("no data")? {
        if name != "gradients" {
            assert_eq!(*name, format!("Tensor.add.{}.forward", named.calls));
            named.calls += 1;
        } else if value.get("size").is_none() {
            continue;
        }
        if let Some(file) = value["data_name"].as_str() {
            let file = TensorFile::open(&dir.join(file)).map_err(|error| format!("{name}: {error}"))?;
            assert_eq!(file.view(0)?.shape(), [value["size"].as_u64().ok_or("no size")? as usize]);
            named.there += 1;
        } else {
            assert!(value["data_name"].is_null() && value["unwritten"].is_string(), "{name}: {value}");
            named.unwritten += 1;
        }
    }
    Ok(named)
}

fn killed_while_saving_tensors() -> Outcome {
    let program = std::env::current_exe()?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut there = 0;
    for kill in 0..KILLS {
        let dir = tempfile::tempdir()?;
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Some live long enough for what is written without a flush.
        let span_micros = if kill % 5 == 0 { 900_000 } else { 60_000 };
        let delay = Duration::from_micros((state >> 33) % span_micros);
        let mut child =
            Command::new(&program).arg("tensors").arg(dir.path()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let first = lines.next().transpose()?;
        std::thread::sleep(delay);
        child.kill()?;
        child.wait()?;
        let said: Vec<String> = first.into_iter().map(Ok).chain(lines).collect::<Result<_, _>>()?;
        let safe = said.iter().rev().find_map(|line| line.strip_prefix("safe ")?.parse::<usize>().ok());
        let named = named_in(dir.path())?;
        assert!(named.calls >= safe.unwrap_or(0), "{safe:?} calls were safe, {} are there", named.calls);
        assert_eq!(named.unwritten, 0);
        there += named.there;
    }
    assert!(there > 10 * ROUND, "{there} files in all");
    Ok(())
}

/// What a process said at its end: calls, and why it stopped writing tensors.
fn ending(output: &std::process::Output) -> Result<(usize, String), Box<dyn std::error::Error>> {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = text
        .lines()
        .find_map(|line| line.strip_prefix("ended "))
        .ok_or_else(|| format!("{text} {errors}"))?;
    assert!(output.status.success(), "{text} {errors}");
    let (calls, failure) = last.split_once(' ').ok_or("no reason")?;
    Ok((calls.parse()?, failure.to_owned()))
}

fn out_of_file_descriptors() -> Outcome {
    let dir = tempfile::tempdir()?;
    let output = Command::new(std::env::current_exe()?).arg("starved").arg(dir.path()).output()?;
    let (calls, failure) = ending(&output)?;
    assert!(failure.contains("Too many open files"), "{failure}");
    let named = named_in(dir.path())?;
    assert_eq!(named.calls, calls);
    assert!(named.there >= 2 * ROUND && named.unwritten >= LATER_CALLS);
    Ok(())
}

/// On a disk of 20 MiB, where this user may have one.
fn disk_full_of_tensors() -> Outcome {
    let dir = tempfile::tempdir()?;
    let disk = dir.path().join("disk");
    let copy = dir.path().join("copy");
    fs::create_dir(&disk)?;
    let script =
        "mount -t tmpfs -o size=20m none \"$1\" || exit 99; \"$0\" filling \"$1\" && cp -r \"$1\" \"$2\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(std::env::current_exe()?).args([&disk, &copy]);
    let output = match command.output() {
        Ok(output) if output.status.code() != Some(99) && !output.stdout.is_empty() => output,
        _ => {
            println!("crash: SKIPPED a disk that is full, because none can be mounted here");
            return Ok(());
        }
    };
    let (calls, failure) = ending(&output)?;
    assert!(failure.contains("No space left on device"), "{failure}");
    let named = named_in(&copy)?;
    assert_eq!(named.calls, calls, "the index is complete");
    assert!(named.there > ROUND && named.unwritten >= LATER_CALLS);
    Ok(())
}

/// Fills memory with what a flight recorder holds, until there is no more.
fn without_memory(dir: &Path) -> Outcome {
    assert!(Fund::fill());
    let log = Arc::new(FlightLog::new(HeldLimits { steps: 2, records: usize::MAX, bytes: usize::MAX }));
    log.begin_step(HeldPlace { dump_path: dir.to_owned(), step: Step(0), rank: Rank(None) });
    let sink = StepSink::Memory(Arc::clone(&log));
    let header = Header {
        task: "statistics".into(),
        level: "mix".into(),
        framework: "pytorch".into(),
        dump_data_dir: None,
    };
    let writer = StepWriter::create(dir, &header, Files::Dump)?;
    writer.append("before", "1".into());
    let mut records = 0usize;
    while !memory::is_short() {
        sink.append("Tensor.add.0.forward", "x".repeat(1000).into());
        records += 1;
    }
    sink.append("Tensor.add.0.forward", "{}".into());
    assert_eq!(log.holding().records, 0);
    writer.append("after", "2".into());
    let failure = writer.finish().err().ok_or("memory was there")?;
    println!("ended {records} {failure}");
    Ok(())
}

fn out_of_memory() -> Outcome {
    let dir = tempfile::tempdir()?;
    let script = "ulimit -v 600000; exec \"$0\" memory \"$1\"";
    let output =
        Command::new("bash").arg("-c").arg(script).arg(std::env::current_exe()?).arg(dir.path()).output()?;
    let (records, failure) = ending(&output)?;
    assert!(records > 1000, "{records}");
    assert!(failure.contains("dump.json: out of memory; hint: "), "{failure}");
    let dump: Value = serde_json::from_str(&fs::read_to_string(dir.path().join("dump.json"))?)?;
    assert_eq!(dump["data"], serde_json::json!({"before": 1}), "what was accepted is written");
    Ok(())
}
