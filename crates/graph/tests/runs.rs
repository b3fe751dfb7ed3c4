//! Whole calls on dumps that are not as they should be, and merging of stages.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use msprobe_graph::merge::classes::Classes;
use msprobe_graph::merge::{DEFAULT_ORDER, Strategies, Strategy};
use msprobe_graph::names::Generation;
use msprobe_graph::run::{GraphOutcome, LayerMapping, Options, run};
use msprobe_report::answer::Status;
use msprobe_report::console::Remembered;
use msprobe_report::error::CompareError;
use rusqlite::Connection;
use serde_json::{Value, json};

fn tensor(value: f64) -> Value {
    json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": value, "Min": -value, "Mean": 0.0,
        "Norm": value, "requires_grad": false})
}

/// A dump of calls, each with its parent, what goes in and what comes out.
fn write_dump(dir: &Path, calls: &[(&str, Option<&str>, f64, f64)]) {
    fs::create_dir_all(dir).unwrap();
    let (mut construct, mut data, mut stack) = (json!({}), json!({}), json!({}));
    for (name, parent, input, output) in calls {
        construct[name] = json!(parent);
        data[name] = json!({"input_args": [tensor(*input)], "input_kwargs": {}, "output": [tensor(*output)]});
        stack[name] = json!([format!("File model.py, line 1, in forward, \n {name}")]);
    }
    let dump = json!({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": data});
    for (file, value) in [("construct.json", construct), ("dump.json", dump), ("stack.json", stack)] {
        fs::write(dir.join(file), value.to_string()).unwrap();
    }
}

const CALLS: [(&str, Option<&str>, f64, f64); 2] = [
    ("Torch.a.0.forward", Some("Module.net.Net.forward.0"), 1.0, 2.0),
    ("Module.net.Net.forward.0", None, 1.0, 2.0),
];

struct Dirs(tempfile::TempDir);

impl Dirs {
    fn new() -> Dirs {
        Dirs(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn options(&self, generation: Generation, compare: bool) -> Options {
        Options {
            generation,
            target: self.path("target"),
            golden: compare.then(|| self.path("golden")),
            output: self.path("out"),
            layer_mapping: None,
            fuzzy: false,
            overflow_check: false,
            complete_stacks: false,
            merge: None,
            as_dump: false,
        }
    }
}

fn call(options: &Options) -> (Result<GraphOutcome, CompareError>, String) {
    let heard = Remembered::default();
    let outcome = run(options, &heard, &|_| {});
    (outcome, heard.said(|_| true).join("\n"))
}

fn rows(path: &Path, sql: &str) -> Vec<Vec<String>> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        (0..columns)
            .map(|at| {
                Ok(match row.get_ref(at)? {
                    rusqlite::types::ValueRef::Null => "-".to_owned(),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    rusqlite::types::ValueRef::Real(number) => number.to_string(),
                    other => other.as_str().unwrap_or("?").to_owned(),
                })
            })
            .collect::<rusqlite::Result<Vec<String>>>()
    };
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_bad_rank_and_strays_cost_themselves() {
    for generation in [Generation::First, Generation::Third] {
        let dirs = Dirs::new();
        for rank in 0..3 {
            write_dump(&dirs.path(&format!("target/rank{rank}")), &CALLS);
        }
        fs::write(dirs.path("target/rank1/construct.json"), "no json").unwrap();
        fs::write(dirs.path("target/notes.txt"), "a file").unwrap();
        fs::create_dir(dirs.path("target/old")).unwrap();
        let (outcome, said) = call(&dirs.options(generation, false));
        let outcome = outcome.unwrap();
        assert!(said.contains("old is no directory of a rank"), "{said}");
        assert_eq!(outcome.left_out.len(), 1, "{:?}", outcome.left_out);
        assert!(outcome.left_out[0].0.contains("rank 1"), "{:?}", outcome.left_out);
        assert_eq!(outcome.status(), Status::Incomplete);
        assert_eq!(outcome.files.len(), if generation == Generation::First { 2 } else { 1 });
        assert_eq!(outcome.tally.graphs, 2);
    }
}

#[test]
fn ranks_of_one_side_are_left_out_with_a_message() {
    let dirs = Dirs::new();
    for (side, ranks) in [("target", [0, 1]), ("golden", [1, 2])] {
        for rank in ranks {
            write_dump(&dirs.path(&format!("{side}/rank{rank}")), &CALLS);
        }
    }
    let (outcome, said) = call(&dirs.options(Generation::Third, true));
    assert!(
        said.contains("rank 0 is on the target side only") && said.contains("rank 2 is on the golden"),
        "{said}"
    );
    let outcome = outcome.unwrap();
    assert_eq!((outcome.tally.graphs, outcome.status()), (1, Status::Incomplete));
    let config = rows(&outcome.files[0], "SELECT rank_list, step_list FROM tb_config");
    assert_eq!(config, [["[1]", "[0]"]]);
}

#[test]
fn orphans_hang_below_the_root_with_a_mark() {
    let dirs = Dirs::new();
    write_dump(
        &dirs.path("target"),
        &[
            ("Torch.a.0.forward", Some("Module.lost.X.forward.0"), 1.0, 2.0),
            ("Module.c.X.forward.0", Some("Module.d.X.forward.0"), 1.0, 2.0),
            ("Module.d.X.forward.0", Some("Module.c.X.forward.0"), 1.0, 2.0),
        ],
    );
    let (outcome, _) = call(&dirs.options(Generation::Third, false));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.tally.orphans, 2);
    let marked = rows(&outcome.files[0], "SELECT id, orphan FROM msprobe_verdicts ORDER BY id");
    assert_eq!(marked.len(), 2);
    assert!(
        marked[0][0].ends_with("Module.d.X.forward.0") && marked[0][1].contains("lead back"),
        "{marked:?}"
    );
    assert!(
        marked[1][0].ends_with("Module.lost.X.forward.0") && marked[1][1].contains("not a call"),
        "{marked:?}"
    );
    let (outcome, _) = call(&dirs.options(Generation::First, false));
    let vis: Value = serde_json::from_str(&fs::read_to_string(&outcome.unwrap().files[0]).unwrap()).unwrap();
    assert_eq!(vis["node"]["Module.lost.X.forward.0"]["upnode"], "DefaultModel");
    assert!(vis["node"]["Module.lost.X.forward.0"]["suggestions"]["orphan"].is_string());
}

#[test]
fn an_empty_construct_and_a_bad_mapping_are_errors() {
    let dirs = Dirs::new();
    write_dump(&dirs.path("target"), &[]);
    let error = call(&dirs.options(Generation::Third, false)).0.unwrap_err();
    assert!(error.hint.unwrap().contains("mix"), "{}", error.message);
    let dirs = Dirs::new();
    write_dump(&dirs.path("target"), &CALLS);
    write_dump(&dirs.path("golden"), &CALLS);
    fs::write(dirs.path("mapping.yaml"), "- no mapping").unwrap();
    let mut options = dirs.options(Generation::First, true);
    options.layer_mapping = Some(LayerMapping::File(dirs.path("mapping.yaml")));
    assert!(call(&options).0.unwrap_err().message.contains("mapping"));
    assert!(!dirs.path("out").join("compare.vis").exists());
    options.layer_mapping = Some(LayerMapping::Names);
    assert_eq!(call(&options).0.unwrap().tally.target_matched, 2);
}

#[test]
fn frameworks_and_tasks_have_to_fit() {
    let dirs = Dirs::new();
    write_dump(&dirs.path("target"), &CALLS);
    write_dump(&dirs.path("golden"), &CALLS);
    let dump = dirs.path("golden/dump.json");
    let text = fs::read_to_string(&dump).unwrap();
    fs::write(&dump, text.replace("\"pytorch\"", "\"mindspore\"")).unwrap();
    let error = call(&dirs.options(Generation::First, true)).0.unwrap_err();
    assert!(
        error.message.contains("cross_frame") && error.hint.unwrap().contains("-lm"),
        "{}",
        error.message
    );
    fs::write(&dump, text.replace("\"statistics\"", "\"tensor\"")).unwrap();
    assert!(call(&dirs.options(Generation::First, true)).0.unwrap_err().message.contains("different tasks"));
}

#[test]
fn the_answer_is_stored_and_the_tables_of_the_reference_are_its_own() {
    let dirs = Dirs::new();
    write_dump(&dirs.path("golden"), &CALLS);
    write_dump(
        &dirs.path("target"),
        &[
            ("Torch.a.0.forward", Some("Module.net.Net.forward.0"), 1.0, 4.0),
            ("Module.net.Net.forward.0", None, 1.0, 4.0),
        ],
    );
    let (outcome, _) = call(&dirs.options(Generation::Third, true));
    let outcome = outcome.unwrap();
    assert_eq!(outcome.status(), Status::Diverged);
    assert_eq!(outcome.answer().culprit.unwrap().name, "Torch.a.0.forward");
    let db = &outcome.files[0];
    let answers = rows(db, "SELECT status, culprit, culprit_node FROM msprobe_answers");
    assert_eq!(answers, [["diverged", "Torch.a.0.forward", "NPU_0_0_Torch.a.0.forward"]]);
    let verdicts = rows(db, "SELECT id, verdict, worst_below FROM msprobe_verdicts ORDER BY id");
    assert_eq!(verdicts[2][..2], ["NPU_0_0_Torch.a.0.forward", "introduced"]);
    assert_eq!(verdicts[0][2], "Torch.a.0.forward", "the root names the worst below it");
    // What its plugin asks.
    let children = rows(
        db,
        "SELECT node_name, precision_index FROM tb_nodes WHERE step = 0 AND rank = 0 AND data_source = 'NPU' \
         AND up_node = 'Module.net.Net.forward.0' ORDER BY node_order",
    );
    assert_eq!(children, [["Torch.a.0.forward", "1"]]);
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(db), mode(&dirs.path("out"))), (0o640, 0o750));
    assert_eq!(fs::read_dir(dirs.path("out")).unwrap().count(), 1, "nothing hidden is left");
}

#[test]
fn sends_without_results_are_linked_and_missing_peers_do_no_harm() {
    let dirs = Dirs::new();
    for (rank, name, argument, peer) in
        [(0, "Distributed.isend.0.forward", "dst", 1), (1, "Distributed.irecv.0.forward", "src", 0)]
    {
        let dir = dirs.path(&format!("target/rank{rank}"));
        write_dump(&dir, &[]);
        let data = json!({name: {"input_args": [], "input_kwargs": {argument: {"type": "int", "value": peer}}, "output": []},
            "Distributed.isend.1.forward": {"input_kwargs": {"dst": {"type": "int", "value": 7}}}});
        let dump = json!({"task": "statistics", "framework": "pytorch", "data": data});
        fs::write(dir.join("dump.json"), dump.to_string()).unwrap();
        fs::write(
            dir.join("construct.json"),
            json!({name: null, "Distributed.isend.1.forward": null}).to_string(),
        )
        .unwrap();
    }
    let (outcome, _) = call(&dirs.options(Generation::Third, false));
    let linked = rows(
        &outcome.unwrap().files[0],
        "SELECT rank, matched_distributed FROM tb_nodes WHERE is_distributed = 1 AND matched_distributed != '{}' ORDER BY rank",
    );
    assert_eq!(linked.len(), 2);
    assert_eq!(
        linked[0][1],
        r#"{"communications_type": "send", "nodes_info": {"1": ["Nan", "Distributed.irecv.0.forward"]}}"#
    );
}

fn strategy(rank_size: u32, tp: u32, pp: u32) -> Strategy {
    Strategy { rank_size, tp, pp, vpp: 1, cp: 1, ep: 1, order: DEFAULT_ORDER.to_owned() }
}

/// A stage of two layers, with a head on the last.
fn write_stage(dir: &Path, base: f64, is_last: bool) {
    let net = "Module.0.GPT.forward.0";
    let back = "Module.0.GPT.backward.0";
    let mut calls = vec![
        ("Torch.mm.0.forward", Some("Module.0.layers.0.Layer.forward.0"), base, base + 1.0),
        ("Module.0.layers.0.Layer.forward.0", Some(net), base, base + 1.0),
        ("Module.0.layers.1.Layer.forward.0", Some(net), base + 1.0, base + 2.0),
    ];
    if is_last {
        calls.push(("Module.0.head.Linear.forward.0", Some(net), base + 2.0, base + 3.0));
    }
    calls.extend([
        (net, None, base, base + 5.0),
        ("Module.0.layers.1.Layer.backward.0", Some(back), base + 3.0, base + 4.0),
        ("Module.0.layers.0.Layer.backward.0", Some(back), base + 4.0, base + 5.0),
        (back, None, base + 3.0, base + 5.0),
    ]);
    write_dump(dir, &calls);
}

#[test]
fn stages_are_put_one_behind_the_other() {
    let dirs = Dirs::new();
    write_stage(&dirs.path("target/rank0"), 1.0, false);
    write_stage(&dirs.path("target/rank1"), 3.0, true);
    let mut options = dirs.options(Generation::Third, false);
    options.merge = Some(Strategies { target: strategy(2, 1, 2), golden: None, classes: Classes::default() });
    let outcome = call(&options).0.unwrap();
    let db = &outcome.files[0];
    let children = |name: &str| {
        let sql = format!("SELECT sub_nodes FROM tb_nodes WHERE node_name = '{name}'");
        rows(db, &sql)[0][0].clone()
    };
    let list = |names: &[&str]| {
        format!("[{}]", names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "))
    };
    assert_eq!(
        children("Module.0.GPT.forward.0"),
        list(&[
            "Module.0.layers.0.Layer.forward.0",
            "Module.0.layers.1.Layer.forward.0",
            "Module.0.layers.2.Layer.forward.0",
            "Module.0.layers.3.Layer.forward.0",
            "Module.0.head.Linear.forward.0",
        ])
    );
    assert_eq!(
        children("Module.0.GPT.backward.0"),
        list(&[
            "Module.0.layers.3.Layer.backward.0",
            "Module.0.layers.2.Layer.backward.0",
            "Module.0.layers.1.Layer.backward.0",
            "Module.0.layers.0.Layer.backward.0",
        ])
    );
    assert_eq!(children("Module.0.layers.2.Layer.forward.0"), list(&["Torch.mm_rank1.0.forward"]));
    let whole =
        &rows(db, "SELECT input_data, output_data FROM tb_nodes WHERE node_name = 'Module.0.GPT.forward.0'")
            [0];
    assert!(whole[0].contains("\"Norm\": \"1.0\"") && whole[1].contains("\"Norm\": \"8.0\""), "{whole:?}");
}

#[test]
fn replicas_have_to_be_as_many() {
    let dirs = Dirs::new();
    for rank in 0..2 {
        write_dump(&dirs.path(&format!("target/rank{rank}")), &CALLS);
    }
    write_dump(&dirs.path("golden/rank0"), &CALLS);
    let mut options = dirs.options(Generation::Third, true);
    let strategies =
        |golden| Strategies { target: strategy(2, 1, 1), golden: Some(golden), classes: Classes::default() };
    options.merge = Some(strategies(strategy(1, 1, 1)));
    assert!(call(&options).0.unwrap_err().message.contains("2 graphs of the target and 1"));
    options.merge = Some(strategies(strategy(2, 1, 1)));
    assert!(call(&options).0.unwrap_err().message.contains("rank_size is 2"));
}

#[test]
fn experts_and_sequences_are_merged() {
    let dirs = Dirs::new();
    for rank in 0..2 {
        let moe = "Module.moe.MoE.forward.0";
        let value = 1.0 + f64::from(rank);
        write_dump(
            &dirs.path(&format!("target/rank{rank}")),
            &[
                ("Module.moe.local_experts.0.MLP.forward.0", Some(moe), value, value),
                (moe, None, value, value),
            ],
        );
    }
    let mut options = dirs.options(Generation::Third, false);
    let experts = Strategy { ep: 2, ..strategy(2, 1, 1) };
    options.merge = Some(Strategies { target: experts, golden: None, classes: Classes::default() });
    let outcome = call(&options).0.unwrap();
    let names = rows(&outcome.files[0], "SELECT node_name FROM tb_nodes ORDER BY node_order");
    assert_eq!(names[1][0], "Module.moe.local_experts.1.MLP.forward.0");
    let sequences = Strategy { cp: 2, ..strategy(2, 1, 1) };
    options.merge = Some(Strategies { target: sequences, golden: None, classes: Classes::default() });
    let outcome = call(&options).0.unwrap();
    let info =
        rows(&outcome.files[0], "SELECT parallel_merge_info FROM tb_nodes WHERE node_name LIKE '%MoE%'");
    assert!(
        info[0][0].contains("context parallelism(CP)") && info[0][0].contains("(1.0 ** 2 + 2.0 ** 2)"),
        "{info:?}"
    );
}
