//! Gradients of a run on their way to disk: `rank{r}/grad_summary_{n}.csv` with a row per parameter, and
//! `rank{r}/step{n}/{parameter}.npy` with the direction of each element, or `rank{r}/step{n}/sketches.json` with a sketch of
//! each gradient.
//!
//! Whoever hands over a gradient waits until it is measured, because the next moment may change it. Directions are put
//! straight into memory of the pool; one thread writes the files, in the order of the calls. Knows no framework: a
//! gradient is a name and a tensor.

mod sketches;
mod summary;
mod writer;

pub use self::sketches::{GradientSketch, SKETCHES_FILE, SketchesError, read_sketches};
pub use self::writer::{GradientStep, GradientWriter, Kept};
