//! How far the gradients of two runs point the same way: counted from signs, or estimated from sketches.

use std::f64::consts::PI;

use msprobe_dump::grad_probe::GradientSketch;

/// Elements with the same direction, of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Elements whose direction is the same on both sides.
    pub same: u64,
    /// Elements.
    pub total: u64,
}

/// The angle between two gradients, as their sketches estimate it. Those of several parameters can be added.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cosine {
    elements: u64,
    /// Whether all bits are.
    is_same: bool,
    /// The inner product.
    product: f64,
    /// Where the inner product lies in 95 of 100 cases.
    interval: (f64, f64),
    /// The squared norms of both.
    squares: [f64; 2],
}

/// What is known of the directions of a gradient in two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Agreement {
    /// The signs of all elements.
    Signs(Count),
    /// The angle, estimated.
    Sketches(Cosine),
}

impl Cosine {
    /// What sketches of two gradients of the same shape say. `None` if one of them says nothing.
    pub(super) fn new(target: &GradientSketch, golden: &GradientSketch) -> Option<Cosine> {
        let elements = target.numel();
        let difference = target.sketch.compare(&golden.sketch);
        let known = Cosine {
            elements,
            is_same: difference.same_bits,
            product: 0.0,
            interval: (0.0, 0.0),
            squares: [0.0; 2],
        };
        let sides = [target, golden];
        let are_finite = sides.map(|side| side.not_finite == 0);
        match elements {
            0 => return Some(known),
            1 if !are_finite[0] || !are_finite[1] => {}
            1 => {
                let (a, b) = (target.value?, golden.value?);
                let product = a * b;
                return Some(Cosine {
                    product,
                    interval: (product, product),
                    squares: [a * a, b * b],
                    ..known
                });
            }
            _ => {}
        }
        let norms =
            sides.map(|side| if elements == 1 { side.value.map(f64::abs) } else { side.sketch.norm() });
        let norms = norms.map(|norm| norm.or((elements == 1).then_some(0.0)));
        let (a, b) = (norms[0]?, norms[1]?);
        let squares = [a * a, b * b];
        // A gradient with NaN on one side alone has no direction in common with the other.
        let cosine = difference.cosine.filter(|_| are_finite[0] == are_finite[1]);
        let (lowest, highest) = difference.cosine_interval;
        Some(cosine.map_or(Cosine { squares, ..known }, |cosine| Cosine {
            product: cosine * a * b,
            interval: (lowest * a * b, highest * a * b),
            squares,
            ..known
        }))
    }

    /// The estimate, and where it lies in 95 of 100 cases; nothing where there is no element. A gradient that is zero on one
    /// side alone has no direction in common with the other.
    pub fn cosine(self) -> Option<(f64, (f64, f64))> {
        if self.elements == 0 {
            return None;
        }
        let both = self.squares[0].sqrt() * self.squares[1].sqrt();
        if self.is_same || self.squares == [0.0; 2] {
            return Some((1.0, (1.0, 1.0)));
        }
        if both == 0.0 {
            return Some((0.0, (0.0, 0.0)));
        }
        let share = |product: f64| (product / both).clamp(-1.0, 1.0);
        let found = (share(self.product), (share(self.interval.0), share(self.interval.1)));
        found.0.is_finite().then_some(found)
    }

    fn plus(self, other: Cosine) -> Cosine {
        // Errors of single estimates are taken to go the same way, which is the worst they can do.
        Cosine {
            elements: self.elements.saturating_add(other.elements),
            is_same: self.is_same && other.is_same,
            product: self.product + other.product,
            interval: (self.interval.0 + other.interval.0, self.interval.1 + other.interval.1),
            squares: [self.squares[0] + other.squares[0], self.squares[1] + other.squares[1]],
        }
    }

    /// The share of signs that agree at this angle where elements are normally distributed, so that it means the same as
    /// a counted one: 1 at no angle, a half at a right one. 1 only if all bits are the same.
    fn similarity(self, cosine: f64) -> f64 {
        let similarity = 1.0 - cosine.acos() / PI;
        if self.is_same { similarity } else { similarity.min(1.0 - f64::EPSILON) }
    }
}

impl Agreement {
    /// The similarity; nothing where there is no element.
    pub fn similarity(self) -> Option<f64> {
        match self {
            Agreement::Signs(count) => (count.total > 0).then(|| count.same as f64 / count.total as f64),
            Agreement::Sketches(cosine) => cosine.cosine().map(|(estimate, _)| cosine.similarity(estimate)),
        }
    }

    /// Where the similarity lies in 95 of 100 cases; signs are counted, so that it is the similarity itself.
    pub fn interval(self) -> Option<(f64, f64)> {
        match self {
            Agreement::Signs(_) => self.similarity().map(|similarity| (similarity, similarity)),
            Agreement::Sketches(cosine) => cosine
                .cosine()
                .map(|(_, (lowest, highest))| (cosine.similarity(lowest), cosine.similarity(highest))),
        }
    }

    /// The cosine and where it lies in 95 of 100 cases; signs have none.
    pub fn cosine(self) -> Option<(f64, (f64, f64))> {
        match self {
            Agreement::Signs(_) => None,
            Agreement::Sketches(cosine) => cosine.cosine(),
        }
    }

    /// All together. Signs and sketches have nothing in common: `None`.
    pub(super) fn plus(self, other: Agreement) -> Option<Agreement> {
        match (self, other) {
            (Agreement::Signs(a), Agreement::Signs(b)) => Some(Agreement::Signs(Count {
                same: a.same.saturating_add(b.same),
                total: a.total.saturating_add(b.total),
            })),
            (Agreement::Sketches(a), Agreement::Sketches(b)) => Some(Agreement::Sketches(a.plus(b))),
            _ => None,
        }
    }
}

/// The similarity at a position of a curve, if it is known.
pub(super) fn similarity_at(agreements: &[Option<Agreement>], position: usize) -> Option<f64> {
    agreements.get(position).copied().flatten().and_then(Agreement::similarity)
}

/// The sum of what is known; nothing if nothing is.
pub(super) fn total(agreements: impl Iterator<Item = Option<Agreement>>) -> Option<Agreement> {
    let mut agreements = agreements.peekable();
    if agreements.peek().is_none() {
        return Some(Agreement::Signs(Count::default()));
    }
    agreements.flatten().reduce(|sum, one| sum.plus(one).unwrap_or(sum))
}

#[cfg(test)]
mod tests {
    use msprobe_tensor::{DType, TensorView, sketch};

    use super::*;

    fn of(values: &[f32]) -> GradientSketch {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let view = TensorView::contiguous(DType::F32, vec![values.len()], &bytes).unwrap();
        let not_finite = values.iter().filter(|value| !value.is_finite()).count() as u64;
        let value = match values {
            [value] if value.is_finite() => Some(f64::from(*value)),
            _ => None,
        };
        GradientSketch { shape: vec![values.len()], sketch: sketch(&view), not_finite, value }
    }

    fn agreement(target: &[f32], golden: &[f32]) -> Agreement {
        Agreement::Sketches(Cosine::new(&of(target), &of(golden)).unwrap())
    }

    /// Numbers between -1 and 1, the same on every machine.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn an_angle_is_measured_in_signs_that_agree() {
        let (a, b) = (numbers(20_000, 1), numbers(20_000, 2));
        for (part, tolerance) in [(0.0f32, 0.0), (0.01, 0.002), (0.1, 0.02), (0.5, 0.06), (10.0, 0.2)] {
            let mixed: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + part * b).collect();
            let truth = 1.0 - f64::from(part).atan() / PI;
            let found = agreement(&a, &mixed);
            let similarity = found.similarity().unwrap();
            assert!((similarity - truth).abs() <= tolerance, "{part}: {similarity} instead of {truth}");
            let (lowest, highest) = found.interval().unwrap();
            assert!((lowest..=highest).contains(&similarity), "{part}: {lowest} {similarity} {highest}");
            assert!((lowest..=highest).contains(&truth), "{part}: {lowest} {truth} {highest}");
            assert_eq!(similarity == 1.0, part == 0.0);
        }
        let opposite: Vec<f32> = a.iter().map(|value| -value).collect();
        assert!(agreement(&a, &opposite).similarity().unwrap() < 0.01);
    }

    #[test]
    fn what_has_no_direction_has_none_in_common() {
        let (some, zero) = ([1.0, 2.0, -3.0], [0.0; 3]);
        let cosine = |a: &[f32], b: &[f32]| agreement(a, b).cosine().map(|(cosine, _)| cosine);
        assert_eq!(cosine(&some, &zero), Some(0.0));
        assert_eq!(cosine(&zero, &zero), Some(1.0));
        assert_eq!(cosine(&some, &[1.0, 2.0, f32::NAN]), Some(0.0));
        assert_eq!(cosine(&[f32::INFINITY, 2.0, 1.0], &[f32::INFINITY, 2.0, 1.0]), Some(1.0));
        assert_eq!(cosine(&[], &[]), None);
        assert_eq!(agreement(&[], &[]).similarity(), None);
        // Zeros of either sign are other bits, and the same direction.
        let signed = agreement(&zero, &[0.0, -0.0, 0.0]).similarity().unwrap();
        assert!(signed < 1.0 && signed > 0.999);
    }

    #[test]
    fn a_single_element_has_its_sign() {
        let cosine = |a: f32, b: f32| agreement(&[a], &[b]).cosine().map(|(cosine, _)| cosine);
        assert_eq!(
            (cosine(0.5, 0.25), cosine(0.5, -0.25), cosine(0.0, 1.0)),
            (Some(1.0), Some(-1.0), Some(0.0))
        );
        assert_eq!(cosine(f32::NAN, 1.0), Some(0.0));
        assert_eq!(agreement(&[0.5], &[0.5]).similarity(), Some(1.0));
        let mute = GradientSketch { value: None, ..of(&[0.5]) };
        assert_eq!(Cosine::new(&mute, &of(&[0.25])), None);
    }

    #[test]
    fn parameters_count_by_their_norm() {
        let large = agreement(&[100.0, 100.0], &[100.0, 100.0]);
        let small = agreement(&[1.0, 0.0], &[-1.0, 0.0]);
        let all = total([Some(large), None, Some(small)].into_iter()).unwrap();
        let expected = (20_000.0 - 1.0) / 20_001.0;
        let (cosine, _) = all.cosine().unwrap();
        assert!((cosine - expected).abs() < 1e-6, "{cosine} {expected}");
        assert_eq!(total(std::iter::once(None)), None);
    }
}
