//! Which ranks are merged with which, where what they have in common ends up, and steps that cannot be merged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod dumps;

use std::fs;
use std::path::Path;

use msprobe_graph::merge::classes::Classes;
use msprobe_graph::merge::{Strategies, Strategy};
use msprobe_graph::names::Generation;
use msprobe_graph::run::GraphOutcome;
use msprobe_report::answer::Status;
use serde_json::{Value, json};

use self::dumps::{Dirs, call, rows, strategy, write_dump};

fn merging(dirs: &Dirs, target: Strategy, golden: Option<Strategy>) -> GraphOutcome {
    let mut options = dirs.options(Generation::Third, golden.is_some());
    options.merge = Some(Strategies { target, golden, classes: Classes::default() });
    call(&options).0.unwrap()
}

/// The children of a node, without the beginning and the end that all have.
fn children(db: &Path, rank: u32, name: &str) -> Vec<String> {
    let sql = format!("SELECT sub_nodes FROM tb_nodes WHERE node_name = '{name}' AND rank = {rank}");
    let names: Vec<String> = serde_json::from_str(&rows(db, &sql)[0][0]).unwrap();
    let short = |name: &String| name.replace("Module.", "").replace(".forward.0", "").replace(".Layer", "");
    names.iter().map(short).collect()
}

const NET: &str = "Module.GPT.forward.0";

/// A stage of one layer that sends on to a rank, in a call or in a batch of them.
fn write_stage(dir: &Path, value: f64, receiver: u32, in_batch: bool) {
    let layer = "Module.layers.0.Layer.forward.0";
    write_dump(dir, &[(layer, Some(NET), value, value), (NET, None, value, value)]);
    let edit = |file: &str, change: &dyn Fn(&mut Value)| {
        let path = dir.join(file);
        let mut json: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut json);
        fs::write(path, json.to_string()).unwrap();
    };
    let (name, record) = if in_batch {
        let items = json!([{"op": "irecv", "peer": 9, "group_id": "g"}, {"op": "isend", "peer": receiver, "group_id": "g"}]);
        (
            "Distributed.batch_isend_irecv.0.forward",
            json!({"input_args": [], "input_kwargs": {}, "output": [items]}),
        )
    } else {
        let receiver = json!({"type": "int", "value": receiver});
        (
            "Distributed.send.0.forward",
            json!({"input_args": [], "input_kwargs": {"dst": receiver}, "output": []}),
        )
    };
    edit("construct.json", &|construct| construct[name] = Value::Null);
    edit("dump.json", &|dump| dump["data"][name] = record.clone());
}

#[test]
fn stages_are_those_that_send_to_each_other() {
    for in_batch in [false, true] {
        let dirs = Dirs::new();
        // By number, rank 0 would be put together with rank 2.
        for (rank, receiver) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            write_stage(&dirs.path(&format!("target/rank{rank}")), f64::from(rank) + 1.0, receiver, in_batch);
        }
        let db = &merging(&dirs, strategy(4, 1, 2), None).files[0];
        assert_eq!(rows(db, "SELECT rank_list FROM tb_config"), [["[0, 2]"]]);
        for (rank, norms) in [(0, ["1.0", "2.0"]), (2, ["3.0", "4.0"])] {
            assert_eq!(children(db, rank, NET), ["layers.0", "layers.1"]);
            for (layer, norm) in norms.into_iter().enumerate() {
                let sql = format!(
                    "SELECT input_data, output_data FROM tb_nodes WHERE rank = {rank} AND node_name = 'Module.layers.{layer}.Layer.forward.0'"
                );
                // Layers of the same name on other stages are other layers.
                for data in &rows(db, &sql)[0] {
                    assert!(data.contains(&format!("\"Norm\": \"{norm}\"")), "{rank} {layer}: {data}");
                }
            }
        }
    }
}

#[test]
fn stages_go_by_number_where_sending_says_nothing() {
    let dirs = Dirs::new();
    // A chain of four is no pipeline of two stages.
    for rank in 0..4 {
        write_stage(&dirs.path(&format!("target/rank{rank}")), f64::from(rank) + 1.0, rank + 1, false);
    }
    let db = &merging(&dirs, strategy(4, 1, 2), None).files[0];
    assert_eq!(rows(db, "SELECT rank_list FROM tb_config"), [["[0, 1]"]]);
}

#[test]
fn tensors_stages_and_replicas_at_once() {
    let dirs = Dirs::new();
    // Two ranks for each tensor, two replicas, two stages, numbered in this order.
    for rank in 0..8_u32 {
        let (part, stage) = (f64::from(rank % 2), f64::from(rank / 4));
        let value = 3.0 + part + 4.0 * stage;
        write_dump(
            &dirs.path(&format!("target/rank{rank}")),
            &[
                ("Torch.mm.0.forward", Some("Module.layers.0.Layer.forward.0"), value, value),
                ("Module.layers.0.Layer.forward.0", Some(NET), value, value),
                (NET, None, value, value),
            ],
        );
    }
    // The same model without splitting, of two replicas.
    for rank in 0..2 {
        let whole = |one: f64, two: f64| (one * one + two * two).sqrt();
        let (first, second) = (whole(3.0, 4.0), whole(7.0, 8.0));
        write_dump(
            &dirs.path(&format!("golden/rank{rank}")),
            &[
                ("Module.layers.0.Layer.forward.0", Some(NET), first, first),
                ("Module.layers.1.Layer.forward.0", Some(NET), second, second),
                (NET, None, first, second),
            ],
        );
    }
    let outcome = merging(&dirs, strategy(8, 2, 2), Some(strategy(2, 1, 1)));
    let db = &outcome.files[0];
    assert_eq!(rows(db, "SELECT rank_list FROM tb_config"), [["[0, 2]"]]);
    for rank in [0, 2] {
        assert_eq!(children(db, rank, NET), ["layers.0", "layers.1"]);
        assert_eq!(
            children(db, rank, "Module.layers.1.Layer.forward.0"),
            [format!("Torch.mm_rank{}.0.forward", rank + 4)]
        );
        let sql = format!(
            "SELECT node_name, parallel_merge_info FROM tb_nodes WHERE rank = {rank} AND data_source = 'NPU' AND node_name LIKE '%Layer%' ORDER BY node_name"
        );
        let sums = [(rank, "3.0 ** 2 + 4.0 ** 2"), (rank + 4, "7.0 ** 2 + 8.0 ** 2")];
        for (layer, (first, sum)) in rows(db, &sql).iter().zip(sums) {
            let ranks = format!("rank [{first}, {}]", first + 1);
            assert!(layer[1].contains(&ranks) && layer[1].contains(sum), "{layer:?}");
        }
    }
    let matched = rows(
        db,
        "SELECT COUNT(*) FROM tb_nodes WHERE data_source = 'NPU' AND node_type = '0' AND matched_node_link = '[]'",
    );
    assert_eq!(matched, [["0"]], "all modules have a partner");
    assert_eq!(rows(db, "SELECT step, rank FROM msprobe_answers ORDER BY rank"), [["0", "0"], ["0", "2"]]);
}

#[test]
fn collections_of_all_ranks_stand_together_and_results_name_the_calls_they_are_of() {
    let dirs = Dirs::new();
    let (layer, row) = ("Module.layers.0.Layer.forward.0", "Module.layers.0.fc.RowParallelLinear.forward.0");
    for rank in 0..4_u32 {
        let (part, whole) = (f64::from(rank % 2) + 1.0, 9.0);
        write_dump(
            &dirs.path(&format!("target/rank{rank}")),
            &[
                ("Torch.x.0.forward", None, 1.0, 1.0),
                ("Torch.y.0.forward", None, 1.0, 1.0),
                ("Torch.mm.0.forward", Some(row), part, part + 2.0),
                ("Distributed.all_reduce.0.forward", Some(row), part + 2.0, whole),
                (row, Some(layer), part, whole),
                (layer, Some(NET), 1.0, whole),
                (NET, None, 1.0, whole),
            ],
        );
    }
    let db = &merging(&dirs, strategy(4, 2, 2), None).files[0];
    let ranks: Vec<String> = (0..4).map(|rank| format!("Apis_Between_Modules_Rank{rank}.0")).collect();
    assert_eq!(children(db, 0, "Apis_Between_Modules_All_Ranks.0"), ranks);
    assert_eq!(children(db, 0, "Apis_Between_Modules_Rank0.0"), ["Torch.x.0.forward", "Torch.y.0.forward"]);
    assert_eq!(
        children(db, 0, "Apis_Between_Modules_Rank3.0"),
        ["Torch.x_rank3.0.forward", "Torch.y_rank3.0.forward"]
    );
    let of = |name: &str| {
        let sql = format!("SELECT parallel_merge_info, output_data FROM tb_nodes WHERE node_name = '{name}'");
        rows(db, &sql)[0].clone()
    };
    for (name, from) in [
        ("Torch.mm.0.forward", "Distributed.all_reduce.0.forward.output.0"),
        ("Torch.mm_rank2.0.forward", "Distributed.all_reduce_rank2.0.forward.output.0"),
    ] {
        let [info, output] = &of(name)[..] else { panic!("two columns") };
        assert!(
            info.contains(&format!("is merged from {from}")) && output.contains("\"Norm\": \"9.0\""),
            "{info} {output}"
        );
    }
}

/// A layer with two experts, forward and backward, between other calls.
fn write_experts(dir: &Path, first: f64) {
    let of = |call: &str| format!("Module.layers.0.moe.{call}");
    let (moe, back) = (of("MoE.forward.0"), of("MoE.backward.0"));
    let experts = [0, 1].map(|number| of(&format!("local_experts.{number}.MLP")));
    let names: Vec<[String; 3]> = experts
        .iter()
        .map(|expert| {
            [
                format!("{expert}.forward.0"),
                format!("{expert}.backward.0"),
                expert.replace("MLP", "fc.Linear.forward.0"),
            ]
        })
        .collect();
    let (router, router_back) = (of("router.Router.forward.0"), of("router.Router.backward.0"));
    let mut calls = vec![(router.as_str(), Some(moe.as_str()), 1.0, 1.0)];
    for ([forward, _, linear], value) in names.iter().zip([first, first + 1.0]) {
        calls.push((linear, Some(forward), value, value));
        calls.push((forward, Some(&moe), value, value));
    }
    calls.push(("Torch.cat.0.forward", Some(&moe), 1.0, 1.0));
    calls.push((&moe, None, 1.0, 1.0));
    for ([_, backward, _], value) in names.iter().zip([first, first + 1.0]).rev() {
        calls.push((backward, Some(&back), value, value));
    }
    calls.push((&router_back, Some(&back), 1.0, 1.0));
    calls.push((&back, None, 1.0, 1.0));
    write_dump(dir, &calls);
}

#[test]
fn experts_of_all_ranks_stand_in_order() {
    let dirs = Dirs::new();
    for (rank, first) in [(0, 1.0), (1, 3.0)] {
        write_experts(&dirs.path(&format!("target/rank{rank}")), first);
    }
    let db = &merging(&dirs, Strategy { ep: 2, ..strategy(2, 1, 1) }, None).files[0];
    let short = |names: Vec<String>| -> Vec<String> {
        names
            .iter()
            .map(|name| name.replace("layers.0.moe.", "").replace(".MLP", "").replace(".backward.0", ""))
            .collect()
    };
    assert_eq!(
        short(children(db, 0, "Module.layers.0.moe.MoE.forward.0")),
        [
            "router.Router",
            "local_experts.0",
            "local_experts.1",
            "local_experts.2",
            "local_experts.3",
            "Torch.cat.0.forward"
        ]
    );
    assert_eq!(
        short(children(db, 0, "Module.layers.0.moe.MoE.backward.0")),
        ["local_experts.3", "local_experts.2", "local_experts.1", "local_experts.0", "router.Router"]
    );
    for (expert, norm) in [(1, 2.0), (2, 3.0), (3, 4.0)] {
        for name in [format!("local_experts.{expert}.MLP"), format!("local_experts.{expert}.fc.Linear")] {
            let sql = format!(
                "SELECT input_data FROM tb_nodes WHERE node_name = 'Module.layers.0.moe.{name}.forward.0'"
            );
            assert!(rows(db, &sql)[0][0].contains(&format!("\"Norm\": \"{norm:?}\"")), "{name}");
        }
    }
    let info = rows(
        db,
        "SELECT parallel_merge_info FROM tb_nodes WHERE node_name LIKE '%local_experts.2.MLP.forward.0'",
    );
    assert!(info[0][0].contains("This expert is that of rank 1"), "{info:?}");
}

#[test]
fn a_table_of_classes_says_which_modules_are_split() {
    let dirs = Dirs::new();
    let call_of = |value: f64, sizes: [u64; 2]| {
        let tensor = json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": sizes, "Max": value, "Min": -value,
            "Mean": 0.0, "Norm": value, "requires_grad": true});
        json!({"input_args": [tensor], "input_kwargs": {}, "output": [tensor], "parameters": {"weight": tensor}})
    };
    for rank in 0..2 {
        let dir = dirs.path(&format!("target/rank{rank}"));
        write_dump(&dir, &[]);
        let (up, down, mlp) = (
            "Module.mlp.up.OurColumn.forward.0",
            "Module.mlp.down.OurRow.forward.0",
            "Module.mlp.Mlp.forward.0",
        );
        let dump = json!({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null,
            "data": {up: call_of(2.0, [8, 4]), down: call_of(3.0 + f64::from(rank), [4, 8])}});
        fs::write(dir.join("dump.json"), dump.to_string()).unwrap();
        fs::write(dir.join("construct.json"), json!({up: mlp, down: mlp, mlp: null}).to_string()).unwrap();
    }
    let table = dirs.path("classes.yaml");
    fs::write(&table, "column: [OurColumn]\nrow: [OurRow]\n").unwrap();
    let shapes = |classes: Classes| {
        let mut options = dirs.options(Generation::Third, false);
        options.merge = Some(Strategies { target: strategy(2, 2, 1), golden: None, classes });
        let outcome = call(&options).0.unwrap();
        rows(
            &outcome.files[0],
            "SELECT value, shape FROM msprobe_merged_shapes WHERE value LIKE '%weight' ORDER BY value",
        )
    };
    // Without it, what is the same on both ranks counts as whole, and what is not is split along the first dimension.
    let unknown = shapes(Classes::default());
    assert_eq!(unknown, [["Module.mlp.down.OurRow.forward.0.parameters.weight", "[8, 8]"]]);
    let known = shapes(Classes::read(&table).unwrap());
    assert_eq!(
        known,
        [
            ["Module.mlp.down.OurRow.forward.0.parameters.weight", "[4, 16]"],
            ["Module.mlp.up.OurColumn.forward.0.parameters.weight", "[16, 4]"]
        ]
    );
}

#[test]
fn a_step_that_cannot_be_merged_costs_itself() {
    let dirs = Dirs::new();
    let write = |side: &str, step: u32, ranks: u32| {
        for rank in 0..ranks {
            let dir = dirs.path(&format!("{side}/step{step}/rank{rank}"));
            write_dump(&dir, &[(NET, None, 1.0, 1.0)]);
        }
    };
    for step in 0..4 {
        write("target", step, if step == 2 { 1 } else { 2 });
    }
    fs::write(dirs.path("target/step1/rank1/construct.json"), "no json").unwrap();
    for step in [0, 1, 2, 5] {
        write("golden", step, 2);
    }
    let steps =
        |outcome: &GraphOutcome| rows(&outcome.files[0], "SELECT step_list, rank_list FROM tb_config");
    let built = merging(&dirs, strategy(2, 2, 1), None);
    assert_eq!(steps(&built), [["[0, 3]", "[0]"]]);
    let places: Vec<&str> = built.left_out.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!((places, built.status()), (vec!["step1", "step2"], Status::Incomplete));
    let compared = merging(&dirs, strategy(2, 2, 1), Some(strategy(2, 2, 1)));
    assert_eq!(steps(&compared), [["[0]", "[0]"]]);
    assert_eq!(compared.status(), Status::Incomplete);
    let said = format!("{:?}", compared.left_out);
    for what in ["step 3 is on the target side only", "step 5 is on the golden side only", "step1", "step2"] {
        assert!(said.contains(what), "{what}: {said}");
    }
    // Where no step is left, what is wrong with the first is the error.
    fs::remove_dir_all(dirs.path("target/step0")).unwrap();
    fs::remove_dir_all(dirs.path("target/step3")).unwrap();
    let mut options = dirs.options(Generation::Third, false);
    options.merge = Some(Strategies { target: strategy(2, 2, 1), golden: None, classes: Classes::default() });
    assert!(call(&options).0.unwrap_err().message.contains("construct.json"));
}
