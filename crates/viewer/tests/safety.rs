//! Who may ask, what a browser may do with an answer, and what hostile files can do: nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::symlink;
use std::time::Duration;

use common::{Place, Served, compare, write_dump};
use msprobe_graph::names::Generation;
use msprobe_viewer::{Options, Server};
use rusqlite::Connection;
use serde_json::json;

fn store(place: &Place) -> std::path::PathBuf {
    write_dump(&place.path("target"), &common::CALLS);
    write_dump(&place.path("golden"), &common::CALLS);
    compare(Generation::Third, &place.path("target"), &place.path("golden"), &place.path("out")).remove(0)
}

#[test]
fn other_addresses_than_loopback_are_asked_for() {
    let place = Place::empty();
    let options = |bind, allow_remote| Options { paths: vec![place.path("")], bind, port: 0, allow_remote };
    for everywhere in ["0.0.0.0", "::", "10.1.2.3"] {
        let refused = Server::bind(&options(everywhere.parse().unwrap(), false)).unwrap_err();
        assert!(refused.hint.unwrap().contains("--allow-remote"), "{everywhere}");
    }
    let server = Server::bind(&options(IpAddr::V4(Ipv4Addr::LOCALHOST), false)).unwrap();
    assert!(server.url().starts_with("http://127.0.0.1:") && !server.url().contains("token"));
}

#[test]
fn others_need_the_token_once_and_the_cookie_from_then_on() {
    let place = Place::empty();
    let served = Served::bind(&[place.path("")], IpAddr::V4(Ipv4Addr::UNSPECIFIED), true);
    let token = served.url.split_once("?token=").unwrap().1.to_owned();
    assert!(token.len() >= 32);
    assert_eq!(served.get_reply("/").status, 401);
    assert_eq!(served.get_reply("/api/catalogue").status, 401);
    assert_eq!(served.get_reply("/?token=wrong").status, 401);
    assert_eq!(
        served.get_reply(&format!("/api/catalogue?token={token}")).status,
        401,
        "only the page takes it"
    );
    let greeted = served.get_reply(&format!("/?token={token}"));
    assert_eq!((greeted.status, greeted.header("location")), (303, Some("/")));
    let cookie = greeted.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert!(!pair.contains(&token), "the cookie is another secret");
    assert_eq!(served.request("GET", "/api/catalogue", &[("Cookie", pair)], "").status, 200);
    let wrong = format!("{}x", &pair[..pair.len() - 1]);
    assert_eq!(served.request("GET", "/api/catalogue", &[("Cookie", &wrong)], "").status, 401);
    let others = served.request("GET", "/api/catalogue", &[("Cookie", pair), ("Host", "evil.example:1")], "");
    assert_eq!(others.status, 403, "a name that is not ours is refused even then");
}

#[test]
fn names_that_point_here_and_pages_of_others_are_refused() {
    let place = Place::empty();
    let served = place.serve("");
    let port = served.port;
    let status = |headers: &[(&str, &str)]| served.request("GET", "/api/catalogue", headers, "").status;
    let localhost = format!("localhost:{port}");
    assert_eq!(status(&[("Host", &localhost)]), 200);
    for host in ["evil.example", "evil.example:80", "127.0.0.1:1", "127.0.0.1.evil.example"] {
        assert_eq!(status(&[("Host", host)]), 403, "{host}");
    }
    let rebound = format!("evil.example:{port}");
    assert_eq!(status(&[("Host", &rebound)]), 403);
    assert_eq!(
        served.raw(b"GET /api/catalogue HTTP/1.1\r\nConnection: close\r\n\r\n").status,
        403,
        "no host"
    );
    for origin in [
        "http://evil.example",
        "null",
        &format!("http://evil.example:{port}"),
        &format!("https://127.0.0.1:{port}"),
    ] {
        assert_eq!(status(&[("Origin", origin)]), 403, "{origin}");
    }
    assert_eq!(status(&[("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(status(&[("Sec-Fetch-Site", "same-origin")]), 200);
}

#[test]
fn what_changes_something_has_to_come_from_the_page() {
    let place = Place::empty();
    store(&place);
    let served = place.serve("out");
    let id = served.id("graph");
    let path = format!("/api/graph/{id}/undo");
    let own = format!("http://127.0.0.1:{}", served.port);
    let json = ("Content-Type", "application/json");
    let status = |headers: &[(&str, &str)], body: &str| served.request("POST", &path, headers, body).status;
    assert_eq!(status(&[("Origin", &own), json], "{}"), 200);
    assert_eq!(status(&[json], "{}"), 403, "no origin");
    assert_eq!(status(&[("Origin", "http://evil.example"), json], "{}"), 403);
    assert_eq!(
        status(&[("Origin", &own), ("Content-Type", "text/plain")], "{}"),
        415,
        "a form of another page"
    );
    assert_eq!(status(&[("Origin", &own), json], "no json"), 400);
    assert_eq!(served.request("DELETE", &path, &[("Origin", &own)], "").status, 405);
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let place = Place::empty();
    let served = place.serve("");
    for path in
        ["/", "/viewer.js", "/viewer.css", "/api/catalogue", "/api/graph/0000000000000000", "/nothing"]
    {
        let reply = served.get_reply(path);
        let policy = reply.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    let page = served.get_reply("/").text();
    let scripts: Vec<&str> = page.match_indices("<script").map(|(at, _)| &page[at..]).collect();
    for script in scripts {
        let tag = &script[..script.find('>').unwrap()];
        assert!(tag.contains("src="), "no script stands in the page itself: {tag}");
    }
}

#[test]
fn pages_of_commands_have_no_origin() {
    let place = Place::empty();
    fs::create_dir_all(place.path("c")).unwrap();
    let answer = json!({"command": "compare", "status": "diverged", "headline": "h", "files": []});
    fs::write(place.path("c/verdict.json"), json!({"answer": answer}).to_string()).unwrap();
    fs::write(place.path("c/compare_result.html"), "<script>fetch('/api/catalogue')</script>").unwrap();
    let served = place.serve("");
    let catalogue = served.get("/api/catalogue");
    let page = served.get_reply(&format!("/report/{}", catalogue["items"][0]["report"].as_str().unwrap()));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("sandbox allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
    assert!(policy.contains("default-src 'none'") && !policy.contains("connect-src"), "{policy}");
}

#[test]
fn ids_are_no_paths_and_links_are_not_followed() {
    let outside = Place::empty();
    let secret = store(&outside);
    fs::write(outside.path("secret.html"), "secret").unwrap();
    let place = Place::empty();
    store(&place);
    let out = place.path("out");
    symlink(&secret, out.join("linked.vis.db")).unwrap();
    symlink(outside.path("out"), out.join("linked")).unwrap();
    symlink(outside.path("target"), place.path("out/rank0")).unwrap();
    fs::create_dir(place.path("run")).unwrap();
    symlink(outside.path("target"), place.path("run/rank0")).unwrap();
    let served = place.serve("");
    let catalogue = served.get("/api/catalogue");
    let items = catalogue["items"].as_array().unwrap();
    assert_eq!(items.iter().filter(|item| item["kind"] == "graph").count(), 1, "{catalogue}");
    assert!(items.iter().all(|item| !item["title"].as_str().unwrap().contains("linked")), "{catalogue}");
    assert!(items.iter().all(|item| !item["title"].as_str().unwrap().contains("run")), "{catalogue}");
    let notes = catalogue["notes"].as_array().unwrap();
    assert!(
        notes.iter().any(|note| note["path"].as_str().unwrap().ends_with("linked.vis.db")),
        "{catalogue}"
    );
    for path in [
        "/report/..%2f..%2fetc%2fpasswd",
        "/report/secret.html",
        "/report/%2fetc%2fpasswd",
        "/api/graph/..%2fout",
        "/api/item/../../etc/passwd/tables",
        "/../../../../etc/passwd",
        "/viewer.js/../../Cargo.toml",
    ] {
        let reply = served.get_reply(path);
        assert!(matches!(reply.status, 400 | 404), "{path}: {}", reply.status);
        assert!(!reply.text().contains("root:"), "{path}");
    }
}

#[test]
fn a_link_that_takes_the_place_of_a_file_is_not_followed() {
    let outside = Place::empty();
    let secret = store(&outside);
    let place = Place::empty();
    let own = store(&place);
    let served = place.serve("out");
    let id = served.id("graph");
    fs::remove_file(&own).unwrap();
    symlink(&secret, &own).unwrap();
    let reply = served.get_reply(&format!("/api/graph/{id}/children"));
    assert!(reply.status >= 400, "{}", reply.text());
}

#[test]
fn requests_have_a_size_and_an_end() {
    let place = Place::empty();
    store(&place);
    let served = place.serve("out");
    let id = served.id("graph");
    let own = format!("http://127.0.0.1:{}", served.port);
    let long = format!("{{\"nodes\": [\"{}\"]}}", "x".repeat(20 << 20));
    let mut stream = served.connect();
    let head = format!(
        "POST /api/graph/{id}/open HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nOrigin: {own}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        served.port,
        long.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may close before it has read all of it.
    let _ = stream.write_all(long.as_bytes());
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 413"), "{}", &reply[..reply.len().min(200)]);
    let many =
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX: {}\r\n\r\n", served.port, "y".repeat(200_000));
    let refused = served.raw(many.as_bytes());
    assert!(matches!(refused.status, 0 | 400 | 431), "{}", refused.status);
    // Whatever was asked before, others are answered.
    assert_eq!(served.get_reply("/api/catalogue").status, 200);
}

#[test]
fn who_is_slow_or_gone_costs_others_nothing() {
    let place = Place::empty();
    store(&place);
    let served = place.serve("out");
    let id = served.id("graph");
    let mut slow = Vec::new();
    for at in 0..40 {
        let mut stream = served.connect();
        let part = match at % 3 {
            0 => "GET /api/cat".to_owned(),
            1 => {
                format!("GET /api/graph/{id}/search?q=a HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", served.port)
            }
            _ => format!(
                "POST /api/graph/{id}/open HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 99999\r\n\r\n{{",
                served.port
            ),
        };
        stream.write_all(part.as_bytes()).unwrap();
        slow.push(stream);
    }
    slow.truncate(20);
    let answer = served.graph("/children");
    assert_eq!(answer["total"], 2);
    // A head that never ends is not waited for.
    let mut stream = served.connect();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x").unwrap();
    let mut rest = Vec::new();
    assert!(stream.read_to_end(&mut rest).is_ok(), "the server ends it");
}

/// Changes a store so that it is hostile, and asks everything.
fn ask_hostile(what: &str, change: impl FnOnce(&Connection)) {
    let place = Place::empty();
    let path = store(&place);
    let connection = Connection::open(&path).unwrap();
    change(&connection);
    drop(connection);
    ask_everything(&place, what);
}

fn ask_everything(place: &Place, what: &str) {
    let served = place.serve("out");
    let catalogue = served.get_reply("/api/catalogue");
    assert_eq!(catalogue.status, 200, "{what}");
    let id = served.id("graph");
    for question in [
        "",
        "/children",
        "/children?node=Module.net.Net.forward.0",
        "/path?node=Torch.b.0.forward",
        "/node?node=Torch.b.0.forward",
        "/findings?kinds=introduced,unmatched,error,overflow",
        "/jump?to=first_divergence",
        "/jump?to=first_nan",
        "/search?q=torch",
        "/search?q=t.*h&regex=1&dtype=torch.float32",
        "/pairs?sort=name",
        "/pairs.csv",
        "/profile",
        "/series?node=Torch.b.0.forward",
        "/timeline",
        "/suggestions?node=Torch.b.0.forward",
        "/edits",
    ] {
        let reply = served.get_reply(&format!("/api/graph/{id}{question}"));
        assert!(
            reply.status != 500 && reply.status != 0,
            "{what} {question}: {} {}",
            reply.status,
            reply.text()
        );
        if reply.status >= 400 {
            assert!(reply.json()["error"].is_string(), "{what} {question}");
        }
    }
    let body = json!({"step": 0, "rank": 0, "target": "Torch.b.0.forward", "descendants": true});
    for (action, body) in [("unmatch", &body), ("save", &json!({})), ("undo", &json!({}))] {
        let reply = served.post_reply(&format!("/api/graph/{id}/{action}"), body);
        assert!(reply.status != 500 && reply.status != 0, "{what} {action}: {}", reply.text());
    }
    assert_eq!(served.get_reply("/api/catalogue").status, 200, "{what}: the server is still there");
}

#[test]
fn hostile_stores_give_errors() {
    ask_hostile("no nodes", |db| db.execute_batch("DELETE FROM tb_nodes").unwrap());
    ask_hostile("no config", |db| db.execute_batch("DELETE FROM tb_config").unwrap());
    ask_hostile("no stacks", |db| db.execute_batch("DROP TABLE tb_stack").unwrap());
    ask_hostile("no indexes", |db| {
        for index in 1..=7 {
            db.execute_batch(&format!("DROP INDEX index{index}")).unwrap();
        }
    });
    ask_hostile("other columns", |db| {
        db.execute_batch("ALTER TABLE tb_nodes RENAME COLUMN up_node TO other").unwrap();
    });
    ask_hostile("circles", |db| {
        db.execute_batch(
            "UPDATE tb_nodes SET up_node = 'Torch.b.0.forward' WHERE node_name = 'Module.net.Net.forward.0'",
        )
        .unwrap();
        db.execute_batch(
            "UPDATE tb_nodes SET up_node = 'Module.net.Net.forward.0' WHERE node_name = 'DefaultModel'",
        )
        .unwrap();
    });
    ask_hostile("blobs and nonsense", |db| {
        db.execute_batch(
            "UPDATE tb_nodes SET input_data = x'ff00ff', output_data = '[[[', matched_node_link = '{\"a\": 1}', stack_id = x'00', \
             matched_distributed = '[1, 2, {\"nodes_info\": 3}]', precision_index = 'bad', overflow_level = 7, micro_step_id = 'x', \
             parallel_merge_info = '{', node_order = 9223372036854775807",
        )
        .unwrap();
        db.execute_batch("UPDATE tb_config SET node_colors = '[]', tool_tip = '[', rank_list = '{}', step_list = '[\"x\", null, 0]'").unwrap();
    });
    ask_hostile("names with markup", |db| {
        db.execute_batch("UPDATE tb_nodes SET node_name = '</script><script>alert(1)</script>' WHERE node_name = 'Torch.b.0.forward'").unwrap();
    });
    ask_hostile("deep JSON", |db| {
        let deep = "[".repeat(100_000);
        db.execute("UPDATE tb_nodes SET input_data = ?1, matched_node_link = ?1", [deep]).unwrap();
    });
    ask_hostile("a long text", |db| {
        db.execute_batch(
            "UPDATE tb_nodes SET input_data = zeroblob(60000000) WHERE node_name = 'Torch.b.0.forward'",
        )
        .unwrap();
    });
    ask_hostile("twice the same node", |db| {
        db.execute_batch("INSERT INTO tb_nodes SELECT id || 'x', graph_id, node_order, node_name, node_type, up_node, sub_nodes, precision_index, \
            overflow_level, micro_step_id, matched_node_link, stack_id, parallel_merge_info, matched_distributed, modified, input_data, \
            output_data, data_source, dump_data_dir, step, rank, is_distributed FROM tb_nodes").unwrap();
    });
}

#[test]
fn views_triggers_and_computed_columns_run_nothing() {
    let refused = |change: &str| {
        let place = Place::empty();
        let path = store(&place);
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        let served = place.serve("out");
        let id = served.id("graph");
        served.get_reply(&format!("/api/graph/{id}")).status
    };
    assert_eq!(
        refused("ALTER TABLE tb_nodes RENAME TO other; CREATE VIEW tb_nodes AS SELECT * FROM other"),
        422
    );
    assert_eq!(
        refused("DROP TABLE tb_stack; CREATE VIRTUAL TABLE tb_stack USING fts5(id, stack_info)"),
        422,
        "a virtual table"
    );
    assert_eq!(
        refused("ALTER TABLE tb_stack ADD COLUMN more AS (stack_info || 'x')"),
        422,
        "a computed column"
    );
    // A trigger is not met while reading, and nothing is written where there is one.
    let place = Place::empty();
    let path = store(&place);
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TRIGGER t AFTER UPDATE ON tb_nodes BEGIN DELETE FROM tb_stack; END")
        .unwrap();
    let served = place.serve("out");
    let id = served.id("graph");
    assert_eq!(served.get_reply(&format!("/api/graph/{id}/children")).status, 200);
    served.post(&format!("/api/graph/{id}/unmatch"), &json!({"target": "Torch.b.0.forward"}));
    let saved = served.post_reply(&format!("/api/graph/{id}/save"), &json!({}));
    assert_eq!(saved.status, 422, "{}", saved.text());
    let stacks: i64 = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM tb_stack", [], |row| row.get(0))
        .unwrap();
    assert!(stacks > 0);
}

#[test]
fn damaged_files_give_errors() {
    let place = Place::empty();
    let path = store(&place);
    let whole = fs::read(&path).unwrap();
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("no store", b"hello, this is no store at all".to_vec()),
        ("a head only", whole[..100].to_vec()),
        ("half of it", whole[..whole.len() / 2].to_vec()),
    ] {
        fs::write(&path, &bytes).unwrap();
        ask_everything(&place, what);
    }
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..12 {
        let mut bytes = whole.clone();
        for _ in 0..200 {
            let at = random.usize(100..bytes.len());
            bytes[at] = random.u8(..);
        }
        fs::write(&path, &bytes).unwrap();
        ask_everything(&place, &format!("damaged {round}"));
    }
}

#[test]
fn hostile_vis_files_give_errors() {
    let place = Place::empty();
    fs::create_dir(place.path("out")).unwrap();
    let node = |name: &str, children: &str| {
        format!(
            "\"{name}\": {{\"id\": \"{name}\", \"node_type\": 1, \"subnodes\": {children}, \"upnode\": \"x\"}}"
        )
    };
    for (what, text) in [
        ("empty", String::new()),
        ("no json", "hello".to_owned()),
        ("ends early", "{\"node\": {\"DefaultModel\": {".to_owned()),
        ("no root", format!("{{\"node\": {{{}}}}}", node("a", "[]"))),
        ("nodes are numbers", "{\"node\": {\"DefaultModel\": 1, \"a\": [2]}}".to_owned()),
        (
            "children are nonsense",
            format!("{{\"node\": {{{}}}}}", node("DefaultModel", "[1, null, {\"a\": 2}, \"gone\"]")),
        ),
        (
            "circles",
            format!(
                "{{\"node\": {{{}, {}, {}}}}}",
                node("DefaultModel", "[]"),
                node("a", "[\"b\"]"),
                node("b", "[\"a\", \"DefaultModel\"]")
            ),
        ),
        ("deep", format!("{{\"node\": {{\"DefaultModel\": {}{}}}}}", "[".repeat(10_000), "]".repeat(10_000))),
        ("odd sides", "{\"NPU\": [], \"Bench\": 3}".to_owned()),
    ] {
        fs::write(place.path("out/compare_1.vis"), text).unwrap();
        ask_everything(&place, what);
    }
    // What nothing leads to is shown below the root.
    let text = format!(
        "{{\"node\": {{{}, {}, {}}}}}",
        node("DefaultModel", "[]"),
        node("a", "[\"b\"]"),
        node("b", "[\"a\"]")
    );
    fs::write(place.path("out/compare_1.vis"), text).unwrap();
    let served = place.serve("out");
    let root = served.graph("/children");
    assert_eq!(root["children"][0]["name"], "a");
    assert!(root["children"][0]["orphan"].is_string());
}
