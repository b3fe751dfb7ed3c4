//! The hash of a sketch: a sum over pairs of words, so that parts can be added in any order.

use super::plan::splitmix64;
use crate::simd::{Level, by_level};
use crate::view::Element;

/// Bytes after which keys repeat. Every strip of elements of four or eight bytes lies in one such block.
pub(super) const BLOCK_BYTES: usize = 2048;
/// Bytes multiplied at a time: two words.
pub(super) const PAIR_BYTES: usize = 8;

/// Two keys per pair of words, the lower half for the first.
pub(super) static KEYS: [u64; BLOCK_BYTES / PAIR_BYTES] = {
    let mut keys = [0; BLOCK_BYTES / PAIR_BYTES];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = splitmix64(1000 + at as u64);
        at += 1;
    }
    keys
};

/// The odd number of a block.
#[inline(always)]
fn factor(block: usize) -> u64 {
    let mixed = (block as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1
}

/// A hash that grows.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteHash(u64);

impl ByteHash {
    pub(super) const EMPTY: ByteHash = ByteHash(0);

    /// Adds bytes that begin at `start`, a multiple of [`BLOCK_BYTES`]; pieces of a tensor in any order.
    pub(super) fn add(&mut self, level: Level, start: usize, bytes: &[u8]) {
        for (at, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let (pairs, rest) = block.as_chunks::<PAIR_BYTES>();
            self.add_sum(start + at * BLOCK_BYTES, sum_of_pairs::<u8>(level, pairs, &KEYS));
            self.add_last(start + at * BLOCK_BYTES + pairs.len() * PAIR_BYTES, rest);
        }
    }

    /// Adds fewer bytes than a pair has, the last of a tensor, which begin at `start`.
    pub(super) fn add_last(&mut self, start: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            let mut pair = [0; PAIR_BYTES];
            pair[..bytes.len()].copy_from_slice(bytes);
            self.add_sum(start, product(pair, KEYS[start % BLOCK_BYTES / PAIR_BYTES]));
        }
    }

    /// Adds the sum of some products of the block that `start` lies in.
    #[inline(always)]
    pub(super) fn add_sum(&mut self, start: usize, sum: u64) {
        self.0 = self.0.wrapping_add(sum.wrapping_mul(factor(start / BLOCK_BYTES)));
    }

    pub(super) fn merge(self, other: ByteHash) -> ByteHash {
        ByteHash(self.0.wrapping_add(other.0))
    }

    pub(super) fn finish(self) -> u64 {
        self.0
    }
}

by_level! { fn sum_of_pairs<B: Element>(pairs: &[[B; PAIR_BYTES]], keys: &[u64]) -> u64 = sum }

#[inline(always)]
fn sum<B: Element>(pairs: &[[B; PAIR_BYTES]], keys: &[u64]) -> u64 {
    let pairs: &[[u8; PAIR_BYTES]] = bytemuck::cast_slice(pairs);
    pairs.iter().zip(keys).fold(0u64, |sum, (&pair, &key)| sum.wrapping_add(product(pair, key)))
}

#[inline(always)]
fn product(pair: [u8; PAIR_BYTES], key: u64) -> u64 {
    let pair = u64::from_le_bytes(pair);
    let first = (pair as u32).wrapping_add(key as u32);
    let second = ((pair >> 32) as u32).wrapping_add((key >> 32) as u32);
    u64::from(first) * u64::from(second)
}
