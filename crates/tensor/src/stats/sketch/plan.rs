//! Which sign, bucket and eighth each element has, and what is summed.

use super::{COMPONENTS, EIGHTHS};
use crate::checked_numel;
use crate::simd::{LANES, Vector};

/// Buckets that elements fall into.
pub(super) const BUCKETS: usize = 64;
/// After so many elements, signs within a strip repeat.
pub(crate) const SIGN_PERIOD: usize = 2048;
/// A tensor has more strips than this: enough for sums of a single column to be told by as many buckets as there are
/// components, and few enough to be cheap.
const MIN_STRIPS: usize = 16;
/// Elements of a strip at least and at most, as powers of two.
const STRIP_BITS: (u32, u32) = (LANES.ilog2(), 10);
/// So many elements at most are added before their sum is widened to f64.
const RUN_ELEMENTS: usize = 256;
/// So many columns at least: runs within an eighth of them are long enough to be cheap.
const MIN_COLUMNS: usize = 512;
/// Columns are a multiple of this, so that a row of lanes lies in one eighth.
const COLUMNS_UNIT: usize = 64;

/// Four bent functions of four bits whose sums are bent: the bases they twist are mutually unbiased. See [`SketchSums::components`].
const TWISTS: [u16; 4] = [0x0000, 0x6ac0, 0xc6a0, 0xac60];

/// A well mixed number from a small one; also used for keys, as it is part of the format.
pub(super) const fn splitmix64(index: u64) -> u64 {
    let mut mixed = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Whether the place `at` of [`SIGN_PERIOD`] has a negative sign.
pub(crate) const fn is_negative(at: usize) -> bool {
    splitmix64((at / 64) as u64) >> (at % 64) & 1 == 1
}

/// The random number of a strip.
#[inline(always)]
pub(super) fn mix(strip: usize) -> u32 {
    let mut mixed = (strip as u32).wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA77);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xC2B2_AE3D);
    mixed ^ (mixed >> 16)
}

/// Signs of four lanes, by four bits.
static LANE_SIGNS: [[f64; 4]; 16] = {
    let mut signs = [[1.0; 4]; 16];
    let mut bits = 0;
    while bits < 16 {
        let mut lane = 0;
        while lane < 4 {
            if bits >> lane & 1 == 1 {
                signs[bits][lane] = -1.0;
            }
            lane += 1;
        }
        bits += 1;
    }
    signs
};

/// How the elements of a shape are cut.
#[derive(Debug)]
pub(super) struct Plan {
    numel: usize,
    /// A strip has 2^this elements.
    strip_bits: u32,
    /// Whether eighths of the rows are told apart.
    has_rows: bool,
    /// Columns, if eighths of them are told apart.
    columns: Option<usize>,
}

impl Plan {
    /// `None` for tensors of one element or none.
    pub(super) fn new(shape: &[usize]) -> Option<Plan> {
        let numel = checked_numel(shape).filter(|&numel| numel > 1)?;
        let strip_bits = ((numel - 1) / MIN_STRIPS).max(1).ilog2().clamp(STRIP_BITS.0, STRIP_BITS.1);
        let has_rows = numel >= EIGHTHS * LANES;
        let mut columns = 1;
        for &size in shape.iter().rev() {
            if columns >= MIN_COLUMNS {
                break;
            }
            columns *= size;
        }
        let has_columns = columns >= MIN_COLUMNS && columns.is_multiple_of(COLUMNS_UNIT) && columns < numel;
        Some(Plan { numel, strip_bits, has_rows, columns: has_columns.then_some(columns) })
    }

    /// Where an eighth of the rows begins.
    fn row_start(&self, eighth: usize) -> usize {
        let exact = (self.numel / EIGHTHS) * eighth + (self.numel % EIGHTHS) * eighth / EIGHTHS;
        exact / LANES * LANES
    }

    /// A way through the elements from `start` on.
    pub(super) fn from(&self, start: usize) -> Cursor<'_> {
        let row = (0..EIGHTHS).rev().find(|&row| self.row_start(row) <= start).unwrap_or(0);
        let mut cursor = Cursor { plan: self, at: start, row, row_end: 0, column: 0, column_end: usize::MAX };
        cursor.row_end = cursor.end_of_row();
        if let Some(columns) = self.columns {
            let eighth = columns / EIGHTHS;
            cursor.column = start / eighth % EIGHTHS;
            cursor.column_end = (start / eighth + 1) * eighth;
        }
        cursor
    }
}

/// A way through the elements: strips within eighths of the rows, and in them runs within eighths of the columns.
pub(super) struct Cursor<'a> {
    plan: &'a Plan,
    at: usize,
    row: usize,
    row_end: usize,
    column: usize,
    column_end: usize,
}

impl Cursor<'_> {
    fn end_of_row(&self) -> usize {
        if self.row + 1 < EIGHTHS { self.plan.row_start(self.row + 1) } else { usize::MAX }
    }

    /// The index of the next element.
    #[inline(always)]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The place of the next element in the table of signs.
    #[inline(always)]
    pub(super) fn sign_at(&self) -> usize {
        self.at % SIGN_PERIOD
    }

    /// The strip of the next element.
    #[inline(always)]
    pub(super) fn strip(&self) -> Strip {
        let random = mix(self.at >> self.plan.strip_bits) as usize;
        let mut signs = [0.0; LANES];
        signs[..4].copy_from_slice(&LANE_SIGNS[random >> 8 & 15]);
        signs[4..].copy_from_slice(&LANE_SIGNS[random >> 12 & 15]);
        let end = (self.at | ((1 << self.plan.strip_bits) - 1)) + 1;
        Strip { bucket: random % BUCKETS, signs, elements: end.min(self.row_end) - self.at }
    }

    /// Elements until a sum has to be widened or the eighth of the columns changes: a multiple of eight.
    #[inline(always)]
    pub(super) fn run(&self) -> usize {
        ((self.at | (RUN_ELEMENTS - 1)) + 1).min(self.column_end) - self.at
    }

    /// Goes on after a run whose sum, with all signs, is `lanes`.
    #[inline(always)]
    pub(super) fn end_run<V: Vector<Scalar = f64>>(
        &mut self,
        sums: &mut BlockSums,
        lanes: V,
        elements: usize,
    ) {
        self.at += elements;
        if let Some(columns) = self.plan.columns {
            add_lanes(&mut sums.columns[self.column % EIGHTHS], lanes);
            if self.at >= self.column_end {
                self.column += 1;
                self.column_end += columns / EIGHTHS;
            }
        }
    }

    /// Ends a strip, or what of it is in an eighth of the rows; `lanes` is its sum with all signs.
    #[inline(always)]
    pub(super) fn end_strip<V: Vector<Scalar = f64>>(
        &mut self,
        sums: &mut BlockSums,
        lanes: V,
        bucket: usize,
    ) {
        if let Some(buckets) = sums.ring[bucket % BUCKETS..].first_chunk_mut() {
            add_lanes(buckets, lanes);
        }
        add_lanes(&mut sums.rows[self.row % EIGHTHS], lanes);
        while self.at >= self.row_end {
            // Of the few elements of a small tensor, an eighth may be none.
            self.row += 1;
            self.row_end = self.end_of_row();
        }
    }
}

/// A strip of elements, or what of it is in one eighth of the rows.
pub(super) struct Strip {
    /// That of the first lane.
    pub(super) bucket: usize,
    /// Signs of its lanes.
    pub(super) signs: [f64; LANES],
    pub(super) elements: usize,
}

#[inline(always)]
fn add_lanes<V: Vector<Scalar = f64>>(sums: &mut [f64; LANES], lanes: V) {
    V::load(sums).add(lanes).store(sums);
}

/// What is summed of some elements.
#[derive(Clone, Copy)]
pub(super) struct BlockSums {
    /// Buckets; the last lanes wrap around to the first.
    ring: [f64; BUCKETS + LANES],
    rows: [[f64; LANES]; EIGHTHS],
    columns: [[f64; LANES]; EIGHTHS],
    /// Sum of the squares of what counts.
    pub(super) squares: f64,
}

impl BlockSums {
    pub(super) const EMPTY: BlockSums = BlockSums {
        ring: [0.0; BUCKETS + LANES],
        rows: [[0.0; LANES]; EIGHTHS],
        columns: [[0.0; LANES]; EIGHTHS],
        squares: 0.0,
    };

    pub(super) fn finish(&self, plan: &Plan) -> SketchSums {
        let mut buckets = [0.0; BUCKETS];
        buckets.copy_from_slice(&self.ring[..BUCKETS]);
        for (bucket, sum) in buckets.iter_mut().zip(&self.ring[BUCKETS..]) {
            *bucket += sum;
        }
        let total = |lanes: [f64; LANES]| lanes.iter().sum();
        SketchSums {
            squares: self.squares,
            buckets,
            rows: plan.has_rows.then(|| self.rows.map(total)),
            columns: plan.columns.map(|columns| (width(columns), self.columns.map(total))),
        }
    }
}

/// How the elements of a tensor are cut, for whoever sums them elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SketchCuts {
    /// Elements of a strip.
    pub strip: usize,
    /// Where eighths of the rows begin; empty if they are not told apart.
    pub row_starts: Vec<usize>,
    /// Columns; 0 if their eighths are not told apart.
    pub columns: usize,
}

/// How a tensor of this shape is cut; `None` if it has too few elements.
pub fn sketch_cuts(shape: &[usize]) -> Option<SketchCuts> {
    let plan = Plan::new(shape)?;
    let rows = if plan.has_rows { EIGHTHS } else { 0 };
    Some(SketchCuts {
        strip: 1 << plan.strip_bits,
        row_starts: (0..rows).map(|eighth| plan.row_start(eighth)).collect(),
        columns: plan.columns.unwrap_or(0),
    })
}

/// The tables of the definition: whether the sign of a place is negative, and the keys of the hash.
pub fn sketch_tables() -> (Vec<bool>, Vec<u64>) {
    ((0..SIGN_PERIOD).map(is_negative).collect(), super::hash::KEYS.to_vec())
}

/// What a sketch depends on beside the elements in row-major order: the number of columns of a shape in units of 64; 0 if
/// eighths of them are not told apart.
pub fn sketch_width(shape: &[usize]) -> u16 {
    Plan::new(shape).and_then(|plan| plan.columns).map_or(0, width)
}

/// The number of columns as it is kept.
fn width(columns: usize) -> u16 {
    u16::try_from(columns / COLUMNS_UNIT).unwrap_or(u16::MAX)
}

/// What is summed of all elements of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct SketchSums {
    /// Sum of the squares of the elements that count.
    pub squares: f64,
    /// Signed sums of the buckets.
    pub buckets: [f64; BUCKETS],
    /// Signed sums of eighths of the elements.
    pub rows: Option<[f64; EIGHTHS]>,
    /// The number of columns in units of 64, and signed sums of eighths of them.
    pub columns: Option<(u16, [f64; EIGHTHS])>,
}

impl SketchSums {
    /// The sums of a tensor of this shape before anything is added; `None` if it has too few elements.
    pub fn of_shape(shape: &[usize]) -> Option<SketchSums> {
        Plan::new(shape).map(|plan| BlockSums::EMPTY.finish(&plan))
    }

    /// Adds what was summed of other elements of the same tensor.
    pub(super) fn add(&mut self, other: &SketchSums) {
        let add = |into: &mut [f64], from: &[f64]| {
            for (sum, other) in into.iter_mut().zip(from) {
                *sum += other;
            }
        };
        self.squares += other.squares;
        add(&mut self.buckets, &other.buckets);
        if let (Some(rows), Some(others)) = (&mut self.rows, &other.rows) {
            add(rows, others);
        }
        if let (Some((_, columns)), Some((_, others))) = (&mut self.columns, &other.columns) {
            add(columns, others);
        }
    }

    /// Sixteen combinations of the buckets, each with all of them: four times sixteen buckets, each sixteen in an
    /// orthogonal basis, no two of which have a direction in common. So components of noise are independent, and two
    /// wrong elements hardly disturb each other.
    pub(super) fn components(&self) -> [f64; COMPONENTS] {
        let mut components = [0.0; COMPONENTS];
        for (base, twist) in self.buckets.as_chunks::<COMPONENTS>().0.iter().zip(TWISTS) {
            for (at, (component, turned)) in components.iter_mut().zip(walsh_hadamard(*base)).enumerate() {
                *component += if twist >> at & 1 == 1 { -turned } else { turned };
            }
        }
        components
    }
}

/// Sums of all numbers, with signs: number `i` has a negative one in sum `c` if `i & c` has an odd number of ones.
fn walsh_hadamard(mut numbers: [f64; COMPONENTS]) -> [f64; COMPONENTS] {
    let mut stride = 1;
    while stride < COMPONENTS {
        for pair in numbers.chunks_exact_mut(2 * stride) {
            let (low, high) = pair.split_at_mut(stride);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        stride *= 2;
    }
    numbers
}
