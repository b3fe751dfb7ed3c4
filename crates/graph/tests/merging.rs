//! Ranks that are merged: stages, chunks, experts, tensors, and the answer for them.
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

use self::dumps::{CALLS, Dirs, call, rows, strategy, write_dump};

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

fn merging(dirs: &Dirs, target: Strategy, golden: Option<Strategy>) -> GraphOutcome {
    let mut options = dirs.options(Generation::Third, golden.is_some());
    options.merge = Some(Strategies { target, golden, classes: Classes::default() });
    call(&options).0.unwrap()
}

fn names(list: &str) -> Vec<String> {
    let names: Vec<String> = serde_json::from_str(list).unwrap();
    let short = |name: &String| name.trim_start_matches("Module.0.").split(".L").next().unwrap().to_owned();
    names.iter().map(short).collect()
}

/// Two chunks of a layer each: with two stages, layers go to chunk 0 of both, then to chunk 1 of both.
#[test]
fn chunks_follow_each_other_in_the_order_of_layers() {
    let dirs = Dirs::new();
    for (rank, bases) in [(0, [1.0, 3.0]), (1, [2.0, 4.0])] {
        let tops: Vec<[String; 4]> = (0..2)
            .map(|chunk| {
                ["GPT.forward.0", "layers.0.Layer.forward.0", "layers.0.Layer.backward.0", "GPT.backward.0"]
                    .map(|name| format!("Module.{chunk}.{name}"))
            })
            .collect();
        let mut calls = Vec::new();
        for ([net, layer, ..], base) in tops.iter().zip(bases) {
            calls.push((layer.as_str(), Some(net.as_str()), base, base + 1.0));
            if rank == 1 && base > 3.0 {
                calls.push(("Module.1.head.Linear.forward.0", Some(net.as_str()), base + 1.0, 9.0));
            }
            calls.push((net.as_str(), None, base, if base > 3.0 { 9.0 } else { base + 1.0 }));
        }
        for ([_, _, layer, back], base) in tops.iter().zip(bases).rev() {
            calls.push((layer.as_str(), Some(back.as_str()), base + 1.0, base));
            calls.push((back.as_str(), None, base + 1.0, base));
        }
        write_dump(&dirs.path(&format!("target/rank{rank}")), &calls);
    }
    let outcome = merging(&dirs, Strategy { vpp: 2, ..strategy(2, 1, 2) }, None);
    let db = &outcome.files[0];
    let column = |name: &str, column: &str| {
        rows(db, &format!("SELECT {column} FROM tb_nodes WHERE node_name = '{name}'"))[0][0].clone()
    };
    assert_eq!(
        names(&column("Module.0.GPT.forward.0", "sub_nodes")),
        ["layers.0", "layers.1", "layers.2", "layers.3", "head"]
    );
    assert_eq!(
        names(&column("Module.0.GPT.backward.0", "sub_nodes")),
        ["layers.3", "layers.2", "layers.1", "layers.0"]
    );
    for layer in 0..4 {
        let (forward, backward) = (
            column(&format!("Module.0.layers.{layer}.Layer.forward.0"), "input_data"),
            column(&format!("Module.0.layers.{layer}.Layer.backward.0"), "output_data"),
        );
        let norm = format!("\"Norm\": \"{}.0\"", layer + 1);
        assert!(forward.contains(&norm) && backward.contains(&norm), "layer {layer}: {forward} {backward}");
    }
    let output = column("Module.0.GPT.forward.0", "output_data");
    assert!(
        output.contains("\"Module.0.GPT.forward.0.output.0\"") && output.contains("\"Norm\": \"9.0\""),
        "{output}"
    );
    let left = rows(db, "SELECT node_name FROM tb_nodes WHERE node_name LIKE 'Module.1.%'");
    assert!(left.is_empty(), "{left:?}");
}

/// A matrix, to be split.
#[derive(Clone)]
struct Matrix {
    sizes: [usize; 2],
    elements: Vec<f64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, seed: f64) -> Matrix {
        let element = |at: usize| ((at as f64 + seed) * 12.9898).sin() + 0.1;
        Matrix { sizes: [rows, columns], elements: (0..rows * columns).map(element).collect() }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.elements[row * self.sizes[1]..][..self.sizes[1]]
    }

    fn rows(&self, rows: impl IntoIterator<Item = usize>) -> Matrix {
        let elements: Vec<f64> = rows.into_iter().flat_map(|row| self.row(row).to_vec()).collect();
        Matrix { sizes: [elements.len() / self.sizes[1], self.sizes[1]], elements }
    }

    fn turned(&self) -> Matrix {
        let [rows, columns] = self.sizes;
        let elements = (0..columns).flat_map(|column| (0..rows).map(move |row| self.row(row)[column]));
        Matrix { sizes: [columns, rows], elements: elements.collect() }
    }

    /// The rows of a rank.
    fn part(&self, rank: usize, ranks: usize) -> Matrix {
        let size = self.sizes[0] / ranks;
        self.rows(rank * size..(rank + 1) * size)
    }

    /// The rows of a rank where the first half is a gate.
    fn gated_part(&self, rank: usize, ranks: usize) -> Matrix {
        let (half, size) = (self.sizes[0] / 2, self.sizes[0] / 2 / ranks);
        self.rows((0..2).flat_map(|part| (0..size).map(move |row| part * half + rank * size + row)))
    }

    fn scaled(&self, factor: f64) -> Matrix {
        Matrix { sizes: self.sizes, elements: self.elements.iter().map(|element| element * factor).collect() }
    }

    /// With rows behind it, all of one number.
    fn padded(&self, rows: usize, with: f64) -> Matrix {
        let mut elements = self.elements.clone();
        elements.resize(rows * self.sizes[1], with);
        Matrix { sizes: [rows, self.sizes[1]], elements }
    }

    fn json(&self) -> Value {
        let all = || self.elements.iter().copied();
        json!({"type": "torch.Tensor", "dtype": "torch.float32", "shape": self.sizes, "requires_grad": false,
            "Max": all().fold(f64::MIN, f64::max), "Min": all().fold(f64::MAX, f64::min),
            "Mean": all().sum::<f64>() / self.elements.len() as f64,
            "Norm": all().map(|element| element * element).sum::<f64>().sqrt()})
    }
}

/// A call: its name, its parent, what goes in, what comes out, its weight.
type Call<'c> = (&'c str, Option<&'c str>, &'c Matrix, &'c Matrix, Option<&'c Matrix>);

fn write_calls(dir: &Path, calls: &[Call<'_>]) {
    fs::create_dir_all(dir).unwrap();
    let (mut construct, mut data, mut stack) = (json!({}), json!({}), json!({}));
    for (name, parent, input, output, weight) in calls {
        construct[name] = json!(parent);
        stack[name] = json!(["File model.py, line 1, in forward"]);
        data[name] = json!({"input_args": [input.json()], "input_kwargs": {}, "output": [output.json()]});
        if let Some(weight) = weight {
            data[name]["parameters"] = json!({"weight": weight.json()});
        }
    }
    let dump = json!({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": data});
    for (file, value) in [("construct.json", construct), ("dump.json", dump), ("stack.json", stack)] {
        fs::write(dir.join(file), value.to_string()).unwrap();
    }
}

const FC1: &str = "Module.mlp.linear_fc1.ColumnParallelLinear.forward.0";
const FC2: &str = "Module.mlp.linear_fc2.RowParallelLinear.forward.0";
const MLP: &str = "Module.mlp.MLP.forward.0";

/// An MLP of so many ranks; what comes out of its second linear is scaled.
fn write_mlp(dir: &Path, ranks: usize, is_gated: bool, factor: f64) {
    let (input, output) = (Matrix::new(2, 4, 1.0), Matrix::new(2, 4, 2.0).scaled(factor));
    // Turned around, so that features are rows.
    let wide = if is_gated { 16 } else { 8 };
    let (hidden, through) = (Matrix::new(wide, 2, 3.0), Matrix::new(8, 2, 4.0));
    let (up, down) = (Matrix::new(wide, 4, 5.0), Matrix::new(8, 4, 6.0));
    for rank in 0..ranks {
        let first = |whole: &Matrix| {
            if is_gated { whole.gated_part(rank, ranks) } else { whole.part(rank, ranks) }
        };
        let (hidden, up) = (first(&hidden).turned(), first(&up));
        let (through, down) = (through.part(rank, ranks).turned(), down.part(rank, ranks).turned());
        let calls: [Call<'_>; 4] = [
            (FC1, Some(MLP), &input, &hidden, Some(&up)),
            ("Functional.act.0.forward", Some(MLP), &hidden, &through, None),
            (FC2, Some(MLP), &through, &output, Some(&down)),
            (MLP, None, &input, &output, None),
        ];
        write_calls(&dir.join(format!("rank{rank}")), &calls);
    }
}

#[test]
fn parts_of_gated_linears_are_interleaved() {
    let dirs = Dirs::new();
    write_mlp(&dirs.path("target"), 2, true, 1.0);
    write_mlp(&dirs.path("golden"), 1, true, 1.0);
    let outcome = merging(&dirs, strategy(2, 2, 1), Some(strategy(1, 1, 1)));
    let text = format!("{:?}", outcome.sections(100));
    assert!(outcome.status().agrees(), "{:?}", outcome.answer().headline);
    assert!(text.contains("calls of modules are judged"), "{text}");
    let db = &outcome.files[0];
    let shapes = |node: &str| {
        rows(
            db,
            &format!(
                "SELECT value, shape, note FROM msprobe_merged_shapes WHERE id = 'NPU_0_0_{node}' ORDER BY value"
            ),
        )
    };
    let found = shapes(FC1);
    assert_eq!(found[0][..2], [format!("{FC1}.output.0"), "[2, 16]".to_owned()]);
    assert_eq!(found[1][..2], [format!("{FC1}.parameters.weight"), "[16, 4]".to_owned()]);
    for row in &found {
        assert!(
            row[2].contains("[gate 0, up 0, gate 1, up 1]")
                && row[2].contains("[gate 0, gate 1, up 0, up 1]"),
            "{row:?}"
        );
    }
    assert_eq!(shapes(FC2)[1][1..], ["[4, 8]", "-"], "a weight that is split by what goes in");
    let info = rows(db, &format!("SELECT parallel_merge_info FROM tb_nodes WHERE id = 'NPU_0_0_{FC1}'"));
    assert!(info[0][0].contains("output.0, parameters.weight is [gate; up]"), "{info:?}");

    // Without a gate the same names say nothing of one.
    let dirs = Dirs::new();
    write_mlp(&dirs.path("target"), 2, false, 1.0);
    let outcome = merging(&dirs, strategy(2, 2, 1), None);
    let notes =
        rows(&outcome.files[0], "SELECT COUNT(*) FROM msprobe_merged_shapes WHERE note LIKE 'gated%'");
    assert_eq!(notes, [["0"]]);
}

#[test]
fn merged_ranks_have_an_answer() {
    let dirs = Dirs::new();
    for side in ["target", "golden"] {
        write_mlp(&dirs.path(side), 2, true, 1.0);
    }
    let both = || merging(&dirs, strategy(2, 2, 1), Some(strategy(2, 2, 1)));
    let outcome = both();
    assert_eq!(outcome.status(), Status::Identical, "{}", outcome.answer().headline);
    // All ranks of the target make the same mistake in one layer.
    write_mlp(&dirs.path("target"), 2, true, 1.5);
    for golden_ranks in [2, 1] {
        fs::remove_dir_all(dirs.path("golden")).unwrap();
        write_mlp(&dirs.path("golden"), golden_ranks, true, 1.0);
        let ranks = golden_ranks as u32;
        let outcome = merging(&dirs, strategy(2, 2, 1), Some(strategy(ranks, ranks, 1)));
        assert_eq!(outcome.status(), Status::Diverged);
        assert_eq!(outcome.answer().culprit.unwrap().name, FC2);
        let db = &outcome.files[0];
        let answers = rows(db, "SELECT status, culprit, culprit_node FROM msprobe_answers");
        assert_eq!(answers, [["diverged".to_owned(), FC2.to_owned(), format!("NPU_0_0_{FC2}")]]);
        let verdicts = rows(
            db,
            "SELECT verdict FROM msprobe_verdicts WHERE id LIKE 'NPU_0_0_Module.mlp.linear%' ORDER BY id",
        );
        assert!(verdicts[0][0] != "introduced" && verdicts[1][0] == "introduced", "{verdicts:?}");
    }
}

const EMBEDDING: &str = "Module.net.embedding.word_embeddings.VocabParallelEmbedding.forward.0";
const HEAD: &str = "Module.net.output_layer.ColumnParallelLinear.forward.0";
const NET: &str = "Module.net.GPT.forward.0";

/// A vocabulary of 300 words, padded for so many ranks.
fn write_vocabulary(dir: &Path, ranks: usize, with: f64, factor: f64) {
    let words = 300_usize.next_multiple_of(128 * ranks);
    let (ids, hidden) = (Matrix::new(2, 1, 7.0), Matrix::new(2, 4, 8.0).scaled(factor));
    let weight = Matrix::new(300, 4, 9.0).padded(words, with);
    let logits = Matrix::new(300, 2, 10.0).padded(words, with);
    for rank in 0..ranks {
        let (weight, logits) = (weight.part(rank, ranks), logits.part(rank, ranks).turned());
        let calls: [Call<'_>; 3] = [
            (EMBEDDING, Some(NET), &ids, &hidden, Some(&weight)),
            (HEAD, Some(NET), &hidden, &logits, Some(&weight)),
            (NET, None, &ids, &logits, None),
        ];
        write_calls(&dir.join(format!("rank{rank}")), &calls);
    }
}

#[test]
fn padding_of_a_vocabulary_is_no_difference() {
    // 512 words on two ranks, 384 on one.
    let compare = |with: f64, factor: f64| {
        let dirs = Dirs::new();
        write_vocabulary(&dirs.path("target"), 2, with, factor);
        write_vocabulary(&dirs.path("golden"), 1, with, 1.0);
        let outcome = merging(&dirs, strategy(2, 2, 1), Some(strategy(1, 1, 1)));
        (dirs, outcome)
    };
    let (_dirs, outcome) = compare(0.0, 1.0);
    assert!(outcome.status().agrees(), "{}", outcome.answer().headline);
    let db = &outcome.files[0];
    let info = rows(
        db,
        &format!(
            "SELECT parallel_merge_info, matched_node_link, precision_index FROM tb_nodes WHERE id = 'NPU_0_0_{EMBEDDING}'"
        ),
    );
    assert!(
        info[0][0].contains("padded to 512 here and to 384 on the golden side: its padding is zero"),
        "{info:?}"
    );
    assert!(info[0][1].contains(EMBEDDING) && info[0][2] == "0", "{info:?}");
    let shape = rows(
        db,
        &format!(
            "SELECT shape, note FROM msprobe_merged_shapes WHERE value = '{EMBEDDING}.parameters.weight' AND id LIKE 'NPU%'"
        ),
    );
    assert_eq!(shape[0][0], "[512, 4]");
    assert!(shape[0][1].contains("pad it to a multiple of 256"), "{shape:?}");

    let (_dirs, outcome) = compare(5.0, 1.0);
    assert!(outcome.status().agrees(), "{}", outcome.answer().headline);
    let info = rows(
        &outcome.files[0],
        &format!("SELECT parallel_merge_info FROM tb_nodes WHERE id = 'NPU_0_0_{EMBEDDING}'"),
    );
    assert!(info[0][0].contains("it is not judged"), "{info:?}");

    let (_dirs, outcome) = compare(5.0, 1.2);
    assert_eq!(outcome.answer().culprit.unwrap().name, EMBEDDING);
}
