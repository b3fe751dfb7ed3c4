//! Recorded comparisons with mappings: each row finds the partner the reference found.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use msprobe_compare::pairing::RowPair;
use msprobe_compare::side::{Side, Which, read_side};
use msprobe_report::console::{Console, Level, Remembered, Silent};
use msprobe_report::error::{Code, CompareError};
use msprobe_tables::mapping::{MappingSource, api_keys, cell_keys, data_mapping, layer_mapping};
use msprobe_tables::matching::{Keys, match_by_key, match_by_key_and_shape};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/compare").join(name)
}

fn sides(directory: &Path) -> (Side, Side) {
    let side = |name, which| read_side(&directory.join(name).join("dump.json"), which, &Silent).unwrap();
    (side("npu", Which::Target), side("bench", Which::Golden))
}

fn named(pairs: &[RowPair], target: &Side, golden: &Side) -> Vec<(String, String)> {
    let name = |pair: &RowPair| match pair.golden {
        Ok(row) => golden.rows[row].name.to_string(),
        Err(_) => "N/A".to_owned(),
    };
    pairs.iter().map(|pair| (target.rows[pair.target].name.to_string(), name(pair))).collect()
}

fn recorded(case: &Path) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_path(case.join("expected/compare_result.csv")).unwrap();
    let headers = reader.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let (npu, bench) = (column("NPU Name"), column("Bench Name"));
    reader.records().map(|row| row.unwrap()).map(|row| (row[npu].to_owned(), row[bench].to_owned())).collect()
}

fn check_per_row(name: &str, keys: impl Fn(&Path, &Side, &Side) -> Vec<Option<String>>) {
    let case = case(name);
    let (target, golden) = sides(&case);
    let keys = Keys::PerRow(keys(&case, &target, &golden));
    let pairs = match_by_key_and_shape(&target, &golden, &keys, true);
    let recorded = recorded(&case);
    assert!(recorded.len() >= 10);
    assert_eq!(named(&pairs, &target, &golden), recorded);
}

#[test]
fn built_in_names_of_apis() {
    check_per_row("cross_api_mapping_builtin", |_, target, golden| {
        api_keys(target, golden, MappingSource::BuiltIn, &Silent).unwrap()
    });
}

#[test]
fn apis_of_a_file() {
    check_per_row("cross_api_mapping_file", |case, target, golden| {
        let file = case.join("api_mapping.yaml");
        api_keys(target, golden, MappingSource::File(&file), &Silent).unwrap()
    });
}

#[test]
fn cells_of_a_file() {
    check_per_row("cross_cell_mapping_file", |case, target, _| {
        let file = case.join("cell_mapping.yaml");
        cell_keys(target, MappingSource::File(&file), &Silent).unwrap()
    });
}

#[test]
fn rows_of_a_file() {
    let case = case("data_mapping_statistics");
    let (target, golden) = sides(&case);
    let keys = Keys::Mapping(data_mapping(&case.join("data_mapping.yaml")).unwrap());
    assert_eq!(named(&match_by_key(&target, &golden, &keys), &target, &golden), recorded(&case));
}

#[test]
fn layers_of_a_file() {
    let case = case("cross_layer_mapping");
    let (target, golden) = sides(&case);
    let file = case.join("layer_mapping.yaml");
    let mapping = layer_mapping(&target, &golden, MappingSource::File(&file), &Silent).unwrap();
    let expected = case.join("expected/data_mapping.yaml");
    assert_eq!(mapping.to_yaml(), std::fs::read_to_string(&expected).unwrap());
    let keys = mapping.into_mapping();
    assert_eq!(keys, data_mapping(&expected).unwrap());
    let keys = Keys::Mapping(keys);
    assert_eq!(named(&match_by_key(&target, &golden, &keys), &target, &golden), recorded(&case));
}

/// A directory with two dumps of its own.
struct Dumps {
    directory: tempfile::TempDir,
}

impl Dumps {
    /// Each side as the members of its `data`.
    fn new(target: &str, golden: &str) -> Dumps {
        let directory = tempfile::tempdir().unwrap();
        for (name, data) in [("npu", target), ("bench", golden)] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
            let text = format!(r#"{{"task": "statistics", "level": "mix", "data": {{{data}}}}}"#);
            std::fs::write(directory.path().join(name).join("dump.json"), text).unwrap();
        }
        Dumps { directory }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn sides(&self) -> (Side, Side) {
        sides(self.directory.path())
    }

    fn api_keys(
        &self,
        file: &str,
        console: &dyn Console,
    ) -> Result<HashMap<String, Option<String>>, CompareError> {
        let (target, golden) = self.sides();
        let file = self.write("api.yaml", file);
        let keys = api_keys(&target, &golden, MappingSource::File(&file), console)?;
        assert_eq!(keys.len(), target.rows.len());
        Ok(target.rows.iter().map(|leaf| leaf.name.to_string()).zip(keys).collect())
    }
}

fn has(notes: &Remembered, level: Level, text: &str) -> bool {
    notes.said(|said| said == level).iter().any(|message| message.contains(text))
}

/// An API with twelve arguments, a result that is a list, and parameters.
fn flash() -> Dumps {
    let arguments = ["null"; 12].join(",");
    let target = format!(
        r#""Functional.flash.0.forward": {{"input_args": [{arguments}], "input_kwargs": {{"scale": null}},
            "output": [null, [null, null]], "parameters": {{"w": null}}}},
           "Functional.input.0.forward": {{"input_args": [null], "output": [null]}}"#
    );
    Dumps::new(&target, r#""NPU.fusion.0.forward": {"input_args": [null], "output": [null]}"#)
}

#[test]
fn both_shapes_and_both_spellings_of_an_entry_mean_the_same() {
    let dumps = flash();
    let entry = |indent: &str, output: &str| {
        let lines = [
            "ms_api: Functional.flash",
            "pt_api: NPU.fusion",
            "ms_args: [1, scale]",
            "pt_args: [0, s]",
            &format!("ms_{output}: [0, 1]"),
            &format!("pt_{output}: [1, 0]"),
            "ms_parameters: w",
            "pt_parameters: weight",
        ];
        lines.join(&format!("\n{indent}"))
    };
    let single = dumps.api_keys(&entry("", "outputs"), &Silent).unwrap();
    for file in
        [entry("", "output"), format!("- {}", entry("  ", "output")), format!("- {}", entry("  ", "outputs"))]
    {
        assert_eq!(dumps.api_keys(&file, &Silent).unwrap(), single);
    }
    let key = |row: &str| single[&format!("Functional.flash.0.forward.{row}")].as_deref();
    assert_eq!(key("input.1"), Some("NPU.fusion.0.forward.input.0"));
    for unlisted in ["input.0", "input.2", "input.10", "input.11"] {
        assert_eq!(key(unlisted), None);
    }
    assert_eq!(key("input.scale"), Some("NPU.fusion.0.forward.input.s"));
    assert_eq!(key("output.0"), Some("NPU.fusion.0.forward.output.1"));
    assert_eq!(key("output.1.0"), Some("NPU.fusion.0.forward.output.0.0"));
    assert_eq!(key("output.1.1"), Some("NPU.fusion.0.forward.output.0.1"));
    assert_eq!(key("parameters.w"), Some("NPU.fusion.0.forward.parameters.weight"));
    // An API of another name is left to the built-in names, even one that is called like a word of row names.
    let other = "Functional.input.0.forward.input.0";
    assert_eq!(single[other].as_deref(), Some(other));
}

#[test]
fn places_that_are_not_listed_stay_unmatched() {
    let keys = flash().api_keys("ms_api: Functional.flash\npt_api: NPU.fusion", &Silent).unwrap();
    assert!(keys.iter().all(|(row, key)| key.is_none() == row.starts_with("Functional.flash")));
}

#[test]
fn entries_that_do_not_apply_change_nothing() {
    let dumps = flash();
    let notes = Remembered::default();
    let file = "- {ms_api: Functional.flash, pt_api: NPU.fusion, ms_args: [0, 1], pt_args: [0]}\n\
                - {ms_api: Functional.flash, pt_api: Torch.absent, ms_args: [0], pt_args: [0]}\n\
                - {ms_api: Functional.absent, pt_api: NPU.fusion}";
    let keys = dumps.api_keys(file, &notes).unwrap();
    assert!(keys.iter().all(|(row, key)| key.as_ref() == Some(row)));
    assert!(has(&notes, Level::Warning, "The user-defined mapping table is incorrect"));
    let notes = Remembered::default();
    assert!(dumps.api_keys("", &notes).unwrap().iter().all(|(row, key)| key.as_ref() == Some(row)));
    assert!(has(&notes, Level::Warning, "is empty"));
}

#[test]
fn the_last_entry_of_an_api_counts() {
    let file = "- {ms_api: Functional.flash, pt_api: NPU.fusion, ms_args: [0], pt_args: [1]}\n\
                - {ms_api: Functional.flash, pt_api: NPU.fusion, ms_args: [1], pt_args: [2]}";
    let keys = flash().api_keys(file, &Silent).unwrap();
    assert_eq!(keys["Functional.flash.0.forward.input.0"], None);
    let second = keys["Functional.flash.0.forward.input.1"].as_deref();
    assert_eq!(second, Some("NPU.fusion.0.forward.input.2"));
}

#[test]
fn files_of_the_wrong_structure_are_refused_with_the_right_one() {
    let dumps = flash();
    let (target, golden) = dumps.sides();
    let refused = |error: CompareError| {
        assert_eq!(error.code, Code::InvalidFile, "{error}");
        assert!(error.hint.is_some());
    };
    for text in [
        "word",
        "- word",
        "- [a]",
        "a: b",
        "ms_api: [a]\npt_api: b",
        "- {ms_api: a, pt_api: b, ms_args: [[0]]}",
    ] {
        refused(dumps.api_keys(text, &Silent).unwrap_err());
    }
    for text in ["word", "[a]", "a: [b]", "a: {b: c}", "? [a]\n: b", "? {a: b}\n: c"] {
        let file = dumps.write("names.yaml", text);
        let source = MappingSource::File(&file);
        refused(data_mapping(&file).unwrap_err());
        refused(cell_keys(&target, source, &Silent).unwrap_err());
        if text != "a: {b: c}" {
            refused(layer_mapping(&target, &golden, source, &Silent).unwrap_err());
        }
    }
    let file = dumps.write("names.yaml", "1: 2\ntrue: ~\n1.5: x");
    let names = data_mapping(&file).unwrap();
    assert_eq!((&*names["1"], &*names["true"], &*names["1.5"]), ("2", "N/A", "x"));
    let deep = dumps.write("deep.yaml", &"- ".repeat(10_000));
    assert_eq!(data_mapping(&deep).unwrap_err().code, Code::RecursionLimit);
    let missing = dumps.directory.path().join("missing.yaml");
    assert_eq!(data_mapping(&missing).unwrap_err().code, Code::IllegalPath);
    let other = dumps.write("names.txt", "a: b");
    assert_eq!(data_mapping(&other).unwrap_err().code, Code::InvalidFile);
}

/// Records with one result each.
fn records(names: &[&str]) -> String {
    names.iter().map(|name| format!(r#""{name}": {{"output": [null]}}"#)).collect::<Vec<_>>().join(",")
}

#[test]
fn without_stacks_or_construct_nothing_has_a_partner() {
    let same = records(&["Cell.a.Dense.forward.0"]);
    let dumps = Dumps::new(&same, &same);
    let notes = Remembered::default();
    let (target, golden) = dumps.sides();
    let mapping = layer_mapping(&target, &golden, MappingSource::BuiltIn, &notes).unwrap();
    assert_eq!(mapping.to_yaml(), "Cell.a.Dense.forward.0.output.0: N/A\n");
    assert!(has(&notes, Level::Warning, "stack.json"));
    for side in ["npu", "bench"] {
        dumps.write(&format!("{side}/stack.json"), r#"{"x": []}"#);
        dumps.write(&format!("{side}/construct.json"), "{}");
    }
    let notes = Remembered::default();
    let mapping = layer_mapping(&target, &golden, MappingSource::BuiltIn, &notes).unwrap();
    assert_eq!(mapping.rows[0].1, "N/A");
    assert!(has(&notes, Level::Warning, "construct.json"));
    dumps.write("npu/construct.json", "[");
    let error = layer_mapping(&target, &golden, MappingSource::BuiltIn, &Silent).unwrap_err();
    assert_eq!(error.code, Code::BrokenJson);
}

#[test]
fn children_of_several_levels_are_replaced_longest_first() {
    let target = [
        "Cell.net.Net.forward.0",
        "Cell.net.a.b.c.Dense.forward.0",
        "Cell.net.a.b.d.Dense.forward.0",
        "Cell.net.a.e.Dense.forward.0",
        "Cell.net.a.e.Dense.forward.1",
        "Cell.net.a.e.Dense.forward.2",
        "Cell.short.forward",
    ];
    let golden = [
        "Module.model.Net.forward.0",
        "Module.model.x.Linear.forward.0",
        "Module.model.y.z.d.Linear.forward.0",
        "Module.model.a.w.Linear.forward.0",
        "Module.model.a.w.Linear.forward.1",
    ];
    let dumps = Dumps::new(&records(&target), &records(&golden));
    for side in ["npu", "bench"] {
        // The new form of stack.json, as it is written today.
        dumps.write(
            &format!("{side}/stack.json"),
            r#"{"0": [["Cell.x"], ["File a.py, line 1, in f, \n x"]]}"#,
        );
        dumps.write(&format!("{side}/construct.json"), r#"{"x": null}"#);
    }
    let file = dumps.write(
        "layers.yaml",
        "Cell: {net: model(Net)}\nTopLayer: {net: nonsense}\n\
         Net: {a.b.c: x, a.b: y.z, a.e: a.w, a.b.c.nothing: unused}\nOther: ~",
    );
    let (target, golden) = dumps.sides();
    let notes = Remembered::default();
    let mapping = layer_mapping(&target, &golden, MappingSource::File(&file), &notes).unwrap();
    let partners: Vec<&str> = mapping.rows.iter().map(|(_, partner)| partner.as_str()).collect();
    assert_eq!(
        partners,
        [
            "Module.model.Net.forward.0.output.0",
            "Module.model.x.Linear.forward.0.output.0",
            "Module.model.y.z.d.Linear.forward.0.output.0",
            "Module.model.a.w.Linear.forward.0.output.0",
            "Module.model.a.w.Linear.forward.1.output.0",
            "N/A",
            "N/A",
        ]
    );
    assert!(has(&notes, Level::Warning, "Cell.short.forward"));
}

#[test]
fn the_saved_mapping_reads_back_as_it_was() {
    let long = format!("Cell.{}.Dense.forward.0.output.0", "layer".repeat(300));
    let names = [
        &*long,
        "N/A",
        "true",
        "a: b",
        "- x",
        "it's",
        "line\nbreak \"quoted\" \\",
        "",
        "{x}",
        "é",
        "\u{7}",
        "12",
    ];
    let mapping = msprobe_tables::mapping::LayerMapping {
        rows: names.iter().flat_map(|key| [((*key).to_owned(), format!("{key}2"))]).collect(),
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("saved.yaml");
    std::fs::write(&path, mapping.to_yaml()).unwrap();
    assert_eq!(data_mapping(&path).unwrap(), mapping.into_mapping());
    std::fs::write(&path, msprobe_tables::mapping::LayerMapping::default().to_yaml()).unwrap();
    assert!(data_mapping(&path).unwrap().is_empty());
}
