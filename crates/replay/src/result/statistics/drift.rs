//! Drift: the growth of the delay over the run.
//!
//! Single late requests are not drift, however late, and wherever in the run. So drift is computed from the *least* delay in
//! each part of the run: it is the slope of their least-squares line.

use iosonar_trace::Nanos;

/// The most parts. When a run is longer, neighbours are merged in pairs.
const PARTS: usize = 128;

/// The fewest parts for a slope; a shorter run has none.
const MIN_PARTS: usize = 8;

/// The initial length of a part.
const INITIAL_LENGTH: Nanos = Nanos(1_000_000_000);

/// The least delay of each part of a run, in constant memory.
#[derive(Clone, Debug)]
pub struct Drift {
    part: Nanos,
    least: [Option<Nanos>; PARTS],
}

impl Default for Drift {
    fn default() -> Self {
        Self { part: INITIAL_LENGTH, least: [None; PARTS] }
    }
}

impl Drift {
    /// Adds a request that was not held back.
    pub fn add(&mut self, scheduled: Nanos, delay: Nanos) {
        let mut index = self.index(scheduled);
        while index >= PARTS {
            self.merge_pairs();
            index = self.index(scheduled);
        }
        let least = &mut self.least[index];
        *least = Some(least.map_or(delay, |least| least.min(delay)));
    }

    fn index(&self, scheduled: Nanos) -> usize {
        (scheduled.0.max(0) / self.part.0) as usize
    }

    fn merge_pairs(&mut self) {
        for i in 0..PARTS / 2 {
            let pair = [self.least[2 * i], self.least[2 * i + 1]];
            self.least[i] = pair.into_iter().flatten().min();
        }
        self.least[PARTS / 2..].fill(None);
        self.part = Nanos(2 * self.part.0);
    }

    /// Growth of the delay in µs per minute; `None` for a run of a few seconds.
    pub fn us_per_min(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self
            .least
            .iter()
            .enumerate()
            .filter_map(|(i, least)| Some((i as f64 * self.part.as_secs() / 60.0, least.as_ref()?.0 as f64 / 1e3)))
            .collect();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let (covariance, variance) = points.iter().fold((0.0, 0.0), |(covariance, variance), point| {
            (covariance + (point.0 - x) * (point.1 - y), variance + (point.0 - x).powi(2))
        });
        (points.len() >= MIN_PARTS).then(|| covariance / variance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drift of a run with a request each millisecond. `delay` maps the scheduled time in ms to the delay in ns.
    fn drift(seconds: i64, delay: impl Fn(i64) -> i64) -> Option<f64> {
        let mut drift = Drift::default();
        for ms in 0..seconds * 1000 {
            drift.add(Nanos(ms * 1_000_000), Nanos(delay(ms)));
        }
        drift.us_per_min()
    }

    #[test]
    fn growing_delays_are_drift_in_runs_of_any_length() {
        for seconds in [10, 60, 127, 128, 129, 1000, 4000] {
            // 100 ns per second are 6 µs per minute. Some requests are later for another reason.
            let found = drift(seconds, |ms| ms / 10 + if ms % 7 < 3 { 80_000 } else { 200 }).unwrap();
            assert!((found - 6.0).abs() < 0.1, "{found} in {seconds} s");
        }
    }

    #[test]
    fn single_late_requests_are_not_drift() {
        let found = drift(60, |ms| if ms > 50_000 && ms % 2 == 0 { 5_000_000 } else { 150 }).unwrap();
        assert!(found.abs() < 1e-9, "{found}");
    }

    #[test]
    fn short_and_empty_runs_have_no_drift() {
        assert_eq!(drift(0, |_| 0), None);
        assert_eq!(drift(7, |_| 0), None);
    }
}
