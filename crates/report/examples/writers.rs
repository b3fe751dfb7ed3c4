//! Writes a long table in every format and says how long it took:
//! `cargo run --release -p msprobe-report --example writers -- FOLDER [ROWS] [FORMAT]`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use msprobe_report::{
    AnswerBlock, Block, CellSink, CsvOptions, Page, PageTable, Sheet, SheetRows, Tone, write_page,
    write_sheet_csv, write_sheet_json, write_workbook,
};

const COLUMNS: usize = 25;

struct Rows {
    count: usize,
    stacks: Vec<String>,
}

impl SheetRows for Rows {
    fn len(&self) -> usize {
        self.count
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        sink.text(&format!("Module.layers.{}.Linear.forward.{}.input.{}", row / 10, row / 7, row % 3));
        for column in 1..COLUMNS - 1 {
            match column {
                3 | 5 => sink.text("torch.float32"),
                7 => sink.text("[1, 128, 4096]"),
                9 if row.is_multiple_of(5) => sink.empty(),
                _ if column % 2 == 1 => sink.text(if row.is_multiple_of(7) { "N/A" } else { "True" }),
                2 => sink.integer(row as i128),
                _ => sink.number((row as f64 * 0.37 + column as f64).sin() * 3.7),
            }
        }
        if row.is_multiple_of(3) {
            sink.text(self.stacks.get(row / 3 % self.stacks.len()).map_or("", String::as_str));
        } else {
            sink.text("None");
        }
    }

    fn tone(&self, row: usize) -> Tone {
        match row % 40 {
            0 => Tone::Bad,
            7 => Tone::Warning,
            _ => Tone::Plain,
        }
    }
}

fn page<'a>(sheet: &Sheet<'a>) -> Page<'a> {
    let table = |name: &str, first_row| {
        Block::Table(PageTable {
            detail_columns: vec![COLUMNS - 1],
            hidden_columns: vec![1, 11],
            first_row,
            ..PageTable::new(name, sheet.headers.clone(), sheet.rows)
        })
    };
    let title = "Comparison of two dumps".to_owned();
    let answer = AnswerBlock {
        heading: title.clone(),
        tone: Tone::Bad,
        text: "The first operation that introduces an error is Module.layers.12.Linear.forward.17 (step 0, rank 0).\n\
                  Its inputs and parameters agree within tolerance, its output does not: cosine 0.93, largest relative \
                  error 4.1 %."
            .into(),
        facts: [("Target", "step0/rank0/dump.json"), ("Golden", "step0/rank0/dump.json"), ("Mode", "statistics")]
            .map(|(label, value)| (label.into(), value.into()))
            .into(),
    };
    let (comparison, unmatched) = (table("Comparison", Some(sheet.rows.len() / 2)), table("Unmatched", None));
    Page { title, blocks: vec![Block::Answer(answer), comparison, unmatched] }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("a folder is missing")?;
    let count = arguments.next().map_or(Ok(150_000), |text| text.parse())?;
    let only = arguments.next();
    let stacks = (0..500)
        .map(|index| {
            let lines = (0..6)
                .map(|line| format!("File model/block_{index}.py, line {line}, in forward, \n y{line}"));
            lines.collect::<Vec<_>>().join("\n")
        })
        .collect();
    let rows = Rows { count, stacks };
    let mut headers = vec!["NPU Name".to_owned()];
    headers.extend((1..COLUMNS - 1).map(|index| format!("Column {index}")));
    headers.push("Stack".to_owned());
    let sheet = Sheet { name: "Sheet".into(), headers, rows: &rows };
    let folder = Path::new(&folder);
    type Writer<'a> = Box<dyn Fn(&Path) -> std::io::Result<()> + 'a>;
    let writers: Vec<(&str, Writer<'_>)> = vec![
        ("xlsx", Box::new(|path| write_workbook(File::create(path)?, std::slice::from_ref(&sheet)))),
        ("csv", Box::new(|path| write_sheet_csv(&sheet, CsvOptions::default(), File::create(path)?))),
        ("html", Box::new(|path| write_page(&page(&sheet), BufWriter::new(File::create(path)?)))),
        ("json", Box::new(|path| write_sheet_json(&sheet, File::create(path)?))),
    ];
    for (format, write) in writers {
        if only.as_ref().is_some_and(|only| only != format) {
            continue;
        }
        let path = folder.join(format!("table.{format}"));
        let start = Instant::now();
        write(&path)?;
        let size = std::fs::metadata(&path)?.len();
        println!("{format:5} {:6.3} s {:9.1} MB", start.elapsed().as_secs_f64(), size as f64 / 1e6);
    }
    Ok(())
}
