//! A recorded merge of two ranks, and inputs it leaves out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod recorded;

use std::fs;
use std::path::Path;

use msprobe_report::VecRows;
use msprobe_report::console::{Remembered, Silent};
use msprobe_report::error::Code;
use msprobe_report::{Cell, Sheet, write_workbook};
use msprobe_tables::merge_result::{Merged, merge_result};
use recorded::{Value, assert_rows, case, complaints, rendering, workbook};

const INDEXES: [&str; 3] = ["Max diff", "L2norm diff", "MeanRelativeErr"];

#[test]
fn recorded_ranks() {
    let (case, output) = (case("merge_result_statistics"), tempfile::tempdir().unwrap());
    let notes = Remembered::default();
    let merged = merge_result(&case.join("input"), output.path(), &case.join("config.yaml"), &notes).unwrap();
    assert!(merged.left_out.is_empty());
    let path = merged.path;
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("multi_ranks_compare_merge_"), "{name}");
    let sheets = workbook(&path);
    assert_eq!(sheets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), INDEXES);
    for (name, table) in &sheets {
        let file = format!("multi_ranks_compare_merge.{}.csv", name.replace(' ', "_"));
        assert_rows(table, &rendering(&case.join("expected").join(file)), |_| 1e-9);
    }
    assert_eq!(complaints(&notes), ["Distributed.broadcast not found in rank0 compare result."]);
}

const HEADERS: &str = "NPU Name,Bench Name,NPU Dtype,Bench Dtype,NPU Tensor Shape,Bench Tensor Shape,Max diff,Min diff,\
    Mean diff,L2norm diff,MaxRelativeErr,MinRelativeErr,MeanRelativeErr,NormRelativeErr,NPU max,NPU min,NPU mean,\
    NPU l2norm,Bench max,Bench min,Bench mean,Bench l2norm,Result,Err_message";

/// Writes a table of statistics with the given names and maximum differences, on two sheets and a further one.
fn write_result(path: &Path, rows: &[(&str, Cell)], headers: &str) {
    let headers: Vec<String> = headers.split(',').map(str::to_owned).collect();
    let row = |(name, difference): &(&str, Cell)| {
        let mut row = vec![Cell::Text((*name).to_owned()); headers.len()];
        row[6] = difference.clone();
        row[14] = Cell::Float(0.5);
        row[18] = Cell::Float(2.0);
        row
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(row).collect();
    let (first, rest) = rows.split_at(rows.len().min(1));
    let parts = [first, rest, rest].map(|part| VecRows::new(part.to_vec()));
    let names = ["Sheet", "Sheet_2", "Verdict"];
    let sheets: Vec<Sheet<'_>> = names
        .iter()
        .zip(&parts)
        .map(|(name, rows)| Sheet { name: (*name).to_owned(), headers: headers.clone(), rows })
        .collect();
    write_workbook(std::fs::File::create(path).unwrap(), &sheets).unwrap();
}

#[test]
fn further_sheets_and_foreign_tables() {
    let root = tempfile::tempdir().unwrap();
    let file = |rank: &str| root.path().join(format!("compare_result_{rank}_20250101000000.xlsx"));
    let rows = [("A.x.0", Cell::Int(1)), ("B.y.0", Cell::Text("N/A".into())), ("A.x.1", Cell::Float(0.25))];
    write_result(&file("rank10"), &rows, HEADERS);
    write_result(&file("rank9-rank9"), &rows[..1], HEADERS);
    write_result(&file("rank"), &rows[..1], HEADERS);
    write_result(&file("rank3"), &rows, &HEADERS.replace("NPU max", "NPU Requires_grad"));
    fs::write(file("rank4"), "no workbook").unwrap();
    let config = root.path().join("config.yaml");
    fs::write(&config, "api: [B.y, A.x, A]\ncompare_index: [Max diff]\n").unwrap();
    let notes = Remembered::default();
    let Merged { path, left_out } =
        merge_result(root.path(), &root.path().join("out"), &config, &notes).unwrap();
    assert_eq!(left_out, [3, 4]);
    let sheets = workbook(&path);
    assert_eq!(sheets.len(), 1);
    let table = &sheets[0].1;
    assert_eq!(table.headers, ["NPU Name", "rank9", "rank10"]);
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(
        table.rows,
        [
            vec![text("A.x.0"), Value::Number(1.0), Value::Number(1.0)],
            vec![text("B.y.0"), Value::Empty, text("NPU:0.5  Bench:2")],
            vec![text("A.x.1"), Value::Empty, Value::Number(0.25)],
        ]
    );
    let mut notes = complaints(&notes);
    notes.sort();
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert_eq!(notes[2], "B.y not found in rank9 compare result.");
    assert_eq!(notes[3], "Single rank compare result do not need to be merged.");

    fs::write(root.path().join("other.xlsx"), "").unwrap();
    let error = merge_result(root.path(), root.path(), &config, &Silent).unwrap_err();
    assert_eq!(error.message, "Wrong compare result name: other.xlsx, please check!");
    assert_eq!(error.code, Code::MergeCompareResult);
}

#[test]
fn too_little_to_merge() {
    let root = tempfile::tempdir().unwrap();
    let config = case("merge_result_statistics").join("config.yaml");
    let merge = || merge_result(root.path(), root.path(), &config, &Silent).unwrap_err().message;
    assert_eq!(merge(), "Number of compare result is no more than 1, no need to merge.");
    for rank in 0..2 {
        fs::write(root.path().join(format!("compare_result_rank{rank}_20250101000000.xlsx")), "").unwrap();
    }
    assert_eq!(merge(), "Nothing to merge.");
}

/// An archive with these parts, compressed.
fn archive(path: &Path, parts: &[(&str, &[u8], usize)]) {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, piece, count) in parts {
        zip.start_file(*name, options).unwrap();
        for _ in 0..*count {
            zip.write_all(piece).unwrap();
        }
    }
    zip.finish().unwrap();
}

#[test]
fn workbooks_that_would_fill_the_memory_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    let file = |rank: u32| root.path().join(format!("compare_result_rank{rank}_20250101000000.xlsx"));
    for rank in 0..2 {
        write_result(&file(rank), &[("A.x.0", Cell::Int(1))], HEADERS);
    }
    let texts = "xl/sharedStrings.xml";
    // Readers make room for as many texts as a workbook promises.
    archive(&file(2), &[(texts, b"<sst uniqueCount=\"999999999999999999\"><si/></sst>", 1)]);
    let many = b"<si><t>a</t></si>".repeat(1 << 10);
    archive(&file(3), &[(texts, b"<sst>", 1), ("xl/worksheets/sheet1.xml", &many, 9 << 10)]);
    let long = vec![b'a'; 1 << 20];
    archive(&file(4), &[(texts, &long, 300)]);
    assert!([3, 4].iter().all(|rank| fs::metadata(file(*rank)).unwrap().len() < 1 << 20));
    std::os::unix::fs::symlink(file(0), file(5)).unwrap();
    let config = root.path().join("config.yaml");
    fs::write(&config, "api: [A.x]\ncompare_index: [Max diff]\n").unwrap();
    let notes = Remembered::default();
    let Merged { path, left_out } =
        merge_result(root.path(), &root.path().join("out"), &config, &notes).unwrap();
    assert_eq!(left_out, [2, 3, 4, 5]);
    assert_eq!(workbook(&path)[0].1.headers, ["NPU Name", "rank0", "rank1"]);
    let mut notes = complaints(&notes);
    notes.sort();
    assert_eq!(notes.len(), 4, "{notes:?}");
    for (note, why) in notes.iter().zip(["texts", "texts", "bytes in one cell or tag", "it is a link"]) {
        assert!(note.contains("is not merged") && note.contains(why), "{note}");
    }
    assert!(notes[0].contains("hint: "), "{}", notes[0]);
}
