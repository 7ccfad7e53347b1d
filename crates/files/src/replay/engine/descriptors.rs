//! The real descriptors of open file descriptions.
#![allow(unsafe_code, reason = "closes descriptors by their numbers, which this table owns")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::DescriptionId;

/// A hash of numbers that are given in turn.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20);
    }
}

/// The real descriptor of each open file description. Owns them.
#[derive(Debug, Default)]
pub struct DescriptorTable(HashMap<DescriptionId, i32, BuildHasherDefault<Spread>>);

impl DescriptorTable {
    /// Notes a descriptor.
    pub fn insert(&mut self, id: DescriptionId, fd: i32) {
        if let Some(old) = self.0.insert(id, fd) {
            close(old);
        }
    }

    /// The descriptor; -1 without one, so that the call fails with EBADF.
    pub fn get(&self, id: Option<DescriptionId>) -> i32 {
        id.and_then(|id| self.0.get(&id)).copied().unwrap_or(-1)
    }

    /// Executor a descriptor over to the caller, who closes it.
    pub fn remove(&mut self, id: DescriptionId) -> Option<i32> {
        self.0.remove(&id)
    }
}

impl Drop for DescriptorTable {
    fn drop(&mut self) {
        self.0.values().for_each(|&fd| close(fd));
    }
}

/// Closes a descriptor of the replay.
pub fn close(fd: i32) {
    // SAFETY: the caller owns the descriptor.
    unsafe { libc::close(fd) };
}
