//! Whole calls on dumps that are not as they should be, and what is stored of those that are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod dumps;

use std::fs;
use std::path::Path;

use msprobe_graph::names::Generation;
use msprobe_graph::run::LayerMapping;
use msprobe_report::answer::Status;
use serde_json::{Value, json};

use self::dumps::{CALLS, Dirs, call, rows, write_dump};

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

/// A layer that is called otherwise on the golden side, and a function one side calls once more.
const RENAMED: &str = "Net:\n  first: one\n  second: two\n";

fn write_layers(dir: &Path, names: [&str; 2], output: f64) {
    let net = "Module.net.Net.forward.0";
    let layers = names.map(|name| format!("Module.net.{name}.Linear.forward.0"));
    write_dump(
        dir,
        &[
            (layers[0].as_str(), Some(net), 1.0, 2.0),
            (layers[1].as_str(), Some(net), 2.0, output),
            (net, None, 1.0, output),
        ],
    );
}

#[test]
fn the_culprit_follows_a_mapping_of_layers() {
    for generation in [Generation::First, Generation::Third] {
        let dirs = Dirs::new();
        write_layers(&dirs.path("target"), ["first", "second"], 7.0);
        write_layers(&dirs.path("golden"), ["one", "two"], 3.0);
        fs::write(dirs.path("mapping.yaml"), RENAMED).unwrap();
        let mut options = dirs.options(generation, true);
        let answer = call(&options).0.unwrap().answer();
        assert!(!answer.not_compared.is_empty(), "by name nothing but the whole has a partner");
        options.layer_mapping = Some(LayerMapping::File(dirs.path("mapping.yaml")));
        let outcome = call(&options).0.unwrap();
        let answer = outcome.answer();
        assert_eq!(outcome.status(), Status::Diverged);
        assert_eq!(answer.culprit.unwrap().name, "Module.net.second.Linear.forward.0");
        assert!(answer.not_compared.is_empty(), "{:?}", answer.not_compared);
    }
}

#[test]
fn without_a_file_the_newer_form_follows_places_and_the_older_one_names() {
    let (net, other) = ("Module.net.Net.forward.0", "Module.net.OtherNet.forward.0");
    let matched = |generation| {
        let dirs = Dirs::new();
        write_dump(
            &dirs.path("target"),
            &[("Torch.a.0.forward", Some(net), 1.0, 2.0), (net, None, 1.0, 2.0)],
        );
        write_dump(
            &dirs.path("golden"),
            &[("Torch.a.0.forward", Some(other), 1.0, 2.0), (other, None, 1.0, 2.0)],
        );
        let mut options = dirs.options(generation, true);
        options.layer_mapping = Some(LayerMapping::Names);
        call(&options).0.unwrap().tally.target_matched
    };
    assert_eq!((matched(Generation::First), matched(Generation::Third)), (1, 2));
}

#[test]
fn a_call_without_inputs_is_judged_by_what_it_gives() {
    let dirs = Dirs::new();
    for (side, norm) in [("golden", 2.0), ("target", 8.0)] {
        let dir = dirs.path(side);
        write_dump(&dir, &CALLS);
        let mut dump: Value =
            serde_json::from_str(&fs::read_to_string(dir.join("dump.json")).unwrap()).unwrap();
        dump["data"]["Torch.a.0.forward"] =
            json!({"input_args": [], "input_kwargs": {}, "output": [dumps::tensor(norm)]});
        fs::write(dir.join("dump.json"), dump.to_string()).unwrap();
    }
    let outcome = call(&dirs.options(Generation::Third, true)).0.unwrap();
    let node = rows(
        &outcome.files[0],
        "SELECT precision_index, output_data FROM tb_nodes WHERE id = 'NPU_0_0_Torch.a.0.forward'",
    );
    assert!(
        node[0][0] == "1" && node[0][1].contains("NormRelativeErr of output is greater than 0.5"),
        "{node:?}"
    );
}

#[test]
fn ranks_in_arguments_and_small_numbers_are_shown_as_they_are() {
    let dirs = Dirs::new();
    let dir = dirs.path("target");
    write_dump(&dir, &[]);
    let name = "Distributed.send.0.forward";
    let data = json!({name: {"input_args": [dumps::tensor(1.5e-7)], "input_kwargs": {"dst": {"type": "int", "value": 1}},
        "output": []}});
    fs::write(
        dir.join("dump.json"),
        json!({"task": "statistics", "framework": "pytorch", "data": data}).to_string(),
    )
    .unwrap();
    fs::write(dir.join("construct.json"), json!({name: null}).to_string()).unwrap();
    let shown = |generation| {
        let file = call(&dirs.options(generation, false)).0.unwrap().files.remove(0);
        match generation {
            Generation::First => fs::read_to_string(file).unwrap(),
            Generation::Third => {
                rows(&file, "SELECT input_data FROM tb_nodes WHERE is_distributed = 1")[0][0].clone()
            }
        }
    };
    let (first, third) = (shown(Generation::First), shown(Generation::Third));
    assert!(
        first.contains(r#""Max": "1.500000e-07""#) && first.contains(r#""dtype": "<class int>""#),
        "{first}"
    );
    assert!(third.contains(r#""Max": "1.5e-07""#) && third.contains(r#""dtype": "int""#), "{third}");
}

#[test]
fn checksums_have_colours_and_an_order_of_their_own() {
    let dirs = Dirs::new();
    for side in ["target", "golden"] {
        let dir = dirs.path(side);
        write_dump(&dir, &CALLS);
        let text = fs::read_to_string(dir.join("dump.json")).unwrap();
        fs::write(
            dir.join("dump.json"),
            text.replace("\"requires_grad\"", "\"md5\":\"abcd1234\",\"requires_grad\""),
        )
        .unwrap();
    }
    let outcome = call(&dirs.options(Generation::Third, true)).0.unwrap();
    let config = rows(&outcome.files[0], "SELECT task, node_colors FROM tb_config");
    let colours: Value = serde_json::from_str(&config[0][1]).unwrap();
    assert_eq!(config[0][0], "md5");
    let said: Vec<&str> =
        colours.as_object().unwrap().values().map(|colour| colour["description"].as_str().unwrap()).collect();
    assert!(
        said[0].contains("md5值相同") && said[1].contains("md5值不同") && said[2].contains("md5值不同"),
        "{said:?}"
    );
    let data =
        &rows(&outcome.files[0], "SELECT output_data FROM tb_nodes WHERE id = 'NPU_0_0_Torch.a.0.forward'")
            [0][0];
    assert!(
        data.contains(r#""Result": "pass", "Requires_grad Consistent": "True", "Err_message": "[]""#),
        "{data}"
    );
}

#[test]
fn the_culprit_follows_fuzzy_matching() {
    let net = "Module.net.Net.forward.0";
    let dirs = Dirs::new();
    write_dump(
        &dirs.path("target"),
        &[
            ("Torch.a.3.forward", Some(net), 1.0, 2.0),
            ("Torch.b.5.forward", Some(net), 2.0, 7.0),
            (net, None, 1.0, 7.0),
        ],
    );
    write_dump(
        &dirs.path("golden"),
        &[
            ("Torch.a.0.forward", Some(net), 1.0, 2.0),
            ("Torch.b.0.forward", Some(net), 2.0, 3.0),
            (net, None, 1.0, 3.0),
        ],
    );
    let mut options = dirs.options(Generation::Third, true);
    options.fuzzy = true;
    let answer = call(&options).0.unwrap().answer();
    assert_eq!(answer.culprit.unwrap().name, "Torch.b.5.forward");
    assert!(answer.not_compared.is_empty(), "{:?}", answer.not_compared);
}

/// Layers that are computed again in the backward pass stand below nothing in the dump.
#[test]
fn what_is_computed_again_goes_below_the_backward_call_around_it() {
    let (net, back) = ("Module.net.decoder.Net.forward.0", "Module.net.decoder.Net.backward.0");
    let layer = "Module.net.decoder.layers.0.Layer";
    let [first, again, gradient] =
        ["forward.0", "forward.1", "backward.1"].map(|call| format!("{layer}.{call}"));
    let calls = [
        (first.as_str(), Some(net), 1.0, 2.0),
        (net, None, 1.0, 2.0),
        (again.as_str(), None, 1.0, 2.0),
        (gradient.as_str(), None, 2.0, 1.0),
        (back, None, 2.0, 1.0),
    ];
    let frames = "File /usr/lib/torch/utils/checkpoint.py, line 1, in recompute_fn, \n fn(*args)";
    for is_recomputed in [true, false] {
        let dirs = Dirs::new();
        write_dump(&dirs.path("target"), &calls);
        if is_recomputed {
            let stack = dirs.path("target/stack.json");
            let mut frames_of: Value = serde_json::from_str(&fs::read_to_string(&stack).unwrap()).unwrap();
            frames_of[again.as_str()] = json!([frames]);
            fs::write(&stack, frames_of.to_string()).unwrap();
        }
        let outcome = call(&dirs.options(Generation::Third, false)).0.unwrap();
        let parents = rows(
            &outcome.files[0],
            "SELECT up_node FROM tb_nodes WHERE node_name LIKE '%Layer%' ORDER BY node_name",
        );
        let moved = if is_recomputed { back } else { "DefaultModel" };
        assert_eq!(parents, [[moved], [net], [moved]]);
        // The older form leaves them where they are.
        let outcome = call(&dirs.options(Generation::First, false)).0.unwrap();
        let vis: Value = serde_json::from_str(&fs::read_to_string(&outcome.files[0]).unwrap()).unwrap();
        assert_eq!(vis["node"][again.as_str()]["upnode"], "DefaultModel");
    }
}
