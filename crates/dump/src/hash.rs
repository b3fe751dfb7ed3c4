//! Maps for many short keys that come from one dump: hashing them must not cost more than reading them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with [`Multiply`].
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;
/// A set with [`Multiply`].
pub type FastSet<K> = HashSet<K, BuildHasherDefault<Multiply>>;

/// Folds eight bytes at a time into one word by multiplication. Not for keys an adversary chooses one by one: a dump
/// made to collide would only be slow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Multiply(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Multiply {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(FACTOR) << 1 | 1);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.fold(chunk.try_into().map_or(0, u64::from_le_bytes));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.fold(u64::from_le_bytes(word) ^ (rest.len() as u64) << 56);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.fold(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
