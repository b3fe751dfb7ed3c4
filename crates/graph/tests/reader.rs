//! What a viewer of the reference asks a `.vis.db`, asked of the file it wrote itself and of ours: the answers are the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod dumps;

use std::path::{Path, PathBuf};

use msprobe_graph::names::Generation;
use msprobe_graph::run::Options;
use rusqlite::Connection;

use self::dumps::{call, rows};

fn case() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/graph/visdb_build_compare_statistics")
}

/// Ours, and a copy of theirs that may be changed.
fn files() -> (tempfile::TempDir, [PathBuf; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        golden: Some(case().join("bench_dump")),
        ..Options::new(Generation::Third, &case().join("npu_dump"), &dir.path().join("out"))
    };
    let ours = call(&options).0.unwrap().files.remove(0);
    let theirs = dir.path().join("theirs.vis.db");
    std::fs::copy(case().join("out_compare/compare_20250101000000.vis.db"), &theirs).unwrap();
    (dir, [ours, theirs])
}

/// The same of both, and how many rows.
fn same(files: &[PathBuf; 2], sql: &str) -> usize {
    let [ours, theirs] = files.each_ref().map(|file| rows(file, sql));
    assert_eq!(ours, theirs, "{sql}");
    ours.len()
}

const HERE: &str = "step = 0 AND rank = 0";

#[test]
fn questions_of_a_page_have_the_same_answers() {
    let (_dir, files) = files();
    assert_eq!(
        same(
            &files,
            "SELECT graph_type, task, tool_tip, micro_steps, overflow_check, node_colors, rank_list, step_list FROM tb_config"
        ),
        1
    );
    for side in ["NPU", "Bench"] {
        let of = format!("{HERE} AND data_source = '{side}'");
        // The root, the way up from a node, what is in a node in the order of execution.
        assert_eq!(
            same(
                &files,
                &format!("SELECT node_name, sub_nodes, node_type FROM tb_nodes WHERE {of} AND up_node = ''")
            ),
            1
        );
        let up = format!(
            "WITH RECURSIVE above(name, up, level, start) AS (
                SELECT node_name, up_node, 0, node_name FROM tb_nodes WHERE {of}
                UNION ALL
                SELECT node_name, up_node, level + 1, start FROM tb_nodes, above WHERE {of} AND node_name = above.up)
             SELECT start, level, name FROM above ORDER BY start, level"
        );
        assert!(same(&files, &up) > 20);
        assert!(
            same(
                &files,
                &format!("SELECT up_node, node_name FROM tb_nodes WHERE {of} ORDER BY up_node, node_order")
            ) > 10
        );
        // Lists of names: all, those of a micro step, those with and without a partner, the leaves that are bad.
        for which in [
            "1",
            "micro_step_id = 0",
            "matched_node_link != '[]'",
            "matched_node_link = '[]'",
            "precision_index IS NOT NULL AND sub_nodes = ''",
            "node_name LIKE '%linear%'",
            "is_distributed = 1",
            "overflow_level IS NOT NULL",
            "modified = 1",
        ] {
            same(
                &files,
                &format!("SELECT node_name FROM tb_nodes WHERE {of} AND {which} ORDER BY node_order"),
            );
        }
        // All of a node, with its stack.
        let whole = format!(
            "SELECT n.*, s.stack_info FROM tb_nodes n LEFT JOIN tb_stack s ON n.stack_id = s.id WHERE {of} ORDER BY node_order"
        );
        assert!(same(&files, &whole) > 10);
    }
    // Numbers are numbers, and texts are texts.
    let columns: Vec<String> =
        rows(&files[1], "SELECT name FROM pragma_table_info('tb_nodes')").into_iter().flatten().collect();
    let types: Vec<String> = columns.iter().map(|column| format!("typeof({column})")).collect();
    assert!(same(&files, &format!("SELECT id, {} FROM tb_nodes ORDER BY id", types.join(", "))) > 20);
}

#[test]
fn pairs_made_by_hand_are_stored_in_the_same_way() {
    let (_dir, files) = files();
    let node =
        "data_source = 'NPU' AND node_name = (SELECT min(node_name) FROM tb_nodes WHERE data_source = 'NPU')";
    for file in &files {
        let sql = format!(
            "UPDATE tb_nodes SET matched_node_link = '[\"DefaultModel\"]', precision_index = 0.5, input_data = '{{}}', modified = 1 \
             WHERE {HERE} AND {node}"
        );
        assert_eq!(Connection::open(file).unwrap().execute(&sql, []).unwrap(), 1);
    }
    assert_eq!(
        same(&files, "SELECT node_name, matched_node_link, precision_index FROM tb_nodes WHERE modified = 1"),
        1
    );
}

#[test]
fn every_question_goes_through_the_same_index() {
    let (_dir, files) = files();
    for which in [
        "data_source = 'NPU' AND up_node = 'DefaultModel' ORDER BY node_order",
        "data_source = 'NPU' AND node_name = 'DefaultModel'",
        "data_source = 'NPU' ORDER BY node_order",
        "micro_step_id = 0 ORDER BY node_order",
        "modified = 1 AND matched_node_link = '[]'",
    ] {
        let plan = format!("EXPLAIN QUERY PLAN SELECT node_name FROM tb_nodes WHERE {HERE} AND {which}");
        assert!(same(&files, &plan) > 0);
        assert!(rows(&files[0], &plan)[0].last().unwrap().contains(" INDEX index"), "{which}");
    }
}
