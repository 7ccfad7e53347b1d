//! Where in its space a rank is: in order, or scattered.

use iosonar_trace::params::ParamType;
use iosonar_trace::permutation::Permutation;

/// The words of the setting.
pub(super) const RANKS: ParamType = ParamType::Word(&["scattered", "sorted", "hashed"]);
pub(super) const RANKS_HELP: &str = "placement of frequent positions: scattered, the most frequent first, or by fio's hash, \
                                     which puts several ranks at the same position";

/// Maps ranks to slots.
pub(super) enum Scatter {
    Sorted,
    Scattered(Permutation),
    /// As fio does it: the multiplication by the golden ratio, modulo the slots, from an offset on (`__hash_u64` in hash.h,
    /// `zipf_next` and `gauss_next` in lib/). Ranks share a slot unless the number of slots is a power of two.
    Hashed {
        slots: u64,
        offset: u64,
    },
}

const GOLDEN_RATIO: u64 = 0x61c8_8646_80b5_83eb;

impl Scatter {
    pub fn new(word: &str, slots: u64, seed: u64) -> Self {
        match word {
            "scattered" => Self::Scattered(Permutation::new(slots, (seed, 0))),
            "hashed" => Self::Hashed { slots, offset: seed.wrapping_mul(GOLDEN_RATIO) % slots },
            _ => Self::Sorted,
        }
    }

    pub fn map(&self, rank: u64) -> u64 {
        match self {
            Self::Sorted => rank,
            Self::Scattered(permutation) => permutation.map(rank),
            Self::Hashed { slots, offset } => {
                let hash = rank.wrapping_mul(GOLDEN_RATIO) % slots;
                ((u128::from(hash) + u128::from(*offset)) % u128::from(*slots)) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of 4 KiB that fio 3.33 used of a file of 60 MiB, and the share of its hottest tenth: 131,072 requests of
    /// `random_distribution=normal:10`, without a map.
    #[test]
    fn hashed_normal_positions_have_the_frequencies_of_fio() {
        for (slots, places, hottest) in [(60 * 256, 6201.0, 0.549), (64 * 256, 8172.0, 0.4462)] {
            let drawn = super::super::first("normal deviation=8.819% placement=hashed", slots, 131_072);
            let mut counts = vec![0_u32; slots as usize];
            drawn.iter().for_each(|slot| counts[*slot as usize] += 1);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let used = counts.iter().filter(|count| **count > 0).count() as f64;
            let tenth = counts[..slots as usize / 10].iter().sum::<u32>() as f64 / 131_072.0;
            assert!((used / places - 1.0).abs() < 0.05 && (tenth - hottest).abs() < 0.02, "{slots}: {used} {tenth}");
            // Over the whole file, as uniform positions: 28.9 % of it.
            let mean = drawn.iter().map(|slot| *slot as f64).sum::<f64>() / drawn.len() as f64;
            let squares = drawn.iter().map(|slot| (*slot as f64 - mean).powi(2)).sum::<f64>();
            let deviation = (squares / drawn.len() as f64).sqrt() / slots as f64;
            assert!((deviation - 0.289).abs() < 0.01, "{deviation}");
        }
    }

    #[test]
    fn every_rank_has_a_slot() {
        for word in ["sorted", "scattered", "hashed"] {
            let scatter = Scatter::new(word, 1000, 7);
            assert!((0..1000).all(|rank| scatter.map(rank) < 1000), "{word}");
        }
    }
}
