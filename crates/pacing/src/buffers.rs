//! Memory for the data of requests: one locked area, divided into buffers of 4 KiB times a power of two.
//!
//! A [`Buffer`] is a token for its part of the area: only its owner may access those bytes. It travels with the request
//! through the queues and returns to the [`Pool`] at the end, so that nothing is allocated during a run.
#![allow(unsafe_code, reason = "one mapping is shared by threads; tokens keep their accesses apart")]

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use crate::{Error, Result};

/// The smallest buffer, in bytes.
pub const UNIT_BYTES: u64 = 4096;

/// The pages of an area of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Of 2 MiB if possible.
    Huge,
    /// Of 4 KiB: for many areas of which little is used.
    Small,
}

/// A page-aligned area of memory, for direct I/O.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the area is plain memory, accessed only through `Buffer` tokens, which never overlap.
unsafe impl Send for Arena {}
// SAFETY: as above; a shared `Arena` gives no access without a token.
unsafe impl Sync for Arena {}

impl Arena {
    fn new(bytes: u64, pages: Pages) -> Result<Self> {
        let length =
            usize::try_from(bytes).map_err(|_| Error::Options("the buffers exceed the address space".into()))?;
        // SAFETY: a new private anonymous mapping; nothing else refers to it.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            let what = format!("cannot reserve {} MiB for buffers; lower --depth or --buffers", bytes >> 20);
            return Err(Error::system(what, std::io::Error::last_os_error()));
        }
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: the mapping just made. Huge pages are optional; they save address translations.
        unsafe { libc::madvise(base, length, advice) };
        let base = NonNull::new(base.cast()).expect("a mapping is never null");
        Ok(Self { base, bytes: length })
    }

    /// Address and size in bytes, for registration with the kernel.
    pub fn raw(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.bytes)
    }

    /// The address of a buffer, for the kernel.
    pub fn address(&self, buffer: &Buffer) -> *mut u8 {
        // SAFETY: the pool made the token for a part of the area.
        unsafe { self.base.as_ptr().add(buffer.offset()) }
    }

    /// The first `length` bytes of a buffer.
    pub fn bytes(&self, buffer: &Buffer, length: u64) -> &[u8] {
        assert!(length <= buffer.bytes(), "{length} bytes exceed {buffer:?}");
        // SAFETY: inside the buffer (asserted); the token is borrowed, so nothing writes to it meanwhile.
        unsafe { slice::from_raw_parts(self.address(buffer), length as usize) }
    }

    /// The first `length` bytes of a buffer, writable.
    pub fn bytes_mut<'a>(&'a self, buffer: &'a mut Buffer, length: u64) -> &'a mut [u8] {
        assert!(length <= buffer.bytes(), "{length} bytes exceed {buffer:?}");
        // SAFETY: inside the buffer (asserted); the token is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.address(buffer), length as usize) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; the last `Arc` of its users is being dropped.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The exclusive right to use a part of the area.
#[derive(Debug, PartialEq, Eq)]
pub struct Buffer {
    unit: u32,
    order: u8,
}

impl Buffer {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        UNIT_BYTES << self.order
    }

    fn offset(&self) -> usize {
        self.unit as usize * UNIT_BYTES as usize
    }
}

const NONE: u32 = u32::MAX;
const TAKEN: u8 = u8::MAX;

/// Allocates buffers by the buddy method, in constant memory and logarithmic time.
#[derive(Debug)]
pub struct Pool {
    arena: Arc<Arena>,
    /// For each order, the first unit of the first free part.
    free: Vec<u32>,
    /// For the first unit of each free part, the part's order, else `TAKEN`.
    order_at: Vec<u8>,
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Pool {
    /// A pool of at least this many bytes, rounded up to a power of two.
    pub fn new(bytes: u64) -> Result<Self> {
        Self::with_pages(bytes, Pages::Huge)
    }

    /// The same with these pages.
    pub fn with_pages(bytes: u64, pages: Pages) -> Result<Self> {
        let units = bytes.div_ceil(UNIT_BYTES).max(1).next_power_of_two();
        if units >= u64::from(NONE) {
            return Err(Error::Options("more than 16 TiB of buffers; lower --depth or --buffers".into()));
        }
        let orders = units.trailing_zeros() as usize + 1;
        let mut pool = Self {
            arena: Arc::new(Arena::new(units * UNIT_BYTES, pages)?),
            free: vec![NONE; orders],
            order_at: vec![TAKEN; units as usize],
            next: vec![NONE; units as usize],
            previous: vec![NONE; units as usize],
        };
        pool.push(0, orders - 1);
        Ok(pool)
    }

    /// The area that contains the buffers.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The size of the largest possible buffer in bytes.
    pub fn largest(&self) -> u64 {
        UNIT_BYTES << (self.free.len() - 1)
    }

    /// Takes a buffer of at least this many bytes; `None` if there is none now.
    pub fn take(&mut self, bytes: u64) -> Option<Buffer> {
        let order = order_for(bytes);
        let mut found = (order..self.free.len()).find(|&o| self.free[o] != NONE)?;
        let unit = self.free[found];
        self.unlink(unit, found);
        while found > order {
            found -= 1;
            self.push(unit + (1 << found), found);
        }
        Some(Buffer { unit, order: order as u8 })
    }

    /// Returns a buffer and merges it with free neighbours.
    pub fn give(&mut self, buffer: Buffer) {
        let (mut unit, mut order) = (buffer.unit, buffer.order as usize);
        while order + 1 < self.free.len() {
            let buddy = unit ^ (1 << order);
            if self.order_at[buddy as usize] != order as u8 {
                break;
            }
            self.unlink(buddy, order);
            unit = unit.min(buddy);
            order += 1;
        }
        self.push(unit, order);
    }

    fn push(&mut self, unit: u32, order: usize) {
        let head = self.free[order];
        self.next[unit as usize] = head;
        self.previous[unit as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = unit;
        }
        self.free[order] = unit;
        self.order_at[unit as usize] = order as u8;
    }

    fn unlink(&mut self, unit: u32, order: usize) {
        let (next, previous) = (self.next[unit as usize], self.previous[unit as usize]);
        match previous {
            NONE => self.free[order] = next,
            _ => self.next[previous as usize] = next,
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        self.order_at[unit as usize] = TAKEN;
    }
}

fn order_for(bytes: u64) -> usize {
    bytes.div_ceil(UNIT_BYTES).max(1).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_pool_returns_none_and_recovers() {
        let mut pool = Pool::new(16 * UNIT_BYTES).unwrap();
        let all = pool.take(16 * UNIT_BYTES).unwrap();
        assert_eq!(pool.take(1), None);
        pool.give(all);
        assert_eq!(pool.take(pool.largest()).unwrap().bytes(), 16 * UNIT_BYTES);
    }

    #[test]
    fn buffers_keep_their_data() {
        let mut pool = Pool::new(4 * UNIT_BYTES).unwrap();
        let arena = Arc::clone(pool.arena());
        let (mut a, mut b) = (pool.take(512).unwrap(), pool.take(5000).unwrap());
        arena.bytes_mut(&mut a, 512).fill(1);
        arena.bytes_mut(&mut b, 5000).fill(2);
        assert!(arena.bytes(&a, 512).iter().all(|&x| x == 1));
        assert!(arena.bytes(&b, 5000).iter().all(|&x| x == 2));
        assert_eq!(arena.address(&a) as usize % 4096, 0);
    }

    proptest! {
        /// Buffers never overlap, and after all are returned the area is one part again.
        #[test]
        fn no_two_buffers_overlap(steps in prop::collection::vec((any::<bool>(), 1u64..40_000), 1..200)) {
            let mut pool = Pool::new(64 * UNIT_BYTES).unwrap();
            let mut held: Vec<Buffer> = Vec::new();
            for (take, size) in steps {
                if take {
                    held.extend(pool.take(size));
                } else if !held.is_empty() {
                    let buffer = held.swap_remove(size as usize % held.len());
                    pool.give(buffer);
                }
                let mut pieces: Vec<_> = held.iter().map(|b| (b.offset() as u64, b.bytes())).collect();
                pieces.sort_unstable();
                for pair in pieces.windows(2) {
                    prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0);
                }
            }
            held.into_iter().for_each(|b| pool.give(b));
            prop_assert_eq!(pool.take(64 * UNIT_BYTES).map(|b| b.bytes()), Some(64 * UNIT_BYTES));
        }
    }
}
