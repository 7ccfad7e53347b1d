//! The difference in issue times between two files, without the constant difference of their zeros.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Differences of issue times, recorded minus run's, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Number of requests compared.
    pub compared: u64,
    /// The constant part: the median difference. It includes the distance between the two files' zeros.
    pub offset_ns: i64,
    /// Median of the absolute difference after subtracting the constant part.
    pub median_ns: u64,
    /// 99th percentile of the same difference.
    pub p99_ns: u64,
    /// Maximum of the same difference.
    pub max_ns: u64,
}

/// The differences of all passes. The first pass (nearly always the only one) determines the constant part; deviations
/// from it are kept as a histogram, exact to a thousandth.
#[derive(Default)]
pub struct Collected {
    first: Option<First>,
}

struct First {
    offset: i64,
    deviations: Histogram<u64>,
}

impl Collected {
    /// Adds the differences of a pass.
    pub fn add(&mut self, mut differences: Vec<i64>) {
        if differences.is_empty() {
            return;
        }
        let First { offset, deviations } = self.first.get_or_insert_with(|| {
            let middle = (differences.len() - 1) / 2;
            let (_, &mut offset, _) = differences.select_nth_unstable(middle);
            First { offset, deviations: Histogram::new(3).expect("three digits are allowed") }
        });
        for difference in differences {
            deviations.record(difference.abs_diff(*offset)).expect("the histogram grows as needed");
        }
    }

    /// The result; `None` without differences.
    pub fn conclude(self) -> Option<Times> {
        let First { offset, deviations } = self.first?;
        Some(Times {
            compared: deviations.len(),
            offset_ns: offset,
            median_ns: deviations.value_at_quantile(0.5).min(deviations.max()),
            p99_ns: deviations.value_at_quantile(0.99).min(deviations.max()),
            max_ns: deviations.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_part_is_subtracted() {
        let mut collected = Collected::default();
        collected.add((0..=100).map(|i| 5_000_000_000 + i - 50).collect());
        let times = collected.conclude().unwrap();
        assert_eq!(times, Times { compared: 101, offset_ns: 5_000_000_000, median_ns: 25, p99_ns: 50, max_ns: 50 });
    }

    #[test]
    fn later_passes_use_the_constant_of_the_first() {
        let mut collected = Collected::default();
        collected.add(Vec::new());
        collected.add(vec![10, 10, 10]);
        collected.add(vec![13]);
        let times = collected.conclude().unwrap();
        assert_eq!((times.compared, times.offset_ns, times.max_ns), (4, 10, 3));
        assert_eq!(Collected::default().conclude(), None);
    }
}
