//! A histogram of whole numbers with bins of equal relative width.

/// Bins per octave: numbers of a bin differ by at most 1.6 %, and numbers below this are exact.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Weighted counts of whole numbers, in constant memory.
#[derive(Clone, Debug, Default)]
pub struct LogHistogram {
    /// Weight, and weight times number, of each bin.
    bins: Vec<(f64, f64)>,
    total: f64,
}

impl LogHistogram {
    /// The index of the bin that counts a number.
    pub fn bin(number: u64) -> usize {
        if number < STEPS {
            return number as usize;
        }
        let octave = number.ilog2() - STEP_BITS;
        (u64::from(octave) * STEPS + (number >> octave)) as usize
    }

    /// Counts a number.
    pub fn add(&mut self, number: u64, weight: f64) {
        let bin = Self::bin(number);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, (0.0, 0.0));
        }
        self.bins[bin].0 += weight;
        self.bins[bin].1 += weight * number as f64;
        self.total += weight;
    }

    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The weight in the bins below that of `number`.
    pub fn below(&self, number: u64) -> f64 {
        self.bins.iter().take(Self::bin(number)).map(|(weight, _)| weight).sum()
    }

    /// Each bin that is not empty: its index, the mean of its numbers, and its weight; rising.
    pub fn values(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let filled = self.bins.iter().enumerate().filter(|(_, (weight, _))| *weight > 0.0);
        filled.map(|(bin, (weight, sum))| (bin, sum / weight, *weight))
    }

    /// The smallest number, as the mean of its bin, that at least this share of the weight does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut upto = 0.0;
        let mut last = 0.0;
        for (_, number, weight) in self.values() {
            upto += weight;
            last = number;
            if upto >= share * self.total {
                break;
            }
        }
        last
    }

    /// The statistic of Kolmogorov and Smirnov: the largest difference of the two distribution functions. With `beyond`,
    /// each has this much more weight above all numbers.
    pub fn ks(&self, other: &Self, beyond: (f64, f64)) -> f64 {
        let totals = (self.total + beyond.0, other.total + beyond.1);
        if totals.0 <= 0.0 || totals.1 <= 0.0 {
            return if totals.0 <= 0.0 && totals.1 <= 0.0 { 0.0 } else { 1.0 };
        }
        let (mut one, mut two, mut most) = (0.0, 0.0, 0.0_f64);
        for bin in 0..self.bins.len().max(other.bins.len()) {
            one += self.bins.get(bin).map_or(0.0, |(weight, _)| *weight);
            two += other.bins.get(bin).map_or(0.0, |(weight, _)| *weight);
            most = most.max((one / totals.0 - two / totals.1).abs());
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_rise_and_are_at_most_1_6_percent_wide() {
        let mut last = 0;
        for number in (0..100_000).chain([1 << 40, u64::MAX]) {
            let bin = LogHistogram::bin(number);
            assert!(bin >= last);
            last = bin;
        }
        assert_eq!(LogHistogram::bin(63) + 1, LogHistogram::bin(64));
        assert_eq!(LogHistogram::bin(1 << 30), LogHistogram::bin((1 << 30) + (1 << 24) - 1));
        assert_ne!(LogHistogram::bin(1 << 30), LogHistogram::bin((1 << 30) + (1 << 24)));
    }

    #[test]
    fn the_largest_difference_of_distribution_functions_is_found() {
        let (mut one, mut two) = (LogHistogram::default(), LogHistogram::default());
        (0..10).for_each(|n| one.add(n, 1.0));
        (5..15).for_each(|n| two.add(n, 1.0));
        assert!((one.ks(&two, (0.0, 0.0)) - 0.5).abs() < 1e-12);
        assert!((one.ks(&one, (0.0, 10.0)) - 0.5).abs() < 1e-12);
        assert_eq!((one.below(3), one.quantile(0.5)), (3.0, 4.0));
    }
}
