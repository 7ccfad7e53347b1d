//! The buckets of live histograms: those that a text has (classic ones) and those of native histograms. A time is counted in a
//! cell between two bounds of either, so that one counter serves both, exactly.

use std::sync::LazyLock;

/// Native histograms have this many buckets for each doubling: schema 3.
pub const SCHEMA: i32 = 3;
/// Bounds in a decade, in hundredths.
const DECADE: [u64; 10] = [100, 125, 160, 200, 250, 320, 400, 500, 630, 800];
/// The decades of classic buckets: from 1 µs to 100 s.
const DECADES: u32 = 8;
/// The buckets of native histograms, which hold all times from 1 ns on.
const NATIVE: std::ops::RangeInclusive<i32> = -239..=272;

/// Both kinds of buckets.
#[derive(Debug)]
pub struct Layout {
    /// The highest time of each cell but the last, in ns, ascending. The first is 0.
    bounds: Vec<u64>,
    /// The highest time of each classic bucket, and its last cell.
    classic: Vec<(u64, usize)>,
    /// The number of each native bucket, and its last cell.
    native: Vec<(i32, usize)>,
}

/// The only layout.
pub static LAYOUT: LazyLock<Layout> = LazyLock::new(Layout::new);

impl Layout {
    fn new() -> Self {
        let decades = (0..DECADES).map(|decade| 10_u64.pow(decade + 1));
        let classic: Vec<u64> = decades
            .flat_map(|hundredths_us| DECADE.map(|part| part * hundredths_us))
            .chain([10_u64.pow(DECADES + 3)])
            .collect();
        let native: Vec<(i32, u64)> = NATIVE.map(|index| (index, native_bound(index))).collect();
        let mut bounds: Vec<u64> =
            classic.iter().copied().chain(native.iter().map(|(_, bound)| *bound)).chain([0]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let cell = |bound: u64| bounds.partition_point(|each| *each < bound);
        Self {
            classic: classic.iter().map(|&bound| (bound, cell(bound))).collect(),
            native: native.iter().map(|&(index, bound)| (index, cell(bound))).collect(),
            bounds,
        }
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.bounds.len() + 1
    }

    /// The cell of a time in ns.
    #[inline]
    pub fn cell(&self, time: u64) -> usize {
        self.bounds.partition_point(|bound| *bound < time)
    }

    /// For each classic bucket its highest time in ns, and how many times are not longer.
    pub fn classic(&self, cells: &[u64]) -> Vec<(u64, u64)> {
        let mut below = 0;
        let mut next = 0;
        let counted = self.classic.iter().map(|&(bound, last)| {
            below += cells[next..=last].iter().sum::<u64>();
            next = last + 1;
            (bound, below)
        });
        counted.collect()
    }

    /// The native buckets that hold times, with their numbers. Times of 0 are in none.
    pub fn native(&self, cells: &[u64]) -> Vec<(i32, u64)> {
        // Cell 0 has the times of 0.
        let mut next = 1;
        let mut found = Vec::new();
        for &(index, last) in &self.native {
            // Short buckets of the same whole nanoseconds: the first has them.
            if last >= next {
                let count = cells[next..=last].iter().sum();
                next = last + 1;
                if count > 0 {
                    found.push((index, count));
                }
            }
        }
        found
    }
}

/// The highest time of a native bucket, in whole ns.
fn native_bound(index: i32) -> u64 {
    let per_doubling = 1 << SCHEMA;
    let (whole, part) = (index.div_euclid(per_doubling), index.rem_euclid(per_doubling));
    // Exact where the bound is a power of two.
    (1e9 * 2_f64.powi(whole) * 2_f64.powf(f64::from(part) / f64::from(per_doubling))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each time is compared with all bounds.
    #[test]
    fn both_kinds_of_buckets_count_exactly() {
        let times: Vec<u64> = (0..5000_u64)
            .map(|i| i * i * i / 7)
            .chain([
                999,
                1000,
                1001,
                1250,
                1251,
                100_000_000_000,
                100_000_000_001,
                1_953_125,
                1_953_126,
                i64::MAX as u64,
            ])
            .collect();
        let mut cells = vec![0; LAYOUT.cells()];
        times.iter().for_each(|&time| cells[LAYOUT.cell(time)] += 1);
        for (bound, count) in LAYOUT.classic(&cells) {
            assert_eq!(count, times.iter().filter(|time| **time <= bound).count() as u64, "{bound}");
        }
        let native = LAYOUT.native(&cells);
        let positive = times.iter().filter(|time| **time > 0).count() as u64;
        assert_eq!(native.iter().map(|(_, count)| count).sum::<u64>(), positive);
        for (index, count) in native {
            let bound = |index: i32| 2_f64.powf(f64::from(index) / 8.0) * 1e9;
            let within = |time: &&u64| {
                bound(index - 1) * (1.0 - 1e-12) < **time as f64 && **time as f64 <= bound(index) * (1.0 + 1e-12)
            };
            assert!(times.iter().filter(within).count() as u64 >= count, "{index}");
        }
    }

    #[test]
    fn classic_bounds_are_round_numbers() {
        let bounds: Vec<u64> = LAYOUT.classic.iter().map(|(bound, _)| *bound).collect();
        assert_eq!(bounds[..4], [1000, 1250, 1600, 2000]);
        assert_eq!((bounds.len(), bounds[80]), (81, 100_000_000_000));
    }
}
