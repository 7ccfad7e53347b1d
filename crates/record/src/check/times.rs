//! How the issue times of two files differ, apart from the constant difference of their zeros.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Differences of issue times, recorded minus run's, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Requests that were compared.
    pub compared: u64,
    /// The constant part: the median difference. It holds the distance of the two files' zeros.
    pub offset_ns: i64,
    /// What is left of the difference without its constant part, its sign left out: the median.
    pub median_ns: u64,
    /// The 99th percentile of the same.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

/// Differences as the passes bring them. The first pass (nearly always the only one) gives the constant part; what is
/// left is kept as a histogram, exact to a thousandth.
#[derive(Default)]
pub struct Collected {
    first: Option<First>,
}

struct First {
    offset: i64,
    left: Histogram<u64>,
}

impl Collected {
    /// Takes the differences of a pass.
    pub fn add(&mut self, mut differences: Vec<i64>) {
        if differences.is_empty() {
            return;
        }
        let First { offset, left } = self.first.get_or_insert_with(|| {
            let middle = (differences.len() - 1) / 2;
            let (_, &mut offset, _) = differences.select_nth_unstable(middle);
            First { offset, left: Histogram::new(3).expect("three digits are allowed") }
        });
        for difference in differences {
            left.record(difference.abs_diff(*offset)).expect("the histogram grows as needed");
        }
    }

    /// The end.
    pub fn conclude(self) -> Option<Times> {
        let First { offset, left } = self.first?;
        Some(Times {
            compared: left.len(),
            offset_ns: offset,
            median_ns: left.value_at_quantile(0.5).min(left.max()),
            p99_ns: left.value_at_quantile(0.99).min(left.max()),
            max_ns: left.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_part_is_taken_out() {
        let mut collected = Collected::default();
        collected.add((0..=100).map(|i| 5_000_000_000 + i - 50).collect());
        let times = collected.conclude().unwrap();
        assert_eq!(times, Times { compared: 101, offset_ns: 5_000_000_000, median_ns: 25, p99_ns: 50, max_ns: 50 });
    }

    #[test]
    fn later_passes_count_from_the_first_ones_constant() {
        let mut collected = Collected::default();
        collected.add(Vec::new());
        collected.add(vec![10, 10, 10]);
        collected.add(vec![13]);
        let times = collected.conclude().unwrap();
        assert_eq!((times.compared, times.offset_ns, times.max_ns), (4, 10, 3));
        assert_eq!(Collected::default().conclude(), None);
    }
}
