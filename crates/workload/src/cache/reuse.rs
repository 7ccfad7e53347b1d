//! Reuse distances: how many other pages are accessed between two accesses to the same page.
//!
//! An LRU cache of C pages hits if the distance is below C (Mattson, Gecsei, Slutz and Traiger, "Evaluation Techniques for
//! Storage Hierarchies", 1970). The distance is a sum over a Fenwick tree: each page counts at its last access. Above a
//! number of pages it is measured on those whose hash is below a threshold, which sinks so that the number stays the same:
//! SHARDS (Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015).

use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::FixedState;
use iosonar_trace::{Op, Request};

/// Sectors of a page.
pub const PAGE: u64 = 8;

/// The pages of this many sectors that a read or write touches, as numbers that differ between devices.
pub fn pages(request: &Request, sectors: u64) -> impl Iterator<Item = u64> {
    let moves = matches!(request.op, Op::Read | Op::Write) && !request.is_empty();
    let (first, end) = (request.sector.0 / sectors, request.end().0.div_ceil(sectors));
    let device = u64::from(request.device.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (first..if moves { end } else { first }).map(move |page| page ^ device)
}

/// An access to a page of the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reuse {
    /// Distinct other pages since the last access to this one, scaled to all pages; none for its first access.
    pub distance: Option<f64>,
    /// Accesses to all pages that this one represents.
    pub weight: f64,
}

/// Measures reuse distances, access by access, in bounded memory.
pub struct ReuseDistances {
    /// When each page was last accessed: an index into the tree.
    last: HashMap<u64, u32, FixedState>,
    /// A Fenwick tree of the times that are the last ones of a page.
    tree: Vec<u32>,
    /// The next time.
    now: u32,
    /// The pages of the sample by their hash, if it is one.
    by_hash: BinaryHeap<(u64, u64)>,
    /// Only pages with a smaller hash are measured.
    threshold: u64,
    most: usize,
}

/// Hashes are below this.
pub(super) const ALL: u64 = 1 << 32;

impl ReuseDistances {
    /// At most this many pages are in memory at a time, at about 60 bytes each.
    pub fn new(most: usize) -> Self {
        let tree = vec![0; 1025];
        let most = most.clamp(1, 1 << 30);
        Self { last: HashMap::default(), tree, now: 0, by_hash: BinaryHeap::new(), threshold: ALL, most }
    }

    /// The share of all pages that is measured.
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / ALL as f64
    }

    /// An access; none if the page is not in the sample.
    pub fn access(&mut self, page: u64) -> Option<Reuse> {
        let hash = hash(page);
        if hash >= self.threshold {
            return None;
        }
        if self.now as usize + 1 >= self.tree.len() {
            self.renumber();
        }
        let rate = self.rate();
        let (before, now) = (self.last.insert(page, self.now), self.now);
        let distance = before.map(|before| {
            let distance = self.last.len() as u32 - self.upto(before);
            self.add(before, u32::MAX);
            f64::from(distance) / rate
        });
        self.add(now, 1);
        self.now += 1;
        if before.is_none() {
            self.by_hash.push((hash, page));
            if self.last.len() > self.most {
                self.shrink();
            }
        }
        Some(Reuse { distance, weight: 1.0 / rate })
    }

    /// Drops the pages with the largest hash.
    fn shrink(&mut self) {
        let Some((highest, _)) = self.by_hash.peek().copied() else { return };
        self.threshold = highest;
        while let Some((hash, page)) = self.by_hash.peek().copied()
            && hash >= highest
        {
            self.by_hash.pop();
            if let Some(at) = self.last.remove(&page) {
                self.add(at, u32::MAX);
            }
        }
    }

    /// Pages whose last access was at this time or before.
    fn upto(&self, time: u32) -> u32 {
        let (mut index, mut sum) = (time as usize + 1, 0_u32);
        while index > 0 {
            sum = sum.wrapping_add(self.tree[index]);
            index &= index - 1;
        }
        sum
    }

    /// Modulo 2^32, so that `u32::MAX` subtracts one.
    fn add(&mut self, time: u32, count: u32) {
        let mut index = time as usize + 1;
        while let Some(node) = self.tree.get_mut(index) {
            *node = node.wrapping_add(count);
            index += index & index.wrapping_neg();
        }
    }

    /// Numbers the last accesses from 0 on, in their order, and makes the tree at least twice as long.
    fn renumber(&mut self) {
        let mut times: Vec<(u32, u64)> = self.last.iter().map(|(page, time)| (*time, *page)).collect();
        times.sort_unstable();
        let length = (times.len() * 2 + 1024).next_power_of_two();
        self.tree = vec![0; length + 1];
        for (time, (_, page)) in times.iter().enumerate() {
            self.last.insert(*page, time as u32);
            self.tree[time + 1] = 1;
        }
        for index in 1..=length {
            let parent = index + (index & index.wrapping_neg());
            if parent <= length {
                self.tree[parent] += self.tree[index];
            }
        }
        self.now = times.len() as u32;
    }
}

/// The upper half of splitmix64.
pub(super) fn hash(page: u64) -> u64 {
    let x = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) >> 32
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Nanos, Sector, Sectors};
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::Rng;

    #[test]
    fn distances_are_those_of_a_list() {
        let mut rng = Rng::seed_from_u64(1);
        let (mut list, mut measured) = (Vec::<u64>::new(), ReuseDistances::new(1 << 20));
        for _ in 0..5000 {
            let page = (rng.random::<f64>().powi(3) * 700.0) as u64;
            let expected = list.iter().rposition(|other| *other == page).map(|at| {
                let distance = list.len() - 1 - at;
                list.remove(at);
                distance as f64
            });
            list.push(page);
            assert_eq!(measured.access(page), Some(Reuse { distance: expected, weight: 1.0 }));
        }
    }

    #[test]
    fn a_sample_has_the_hit_ratio_of_all_pages() {
        let mut rng = Rng::seed_from_u64(1);
        let law = crate::distributions::Zipf::new(100_000, 0.8).unwrap();
        let accesses: Vec<u64> = (0..400_000).map(|_| law.number(&mut rng)).collect();
        let ratio = |most: usize| {
            let (mut measured, mut hits, mut all) = (ReuseDistances::new(most), 0.0, 0.0);
            for page in &accesses {
                if let Some(Reuse { distance, weight }) = measured.access(*page) {
                    all += weight;
                    hits += if distance.is_some_and(|distance| distance < 8000.0) { weight } else { 0.0 };
                }
            }
            assert!(measured.last.len() <= most && measured.by_hash.len() <= most);
            (hits / all, measured.rate())
        };
        let ((exact, all), (sampled, rate)) = (ratio(1 << 20), ratio(4000));
        assert!(all == 1.0 && (0.03..0.06).contains(&rate), "{rate}");
        assert!((exact - sampled).abs() < 0.05, "{exact} {sampled}");
    }

    #[test]
    fn a_request_touches_each_page_of_its_range() {
        let request = Request::new(Nanos(0), Op::Write, Sector(7), Sectors(10));
        assert_eq!(pages(&request, PAGE).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(pages(&Request { op: Op::Discard, ..request }, PAGE).count(), 0);
        assert_eq!(pages(&Request { sectors: Sectors(0), ..request }, PAGE).count(), 0);
    }
}
