//! How fast tensor files get to a directory: `tensor_throughput DIR [THREADS [FILES [BYTES_PER_FILE]]]`. Prints
//! MB/s up to the last file, and the share of the time that the caller spent.

use std::path::PathBuf;
use std::time::Instant;

use msprobe_dump::names::TensorFormat;
use msprobe_dump::write::TensorPool;
use msprobe_tensor::{DType, TensorView};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: tensor_throughput DIR [THREADS [FILES [BYTES]]]")?);
    let mut number = |default: usize| args.next().map_or(Ok(default), |arg| arg.parse());
    let (threads, files, bytes) = (number(2)?, number(500)?, number(1_100_000)?);
    std::fs::create_dir_all(&dir)?;

    let data: Vec<u8> = (0..bytes).map(|index| (index * 31) as u8).collect();
    let view = TensorView::contiguous(DType::F32, vec![bytes / 4], &data)?;
    let pool = TensorPool::new(threads, 64 << 20)?;
    let start = Instant::now();
    for file in 0..files {
        pool.save(dir.join(format!("Tensor.add.{file}.forward.input.0.pt")), &view, TensorFormat::Pt);
    }
    let saved_secs = start.elapsed().as_secs_f64();
    pool.drain()?;
    let secs = start.elapsed().as_secs_f64();
    println!("{:.0} MB/s, caller {:.0} %", (files * bytes) as f64 / secs / 1e6, saved_secs / secs * 100.0);
    Ok(())
}
