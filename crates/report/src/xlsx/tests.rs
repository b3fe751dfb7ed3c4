//! Workbooks read back with another library.

use std::io::Cursor;

use calamine::{Data, Reader, Xlsx};

use super::*;
use crate::sheet::{CellSink, SheetRows};

enum Value {
    Empty,
    Text(String),
    Number(f64),
    Integer(i128),
}

struct Rows(Vec<(Tone, Vec<Value>)>);

impl SheetRows for Rows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        for value in &self.0[row].1 {
            match value {
                Value::Empty => sink.empty(),
                Value::Text(text) => sink.text(text),
                Value::Number(value) => sink.number(*value),
                Value::Integer(value) => sink.integer(*value),
            }
        }
    }

    fn tone(&self, row: usize) -> Tone {
        self.0[row].0
    }
}

/// `row` and a text in each row.
struct Counted(usize);

impl SheetRows for Counted {
    fn len(&self) -> usize {
        self.0
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        sink.integer(row as i128);
        sink.text(&format!("row {row}"));
    }

    fn tone(&self, row: usize) -> Tone {
        if row.is_multiple_of(2) { Tone::Plain } else { Tone::Bad }
    }
}

fn sheet<'a>(name: &str, headers: &[&str], rows: &'a dyn SheetRows) -> Sheet<'a> {
    Sheet { name: name.into(), headers: headers.iter().map(|&header| header.into()).collect(), rows }
}

fn written(sheets: &[Sheet<'_>], most_rows: usize) -> Xlsx<Cursor<Vec<u8>>> {
    let mut out = Cursor::new(Vec::new());
    write_pages(&mut out, sheets, most_rows).unwrap();
    Xlsx::new(out).unwrap()
}

#[test]
fn values_keep_their_kind() {
    let texts =
        ["=1+1", "+x", "-5", "@x", "12", "nan\t", "a\nb", " a ", "<&>\"]]>", "权重 😀", "_", "'q", "True"];
    let mut rows: Vec<_> =
        texts.iter().map(|text| (Tone::Plain, vec![Value::Text((*text).into())])).collect();
    let numbers = [0.1 + 0.2, -1e-300, 5e-324, 1.797_693_134_862_315_7e308, 1e15, 123_456.0, -0.5];
    rows.extend(numbers.iter().map(|&value| (Tone::Bad, vec![Value::Number(value), Value::Empty])));
    let rows = Rows(rows);
    let mut book = written(&[sheet("Sheet", &["=header", "other"], &rows)], MOST_ROWS);
    let range = book.worksheet_range("Sheet").unwrap();
    assert_eq!(range.get_value((0, 0)), Some(&Data::String("=header".into())));
    for (index, &text) in texts.iter().enumerate() {
        assert_eq!(range.get_value((index as u32 + 1, 0)), Some(&Data::String(text.into())));
    }
    for (index, &value) in numbers.iter().enumerate() {
        let at = (texts.len() + index) as u32 + 1;
        let back = range.get_value((at, 0)).unwrap();
        assert!(
            matches!(back, Data::Float(back) if back.to_bits() == value.to_bits())
                || matches!(back, Data::Int(back) if *back as f64 == value),
            "{value} came back as {back:?}"
        );
        assert!(matches!(range.get_value((at, 1)), None | Some(Data::Empty)));
    }
    assert!(book.worksheet_formula("Sheet").unwrap().is_empty());
}

#[test]
fn whole_numbers_are_exact_or_text() {
    let rows = Rows(vec![(
        Tone::Plain,
        vec![
            Value::Integer(1 << 53),
            Value::Integer(-(1 << 53) - 1),
            Value::Number(f64::NAN),
            Value::Number(f64::NEG_INFINITY),
            Value::Text(String::new()),
        ],
    )]);
    let mut book = written(&[sheet("Sheet", &["a", "b", "c", "d", "e"], &rows)], MOST_ROWS);
    let range = book.worksheet_range("Sheet").unwrap();
    assert_eq!(range.get_value((1, 0)), Some(&Data::Float(9_007_199_254_740_992.0)));
    assert_eq!(range.get_value((1, 1)), Some(&Data::String("-9007199254740993".into())));
    assert_eq!(range.get_value((1, 2)), Some(&Data::String("nan".into())));
    assert_eq!(range.get_value((1, 3)), Some(&Data::String("-inf".into())));
    assert!(matches!(range.get_value((1, 4)), None | Some(Data::Empty)));
}

#[test]
fn no_character_breaks_the_file() {
    let all: String =
        (0..0x3000u32).chain(0xD7F0..0xE010).chain(0xFFF0..0x1_0010).filter_map(char::from_u32).collect();
    let rows = Rows(vec![(Tone::Warning, vec![Value::Text(all.clone()), Value::Text("x".repeat(40_000))])]);
    let mut book = written(&[sheet("Sheet", &["a\u{1}<", "b"], &rows)], MOST_ROWS);
    let range = book.worksheet_range("Sheet").unwrap();
    let Some(Data::String(back)) = range.get_value((1, 0)) else {
        panic!("no text came back");
    };
    assert!(back.ends_with(&all[all.len() - 20..]) && back.contains("abcdefgh"));
    let Some(Data::String(back)) = range.get_value((1, 1)) else {
        panic!("no text came back");
    };
    assert_eq!(back.encode_utf16().count(), 32_767);
    assert!(back.ends_with("x… [cut]"));
}

#[test]
fn rows_beyond_the_limit_are_continued() {
    let rows = Counted(25);
    let exact = Counted(9);
    let none = Counted(0);
    let sheets = [
        sheet("Sheet", &["number", "text"], &rows),
        sheet("exact", &["number", "text"], &exact),
        sheet("none", &["number", "text"], &none),
    ];
    let mut book = written(&sheets, 10);
    assert_eq!(book.sheet_names(), ["Sheet", "Sheet_2", "Sheet_3", "exact", "none"]);
    for (name, first, count) in
        [("Sheet", 0, 9), ("Sheet_2", 9, 9), ("Sheet_3", 18, 7), ("exact", 0, 9), ("none", 0, 0)]
    {
        let range = book.worksheet_range(name).unwrap();
        assert_eq!(range.height(), count + 1, "{name}");
        assert_eq!(range.get_value((0, 0)), Some(&Data::String("number".into())));
        if count > 0 {
            assert_eq!(range.get_value((1, 0)), Some(&Data::Float(f64::from(first))));
            let last = first as usize + count - 1;
            assert_eq!(range.get_value((count as u32, 1)), Some(&Data::String(format!("row {last}"))));
        }
    }
}

#[test]
fn many_pieces_come_in_order() {
    let rows = Counted(60_000);
    let mut book = written(&[sheet("Sheet", &["number", "text"], &rows)], MOST_ROWS);
    let range = book.worksheet_range("Sheet").unwrap();
    assert_eq!(range.height(), 60_001);
    for (row, cells) in range.rows().skip(1).enumerate() {
        assert_eq!(cells, [Data::Float(row as f64), Data::String(format!("row {row}"))]);
    }
}

#[test]
fn names_of_sheets_are_made_acceptable() {
    let rows = Counted(15);
    let long = "a very long name of a sheet, longer than allowed";
    let sheets: Vec<_> = [long, long, "a/b:c", "SAME", "same", "", "'it's'", "<&>"]
        .map(|name| sheet(name, &["n"], &rows))
        .into();
    let mut book = written(&sheets, 10);
    let names = book.sheet_names();
    assert_eq!(
        names[..8],
        [
            "a very long name of a sheet, lo",
            "a very long name of a sheet, _2",
            "a very long name of a sheet,(2)",
            "a very long name of a shee_2(2)",
            "a_b_c",
            "a_b_c_2",
            "SAME",
            "SAME_2"
        ]
    );
    assert!(names.contains(&"same(2)".to_owned()) && names.contains(&"it's".to_owned()));
    for name in names {
        assert!(book.worksheet_range(&name).unwrap().height() > 1, "{name}");
    }
}

#[test]
fn impossible_workbooks_are_refused() {
    let error = write_pages(Cursor::new(Vec::new()), &[], MOST_ROWS).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let rows = Counted(1);
    let headers: Vec<&str> = vec!["x"; MOST_COLUMNS + 1];
    let error =
        write_pages(Cursor::new(Vec::new()), &[sheet("wide", &headers, &rows)], MOST_ROWS).unwrap_err();
    assert!(error.to_string().contains("wide"));
}

#[test]
fn the_same_rows_give_the_same_file() {
    let rows = Counted(5000);
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a.xlsx"), folder.path().join("b.xlsx")];
    for path in &paths {
        write_workbook(std::fs::File::create(path).unwrap(), &[sheet("Sheet", &["number", "text"], &rows)])
            .unwrap();
    }
    assert!(std::fs::read(&paths[0]).unwrap() == std::fs::read(&paths[1]).unwrap());
}
