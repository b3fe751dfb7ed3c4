use half::{bf16, f16};
use proptest::prelude::*;

use super::plan::{is_negative, mix};
use super::*;
use crate::statistics;
use crate::view::Endian;

/// xorshift: fast enough for millions of elements in a debug build.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end
    }
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Nearly normal.
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let parts = [bits & 0xffff, bits >> 16 & 0xffff, bits >> 32 & 0xffff, bits >> 48];
        (parts.iter().sum::<u64>() as f32 / 65536.0 - 2.0) * 1.732
    }
    fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.normal()).collect()
    }
}

fn view_of<'a>(dtype: DType, shape: &[usize], bytes: &'a [u8]) -> TensorView<'a> {
    TensorView::contiguous(dtype, shape.to_vec(), bytes).unwrap()
}

fn of_f32(shape: &[usize], values: &[f32]) -> Sketch {
    sketch(&view_of(DType::F32, shape, bytemuck::cast_slice(values)))
}

/// The definition, element by element.
fn naive_sums(shape: &[usize], values: &[f64]) -> Option<SketchSums> {
    let mut sums = SketchSums::of_shape(shape)?;
    let count = values.len();
    let strip = [1024, 512, 256, 128, 64, 32, 16].into_iter().find(|strip| count > 16 * strip).unwrap_or(8);
    let starts: Vec<usize> = (0..8).map(|eighth| eighth * count / 8 / 8 * 8).collect();
    let mut columns = 1;
    shape.iter().rev().for_each(|&size| columns *= if columns < 512 { size } else { 1 });
    for (at, &value) in values.iter().enumerate() {
        let value = if value.abs() < 1e30 { value } else { 0.0 };
        let (random, lane) = (mix(at / strip), at % 8);
        let is_negative = is_negative(at % 2048) != (random >> (8 + lane) & 1 == 1);
        let signed = if is_negative { -value } else { value };
        sums.squares += value * value;
        sums.buckets[(random as usize + lane) % 64] += signed;
        if let Some(rows) = &mut sums.rows {
            rows[starts.iter().filter(|&&start| start <= at).count() - 1] += signed;
        }
        if let Some((_, sums)) = &mut sums.columns {
            sums[at % columns * 8 / columns] += signed;
        }
    }
    Some(sums)
}

/// Whether two sketches are the same but for rounding.
fn assert_close(found: &Sketch, expected: &Sketch, tolerance: f64, what: &str) {
    assert_eq!(found.hash, expected.hash, "{what}");
    let (Content::Sums(a), Content::Sums(b)) = (&found.content, &expected.content) else {
        assert_eq!(found, expected, "{what}");
        return;
    };
    let scale = f64::from(b.norm) * power_of_two(i32::from(b.exponent) - EIGHTH_BITS);
    let close = |a_steps: &[i32], b_steps: &[i32], bits: i32| {
        for (&x, &y) in a_steps.iter().zip(b_steps) {
            let x = f64::from(x) * power_of_two(i32::from(a.exponent) - bits);
            let y = f64::from(y) * power_of_two(i32::from(b.exponent) - bits);
            let step = power_of_two(i32::from(b.exponent) - bits);
            assert!((x - y).abs() <= tolerance * scale + 1.01 * step, "{what}: {x} {y} of {scale}");
        }
    };
    close(&a.components, &b.components, COMPONENT_BITS);
    assert_eq!((a.rows.is_some(), a.columns.is_some()), (b.rows.is_some(), b.columns.is_some()), "{what}");
    if let (Some(a), Some(b)) = (&a.rows, &b.rows) {
        close(a, b, EIGHTH_BITS);
    }
    if let (Some(a), Some(b)) = (&a.columns, &b.columns) {
        assert_eq!(a.width, b.width);
        close(&a.sums, &b.sums, EIGHTH_BITS);
    }
}

const SHAPES: [&[usize]; 16] = [
    &[2],
    &[7],
    &[20],
    &[63],
    &[64],
    &[5, 13],
    &[513],
    &[8, 512],
    &[3, 1000],
    &[2, 3, 12, 64],
    &[4, 1, 2048],
    &[9001],
    &[16, 1024],
    &[3, 7, 11, 96],
    &[40, 4096],
    &[2, 70_001],
];

/// Dtype and bytes; the elements and their shape as real numbers; how far off sums may be.
type Case<'a> = (DType, &'a [u8], Vec<f64>, &'a [usize], f64);

#[test]
fn sums_are_those_of_the_definition() {
    let mut random = Random(7);
    for shape in SHAPES {
        let count = shape.iter().product();
        let single = random.normals(count);
        let double: Vec<f64> = single.iter().map(|&value| f64::from(value) * 1e-9).collect();
        let narrow: Vec<bf16> = single.iter().map(|&value| bf16::from_f32(value * 100.0)).collect();
        let half: Vec<f16> = single.iter().map(|&value| f16::from_f32(value)).collect();
        let integers: Vec<i64> = (0..count).map(|_| random.next().cast_signed() >> 20).collect();
        let bytes: Vec<u8> = integers.iter().map(|&value| value as u8 & 1).collect();
        let complex: Vec<f32> = random.normals(2 * count);
        let mut complex_shape = shape.to_vec();
        complex_shape.push(2);
        let cases: [Case<'_>; 7] = [
            (
                DType::F32,
                bytemuck::cast_slice(&single),
                single.iter().map(|&x| x.into()).collect(),
                shape,
                1e-6,
            ),
            (DType::F64, bytemuck::cast_slice(&double), double.clone(), shape, 1e-12),
            (
                DType::BF16,
                bytemuck::cast_slice(&narrow),
                narrow.iter().map(|&x| x.into()).collect(),
                shape,
                1e-6,
            ),
            (DType::F16, bytemuck::cast_slice(&half), half.iter().map(|&x| x.into()).collect(), shape, 1e-6),
            (
                DType::I64,
                bytemuck::cast_slice(&integers),
                integers.iter().map(|&x| x as f64).collect(),
                shape,
                1e-12,
            ),
            (DType::Bool, &bytes, bytes.iter().map(|&x| x.into()).collect(), shape, 1e-12),
            (
                DType::C64,
                bytemuck::cast_slice(&complex),
                complex.iter().map(|&x| x.into()).collect(),
                &complex_shape,
                1e-6,
            ),
        ];
        for (dtype, bytes, values, real_shape, tolerance) in cases {
            let found = sketch(&view_of(dtype, shape, bytes));
            let expected = Sketch::new(&naive_sums(real_shape, &values).unwrap(), found.hash);
            assert_close(&found, &expected, tolerance, &format!("{dtype} {shape:?}"));
        }
    }
}

#[test]
fn statistics_are_the_same_bits_with_and_without() {
    let mut random = Random(3);
    let mut bytes: Vec<u8> = (0..900_000).map(|_| (random.next() >> 40) as u8).collect();
    for round in 0..2 {
        for dtype in DType::all() {
            for count in [0, 1, 2, 5, 4099, 300_000, 900_000] {
                let count = count / dtype.size_bytes();
                let view = view_of(dtype, &[count], &bytes);
                for level in Level::available() {
                    let (stats, sketch) = statistics_and_sketch_at(level, &view);
                    assert_eq!(
                        format!("{stats:?}"),
                        format!("{:?}", statistics(&view)),
                        "{dtype} {count} {round}"
                    );
                    assert_eq!(sketch, sketch_at(level, &view), "{dtype} {count} {round}");
                }
            }
        }
        // Without the exponents of NaN and of large numbers, in any of the float types.
        for byte in &mut bytes {
            *byte &= 0xb7;
        }
    }
    let value = [-2.5f32];
    let scalar = view_of(DType::F32, &[], bytemuck::cast_slice(&value));
    assert_eq!(statistics_and_sketch(&scalar).0, statistics(&scalar));
}

#[test]
fn layouts_levels_and_threads_change_nothing() {
    let (rows, columns) = (520, 1024);
    let mut values = Random(5).normals(rows * columns);
    for masked in [false, true] {
        if masked {
            values[77_777] = f32::NAN;
            values[88_888] = -3e38;
        }
        let swapped: Vec<u32> = values.iter().map(|value| value.to_bits().swap_bytes()).collect();
        let mut moved = vec![0f32; values.len()];
        let mut gaps = vec![9f32; 2 * values.len()];
        for (at, &value) in values.iter().enumerate() {
            moved[at % columns * rows + at / columns] = value;
            gaps[2 * at + 1] = value;
        }
        let reversed: Vec<f32> = values.iter().rev().copied().collect();
        let shape = vec![rows, columns];
        let strided = |values: &'_ [u8], strides: [isize; 2], offset, endian| {
            // Leaked, for a view that outlives this closure; a test ends soon.
            let bytes: &'static [u8] = Box::leak(values.to_vec().into_boxed_slice());
            TensorView::new(DType::F32, shape.clone(), strides.to_vec(), bytes, offset, endian).unwrap()
        };
        let wide = columns as isize;
        let views = [
            strided(bytemuck::cast_slice(&values), [wide, 1], 0, Endian::Little),
            strided(bytemuck::cast_slice(&moved), [1, rows as isize], 0, Endian::Little),
            strided(bytemuck::cast_slice(&gaps), [2 * wide, 2], 1, Endian::Little),
            strided(bytemuck::cast_slice(&reversed), [-wide, -1], values.len() - 1, Endian::Little),
            strided(bytemuck::cast_slice(&swapped), [wide, 1], 0, Endian::Big),
        ];
        let expected = sketch_at(Level::Baseline, &views[0]);
        for level in Level::available() {
            for threads in [1, 2, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                for view in &views {
                    let (stats, found) = pool.install(|| statistics_and_sketch_at(level, view));
                    assert_eq!(found, expected, "{level:?} {threads} {:?}", view.strides());
                    assert_eq!(format!("{stats:?}"), format!("{:?}", statistics(view)));
                }
            }
        }
    }
}

#[test]
fn shape_matters_for_columns_only() {
    let values = Random(11).normals(32 * 768);
    let flat = of_f32(&[32, 768], &values);
    assert_eq!(flat, of_f32(&[2, 16, 768], &values));
    assert_eq!(flat, of_f32(&[2, 16, 12, 64], &values));
    let other = of_f32(&[24, 1024], &values);
    assert_ne!(flat, other);
    let line = of_f32(&[32 * 768], &values);
    let (Content::Sums(a), Content::Sums(b), Content::Sums(c)) = (flat.content, other.content, line.content)
    else {
        panic!("no sums");
    };
    assert!(a.columns.is_some() && b.columns.is_some() && c.columns.is_none());
    let as_other = Sums { columns: b.columns, ..a };
    assert_close(&Sketch { content: Content::Sums(as_other), ..flat }, &other, 1e-6, "other columns");
    assert_eq!(flat.compare(&other).relative_error, Some(0.0));
}

#[test]
fn what_is_not_finite_or_a_mask_counts_as_zero() {
    let mut values = Random(13).normals(10_000);
    let mut zeroed = values.clone();
    for (at, odd) in [(3, f32::NAN), (4096, f32::INFINITY), (5000, -1e30), (9999, f32::MIN)] {
        (values[at], zeroed[at]) = (odd, 0.0);
    }
    let (odd, plain) = (of_f32(&[100, 100], &values), of_f32(&[100, 100], &zeroed));
    assert_eq!(odd.content, plain.content);
    assert_ne!(odd.hash, plain.hash);
    let difference = odd.compare(&plain);
    assert!(!difference.same_bits);
    assert_eq!(difference.relative_error, Some(0.0));
}

#[test]
fn nothing_one_and_zero() {
    let empty = of_f32(&[0, 3], &[]);
    assert_eq!(empty.to_string(), "1hAAAAAAAAAAA");
    let [one, two] = [1.0, 2.0].map(|value| of_f32(&[], &[value]));
    assert_eq!(one.norm(), None);
    let difference = one.compare(&two);
    assert!(!difference.same_bits && difference.relative_error.is_none());
    assert_eq!(one.compare(&one).relative_error, Some(0.0));
    let (zero, other) = (of_f32(&[600], &[0.0; 600]), of_f32(&[600], &[3.0; 600]));
    assert_eq!(zero.norm(), Some(0.0));
    assert_eq!(zero.compare(&of_f32(&[600], &[-0.0; 600])).relative_error, Some(0.0));
    let difference = zero.compare(&other);
    let error = difference.relative_error.unwrap();
    assert!((0.5..2.0).contains(&error), "{error}");
    assert_eq!(difference.cosine, None);
    assert!((other.norm().unwrap() / (3.0 * 600f64.sqrt()) - 1.0).abs() < 1e-6);
}

#[test]
fn the_hash_sees_every_bit() {
    let mut random = Random(17);
    let mut bytes: Vec<u8> = (0..40_000).map(|_| (random.next() >> 30) as u8).collect();
    let mut seen = std::collections::HashSet::new();
    for zeros in [false, true] {
        if zeros {
            bytes.fill(0);
        }
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::C128] {
            let count = bytes.len() / dtype.size_bytes() - 3;
            let hash = |bytes: &[u8]| sketch(&view_of(dtype, &[count], bytes)).hash();
            let before = hash(&bytes);
            for _ in 0..500 {
                let (at, bit) = (random.below(count * dtype.size_bytes()), random.below(8));
                bytes[at] ^= 1 << bit;
                let after = hash(&bytes);
                assert_ne!(after, before, "{dtype} {at} {bit}");
                seen.insert((after, at, bit, zeros));
                bytes[at] ^= 1 << bit;
            }
        }
    }
    let hashes: std::collections::HashSet<u64> = seen.iter().map(|&(hash, ..)| hash).collect();
    // Different numbers of bytes are the same bytes with zeros behind them.
    let changes: std::collections::HashSet<_> =
        seen.iter().map(|&(_, at, bit, zeros)| (at, bit, zeros)).collect();
    assert!(hashes.len() >= changes.len());
    let swapped: Vec<u8> = [&[1u8; 1024][..], &[2; 1024], &[2; 1024], &[1; 1024]].concat();
    let other: Vec<u8> = [&[2u8; 1024][..], &[1; 1024], &[1; 1024], &[2; 1024]].concat();
    let hash = |bytes| sketch(&view_of(DType::U8, &[4096], bytes)).hash();
    assert_ne!(hash(&swapped), hash(&other));
}

/// How a tensor is changed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Noise,
    OneElement,
    FewElements,
    BlockOfRows,
    Channel,
    SwappedElements,
    Rolled,
    SwappedHeads,
    Transposed,
    Scaled,
}

const CHANGES: [Change; 10] = [
    Change::Noise,
    Change::OneElement,
    Change::FewElements,
    Change::BlockOfRows,
    Change::Channel,
    Change::SwappedElements,
    Change::Rolled,
    Change::SwappedHeads,
    Change::Transposed,
    Change::Scaled,
];

impl Change {
    fn apply(self, golden: &[f32], rows: usize, columns: usize, random: &mut Random) -> Vec<f32> {
        let mut target = golden.to_vec();
        let count = golden.len();
        let size = 10f64.powf(-4.0 * random.uniform()) as f32;
        match self {
            Change::Noise => target.iter_mut().for_each(|value| *value += size * random.normal()),
            Change::OneElement => target[random.below(count)] += 1.0 + size,
            Change::FewElements => {
                for _ in 0..2 + random.below(5) {
                    target[random.below(count)] += random.normal();
                }
            }
            Change::BlockOfRows => {
                let first = random.below(rows);
                let last = first + 1 + random.below(rows - first);
                target[first * columns..last * columns].iter_mut().for_each(|value| *value *= 1.0 - size);
            }
            Change::Channel => {
                target.iter_mut().skip(random.below(columns)).step_by(columns).for_each(|value| *value = 0.0);
            }
            Change::SwappedElements => {
                target.swap(random.below(count / 2), count / 2 + random.below(count / 2));
            }
            Change::Rolled => target.rotate_right(1 + random.below(count - 1)),
            Change::SwappedHeads => {
                let half = columns / 2;
                target.chunks_exact_mut(columns).for_each(|row| row[..2 * half].rotate_left(half));
            }
            Change::Transposed => {
                for (at, value) in target.iter_mut().enumerate() {
                    *value = golden[at % rows * columns + at / rows];
                }
            }
            Change::Scaled => target.iter_mut().for_each(|value| *value *= 1.0 + size),
        }
        target
    }
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

#[test]
fn ten_thousand_random_pairs() {
    const PAIRS: usize = 10_000;
    let mut random = Random(19);
    let (mut judged, mut within_two, mut within_interval, mut unseen) = (0, 0, 0, 0);
    let mut missed = [0; CHANGES.len()];
    let (mut worst_cosine, mut cosine_within) = (0f64, 0);
    for pair in 0..PAIRS {
        let change = CHANGES[pair % CHANGES.len()];
        let columns = [8, 10, 48, 64, 96, 128, 256, 512, 768, 1000][random.below(10)];
        let rows = 2 + random.below(if pair % 50 < 10 { 40 } else { 12 });
        let golden = random.normals(rows * columns);
        let target = change.apply(&golden, rows, columns, &mut random);
        let differences = golden.iter().zip(&target).map(|(&a, &b)| f64::from(a) - f64::from(b));
        let norms = [&golden, &target].map(|values| norm(values.iter().map(|&value| f64::from(value))));
        let true_error = norm(differences) / norms[0].max(norms[1]);
        let [golden_sketch, target_sketch] =
            [&golden, &target].map(|values| of_f32(&[rows, columns], values));
        let found = golden_sketch.compare(&target_sketch);
        assert_eq!(found.same_bits, golden == target, "{change:?}");
        let error = found.relative_error.unwrap();
        if true_error < 4.0 * found.resolution {
            continue;
        }
        judged += 1;
        unseen += usize::from(error < found.resolution);
        if (true_error / 2.0..=true_error * 2.0).contains(&error) {
            within_two += 1;
        } else {
            missed[pair % CHANGES.len()] += 1;
        }
        within_interval += usize::from((found.interval.0..=found.interval.1).contains(&true_error));
        let dot: f64 = golden.iter().zip(&target).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
        let cosine = dot / norms[0] / norms[1];
        // Rounding of the sums, of which nothing is left where the sketch is far from its resolution.
        let rounding = found.resolution.powi(2);
        let (lowest, highest) = found.cosine_interval;
        cosine_within += usize::from((lowest - rounding..=highest + rounding).contains(&cosine));
        assert!((lowest..=highest).contains(&found.cosine.unwrap()), "{found:?}");
        worst_cosine = worst_cosine.max((found.cosine.unwrap() - cosine).abs() / true_error.powi(2).min(1.0));
    }
    let share = |count: usize| count as f64 / judged as f64;
    println!(
        "{judged} judged: {:.4} within a factor of 2, {:.4} in the interval, {unseen} unseen, cosine off by {worst_cosine:.3}, missed {missed:?}",
        share(within_two),
        share(within_interval),
    );
    assert!(judged > PAIRS * 9 / 10);
    assert!(share(within_two) >= 0.99, "{} {missed:?}", share(within_two));
    assert!(share(within_interval) >= 0.94, "{}", share(within_interval));
    assert!(missed.iter().all(|&missed| missed < PAIRS / CHANGES.len() * 4 / 100), "{missed:?}");
    assert!(share(unseen) < 0.005, "{unseen}");
    assert!(share(cosine_within) >= 0.94, "{}", share(cosine_within));
    // A cosine is as good as the estimate of the squared error.
    assert!(worst_cosine < 2.5, "{worst_cosine}");
}

#[test]
fn the_resolution_is_what_rounding_leaves() {
    let mut random = Random(23);
    let mut worst = 0f64;
    for columns in [512, 1024, 4096] {
        for rows in [16, 64, 128] {
            let golden = random.normals(rows * columns);
            let mut target = golden.clone();
            // The last bit of one element: far below what sums in float32 can tell.
            let at = random.below(target.len());
            target[at] = f32::from_bits(target[at].to_bits() ^ 1);
            let found = of_f32(&[rows, columns], &golden).compare(&of_f32(&[rows, columns], &target));
            assert!(!found.same_bits && found.interval.0 == 0.0);
            // Noise in the last bits of all of them.
            let target: Vec<f32> =
                golden.iter().map(|value| value * (1.0 + 1e-7 * random.normal())).collect();
            let found = of_f32(&[rows, columns], &golden).compare(&of_f32(&[rows, columns], &target));
            let differences = golden.iter().zip(&target).map(|(&a, &b)| f64::from(a) - f64::from(b));
            let error = norm(differences) / norm(golden.iter().map(|&value| f64::from(value)));
            let rounding = (found.relative_error.unwrap().powi(2) - error.powi(2)).abs().sqrt();
            worst = worst.max(rounding / found.resolution);
        }
    }
    println!("rounding is at most {worst:.2} of the resolution");
    assert!(worst < 1.0, "{worst}");
}

#[test]
fn errors_are_found_where_they_sit() {
    let mut random = Random(29);
    let (mut named_rows, mut named_columns, mut false_parts) = (0, 0, 0);
    const TRIES: usize = 400;
    for _ in 0..TRIES {
        let golden = random.normals(32 * 1024);
        let of = |values: &[f32]| of_f32(&[32, 1024], values);
        let (row, column) = (random.below(32), random.below(1024));
        let mut by_row = golden.clone();
        by_row[row * 1024..(row + 1) * 1024].iter_mut().for_each(|value| *value *= 1.01);
        let part = of(&golden).compare(&of(&by_row)).part;
        let eighth = Eighths { first: row as u8 / 4, last: row as u8 / 4 };
        let rows = part.and_then(|part| part.rows);
        named_rows += usize::from(rows == Some(eighth));
        false_parts += usize::from(rows.is_some_and(|rows| rows != eighth));
        false_parts += usize::from(part.is_some_and(|part| part.columns.is_some()));
        let mut by_column = golden.clone();
        by_column.iter_mut().skip(column).step_by(1024).for_each(|value| *value = 0.0);
        let part = of(&golden).compare(&of(&by_column)).part;
        let eighth = Eighths { first: (column / 128) as u8, last: (column / 128) as u8 };
        named_columns += usize::from(part.and_then(|part| part.columns) == Some(eighth));
        false_parts += usize::from(part.is_some_and(|part| part.rows.is_some()));
        let noisy: Vec<f32> = golden.iter().map(|value| value + 1e-3 * random.normal()).collect();
        false_parts += usize::from(of(&golden).compare(&of(&noisy)).part.is_some());
    }
    println!("{named_rows} rows and {named_columns} columns of {TRIES} named, {false_parts} named wrongly");
    assert!(named_rows > TRIES * 9 / 10 && named_columns > TRIES * 9 / 10);
    assert!(false_parts <= TRIES * 4 / 100, "{false_parts}");
}

#[test]
fn texts_read_back() {
    let mut random = Random(31);
    for shape in SHAPES {
        let values = random.normals(shape.iter().product());
        let sketch = of_f32(shape, &values);
        let text = sketch.to_string();
        assert!(text.len() <= 163, "{}", text.len());
        assert_eq!(text.parse(), Ok(sketch), "{shape:?}");
    }
    let large: Vec<f64> = (0..4096).map(|at| f64::from(at) * 1e26).collect();
    let tiny: Vec<f64> = large.iter().map(|value| value * 1e-170).collect();
    for values in [large, tiny] {
        let sketch = sketch(&view_of(DType::F64, &[4, 1024], bytemuck::cast_slice(&values)));
        assert!(sketch.norm().unwrap() > 0.0);
        assert_eq!(sketch.to_string().parse(), Ok(sketch));
    }
}

/// The text is kept in dumps: another one needs another version.
#[test]
fn the_text_of_a_tensor_stays_as_it_is() {
    let values: Vec<f32> = (0..4096u16).map(|at| f32::from(at % 97) - 48.0).collect();
    let of = |shape: &[usize]| of_f32(shape, &values[..shape.iter().product()]).to_string();
    assert_eq!(
        [of(&[4, 1024]), of(&[64]), of(&[3]), of(&[1])],
        [
            "1crMo9YDW1RzYMAH8gOACA5AAAWMwAgGYPADgQAIABBwAYxgCAIgAAKCgAgP4PALgoAIDdAwBoxwCAXQAA2JQAgOkOALjnAGj/AGARALgcAAjnALD7ALj4ABD0AEgREAAAkP4AmP4AqAkAEAUA2AEAWAIAYAEA2Pw",
            "1r5YdHpzz9D0oJALGJMQAAiAIAgOkAACgAAIANAABIAQAArwAAiA8AAAoAAMgBAABTAADQAgCAxQAA+AwAgCEAAPAMAAAqAADrAIAnAAA5AADtAAD1AID9AAD8AIAB",
            "1myw/lX8LCwHQIAJe1KAAAeAEAgLkAAIgBAIAWAAB4AQCAuQAAiAEAgBYAAIgOAIBGAAB4DgCA6QAAiA4AgEYAAHgOAIDp",
            "1hDzXdaet8pWo",
        ]
    );
}

#[test]
fn hostile_texts() {
    let good = of_f32(&[4, 1024], &Random(37).normals(4096)).to_string();
    assert_eq!("".parse::<Sketch>(), Err(SketchTextError::Version));
    assert_eq!(good.replacen('1', "2", 1).parse::<Sketch>(), Err(SketchTextError::Version));
    for end in 1..good.len() {
        assert_eq!(good[..end].parse::<Sketch>(), Err(SketchTextError::Damaged), "{end}");
    }
    let long = "A".repeat(1 << 20);
    for text in [
        "1",
        "1h",
        "1hA",
        "1x",
        "1zAAAAAAAAAAB",
        "1hAAAAAAAAAAAA",
        "1h==========",
        "1h\u{e9}\u{e9}\u{e9}",
        &long,
    ] {
        assert!(text.parse::<Sketch>().is_err(), "{text:.20}");
    }
    assert!(format!("{good}A").parse::<Sketch>().is_err());
    assert!(format!("1c{long}").parse::<Sketch>().is_err());
    let mut random = Random(41);
    let zero = of_f32(&[2], &[0.0; 2]);
    let mut read = 0;
    for _ in 0..5000 {
        let mut text: Vec<u8> = good.bytes().collect();
        for _ in 0..=random.below(100) {
            let at = 2 + random.below(text.len() - 2);
            text[at] = b"ABCdef0129+/"[random.below(12)];
        }
        let Ok(sketch) = String::from_utf8(text).unwrap().parse::<Sketch>() else { continue };
        read += 1;
        for difference in [sketch.compare(&zero), sketch.compare(&good.parse().unwrap())] {
            assert!(difference.relative_error.is_none_or(|error| error >= 0.0), "{difference:?}");
            assert!(difference.interval.0 <= difference.interval.1, "{difference:?}");
            let (lowest, highest) = difference.cosine_interval;
            assert!(-1.0 <= lowest && lowest <= highest && highest <= 1.0, "{difference:?}");
            assert!(difference.cosine.is_none_or(|cosine| cosine.abs() <= 1.0), "{difference:?}");
        }
    }
    assert!(read > 1000, "{read}");
}

/// Bytes that look like a sketch more often than not: a version, a letter, characters of base64 and a few others.
fn hostile_text() -> impl Strategy<Value = Vec<u8>> {
    let character = prop_oneof![
        8 => proptest::sample::select(&b"ABCXYZabcxyz0189+/"[..]),
        1 => any::<u8>(),
    ];
    let length = prop_oneof![
        3 => proptest::sample::select(&[11usize, 92, 124, 127, 159][..]),
        1 => 0..200usize,
    ];
    let start = proptest::sample::select(vec!["1h", "1z", "1m", "1r", "1k", "1c", "1x", "2c", ""]);
    (start, length.prop_flat_map(move |length| proptest::collection::vec(character.clone(), length)))
        .prop_map(|(start, rest)| [start.as_bytes(), &rest].concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = String::from_utf8_lossy(&bytes).parse::<Sketch>();
    }

    #[test]
    fn what_is_read_is_written_the_same(target in hostile_text(), golden in hostile_text()) {
        let read = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<Sketch>().ok();
        for (bytes, sketch) in [&target, &golden].into_iter().filter_map(|bytes| Some((bytes, read(bytes)?))) {
            prop_assert_eq!(sketch.to_string().parse::<Sketch>(), Ok(sketch));
            prop_assert_eq!(sketch.to_string().len(), bytes.len());
        }
        if let (Some(target), Some(golden)) = (read(&target), read(&golden)) {
            let difference = target.compare(&golden);
            prop_assert!(difference.interval.0 <= difference.interval.1, "{:?}", difference);
            let (lowest, highest) = difference.cosine_interval;
            prop_assert!(-1.0 <= lowest && lowest <= highest && highest <= 1.0, "{:?}", difference);
            prop_assert!(difference.cosine.is_none_or(|cosine| cosine.abs() <= 1.0), "{:?}", difference);
            prop_assert!(difference.relative_error.is_none_or(|error| error >= 0.0), "{:?}", difference);
        }
    }
}
