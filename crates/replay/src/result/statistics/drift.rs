//! Whether a replayer gets later and later: the growth of its delay.
//!
//! Single late requests are no drift, however late they are and wherever in the run they lie. So what counts is the *least*
//! delay in each part of the run, and the straight line through these by least squares.

use iosonar_trace::Nanos;

/// Parts that are kept. When a run outgrows them, two neighbours become one.
const PARTS: usize = 128;

/// Parts that a line is drawn through, at least; a run of fewer is too short to say anything.
const FEWEST: usize = 8;

/// The length of a part at first.
const FIRST: Nanos = Nanos(1_000_000_000);

/// The least delay of each part of a run, in constant memory.
#[derive(Clone, Debug)]
pub struct Drift {
    part: Nanos,
    least: [Option<Nanos>; PARTS],
}

impl Default for Drift {
    fn default() -> Self {
        Self { part: FIRST, least: [None; PARTS] }
    }
}

impl Drift {
    /// Takes a request into account that was not held back.
    pub fn add(&mut self, scheduled: Nanos, delay: Nanos) {
        let mut index = self.index(scheduled);
        while index >= PARTS {
            self.coarsen();
            index = self.index(scheduled);
        }
        let least = &mut self.least[index];
        *least = Some(least.map_or(delay, |least| least.min(delay)));
    }

    fn index(&self, scheduled: Nanos) -> usize {
        (scheduled.0.max(0) / self.part.0) as usize
    }

    fn coarsen(&mut self) {
        for i in 0..PARTS / 2 {
            let pair = [self.least[2 * i], self.least[2 * i + 1]];
            self.least[i] = pair.into_iter().flatten().min();
        }
        self.least[PARTS / 2..].fill(None);
        self.part = Nanos(2 * self.part.0);
    }

    /// Growth in µs for each minute; nothing for a run of less than some seconds.
    pub fn us_per_min(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self
            .least
            .iter()
            .enumerate()
            .filter_map(|(i, least)| Some((i as f64 * self.part.as_secs() / 60.0, least.as_ref()?.0 as f64 / 1e3)))
            .collect();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let (over, under) = points.iter().fold((0.0, 0.0), |(over, under), point| {
            (over + (point.0 - x) * (point.1 - y), under + (point.0 - x).powi(2))
        });
        (points.len() >= FEWEST).then(|| over / under)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of so many seconds, a thousand requests each, with that delay in ns.
    fn drift(seconds: i64, delay: impl Fn(i64) -> i64) -> Option<f64> {
        let mut drift = Drift::default();
        for ms in 0..seconds * 1000 {
            drift.add(Nanos(ms * 1_000_000), Nanos(delay(ms)));
        }
        drift.us_per_min()
    }

    #[test]
    fn what_accumulates_is_found_in_runs_of_any_length() {
        for seconds in [10, 60, 127, 128, 129, 1000, 4000] {
            // 100 ns for each second are 6 µs a minute, among which some are late for another reason.
            let found = drift(seconds, |ms| ms / 10 + if ms % 7 < 3 { 80_000 } else { 200 }).unwrap();
            assert!((found - 6.0).abs() < 0.1, "{found} in {seconds} s");
        }
    }

    #[test]
    fn single_late_requests_are_no_drift() {
        let found = drift(60, |ms| if ms > 50_000 && ms % 2 == 0 { 5_000_000 } else { 150 }).unwrap();
        assert!(found.abs() < 1e-9, "{found}");
    }

    #[test]
    fn short_runs_and_empty_ones_say_nothing() {
        assert_eq!(drift(0, |_| 0), None);
        assert_eq!(drift(7, |_| 0), None);
    }
}
