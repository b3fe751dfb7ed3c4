//! The longest common course of two sequences of calls.

use msprobe_dump::hash::FastMap;

/// Gaps with more combinations than this are paired greedily.
const MAX_TABLE: usize = 4_000_000;

/// Pairs of equal tokens, ascending on both sides: a common subsequence, the longest one where that can be afforded.
///
/// Tokens that occur once on each side hold the rest in place; what lies between two of them is aligned by itself.
pub(super) fn common_course(target: &[u64], golden: &[u64]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    align(target, golden, 0, 0, &mut pairs);
    pairs
}

fn align(
    target: &[u64],
    golden: &[u64],
    target_at: usize,
    golden_at: usize,
    pairs: &mut Vec<(usize, usize)>,
) {
    let shorter = target.len().min(golden.len());
    let head = target.iter().zip(golden).take_while(|(a, b)| a == b).count();
    let tail =
        target.iter().rev().zip(golden.iter().rev()).take(shorter - head).take_while(|(a, b)| a == b).count();
    pairs.extend((0..head).map(|step| (target_at + step, golden_at + step)));
    let (target_end, golden_end) = (target.len() - tail, golden.len() - tail);
    let (inner_target, inner_golden) = (&target[head..target_end], &golden[head..golden_end]);
    if !inner_target.is_empty() && !inner_golden.is_empty() {
        align_inner(inner_target, inner_golden, target_at + head, golden_at + head, pairs);
    }
    pairs.extend((0..tail).map(|step| (target_at + target_end + step, golden_at + golden_end + step)));
}

fn align_inner(
    target: &[u64],
    golden: &[u64],
    target_at: usize,
    golden_at: usize,
    pairs: &mut Vec<(usize, usize)>,
) {
    let anchors = anchors(target, golden);
    if anchors.is_empty() {
        let found = if target.len().saturating_mul(golden.len()) <= MAX_TABLE {
            longest(target, golden)
        } else {
            greedy(target, golden)
        };
        pairs.extend(found.into_iter().map(|(a, b)| (target_at + a, golden_at + b)));
        return;
    }
    let (mut from, mut other_from) = (0, 0);
    for (anchor, other) in anchors {
        align(
            &target[from..anchor],
            &golden[other_from..other],
            target_at + from,
            golden_at + other_from,
            pairs,
        );
        pairs.push((target_at + anchor, golden_at + other));
        (from, other_from) = (anchor + 1, other + 1);
    }
    align(&target[from..], &golden[other_from..], target_at + from, golden_at + other_from, pairs);
}

/// Tokens that occur once on each side, as many as stand in the same order.
fn anchors(target: &[u64], golden: &[u64]) -> Vec<(usize, usize)> {
    let (in_target, in_golden) = (single_places(target), single_places(golden));
    let mut candidates: Vec<(usize, usize)> =
        in_target.iter().filter_map(|(token, place)| Some(((*place)?, (*in_golden.get(token)?)?))).collect();
    candidates.sort_unstable();
    longest_ascending(&candidates)
}

fn single_places(tokens: &[u64]) -> FastMap<u64, Option<usize>> {
    let mut places = FastMap::default();
    for (place, token) in tokens.iter().enumerate() {
        places.entry(*token).and_modify(|place| *place = None).or_insert(Some(place));
    }
    places
}

/// The longest subsequence whose second members ascend; the first ones do already.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `tails[n]` ends the ascending run of length n + 1 with the smallest end; `before` chains runs together.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = tails.partition_point(|&tail| pairs[tail].1 < pair.1);
        before.push(length.checked_sub(1).map(|last| tails[last]));
        if length == tails.len() {
            tails.push(index);
        } else {
            tails[length] = index;
        }
    }
    let mut run = Vec::with_capacity(tails.len());
    let mut next = tails.last().copied();
    while let Some(index) = next {
        run.push(pairs[index]);
        next = before[index];
    }
    run.reverse();
    run
}

/// The longest common subsequence by the table of all prefixes.
fn longest(target: &[u64], golden: &[u64]) -> Vec<(usize, usize)> {
    let width = golden.len() + 1;
    let mut lengths = vec![0_u32; (target.len() + 1) * width];
    for a in (0..target.len()).rev() {
        for b in (0..golden.len()).rev() {
            lengths[a * width + b] = if target[a] == golden[b] {
                lengths[(a + 1) * width + b + 1] + 1
            } else {
                lengths[(a + 1) * width + b].max(lengths[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut pairs = Vec::new();
    while a < target.len() && b < golden.len() {
        if target[a] == golden[b] {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if lengths[(a + 1) * width + b] >= lengths[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

/// Each target token with the next equal golden one.
fn greedy(target: &[u64], golden: &[u64]) -> Vec<(usize, usize)> {
    let mut places: FastMap<u64, Vec<usize>> = FastMap::default();
    for (place, token) in golden.iter().enumerate() {
        places.entry(*token).or_default().push(place);
    }
    let mut from = 0;
    let mut pairs = Vec::new();
    for (index, token) in target.iter().enumerate() {
        let Some(places) = places.get(token) else { continue };
        if let Some(&place) = places.get(places.partition_point(|&place| place < from)) {
            // A partner far ahead would cost everything in between.
            if place - from <= target.len() {
                pairs.push((index, place));
                from = place + 1;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inserted_and_a_missing_call_are_left_out() {
        assert_eq!(common_course(&[1, 2, 9, 3, 4], &[1, 2, 3, 4]), [(0, 0), (1, 1), (3, 2), (4, 3)]);
        assert_eq!(common_course(&[1, 3, 4], &[1, 2, 3, 4]), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(common_course(&[], &[1]), []);
        assert_eq!(common_course(&[5, 5, 5], &[5, 5]), [(0, 0), (1, 1)]);
    }

    #[test]
    fn repeated_tokens_are_aligned_between_single_ones() {
        let pairs = common_course(&[7, 7, 1, 7, 2, 7], &[7, 1, 7, 7, 2, 7]);
        assert_eq!(pairs.len(), 5);
        assert!(pairs.contains(&(2, 1)) && pairs.contains(&(4, 4)));
    }

    #[test]
    fn long_repetitive_courses_stay_affordable() {
        let target: Vec<u64> = (0..60_000).map(|index| index % 7).collect();
        let golden: Vec<u64> = (0..60_000).map(|index| (index + 3) % 7).collect();
        let pairs = common_course(&target, &golden);
        assert!(pairs.len() > 50_000);
        assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    }
}
