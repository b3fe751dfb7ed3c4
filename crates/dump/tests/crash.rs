//! Processes that come to a bad end leave whole files. Without a test harness, because this program is also the
//! process that is killed: `crash child DIR` writes until somebody stops it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use msprobe_dump::write::{Files, Header, JsonText, StepWriter};
use serde_json::Value;

const KILLS: u64 = 50;
/// Calls between two flushes of the child.
const ROUND: usize = 20;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, dir] = args.as_slice()
        && word == "child"
    {
        return child(Path::new(dir));
    }
    killed_at_any_moment()?;
    disk_full()?;
    println!("crash: killed {KILLS} times, and out of space: every file is whole");
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
