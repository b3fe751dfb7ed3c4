//! A picture per parameter and one for all together: similarity over steps.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use msprobe_report::console::{Console, Level};
use msprobe_report::error::CompareError;
use msprobe_report::paths::{make_directory_in, publish};
use msprobe_report::{LinePlot, line_plot_png};
use rayon::prelude::*;

use super::agreement::{Agreement, similarity_at};
use super::measure::Similarities;
use super::names::distinct_files;
use super::table::SUMMARY;
use super::verdict::{Curve, RankVerdict};
use super::{Options, Pictures};

const DIRECTORY: &str = "similarities_picture";
const ENDING: &str = "_similarities.png";

/// Draws what was asked for, on all threads. The first picture that cannot be written ends it.
pub(super) fn draw(
    similarities: &Similarities,
    verdict: &RankVerdict,
    options: &Options,
    output: &Path,
    console: &dyn Console,
) -> Result<(), CompareError> {
    let chosen: Vec<usize> = match options.pictures {
        Pictures::None => return Ok(()),
        Pictures::All => (0..similarities.parameters.len()).collect(),
        Pictures::Worst(count) => verdict.worst_first().into_iter().take(count).collect(),
    };
    let directory = make_directory_in(output, DIRECTORY)?;
    let kept = KeptPictures::default();
    let summary_file = format!("{SUMMARY}{ENDING}");
    // Names do not depend on which pictures are drawn.
    let files = distinct_files(
        similarities.parameters.iter().map(String::as_str),
        ENDING,
        std::slice::from_ref(&summary_file),
    );
    let draw = |name: &str, agreements: &[Option<Agreement>], curve: &Curve, file: &str| {
        let points = points(&similarities.steps, agreements);
        if points.is_empty() {
            return Ok(());
        }
        let title = format!("{name}_similarities");
        let plot = LinePlot {
            title: &title,
            x_label: "steps",
            y_label: "similarities",
            points: &points,
            note: &curve.note(&similarities.steps),
            marks: &marks(&similarities.steps, agreements, curve),
            limits: &limits(&similarities.steps, curve),
        };
        publish(&directory.join(file), &kept, |file| {
            let mut out = BufWriter::new(file);
            line_plot_png(&plot, &mut out)?;
            out.flush()
        })
    };
    chosen.par_iter().try_for_each(|&index| {
        let (agreements, curve) = (&similarities.agreements[index], &verdict.curves[index]);
        draw(&similarities.parameters[index], agreements, curve, &files[index])
    })?;
    draw(SUMMARY, &similarities.summary, &verdict.summary, &summary_file)?;
    let count = kept.0.into_inner();
    if count > 0 {
        let directory = directory.display();
        console.warning(&format!(
            "{count} pictures were in {directory} already, they are kept under the time they were drawn"
        ));
    }
    Ok(())
}

/// Counts what is said: there can be hundreds of pictures, and all of them have the same to say.
#[derive(Default)]
struct KeptPictures(AtomicUsize);

impl Console for KeptPictures {
    fn log(&self, _: Level, _: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The points that are flagged.
fn marks(steps: &[u64], agreements: &[Option<Agreement>], curve: &Curve) -> Vec<(f64, f64)> {
    let point = |&(position, _): &(usize, _)| {
        Some((*steps.get(position)? as f64, similarity_at(agreements, position)?))
    };
    curve.flags.iter().filter_map(point).collect()
}

/// The levels that hold for this curve: where it has to begin, and what it must not come below.
fn limits(steps: &[u64], curve: &Curve) -> Vec<(f64, f64, f64)> {
    let (Some((start, _)), Some(limit)) = (curve.beginning, curve.limit()) else {
        return Vec::new();
    };
    let (Some(&first), Some(&last)) = (steps.get(start), steps.last()) else { return Vec::new() };
    let (first, last) = (first as f64, last as f64);
    vec![(first, first, curve.thresholds.first), (first, last, limit)]
}

/// What is known; no elements are drawn as they are written, as 0.
fn points(steps: &[u64], agreements: &[Option<Agreement>]) -> Vec<(f64, f64)> {
    let known = steps.iter().zip(agreements).filter_map(|(&step, known)| Some((step, (*known)?)));
    known.map(|(step, agreement)| (step as f64, agreement.similarity().unwrap_or(0.0))).collect()
}
