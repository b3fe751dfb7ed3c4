//! Writes a report with curves: `cargo run --release -p msprobe-report --example curves -- FILE [SERIES] [STEPS]`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use msprobe_report::{
    AnswerBlock, Block, CellSink, CurveSeries, Curves, Page, PageTable, SheetRows, Tone, write_page,
};

struct Parameters {
    names: Vec<String>,
    steps: usize,
}

impl Parameters {
    fn value(&self, index: usize, step: usize) -> f64 {
        let depth = 0.6 / (1.0 + index as f64 * 30.0 / self.names.len() as f64);
        match (index, step) {
            (3, 4..=6) => f64::NAN,
            (3, 8) => f64::INFINITY,
            _ => 1.0 - depth * ((step * (index % 7 + 1)) as f64 * 0.37).sin().powi(8),
        }
    }
}

impl CurveSeries for Parameters {
    fn len(&self) -> usize {
        self.names.len()
    }

    fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    fn note(&self, index: usize) -> String {
        let lowest = self.values(index).into_iter().fold(1.0, f64::min);
        format!("lowest {lowest:.4}")
    }

    fn tone(&self, index: usize) -> Tone {
        match self.flagged(index).len() {
            0 => Tone::Good,
            1 => Tone::Warning,
            _ => Tone::Bad,
        }
    }

    fn values(&self, index: usize) -> Vec<f64> {
        (0..self.steps).map(|step| self.value(index, step)).collect()
    }

    fn flagged(&self, index: usize) -> Vec<usize> {
        (0..self.steps).filter(|&step| self.value(index, step) < 0.8).collect()
    }
}

impl SheetRows for Parameters {
    fn len(&self) -> usize {
        self.names.len()
    }

    fn cells(&self, row: usize, sink: &mut dyn CellSink) {
        sink.text(&self.names[row]);
        sink.number(self.value(row, 1));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("a file is missing")?;
    let count = arguments.next().map_or(Ok(3000), |text| text.parse::<usize>())?;
    let steps = arguments.next().map_or(Ok(100), |text| text.parse::<usize>())?;
    let parts = ["attn.qkv.weight", "attn.proj.weight", "mlp.up.weight", "mlp.down.bias", "norm.weight"];
    let mut names: Vec<_> =
        (0..count).map(|index| format!("model.layers.{}.{}", index / 5, parts[index % 5])).collect();
    if let Some(name) = names.get_mut(1) {
        *name =
            "</script><img src=x onerror=alert(1)> & \"权重\" of a parameter with a very long name.weight"
                .into();
    }
    let parameters = Parameters { names, steps };
    let title = "Gradients of two runs".to_owned();
    let answer = AnswerBlock {
        heading: title.clone(),
        tone: Tone::Bad,
        text: "step 3: 2 of 148 parameters fell by more than 0.03, first in backward order: model.layers.5.attn.qkv.weight".into(),
        facts: vec![("Steps".into(), steps.to_string()), ("Parameters".into(), count.to_string())],
    };
    let table = PageTable::new("Parameters", vec!["Name".into(), "Similarity".into()], &parameters);
    let curves = Curves {
        title: "Curves".into(),
        x_label: "step".into(),
        xs: (0..steps as i64).collect(),
        series: &parameters,
    };
    let start = Instant::now();
    let blocks = vec![Block::Answer(answer), Block::Curves(curves), Block::Table(table)];
    write_page(&Page { title, blocks }, BufWriter::new(File::create(&file)?))?;
    println!(
        "{:6.3} s {:9.1} MB",
        start.elapsed().as_secs_f64(),
        std::fs::metadata(&file)?.len() as f64 / 1e6
    );
    Ok(())
}
