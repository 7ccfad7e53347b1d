//! How a cache fills that is as large as its working set.

use rand::{RngExt, SeedableRng};

use crate::Rng;
use crate::distributions::{Zipf, bisect};

/// A cache with an entry for each of the blocks that are read at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filling {
    entries: u64,
    /// The exponent of a Zipf distribution; none if all entries are equally likely.
    zipf: Option<f64>,
}

/// Euler's constant, γ.
const EULER: f64 = 0.577_215_664_901_532_9;

/// Entries whose probabilities are summed one by one. Beyond them, ranks are summed in groups.
const SUMMED: u64 = 1 << 16;
/// Relative width of a group of ranks; the error of a sum by midpoints is of the order of its square.
const GROUP: f64 = 1.0 / 2048.0;

/// What a simulation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    /// Filled entries after each of the numbers of reads.
    pub filled: Vec<u64>,
    /// Reads until the last entry was filled; none if some are empty.
    pub full_after: Option<u64>,
}

impl Filling {
    /// The most entries: a simulation needs a bit for each.
    pub const MAX_ENTRIES: u64 = 1 << 36;

    /// # Errors
    /// If there are no entries or too many, or the exponent is out of range.
    pub fn new(entries: u64, zipf: Option<f64>) -> Result<Self, String> {
        if !(1..=Self::MAX_ENTRIES).contains(&entries) {
            return Err(format!("the number of entries must be from 1 to {}", Self::MAX_ENTRIES));
        }
        if let Some(exponent) = zipf {
            Zipf::new(entries, exponent)?;
        }
        Ok(Self { entries, zipf })
    }

    /// Sums `f` of the probability of an entry over all entries.
    fn sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        let n = self.entries as f64;
        let Some(exponent) = self.zipf else { return n * f(1.0 / n) };
        let whole = Zipf::harmonic(n, exponent);
        let probability = |rank: f64| libm::pow(rank, -exponent) / whole;
        let mut sum: f64 = (1..=self.entries.min(SUMMED)).rev().map(|rank| f(probability(rank as f64))).sum();
        let mut from = SUMMED + 1;
        while from <= self.entries {
            let to = (from + (from as f64 * GROUP) as u64).min(self.entries);
            sum += (to - from + 1) as f64 * f(probability(f64::midpoint(from as f64, to as f64)));
            from = to + 1;
        }
        sum
    }

    /// The expected number of filled entries after this many reads: Σ 1 − (1 − p)^reads.
    pub fn expected(&self, reads: f64) -> f64 {
        if reads <= 0.0 {
            return 0.0;
        }
        self.sum(|p| -libm::expm1(reads * libm::log1p(-p)))
    }

    /// The probability that all entries are filled after this many reads, with the number of reads of each entry taken as
    /// Poisson-distributed and independent: Π 1 − e^(−p·reads).
    pub fn full(&self, reads: f64) -> f64 {
        libm::exp(self.sum(|p| libm::log1p(-libm::exp(-p * reads))))
    }

    /// Reads after which the cache is full with this probability, above 0 and below 1.
    pub fn full_quantile(&self, probability: f64) -> f64 {
        let mut high = self.entries as f64;
        while self.full(high) < probability {
            high *= 2.0;
        }
        bisect(0.0, high, |reads| self.full(reads) - probability)
    }

    /// The expected number of reads until all entries are filled. For equally likely entries, N·(1 + 1/2 + … + 1/N), the
    /// coupon collector's N·(ln N + γ) + 1/2; else the integral of the probability that some entry is empty.
    pub fn mean_full(&self) -> f64 {
        let n = self.entries as f64;
        if self.zipf.is_none() {
            return match self.entries {
                ..=1000 => n * (1..=self.entries).rev().map(|k| 1.0 / k as f64).sum::<f64>(),
                _ => n * (libm::log(n) + EULER) + 0.5,
            };
        }
        // By the quantiles at the middles of equal shares; the upper tail falls exponentially.
        const SHARES: u32 = 64;
        (0..SHARES).map(|k| self.full_quantile((f64::from(k) + 0.5) / f64::from(SHARES))).sum::<f64>()
            / f64::from(SHARES)
    }

    /// The number of reads after which this share of the entries is filled, on average.
    pub fn reads_for(&self, share: f64) -> f64 {
        let goal = share * self.entries as f64;
        let mut high = self.entries as f64;
        while self.expected(high) < goal {
            high *= 2.0;
        }
        bisect(0.0, high, |reads| self.expected(reads) - goal)
    }

    /// Reads at random, up to the last of `after`, which rise.
    pub fn simulate(&self, after: &[u64], seed: u64) -> Simulation {
        let mut rng = Rng::seed_from_u64(seed);
        let law = self.zipf.and_then(|exponent| Zipf::new(self.entries, exponent).ok());
        let mut bits = vec![0_u64; self.entries.div_ceil(64) as usize];
        let (mut reads, mut filled) = (0, 0);
        let mut found = Simulation::default();
        for stop in after {
            while reads < *stop && filled < self.entries {
                reads += 1;
                let entry = match &law {
                    Some(law) => law.number(&mut rng) - 1,
                    None => rng.random_range(0..self.entries),
                };
                let (word, bit) = (&mut bits[(entry / 64) as usize], 1 << (entry % 64));
                if *word & bit == 0 {
                    *word |= bit;
                    filled += 1;
                    if filled == self.entries {
                        found.full_after = Some(reads);
                    }
                }
            }
            found.filled.push(filled);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_k_times_n_reads_the_share_is_one_less_e_to_the_minus_k() {
        let cache = Filling::new(1_000_000, None).unwrap();
        for (k, share) in [(1, 0.632), (2, 0.865), (3, 0.950), (4, 0.982), (5, 0.993)] {
            let filled = cache.expected(f64::from(k) * 1e6);
            assert!((filled / 1e6 - share).abs() < 0.0005, "{k}: {filled}");
            assert!((filled / 1e6 + libm::expm1(-f64::from(k))).abs() < 1e-6);
        }
        assert!((cache.mean_full() / 14_392_726.7 - 1.0).abs() < 1e-6, "{}", cache.mean_full());
        // The distribution of Gumbel around N ln N.
        let median = 1e6 * (libm::log(1e6) - libm::log(libm::log(2.0)));
        assert!((cache.full_quantile(0.5) / median - 1.0).abs() < 1e-6);
        assert!((cache.reads_for(0.632) / 1e6 - 1.0).abs() < 0.001);
    }

    #[test]
    fn a_simulation_is_within_five_deviations_of_the_formula() {
        for zipf in [None, Some(0.5), Some(1.2)] {
            let cache = Filling::new(100_000, zipf).unwrap();
            let after = [50_000, 100_000, 200_000, 400_000, 800_000];
            let found = cache.simulate(&after, 1);
            for (reads, filled) in after.iter().zip(&found.filled) {
                let expected = cache.expected(*reads as f64);
                // The variance is below the mean of the empty entries, and of the filled ones.
                let deviation = expected.min(1e5 - expected).sqrt();
                assert!((*filled as f64 - expected).abs() < 5.0 * deviation, "{zipf:?} {reads}: {filled} {expected}");
            }
        }
    }

    #[test]
    fn the_time_until_a_cache_is_full_is_that_of_simulations() {
        for zipf in [None, Some(0.7)] {
            let cache = Filling::new(500, zipf).unwrap();
            let runs: u32 = 300;
            let full = (0..runs).map(|seed| cache.simulate(&[u64::MAX], seed.into()).full_after.unwrap() as f64);
            let mean = full.sum::<f64>() / f64::from(runs);
            assert!((mean / cache.mean_full() - 1.0).abs() < 0.05, "{zipf:?}: {mean} {}", cache.mean_full());
        }
        assert!((Filling::new(2, None).unwrap().mean_full() - 3.0).abs() < 1e-12);
        assert_eq!(Filling::new(1, None).unwrap().simulate(&[5], 1).full_after, Some(1));
        assert!(Filling::new(0, None).is_err() && Filling::new(5, Some(-1.0)).is_err());
    }

    #[test]
    fn grouped_ranks_have_the_sum_of_single_ones() {
        let cache = Filling::new(200_000, Some(1.1)).unwrap();
        let whole = Zipf::harmonic(2e5, 1.1);
        let single: f64 =
            (1..=200_000).rev().map(|r| -libm::expm1(3e5 * libm::log1p(-libm::pow(f64::from(r), -1.1) / whole))).sum();
        assert!((cache.expected(3e5) / single - 1.0).abs() < 1e-6);
    }
}
