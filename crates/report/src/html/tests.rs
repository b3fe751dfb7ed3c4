//! What stands in the file, without a browser.

mod timeline;
mod tree;

use serde_json::{Value, json};

use super::table::ROWS_PER_BLOCK;
use super::*;
use crate::Tone;
use crate::sheet::{CellSink, SheetRows};

const NASTY: &str = "</script><script>alert(1)</script><!-- & \u{2028}\u{2029} \" ' \\ \u{1} 权";

struct Rows(usize);

impl SheetRows for Rows {
    fn len(&self) -> usize {
        self.0
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        sink.text(&format!("row {row}"));
        sink.number(if row == 1 { f64::NAN } else { row as f64 / 8.0 });
        sink.text(if row.is_multiple_of(2) { NASTY } else { "even" });
        sink.integer(1 << 60);
    }

    fn tone(&self, row: usize) -> Tone {
        match row {
            2 => Tone::Bad,
            3 => Tone::Warning,
            _ => Tone::Plain,
        }
    }
}

fn written(rows: &Rows) -> String {
    let headers = vec!["name".into(), "<b>number".into(), "text".into(), "big".into(), "missing".into()];
    let answer = AnswerBlock {
        heading: "A <heading> & more".into(),
        tone: Tone::Bad,
        text: "First.\n\n<i>Second</i>".into(),
        facts: vec![("label \"x\"".into(), "<value>".into())],
    };
    let table = PageTable {
        detail_columns: vec![2],
        hidden_columns: vec![3],
        first_row: Some(4),
        ..PageTable::new(NASTY, headers, rows)
    };
    page_of("A <report> & more", vec![Block::Answer(answer), Block::Table(table)])
}

fn page_of(title: &str, blocks: Vec<Block<'_>>) -> String {
    let mut out = Vec::new();
    write_page(&Page { title: title.into(), blocks }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What the page says of its views of that kind.
fn described(html: &str, kind: &str) -> Vec<Value> {
    let of_kind = format!("data-kind=\"{kind}\"");
    scripts(html, &of_kind).iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// The pieces of a view.
fn pieces(html: &str, view: usize) -> Vec<Value> {
    let of_view = format!("data-view=\"{view}\"");
    scripts(html, &of_view).iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Contents of the script elements whose opening tag contains `what`.
fn scripts<'a>(html: &'a str, what: &str) -> Vec<&'a str> {
    html.split("<script")
        .skip(1)
        .filter_map(|part| {
            let (tag, rest) = part.split_once('>')?;
            tag.contains(what).then(|| rest.split_once("</script>").unwrap().0)
        })
        .collect()
}

/// The value of a cell, found as the script does.
fn cell(block: &Value, column: usize, row: usize) -> Value {
    match &block["c"][column] {
        Value::Array(values) => values[row].clone(),
        column => {
            let index = column["i"].get(row).and_then(Value::as_u64).unwrap_or(0);
            column["v"][index as usize].clone()
        }
    }
}

#[test]
fn every_cell_is_in_the_blocks() {
    let count = ROWS_PER_BLOCK * 2 + 5;
    let html = written(&Rows(count));
    let blocks = pieces(&html, 0);
    assert_eq!(blocks.len(), 3);
    let mut row = 0;
    for block in &blocks {
        for within in 0..block["n"].as_u64().unwrap() as usize {
            assert_eq!(cell(block, 0, within), json!(format!("row {row}")));
            let number = if row == 1 { json!("nan") } else { json!(row as f64 / 8.0) };
            assert_eq!(cell(block, 1, within), number);
            assert_eq!(cell(block, 2, within), json!(if row % 2 == 0 { NASTY } else { "even" }));
            assert_eq!(cell(block, 3, within), json!("1152921504606846976"));
            assert_eq!(cell(block, 4, within), Value::Null);
            row += 1;
        }
    }
    assert_eq!(row, count);
    assert!(blocks[0]["f"].as_str().unwrap().starts_with("002100"));
    assert_eq!(blocks[1]["f"], Value::Null);
    assert_eq!(blocks[0]["c"][3], json!({"v": ["1152921504606846976"]}));
}

#[test]
fn data_cannot_become_markup() {
    let html = written(&Rows(10));
    for content in scripts(&html, "application/json") {
        assert!(!content.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{content}");
    }
    assert!(!html.contains("alert(1)</script>"));
    // Opening and closing tags are ours: the description, one block, the program.
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (3, 3));
    assert!(html.contains("<title>A &lt;report&gt; &amp; more</title>"));
    assert!(html.contains("<h1>A &lt;heading&gt; &amp; more</h1>"));
    assert!(html.contains("<p>First.</p>\n<p>&lt;i&gt;Second&lt;/i&gt;</p>"));
    assert!(html.contains("<dt>label &quot;x&quot;</dt><dd>&lt;value&gt;</dd>"));
}

#[test]
fn tables_are_described() {
    let html = written(&Rows(5));
    let tables = described(&html, "table");
    assert_eq!(tables[0]["name"], NASTY);
    assert_eq!(tables[0]["headers"][1], "<b>number");
    assert_eq!(tables[0]["count"], 5);
    assert_eq!(tables[0]["first"], 4);
    assert_eq!(described(&written(&Rows(3)), "table")[0]["first"], Value::Null);
}

struct Series(usize);

impl CurveSeries for Series {
    fn len(&self) -> usize {
        self.0
    }

    fn name(&self, index: usize) -> &str {
        if index == 1 { NASTY } else { "fc.weight" }
    }

    fn note(&self, index: usize) -> String {
        if index == 1 { NASTY.into() } else { format!("note {index}") }
    }

    fn tone(&self, index: usize) -> Tone {
        [Tone::Bad, Tone::Warning, Tone::Good][index.min(2)]
    }

    fn values(&self, index: usize) -> Vec<f64> {
        match index {
            0 => vec![1.0, f64::NAN, 0.833_333_333_333_333_4],
            1 => vec![f64::NEG_INFINITY],
            _ => vec![index as f64; 5],
        }
    }

    fn flagged(&self, index: usize) -> Vec<usize> {
        if index == 0 { vec![0, 2, 3, usize::MAX] } else { Vec::new() }
    }

    fn limits(&self, index: usize) -> Vec<Limit> {
        let limit = |from, to, value| Limit { from, to, value };
        // Those without a place, or without a level, are not drawn.
        let all = vec![
            limit(0, 0, 0.97),
            limit(0, 3, 0.5),
            limit(2, 1, 0.5),
            limit(0, 1, f64::NAN),
            limit(0, 2, 0.9),
        ];
        if index == 0 { all } else { Vec::new() }
    }
}

fn with_curves(count: usize) -> String {
    let series = Series(count);
    let curves = Curves { title: NASTY.into(), x_label: "step".into(), xs: vec![0, 5, -7], series: &series };
    page_of("Gradients", vec![Block::Curves(curves)])
}

#[test]
fn every_curve_is_in_the_blocks() {
    let count = 10_000;
    let html = with_curves(count);
    let expected = json!({"name": NASTY, "count": count, "xLabel": "step", "xs": [0, 5, -7]});
    assert_eq!(described(&html, "curves"), [expected]);
    let blocks = pieces(&html, 0);
    assert!(blocks.len() > 1);
    let curves: Vec<&Value> = blocks.iter().flat_map(|block| block.as_array().unwrap()).collect();
    assert_eq!(curves.len(), count);
    assert_eq!(
        *curves[0],
        json!([
            "fc.weight",
            "note 0",
            "bad",
            [1.0, null, 0.833_333_333_333_333_4],
            [0, 2],
            [[0, 0, 0.97], [0, 2, 0.9]]
        ])
    );
    assert_eq!(*curves[1], json!([NASTY, NASTY, "warning", ["-inf"], [], []]));
    for (index, curve) in curves.iter().enumerate().skip(2) {
        assert_eq!(curve[1], format!("note {index}"));
        assert_eq!(curve[3], json!([index as f64, index as f64, index as f64]));
    }
}

#[test]
fn names_of_curves_cannot_become_markup() {
    let html = with_curves(3);
    for content in scripts(&html, "application/json") {
        assert!(!content.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{content}");
    }
    // The curves' description, one block, the program.
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (3, 3));
}

/// A page has one program for all kinds of blocks, which therefore has to be small.
#[test]
fn the_program_is_there_once_and_small() {
    for html in [with_curves(0), written(&Rows(1)), page_of("", Vec::new())] {
        assert_eq!((html.matches(PROGRAM).count(), html.matches(STYLE).count()), (1, 1));
    }
    assert!(PROGRAM.len() + STYLE.len() < 96 * 1024);
}

#[test]
fn blocks_come_in_any_combination_and_number() {
    let (rows, none, series) = (Rows(3), Rows(0), Series(2));
    let answer =
        |heading: &str| Block::Answer(AnswerBlock { heading: heading.into(), ..AnswerBlock::default() });
    let table = |name: &str, rows| Block::Table(PageTable::new(name, vec!["a".into()], rows));
    let curves = |title: &str| {
        let curves = Curves { title: title.into(), x_label: "step".into(), xs: vec![1], series: &series };
        Block::Curves(curves)
    };
    let lanes = |title: &str| Block::Timeline(Timeline { title: title.into(), ..Timeline::default() });
    let html = page_of(
        "All",
        vec![
            table("t0", &rows),
            answer("first"),
            curves("c1"),
            lanes("l2"),
            table("t3", &none),
            curves("c4"),
            Block::Tree(Tree { title: "n5".into(), ..Tree::default() }),
            answer("second"),
            lanes("l6"),
        ],
    );
    let names: Vec<String> = scripts(&html, "class=\"view\"")
        .iter()
        .map(|text| serde_json::from_str::<Value>(text).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["t0", "c1", "l2", "t3", "c4", "n5", "l6"]);
    // Each piece names its view.
    let counts: Vec<usize> = (0..names.len()).map(|view| pieces(&html, view).len()).collect();
    assert_eq!(counts, [1, 1, 0, 0, 1, 0, 0]);
    assert!(html.find("<h1>first") < html.find("<h1>second") && html.find("<h1>second") < html.find("<main"));
}

#[test]
fn nothing_is_loaded_and_no_markup_is_made_of_text() {
    let assets = PROGRAM.to_owned() + STYLE;
    // The name of a kind of element and parts of the page itself: nothing is fetched for them.
    let assets = assets.replace("\"http://www.w3.org/2000/svg\"", "").replace("url(#", "");
    for word in ["http:", "https:", "//cdn", "fetch(", "XMLHttpRequest", "import(", "@import", "url("] {
        assert!(!assets.contains(word), "{word}");
    }
    for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
        assert!(!assets.contains(word), "{word}");
    }
    // Scripts stand in the page as they are.
    assert!(!assets.contains("</script") && !assets.contains("<!--"));
}
