//! Databases of trends: what the reference's tool left of a recorded run, and what is none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, Served};
use rusqlite::Connection;
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/monitor/trend_db_params").join(name)
}

/// The reference names a table that does not exist as another one's parent, and asks SQLite for no keys.
fn open(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    database
}

/// The database, from what was written down of it.
fn write_trend(path: &Path) {
    let database = open(path);
    database.execute_batch(&fs::read_to_string(golden("schema.sql")).unwrap()).unwrap();
    for table in [
        "monitoring_metrics",
        "monitoring_targets",
        "monitoring_tags",
        "tag_target_mapping",
        "global_stats",
        "trend_data",
    ] {
        let mut reader = csv::Reader::from_path(golden(&format!("table_{table}.csv"))).unwrap();
        let headers = reader.headers().unwrap().clone();
        let marks = vec!["?"; headers.len()].join(", ");
        let columns: Vec<String> = headers.iter().map(|header| format!("\"{header}\"")).collect();
        let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "));
        let mut insert = database.prepare(&sql).unwrap();
        for record in reader.records() {
            let record = record.unwrap();
            let cells = record.iter().map(|cell| (!cell.is_empty()).then_some(cell));
            insert.execute(rusqlite::params_from_iter(cells)).unwrap();
        }
    }
}

fn place() -> Place {
    let place = Place::empty();
    fs::create_dir(place.path("out")).unwrap();
    write_trend(&place.path("out/monitor_data.trend.db"));
    place
}

fn ask(served: &Served, question: &str) -> Value {
    served.get(&format!("/api/trend/{}{question}", served.id("trend")))
}

#[test]
fn a_recorded_database_is_listed_and_tells_what_can_be_chosen() {
    let place = place();
    let served = place.serve("out");
    let catalogue = served.get("/api/catalogue");
    let item = &catalogue["items"][0];
    assert_eq!((&item["kind"], &item["title"]), (&json!("trend"), &json!("monitor_data.trend.db")));
    assert_eq!((&item["steps"], &item["ranks"]), (&json!([0, 1, 2]), &json!([0])));
    let info = ask(&served, "");
    assert_eq!(info["targets"], 12);
    assert_eq!(info["ranks"], json!([0]));
    let metrics: Vec<&str> =
        info["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert_eq!(
        metrics,
        ["exp_avg", "exp_avg_sq", "grad_unreduced", "grad_reduced", "param_origin", "param_updated", "other"]
    );
    assert_eq!(info["metrics"][0]["statistics"], json!(["norm", "min", "max", "zeros", "nans", "mean"]));
    assert!(info["tags"].as_array().unwrap().iter().any(|tag| tag["name"] == "output_layer"));
}

#[test]
fn numbers_are_those_of_the_table() {
    let place = place();
    let served = place.serve("out");
    let map = ask(&served, "/map?metric=param_origin&statistic=max&rank=0");
    assert_eq!(map["columns"], json!([0, 1, 2]));
    let rows = map["rows"].as_array().unwrap();
    let label = |row: usize| rows[row]["label"].as_str().unwrap().to_owned();
    assert_eq!(label(0), "weight");
    // Every number of the recorded table is there, and no other.
    let mut expected = Vec::new();
    let mut reader = csv::Reader::from_path(golden("table_trend_data.csv")).unwrap();
    for record in reader.records() {
        let record = record.unwrap();
        if &record[3] == "5" && !record[6].is_empty() {
            expected.push((
                record[2].parse::<i64>().unwrap(),
                record[1].parse::<i64>().unwrap(),
                record[6].parse::<f64>().unwrap(),
            ));
        }
    }
    let mut shown: Vec<(i64, i64, f64)> = map["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| {
            let (row, column) = (cell[0].as_u64().unwrap() as usize, cell[1].as_u64().unwrap() as usize);
            (
                rows[row]["id"].as_i64().unwrap(),
                map["columns"][column].as_i64().unwrap(),
                cell[2].as_f64().unwrap(),
            )
        })
        .collect();
    expected.sort_by(|one, other| one.partial_cmp(other).unwrap());
    shown.sort_by(|one, other| one.partial_cmp(other).unwrap());
    assert!(shown.len() > 20 && shown == expected, "{shown:?}\n{expected:?}");
    // By name, and by tags, which are all meant.
    let named = ask(&served, "/map?metric=param_origin&statistic=max&q=MLP");
    assert_eq!(named["rows"].as_array().unwrap().len(), 4);
    let tagged = ask(&served, "/map?metric=param_origin&statistic=max&tags=mlp,weight");
    let tagged: Vec<&str> =
        tagged["rows"].as_array().unwrap().iter().map(|row| row["label"].as_str().unwrap()).collect();
    assert_eq!(tagged, ["0.mlp.weight", "1.mlp.weight"]);
    // One target, over steps.
    let target = rows[0]["id"].as_i64().unwrap();
    let lines = ask(&served, &format!("/lines?metric=param_origin&statistic=max&target={target}"));
    assert_eq!(lines["node"], "weight");
    assert_eq!(lines["points"].as_array().unwrap().len(), 3);
    assert_eq!(lines["points"][0]["number"], 2.892_213_58);
}

#[test]
fn infinite_and_missing_numbers_are_told_apart() {
    let place = place();
    let path = place.path("out/monitor_data.trend.db");
    open(&path)
        .execute_batch(
            "UPDATE trend_data SET norm = 1000000001 WHERE step = 0; UPDATE trend_data SET norm = -1000000001 WHERE step = 1; \
             UPDATE trend_data SET norm = NULL WHERE step = 2; UPDATE monitoring_targets SET vpp_stage = 1, micro_step = 2",
        )
        .unwrap();
    let served = place.serve("out");
    let map = ask(&served, "/map?metric=param_origin&statistic=norm&q=final_norm.weight");
    assert_eq!(map["cells"], json!([[0, 0, "Infinity"], [0, 1, "-Infinity"]]));
    assert_eq!(map["rows"][0]["label"], "final_norm.weight (stage 1) (micro step 2)");
}

#[test]
fn what_is_not_there_and_hostile_files_give_errors() {
    let place = place();
    let path = place.path("out/monitor_data.trend.db");
    let status = |question: &str| {
        let served = place.serve("out");
        let id = served.id("trend");
        let reply = served.get_reply(&format!("/api/trend/{id}{question}"));
        assert!(reply.status == 200 || reply.json()["error"].is_string(), "{}", reply.text());
        reply.status
    };
    for (question, expected) in [
        ("/map", 400),
        ("/map?metric=odd&statistic=max", 404),
        ("/map?metric=other&statistic=max%22%20FROM%20sqlite_schema--", 404),
        ("/map?metric=other&statistic=rank", 404),
        ("/lines?metric=other&statistic=max", 400),
        ("/lines?metric=other&statistic=max&target=999", 404),
    ] {
        assert_eq!(status(question), expected, "{question}");
    }
    // The graph's questions are not for it, nor are its for a graph.
    let served = place.serve("out");
    let id = served.id("trend");
    assert_eq!(served.get_reply(&format!("/api/graph/{id}")).status, 400);
    assert_eq!(served.get_reply(&format!("/api/item/{id}/tables")).status, 400);
    drop(served);
    let change = |sql: &str| open(&path).execute_batch(sql).unwrap();
    change("ALTER TABLE trend_data ADD COLUMN \"a\"\"b; DROP\" REAL");
    assert_eq!(
        status("/map?metric=other&statistic=a%22b%3B%20DROP"),
        200,
        "a name is a name, whatever it holds"
    );
    change("UPDATE global_stats SET max_step = 9223372036854775807, max_rank = 'many'");
    assert_eq!(status(""), 200);
    change(
        "DELETE FROM global_stats; UPDATE monitoring_targets SET target_name = x'ff00' WHERE target_id = 1",
    );
    assert_eq!(status("/map?metric=other&statistic=max"), 200);
    change("ALTER TABLE trend_data RENAME TO other; CREATE VIEW trend_data AS SELECT * FROM other");
    assert_eq!(status(""), 422);
    fs::write(&path, "no database").unwrap();
    assert_eq!(status(""), 422);
    let served = place.serve("out");
    assert!(served.get("/api/catalogue")["items"][0]["error"].is_string());
}
