//! The largest working sets of a load, and the smallest cache that serves it.
//!
//! The working set WS(t, δ) is all blocks that requests of the times [t − δ, t] touch (Denning, "The Working Set Model for
//! Program Behavior", 1968). A cache of C bytes in front of storage that fills it with R bytes per second has the fill time
//! C/R. It serves the load if |WS(t, δ)| ≤ C at every t for some δ ≥ C/R; as working sets only grow with δ, that is
//! the case if and only if it holds for δ = C/R.
//!
//! As |WS| changes at requests only, its maximum over all t is that at the requests: exact, without samples of time. Sets
//! are counted in a log of touches, in which the last one of each block counts: a window of time is where it begins in the
//! log, and how many count from there on.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use iosonar_trace::Nanos;

use super::reuse::{ALL, hash};

/// How fast a cache fills.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes per second from the storage below into the cache.
    pub bytes_per_s: u64,
}

impl Filled {
    /// The time to fill so many blocks, in whole nanoseconds, rounded down.
    pub fn time(self, blocks: u64) -> Nanos {
        let ns = u128::from(blocks) * u128::from(self.block_bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
        Nanos(i64::try_from(ns).unwrap_or(i64::MAX).min(i64::MAX / 4))
    }
}

/// More blocks than fit into memory: measure a smaller part of them.
#[derive(Debug)]
pub struct TooManyBlocks;

/// A window that ends at the last request: where it begins in the log, and the blocks touched since.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    length: Nanos,
    start: usize,
    blocks: u64,
    /// The most blocks so far.
    most: u64,
}

impl Window {
    /// Drops the touches before `length`.
    fn expire(&mut self, log: &[Touch], at: Nanos) {
        while let Some(touch) = log.get(self.start).filter(|touch| touch.at < at - self.length) {
            self.blocks -= u64::from(touch.is_last);
            self.start += 1;
        }
    }

    /// Takes back touches that a longer window has.
    fn reach_back(&mut self, log: &[Touch], at: Nanos) {
        while let Some(touch) = self.start.checked_sub(1).map(|before| log[before]).filter(|t| t.at >= at - self.length)
        {
            self.blocks += u64::from(touch.is_last);
            self.start -= 1;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Touch {
    at: Nanos,
    /// Whether its block was not touched again since.
    is_last: bool,
}

/// Measures working sets, request by request in the order of time.
///
/// One reading finds the largest working sets of given windows. The smallest cache takes several: each search starts with the
/// size that the last reading found, and grows where a working set is larger. A size that does not grow serves the load.
/// No smaller one does: each was refused by a working set, within its own fill time or less.
#[derive(Debug)]
pub struct WorkingSets {
    filled: Filled,
    last: HashMap<u64, u32, FixedState>,
    log: Vec<Touch>,
    /// With the fill times of caches of given sizes, the smallest first.
    windows: Vec<Window>,
    /// The windows that are shorter than the time since the first request; the others have all blocks.
    begun: usize,
    first: Option<Nanos>,
    /// All blocks after the last request.
    before: u64,
    /// Caches that grow: their blocks, and the window of their fill time.
    searches: Vec<(u64, Window)>,
    /// Each measured block stands for 2^halvings.
    halvings: u32,
    most: usize,
}

impl WorkingSets {
    /// `sizes` are those of caches, in blocks, in ascending order, `from` where searches start. At most `most` blocks are in
    /// memory, at about 80 bytes each; one of 2^`halvings` blocks is measured.
    pub fn new(filled: Filled, sizes: &[u64], from: &[u64], halvings: u32, most: usize) -> Self {
        let window = |blocks: &u64| Window { length: filled.time(*blocks), ..Window::default() };
        Self {
            filled,
            last: HashMap::default(),
            log: Vec::new(),
            windows: sizes.iter().map(window).collect(),
            begun: 0,
            first: None,
            before: 0,
            searches: from.iter().map(|blocks| (*blocks, window(blocks))).collect(),
            halvings,
            most: most.clamp(1, 1 << 30),
        }
    }

    /// A request that touches these blocks.
    ///
    /// # Errors
    /// If all requests together touch too many blocks.
    pub fn request(&mut self, at: Nanos, blocks: impl Iterator<Item = u64>) -> Result<(), TooManyBlocks> {
        let first = *self.first.get_or_insert(at);
        while let Some(window) = self.windows.get_mut(self.begun).filter(|window| window.length < at - first) {
            *window = Window { blocks: self.last.len() as u64, most: self.before, ..*window };
            self.begun += 1;
        }
        for block in blocks {
            if hash(block) < ALL >> self.halvings {
                self.touch(at, block);
            }
            if self.last.len() > self.most {
                return Err(TooManyBlocks);
            }
        }
        self.before = self.last.len() as u64;
        for window in &mut self.windows[..self.begun] {
            window.expire(&self.log, at);
            window.most = window.most.max(window.blocks);
        }
        for (size, window) in &mut self.searches {
            window.expire(&self.log, at);
            while window.blocks << self.halvings > *size {
                *size = window.blocks << self.halvings;
                window.length = self.filled.time(*size);
                window.reach_back(&self.log, at);
            }
        }
        Ok(())
    }

    fn touch(&mut self, at: Nanos, block: u64) {
        if self.log.len() >= 2 * self.last.len() + 1024 {
            self.compact();
        }
        let before = self.last.insert(block, self.log.len() as u32).map(|before| before as usize);
        if let Some(before) = before {
            self.log[before].is_last = false;
        }
        self.log.push(Touch { at, is_last: true });
        for window in self.windows[..self.begun].iter_mut().chain(self.searches.iter_mut().map(|(_, window)| window)) {
            // Longer windows have it as well.
            window.blocks += u64::from(before.is_none_or(|before| before < window.start));
        }
    }

    /// Removes the touches that do not count.
    fn compact(&mut self) {
        let mut places = Vec::with_capacity(self.log.len() + 1);
        let mut place = 0;
        for touch in &self.log {
            places.push(place);
            place += u32::from(touch.is_last);
        }
        places.push(place);
        self.log.retain(|touch| touch.is_last);
        self.last.values_mut().for_each(|at| *at = places[*at as usize]);
        for window in self.windows.iter_mut().chain(self.searches.iter_mut().map(|(_, window)| window)) {
            window.start = places[window.start] as usize;
        }
    }

    /// All blocks.
    pub fn all(&self) -> u64 {
        (self.last.len() as u64) << self.halvings
    }

    /// The largest working sets within the fill time of each size, in blocks.
    pub fn largest(&self) -> Vec<u64> {
        let most = |(number, window): (usize, &Window)| if number < self.begun { window.most } else { self.before };
        self.windows.iter().enumerate().map(most).map(|blocks| blocks << self.halvings).collect()
    }

    /// The sizes that the searches have reached, in blocks.
    pub fn found(&self) -> Vec<u64> {
        self.searches.iter().map(|(size, _)| *size).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Requests, as times in ns and blocks.
    type Load = Vec<(i64, Vec<u64>)>;

    /// The largest working set, from the definition: for each request, the set of all blocks within the window before it.
    fn largest(load: &Load, window: i64) -> u64 {
        let set = |end: i64| -> HashSet<u64> {
            let within = load.iter().filter(|(at, _)| (end - window..=end).contains(at));
            within.flat_map(|(_, blocks)| blocks).copied().collect()
        };
        load.iter().map(|(end, _)| set(*end).len() as u64).max().unwrap_or(0)
    }

    /// The smallest size from `from` on that serves the load, by trying all.
    fn smallest(load: &Load, filled: Filled, from: u64) -> u64 {
        (from..).find(|size| largest(load, filled.time(*size).0) <= *size).unwrap()
    }

    /// As many readings as the searches need.
    fn searched(load: &Load, filled: Filled, sizes: &[u64], from: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let (mut start, mut sets) = (from.to_vec(), None);
        loop {
            let mut measured = WorkingSets::new(filled, sizes, &start, 0, 1 << 20);
            for (at, blocks) in load {
                measured.request(Nanos(*at), blocks.iter().copied()).unwrap();
            }
            sets.get_or_insert(measured.largest());
            if measured.found() == start {
                return (start, sets.unwrap());
            }
            start = measured.found();
        }
    }

    proptest! {
        #[test]
        fn sets_and_sizes_are_those_of_trying_all(
            steps in prop::collection::vec((0_i64..12, prop::collection::vec(0_u64..40, 0..4)), 1..120),
            speed in 1_u64..8,
            upper in 0_u64..50,
        ) {
            let mut at = 0;
            let load: Load = steps.into_iter().map(|(gap, blocks)| { at += gap; (at, blocks) }).collect();
            // A block takes from 1/2 to 4 ns.
            let filled = Filled { block_bytes: 4, bytes_per_s: speed * 1_000_000_000 };
            let sizes: Vec<u64> = (1..60).collect();
            let (found, sets) = searched(&load, filled, &sizes, &[0, upper]);
            prop_assert_eq!(found, vec![smallest(&load, filled, 0), smallest(&load, filled, upper)]);
            for (size, set) in sizes.iter().zip(sets) {
                prop_assert_eq!(set, largest(&load, filled.time(*size).0), "size {}", size);
            }
        }
    }

    #[test]
    fn many_touches_of_few_blocks_keep_the_log_short() {
        let filled = Filled { block_bytes: 1, bytes_per_s: 1_000_000_000 };
        let load: Load = (0..20_000).map(|n| (n, vec![n as u64 * n as u64 % 97])).collect();
        let (found, sets) = searched(&load, filled, &[3, 30, 3000], &[0]);
        assert_eq!(sets, [3, 30, 3000].map(|window| largest(&load[..400].to_vec(), window.min(398))));
        assert_eq!(found, [smallest(&load[..400].to_vec(), filled, 0)]);
        let mut measured = WorkingSets::new(filled, &[3], &[0], 0, 100);
        for (at, blocks) in load {
            measured.request(Nanos(at), blocks.into_iter()).unwrap();
            assert!(measured.log.len() <= 2 * 97 + 1024);
        }
    }

    #[test]
    fn a_larger_cache_can_have_a_window_with_two_bursts() {
        // Ten blocks at once, ten others 15 s later, at one block per second.
        let filled = Filled { block_bytes: 4096, bytes_per_s: 4096 };
        let load: Load = vec![(0, (0..10).collect()), (15_000_000_000, (10..20).collect())];
        let (found, sets) = searched(&load, filled, &[9, 10, 14, 15, 19, 20], &[0, 15]);
        assert_eq!((found, sets), (vec![10, 20], vec![10, 10, 10, 20, 20, 20]));
    }

    #[test]
    fn a_part_of_the_blocks_stands_for_all() {
        let filled = Filled { block_bytes: 4096, bytes_per_s: 1 << 20 };
        let measured = |halvings, most| {
            let mut measured = WorkingSets::new(filled, &[1 << 14], &[], halvings, most);
            let mut requests = (0..1_u64 << 16).map(|n| measured.request(Nanos(n as i64 * 10_000), [n].into_iter()));
            let is_whole = requests.all(|request| request.is_ok());
            is_whole.then(|| measured.largest()[0] as f64)
        };
        assert_eq!(measured(0, 1 << 15), None);
        let (all, part) = (measured(0, 1 << 16).unwrap(), measured(4, 1 << 15).unwrap());
        assert!((part / all - 1.0).abs() < 0.1, "{part} {all}");
    }
}
