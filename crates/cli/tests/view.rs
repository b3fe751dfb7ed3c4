//! `msprobe view` as it is run: the address it prints, errors with hints, the file it exports, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::msprobe;

const DUMP: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/graph/build_mix_statistics/npu_dump");

#[test]
fn help() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, _) = msprobe(directory.path(), &["view", "--help"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("view_help", stdout);
}

#[test]
fn wrong_usage_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for (args, error, hint) in [
        (&["view", "nowhere", "--no-open"][..], "nowhere: ", "hint: give a directory"),
        (
            &["view", ".", "--bind", "0.0.0.0", "--no-open"],
            "0.0.0.0 can be reached from other machines",
            "hint: add --allow-remote",
        ),
        (&["view", ".", "--step", "0"], "--export", ""),
        (&["view"], "PATH", ""),
    ] {
        let (code, stdout, stderr) = msprobe(directory.path(), args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains(error) && stderr.contains(hint), "{args:?}: {stderr}");
    }
}

#[test]
fn it_serves_until_it_is_told_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    for signal in ["INT", "TERM"] {
        let mut process = Command::new(env!("CARGO_BIN_EXE_msprobe"))
            .args(["view", ".", "--no-open", "--port", "0"])
            .current_dir(directory.path())
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        assert!(host.starts_with("127.0.0.1:"), "{line}");
        let mut stream = TcpStream::connect(&host).unwrap();
        write!(stream, "GET /api/catalogue HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"items\":[]"), "{answer}");
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1, "its own directory");
        let kill =
            Command::new("kill").args([format!("-{signal}"), process.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let began = Instant::now();
        let status = loop {
            match process.try_wait().unwrap() {
                Some(status) => break status,
                None if began.elapsed() > Duration::from_mins(1) => {
                    process.kill().unwrap();
                    unreachable!("it did not end");
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(status.code(), Some(0), "SIG{signal}");
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "nothing is left behind");
    }
}

#[test]
fn a_page_with_everything_in_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = msprobe(directory.path(), &["view", DUMP, "--export", "report.html"]);
    assert_eq!((code, stdout.as_str()), (0, "report.html\n"), "{stderr}");
    let page = fs::read_to_string(directory.path().join("report.html")).unwrap();
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"embedded\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let id = data["catalogue"]["items"][0]["id"].as_str().unwrap();
    let graph = &data["graphs"][id]["graphs"][0];
    let nodes = graph["nodes"].as_array().unwrap();
    assert!(nodes.len() > 10);
    for node in nodes {
        assert!(graph["details"][node["name"].as_str().unwrap()]["values"].is_array());
    }
    for file in ["viewer.js", "viewer.css"] {
        assert!(!page.contains(&format!("=\"/{file}\"")), "nothing is asked for: {file}");
    }
    let (code, _, stderr) =
        msprobe(directory.path(), &["view", DUMP, "--export", "other.html", "--step", "7"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(!directory.path().join("other.html").exists());
}
