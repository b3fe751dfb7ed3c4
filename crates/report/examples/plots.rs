//! Draws pictures into a folder and says how long it took:
//! `cargo run --release -p msprobe-report --example plots -- FOLDER [COUNT]`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, sink};
use std::path::Path;
use std::time::Instant;

use msprobe_report::{LinePlot, line_plot_png};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("a folder is missing")?;
    let count = arguments.next().map_or(Ok(2000), |text| text.parse::<usize>())?;
    let alphabet: String = (' '..='~').collect();
    let few = [(0.0, 1.0), (1.0, 1.0), (2.0, 0.833_333_333_333_333_4), (3.0, 1.0)];
    let series = |length: usize, start: f64, low: f64| -> Vec<(f64, f64)> {
        let at = |step: usize| (start + step as f64, 1.0 - (1.0 - low) * (step as f64 * 0.7).sin().powi(6));
        (0..length).map(at).collect()
    };
    let mut gaps = series(60, 100.0, 0.4);
    gaps[20].1 = f64::NAN;
    gaps[40].1 = f64::NAN;
    gaps[42].1 = f64::NAN;
    let long_name = "module.language_model.encoder.layers.17.self_attention.query_key_value.lora_A.默认.weight_similarities";
    let pictures = [
        ("few", "fc2.weight_similarities", few.to_vec()),
        ("letters", &alphabet[..48], series(300, 0.0, 0.2)),
        ("more_letters", &alphabet[48..], series(5000, 1_000_000.0, 0.2)),
        ("gaps", "gaps_similarities", gaps),
        ("single", "a single point", vec![(17.0, 0.5)]),
        ("flat", "all the same", series(10, 0.0, 1.0)),
        ("near", long_name, series(12, 123_456_789.0, 0.999_999_99)),
        ("tiny", "small and negative", vec![(0.5, -3.1e-7), (1.0, 2e-7), (1.5, 4.4e-7)]),
    ];
    for (name, title, points) in &pictures {
        let plot = LinePlot {
            title,
            x_label: "steps",
            y_label: "similarities",
            points,
            note: "",
            marks: &[],
            limits: &[],
        };
        line_plot_png(&plot, BufWriter::new(File::create(Path::new(&folder).join(format!("{name}.png")))?))?;
    }
    let points = series(100, 0.0, 0.6);
    let start = Instant::now();
    for number in 0..count {
        let title = format!("layers.{number}.mlp.down_proj.weight_similarities");
        line_plot_png(
            &LinePlot {
                title: &title,
                x_label: "steps",
                y_label: "similarities",
                points: &points,
                note: "",
                marks: &[],
                limits: &[],
            },
            sink(),
        )?;
    }
    println!("{count} pictures {:6.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
