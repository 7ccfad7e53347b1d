//! Numbers for objects and names, and the hash maps that they key.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::{NameId, ObjectId};

/// Marks the numbers of objects that existed before the trace. They derive from their name, so that a lookup that failed
/// before anything is known about a directory touches the same names as one that finds the directory later.
const FOUND: u64 = 1 << 63;

/// The name `component` in `directory`. A hash: names that never existed need no memory. Two names with the same number
/// would be ordered needlessly; with 10^8 names the chance is 1 in 3000.
pub(crate) fn name_id(directory: ObjectId, component: &[u8]) -> NameId {
    let mut hash = mix(directory.0 ^ 0x9e37_79b9_7f4a_7c15);
    let (chunks, rest) = component.as_chunks::<8>();
    for &chunk in chunks {
        hash = mix(hash ^ u64::from_le_bytes(chunk));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    NameId(mix(hash ^ u64::from_le_bytes(last)).wrapping_add(mix(component.len() as u64)))
}

/// The object that a name had before the trace.
pub(crate) fn found_object(name: NameId) -> ObjectId {
    ObjectId(mix(name.0) | FOUND)
}

/// The finaliser of MurmurHash3: each bit of the input changes half of the output.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// A map whose keys are numbers.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
/// A set of numbers.
pub(crate) type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// Hashes numbers, quickly.
#[derive(Clone, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15) * 0x2d35_8dcc_aa6c_78a5;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(number as u32 as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_directories_and_lengths_differ() {
        let mut seen = HashSet::new();
        for directory in 0..50 {
            for name in ["", "a", "b", "a\0", "a\0\0", "abcdefgh", "abcdefgh\0", "abcdefghi", "bbcdefgh"] {
                assert!(seen.insert(name_id(ObjectId(directory), name.as_bytes())));
            }
        }
    }
}
