//! Small dumps and graphs, a server on a free port, and a client that says exactly what it is told to.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use msprobe_graph::names::Generation;
use msprobe_graph::run::{Options as GraphOptions, run};
use msprobe_report::console::Silent;
use msprobe_viewer::{Options, Server, Stop};
use serde_json::{Value, json};

/// A call: name, parent, what goes in, what comes out.
pub(crate) type Call = (&'static str, Option<&'static str>, f64, f64);

pub(crate) const NET: &str = "Module.net.Net.forward.0";

/// A small model, in the order of calls.
pub(crate) const CALLS: [Call; 6] = [
    ("Torch.a.0.forward", Some("Module.net.fc.Linear.forward.0"), 1.0, 2.0),
    ("Module.net.fc.Linear.forward.0", Some(NET), 1.0, 2.0),
    ("Torch.b.0.forward", Some(NET), 2.0, 3.0),
    ("Torch.b.1.forward", Some(NET), 3.0, 4.0),
    (NET, None, 1.0, 4.0),
    ("Torch.loss.0.forward", None, 4.0, 5.0),
];

pub(crate) fn tensor(value: f64) -> String {
    let number = |value: f64| {
        if value.is_nan() { "NaN".to_owned() } else { format!("{value:?}") }
    };
    format!(
        "{{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2, 2], \"Max\": {0}, \"Min\": {1}, \"Mean\": 0.0, \
         \"Norm\": {0}, \"requires_grad\": false}}",
        number(value),
        number(-value)
    )
}

pub(crate) fn write_dump(dir: &Path, calls: &[Call]) {
    fs::create_dir_all(dir).unwrap();
    let (mut construct, mut stack, mut data) = (json!({}), json!({}), Vec::new());
    for (name, parent, input, output) in calls {
        construct[name] = json!(parent);
        data.push(format!(
            "\"{name}\": {{\"input_args\": [{}], \"input_kwargs\": {{}}, \"output\": [{}]}}",
            tensor(*input),
            tensor(*output)
        ));
        stack[name] = json!([
            format!("File /home/me/model.py, line 1, in forward, \n {name}"),
            "File /usr/lib/python3/site-packages/torch/nn/modules/module.py, line 2, in _call_impl, \n x",
        ]);
    }
    let dump = format!(
        "{{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\", \"dump_data_dir\": null, \"data\": {{{}}}}}",
        data.join(", ")
    );
    fs::write(dir.join("construct.json"), construct.to_string()).unwrap();
    fs::write(dir.join("stack.json"), stack.to_string()).unwrap();
    fs::write(dir.join("dump.json"), dump).unwrap();
}

/// The calls with another result of one of them.
pub(crate) fn with_output(name: &str, output: f64) -> Vec<Call> {
    CALLS.iter().map(|call| if call.0 == name { (call.0, call.1, call.2, output) } else { *call }).collect()
}

pub(crate) fn compare(generation: Generation, target: &Path, golden: &Path, output: &Path) -> Vec<PathBuf> {
    let options = GraphOptions {
        golden: Some(golden.to_owned()),
        overflow_check: true,
        ..GraphOptions::new(generation, target, output)
    };
    run(&options, &Silent, &|_| {}).unwrap().files
}

/// A directory with a comparison of two ranks and two steps, `b.0` being wrong on rank 1 from step 1 on; `only` has no partner.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn empty() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn new(generation: Generation) -> Place {
        let place = Place::empty();
        for (side, is_target) in [("target", true), ("golden", false)] {
            for step in 0..2 {
                for rank in 0..2 {
                    let is_wrong = is_target && step == 1 && rank == 1;
                    let mut calls =
                        if is_wrong { with_output("Torch.b.0.forward", 9.0) } else { CALLS.to_vec() };
                    let only = if is_target { "Torch.only.0.forward" } else { "Torch.only.7.forward" };
                    calls.insert(2, (only, Some(NET), 2.0, 2.5));
                    write_dump(&place.path(&format!("{side}/step{step}/rank{rank}")), &calls);
                }
            }
        }
        compare(generation, &place.path("target"), &place.path("golden"), &place.path("out"));
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn serve(&self, inside: &str) -> Served {
        Served::start(&[self.path(inside)])
    }
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A server on a thread.
pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) url: String,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.now();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Served {
    pub(crate) fn start(paths: &[PathBuf]) -> Served {
        Served::bind(paths, IpAddr::V4(Ipv4Addr::LOCALHOST), false)
    }

    pub(crate) fn bind(paths: &[PathBuf], bind: IpAddr, allow_remote: bool) -> Served {
        let server = Server::bind(&Options { paths: paths.to_vec(), bind, port: 0, allow_remote }).unwrap();
        let url = server.url().to_owned();
        let rest = url.rsplit_once(':').unwrap().1;
        let port = rest.split_once('/').unwrap().0.parse().unwrap();
        let stop = server.stop();
        let thread = std::thread::spawn(move || server.run().unwrap());
        Served { port, url, stop, thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        stream
    }

    /// Sends bytes, and reads what comes back until the connection is closed.
    pub(crate) fn raw(&self, request: &[u8]) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut reply = Vec::new();
        // A server that refuses may close before everything was read.
        let _ = stream.read_to_end(&mut reply);
        parse(&reply)
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let host = ("Host", format!("127.0.0.1:{}", self.port));
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        let own = [host].into_iter().filter(|_| !has_host);
        let given = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let lines: Vec<String> =
            own.chain(given).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{body}",
            lines.concat(),
            body.len()
        );
        self.raw(request.as_bytes())
    }

    pub(crate) fn get_reply(&self, path: &str) -> Reply {
        self.request("GET", path, &[], "")
    }

    /// Asks until it is prepared.
    pub(crate) fn get(&self, path: &str) -> Value {
        let began = Instant::now();
        loop {
            let reply = self.get_reply(path);
            let json = reply.json();
            if reply.status == 503
                && json.get("preparing").is_some()
                && began.elapsed() < Duration::from_mins(2)
            {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            assert_eq!(reply.status, 200, "{path}: {json}");
            return json;
        }
    }

    pub(crate) fn post_reply(&self, path: &str, body: &Value) -> Reply {
        let origin = format!("http://127.0.0.1:{}", self.port);
        let headers = [("Origin", origin.as_str()), ("Content-Type", "application/json")];
        self.request("POST", path, &headers, &body.to_string())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let reply = self.post_reply(path, body);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// The id of the only item of a kind.
    pub(crate) fn id(&self, kind: &str) -> String {
        let catalogue = self.get("/api/catalogue");
        let items = catalogue["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["kind"] == kind).unwrap_or_else(|| panic!("{catalogue}"));
        item["id"].as_str().unwrap().to_owned()
    }

    /// A question about the only graph.
    pub(crate) fn graph(&self, question: &str) -> Value {
        self.get(&format!("/api/graph/{}{question}", self.id("graph")))
    }
}

fn parse(reply: &[u8]) -> Reply {
    let end = reply.windows(4).position(|part| part == b"\r\n\r\n").map_or(reply.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&reply[..end]).into_owned();
    let mut lines = head.lines();
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok()).unwrap_or(0);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut body = reply[end..].to_vec();
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    if is_chunked {
        body = unchunked(&body);
    }
    Reply { status, headers, body }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(at) = body.windows(2).position(|part| part == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..at]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&body[at + 2..at + 2 + size]);
        body = &body[at + 4 + size..];
    }
    whole
}

/// A name as it stands in an address.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b".-_".contains(&byte) {
                (byte as char).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
