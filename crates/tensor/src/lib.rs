//! Numbers: dtypes, borrowed strided views, one-pass statistics, checksums, error metrics of a pair, and the
//! files tensors are kept in. Knows nothing of dumps or Python.

mod checksum;
mod decode;
pub mod digits;
mod dtype;
pub mod files;
mod float8;
pub mod memory;
mod operator;
mod pair;
mod parallel;
mod real;
mod simd;
mod stats;
mod view;

pub use checksum::{crc32, crc32_of_bytes, hash128, md5};
pub use dtype::{DType, DTypeClass};
pub use operator::{
    Magnitude, OperatorErrors, OperatorLimits, PlainErrors, Share, UlpErrors, UlpLimits, operator_errors,
    plain_errors,
};
pub use pair::{
    NonFinite, PairError, PairMetrics, ScaledErrors, compare_pair, compare_pair_widened, compare_real_parts,
};
pub use parallel::{Crew, on_this_thread, with_crew};
pub use stats::{
    Arithmetic, Bounds, Eighths, Extremes, FloatRange, FourStatistics, GradientFigures, GradientWork, Number,
    Sketch, SketchCuts, SketchDifference, SketchPart, SketchSums, SketchText, SketchTextError, Statistics,
    extremes, measure_gradient, sketch, sketch_cuts, sketch_tables, sketch_width, statistics,
    statistics_and_crc32, statistics_and_sketch,
};
pub use view::{BLOCK_ELEMENTS, Endian, TensorView, ViewError, checked_numel, contiguous_strides};
