//! What a visitor is shown of a record, what is damaged, and which directories are of a run.

use std::fs;
use std::path::Path;

use super::*;
use crate::names::{Rank, Step};
use crate::read::{PullError, Shape};

/// Writes down what it is shown, values with what they are.
#[derive(Default)]
struct Notes(Vec<String>);

impl Visitor for Notes {
    fn no_record(&mut self, written: Written<'_>) {
        self.0.push(format!("no record {:?}", String::from_utf8_lossy(written.bytes())));
    }

    fn recompute(&mut self, is_recompute: bool) {
        self.0.push(format!("recompute {is_recompute}"));
    }

    fn section(&mut self, section: Section<'_>, shape: Shape) {
        self.0.push(format!("{section:?} {shape:?}"));
    }

    fn value(&mut self, at: &Place<'_>, value: &Value<'_>) {
        let name = value.type_name.and_then(Written::text).unwrap_or("-".into());
        let inside = if at.is_inside_value { " inside" } else { "" };
        let p2p = if at.is_in_p2p { " p2p" } else { "" };
        self.0.push(format!("{at}: {name} {:?} {:?}{inside}{p2p}", value.known_dtype(), value.sizes));
    }

    fn stray(&mut self, at: &Place<'_>, written: Written<'_>) {
        self.0.push(format!("{at}: stray {}", String::from_utf8_lossy(written.bytes())));
    }

    fn member(&mut self, at: &Place<'_>, written: Written<'_>) {
        self.0.push(format!("{at}: member {}", String::from_utf8_lossy(written.bytes())));
    }

    fn too_deep(&mut self, at: &Place<'_>) {
        self.0.push(format!("too deep at {}", at.depth()));
    }
}

fn notes(text: &str) -> Result<Vec<String>, PullError> {
    let mut notes = Notes::default();
    walk_text(text.as_bytes(), &mut notes)?;
    Ok(notes.0)
}

#[test]
fn values_come_with_their_place_and_type() {
    let shown = notes(
        r#"{"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3]}, null, [7]],
            "input_kwargs": {"k": {"type": "slice", "value": [{"type": "int"}]}, "n": 5},
            "is_recompute": false,
            "weight": [{"type": "T", "dtype": "Float16", "shape": [-1]}]}"#,
    );
    assert_eq!(
        shown.unwrap(),
        [
            "Args List",
            "input.0: torch.Tensor Some(F32) Some([2, 3])",
            "input.1: stray null",
            "input.2.0: stray 7",
            "Kwargs Object",
            "input.k.value.0: int None None inside",
            "input.k: slice None None",
            "input.n: stray 5",
            "input: - None None",
            "recompute false",
            "Other(\"weight\") List",
            "weight.0: T Some(F16) None",
        ]
    );
}

#[test]
fn dictionaries_may_have_keys_like_members_of_values() {
    let shown = notes(r#"{"output": [{"shape": [{"type": "int"}], "value": null, "Max": 1, "a": true}]}"#);
    assert_eq!(
        shown.unwrap(),
        [
            "Output List",
            "output.0.shape.0: int None None",
            "output.0.value: member null",
            "output.0.Max: member 1",
            "output.0.a: member true",
            "output.0: - None None",
        ]
    );
}

#[test]
fn sends_and_receives_hold_their_tensor() {
    let text = r#"{"input_args": [[{"class_type": "torch.distributed.P2POp", "tensor": {"type": "T"}, "op": "isend",
        "peer": 3, "tag": 1, "group_id": "x"}]]}"#;
    assert!(notes(text).unwrap().contains(&"input.0.0.tensor: T None None p2p".to_owned()));
    struct Last(Option<(Option<String>, Option<i64>, bool)>);
    impl Visitor for Last {
        fn value(&mut self, _: &Place<'_>, value: &Value<'_>) {
            self.0 =
                value.p2p().map(|p2p| (p2p.operation.map(Into::into), p2p.peer, value.group().is_none()));
        }
    }
    let mut last = Last(None);
    walk_text(text.as_bytes(), &mut last).unwrap();
    assert_eq!(last.0, Some((Some("isend".to_owned()), Some(3), true)));
}

#[test]
fn odd_records_are_told() {
    assert_eq!(notes("7").unwrap(), ["no record \"7\""]);
    assert!(notes(r#"{"output": [1"#).is_err());
    let deep = format!("{{\"output\": {}{}}}", "[".repeat(70), "]".repeat(70));
    assert_eq!(notes(&deep).unwrap(), ["Output List", "too deep at 65"]);
    struct Repeated(Option<&'static str>);
    impl Visitor for Repeated {
        fn value(&mut self, _: &Place<'_>, value: &Value<'_>) {
            assert_eq!(value.statistic(Statistic::Max), Some(2.0));
            self.0 = value.repeated;
        }
    }
    let mut repeated = Repeated(None);
    walk_text(br#"{"output": [{"Max": NaN, "Max": 2, "md5": "a", "md5": "b"}]}"#, &mut repeated).unwrap();
    assert_eq!(repeated.0, Some("Max"));
}

#[test]
fn numbers_may_be_words() {
    let number = |text: &'static str| Written::new(text.as_bytes()).number_or_word();
    assert!(number("NaN").unwrap().is_nan() && number("\"nan\\t\"").unwrap().is_nan());
    assert_eq!((number("\"-inf\""), number("\"Inf\"")), (Some(f64::NEG_INFINITY), Some(f64::INFINITY)));
    assert_eq!((number("\"infinite\""), number("null"), number("-1.5")), (None, None, Some(-1.5)));
}

fn read(text: &str) -> (Vec<String>, Vec<Damage>, Header) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump.json");
    fs::write(&path, text).unwrap();
    let mut file = DumpFile::open(&path).unwrap();
    let mut names = Vec::new();
    let name_of = |text: &mut RecordText<'_, '_>| {
        text.walk(&mut Notes::default())?;
        Ok(text.name.to_owned())
    };
    while let Some(name) = file.next_record(name_of).unwrap() {
        names.push(name);
    }
    (names, file.damage().to_vec(), file.header().clone())
}

#[test]
fn what_came_before_damage_counts() {
    let (names, damage, header) = read(r#"{"task": "tensor", "data": {"a": {}, "b": {"output": ["#);
    assert_eq!((names, header.task), (vec!["a".to_owned()], Some("tensor".to_owned())));
    assert!(matches!(&damage[..], [Damage::Ends { .. }]), "{damage:?}");
    let (names, damage, _) = read(r#"{"data": {"a": {"output": [!]}, "b": {}}}"#);
    assert_eq!(names, ["b"]);
    assert!(matches!(&damage[..], [Damage::Record { name, .. }] if name == "a"), "{damage:?}");
    assert_eq!(read(r#"{"data": 5}"#).1, [Damage::NoRecords]);
    assert_eq!(read("{}").1, [Damage::NoData]);
    let twice = read(r#"{"task": "a", "data": {}, "task": "b"}"#);
    assert_eq!(twice.1, [Damage::Tasks("a".to_owned(), "b".to_owned())]);
    assert_eq!(twice.2.task.as_deref(), Some("b"));
}

#[test]
fn directories_are_of_steps_ranks_and_others() {
    let run = tempfile::tempdir().unwrap();
    for name in [
        "step10",
        "step2",
        "step01",
        "stepX",
        "rank1",
        "rank01",
        "rank",
        "rank0",
        "proc7",
        "dump_tensor_data",
    ] {
        fs::create_dir(run.path().join(name)).unwrap();
    }
    fs::write(run.path().join("rank3"), "a file").unwrap();
    let found = RunDir::read(run.path()).unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(found.steps.iter().map(|dir| dir.of).collect::<Vec<_>>(), [Step(2), Step(10)]);
    let ranks: Vec<_> = found.ranks.iter().map(|dir| (dir.of, name(&dir.path))).collect();
    assert_eq!(ranks, [(Rank(None), "rank".to_owned()), (Rank(Some(1)), "rank1".to_owned())]);
    let others: Vec<String> = found.others.iter().map(|path| name(path)).collect();
    assert_eq!(others, ["proc7", "rank01", "step01", "stepX", "rank0"]);
    let lone = tempfile::tempdir().unwrap();
    fs::create_dir(lone.path().join("proc99")).unwrap();
    assert_eq!(RunDir::read(lone.path()).unwrap().ranks[0].of, Rank(None));
    assert_eq!(dir_kind("rank4294967296"), None);
}
