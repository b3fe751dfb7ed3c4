//! What a record costs: `record_throughput DIR [RECORDS]`. Prints the time of building a record's text and of
//! handing it over, and how fast the files grow.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use msprobe_dump::write::{Files, Header, JsonText, StepWriter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: record_throughput DIR [RECORDS]")?);
    let records: usize = args.next().map_or(Ok(100_000), |arg| arg.parse())?;
    std::fs::create_dir_all(&dir)?;
    let header = Header {
        task: "statistics".into(),
        level: "mix".into(),
        framework: "pytorch".into(),
        dump_data_dir: None,
    };
    let writer = StepWriter::create(&dir, &header, Files::Dump)?;

    let (mut building, mut handing, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    let start = Instant::now();
    for call in 0..records {
        let name = format!("Functional.linear.{call}.forward");
        let begun = Instant::now();
        let text = body(call);
        building += begun.elapsed();
        bytes += text.len();
        let begun = Instant::now();
        let id = writer.open_record(&name);
        writer.stack_name(call % 50, &name, || vec!["File model.py, line 1, in forward".to_owned(); 12]);
        writer.construct(&name, Some("Module.layer.Linear.forward.0"));
        writer.close(id, text);
        handing += begun.elapsed();
    }
    writer.finish()?;
    let secs = start.elapsed().as_secs_f64();
    let each = |time: Duration| time.as_secs_f64() / records as f64 * 1e6;
    println!(
        "{} bytes of text per record: {:.2} us to build, {:.2} us to hand over; {:.0} MB/s to disk, {:.1} bytes written per byte",
        bytes / records,
        each(building),
        each(handing),
        bytes as f64 / secs / 1e6,
        writer.bytes_written() as f64 / bytes as f64,
    );
    Ok(())
}

/// A call with three tensors going in and one coming out.
fn body(call: usize) -> String {
    let mut text = JsonText::with_capacity(2, 2048);
    text.begin_object();
    text.key("input_args");
    text.begin_array();
    (0..3).for_each(|tensor| put_tensor(&mut text, call + tensor));
    text.end_array();
    text.key("input_kwargs");
    text.begin_object();
    text.end_object();
    text.key("is_recompute");
    text.bool(false);
    text.key("output");
    text.begin_array();
    put_tensor(&mut text, call + 7);
    text.end_array();
    text.end_object();
    text.finish()
}

fn put_tensor(text: &mut JsonText, seed: usize) {
    text.begin_object();
    text.key("type");
    text.string("torch.Tensor");
    text.key("dtype");
    text.string("torch.float32");
    text.key("shape");
    text.begin_array();
    text.int(32);
    text.int(1024);
    text.end_array();
    for (position, key) in ["Max", "Min", "Mean", "Norm"].into_iter().enumerate() {
        text.key(key);
        text.float(f64::from(((seed + position) as f32).sin()));
    }
    text.key("requires_grad");
    text.bool(true);
    text.end_object();
}
