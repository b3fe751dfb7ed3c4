//! A picture per parameter and one for all together: similarity over steps.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use msprobe_report::{LinePlot, line_plot_png};
use rayon::prelude::*;

use super::Pictures;
use super::measure::{Count, Similarities};
use super::names::distinct_files;
use super::table::SUMMARY;
use super::verdict::RankVerdict;
use crate::console::Silent;
use crate::error::CompareError;
use crate::output::{make_directory, publish};

const DIRECTORY: &str = "similarities_picture";
const ENDING: &str = "_similarities.png";

/// Draws what was asked for, on all threads. The first picture that cannot be written ends it.
pub(super) fn draw(
    similarities: &Similarities,
    verdict: &RankVerdict,
    pictures: Pictures,
    output: &Path,
) -> Result<(), CompareError> {
    let chosen: Vec<usize> = match pictures {
        Pictures::None => return Ok(()),
        Pictures::All => (0..similarities.parameters.len()).collect(),
        Pictures::Worst(count) => verdict.worst_first().into_iter().take(count).collect(),
    };
    let directory = output.join(DIRECTORY);
    make_directory(&directory)?;
    let summary_file = format!("{SUMMARY}{ENDING}");
    // Names do not depend on which pictures are drawn.
    let files = distinct_files(
        similarities.parameters.iter().map(String::as_str),
        ENDING,
        std::slice::from_ref(&summary_file),
    );
    let draw = |name: &str, counts: &[Option<Count>], file: &str| {
        let points = points(&similarities.steps, counts);
        if points.is_empty() {
            return Ok(());
        }
        let title = format!("{name}_similarities");
        let plot = LinePlot { title: &title, x_label: "steps", y_label: "similarities", points: &points };
        // That a picture of an earlier comparison gives way needs no words.
        publish(&directory.join(file), &Silent, |path| {
            let mut out = BufWriter::new(File::create(path)?);
            line_plot_png(&plot, &mut out)?;
            out.flush()
        })
    };
    chosen.par_iter().try_for_each(|&index| {
        draw(&similarities.parameters[index], &similarities.counts[index], &files[index])
    })?;
    draw(SUMMARY, &similarities.summary, &summary_file)
}

/// What is known; no elements are drawn as they are written, as 0.
fn points(steps: &[u64], counts: &[Option<Count>]) -> Vec<(f64, f64)> {
    let known = steps.iter().zip(counts).filter_map(|(&step, count)| Some((step, (*count)?)));
    known.map(|(step, count)| (step as f64, count.similarity().unwrap_or(0.0))).collect()
}
