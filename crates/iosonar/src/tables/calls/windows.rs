//! Calls in equal windows of time, in bounded memory.

use iosonar_trace::Nanos;
use serde_json::{Value, json};

/// The most windows. When a time is beyond them, windows are joined by ten.
const MOST: usize = 20_000;

const MS: i64 = 1_000_000;

/// Counts calls in windows from a time on, or from the first call on.
pub struct Windows {
    first: Option<i64>,
    last: i64,
    width_ns: i64,
    counts: Vec<u64>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { first: None, last: 0, width_ns: MS, counts: Vec::new() }
    }
}

impl Windows {
    /// Windows from a time on; without one, from the first call on, and calls must come in order of time.
    pub fn from(from: Option<Nanos>) -> Self {
        Self { first: from.map(|from| from.0), ..Self::default() }
    }

    /// Adds a call.
    pub fn add(&mut self, begin: Nanos) {
        let since = begin.0.saturating_sub(*self.first.get_or_insert(begin.0)).max(0);
        self.last = self.last.max(since);
        while since / self.width_ns >= MOST as i64 {
            self.join();
        }
        let window = (since / self.width_ns) as usize;
        if window >= self.counts.len() {
            self.counts.resize(window + 1, 0);
        }
        self.counts[window] += 1;
    }

    /// The whole time, in seconds, from where the windows begin to `end`.
    pub fn whole_s(&self, end: Option<Nanos>) -> f64 {
        let whole = end.map_or(self.last, |end| end.0.saturating_sub(self.first.unwrap_or(0)));
        whole.max(self.last) as f64 / 1e9
    }

    fn join(&mut self) {
        self.counts = self.counts.chunks(10).map(|ten| ten.iter().sum()).collect();
        self.width_ns *= 10;
    }

    /// Calls per second: median, mean, maximum and coefficient of variation over whole windows of at least a second, or of
    /// less if the trace has few seconds; the mean is over the whole time.
    pub fn json(&self, end: Option<Nanos>) -> Value {
        let mut all = Self { first: self.first, last: self.last, width_ns: self.width_ns, counts: self.counts.clone() };
        while all.width_ns < 1000 * MS && all.last / (all.width_ns * 10) >= 10 {
            all.join();
        }
        // The last window ends with the last call, not at its border.
        let whole = if all.counts.len() > 1 { &all.counts[..all.counts.len() - 1] } else { &all.counts[..] };
        if whole.is_empty() || all.last < MS {
            return Value::Null;
        }
        let seconds = if all.counts.len() > 1 { all.width_ns as f64 / 1e9 } else { all.last as f64 / 1e9 };
        let mut rates: Vec<f64> = whole.iter().map(|&count| count as f64 / seconds).collect();
        rates.sort_by(f64::total_cmp);
        let n = rates.len();
        let mean = rates.iter().sum::<f64>() / n as f64;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / n as f64;
        let median = (rates[(n - 1) / 2] + rates[n / 2]) / 2.0;
        let cv = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
        let overall = all.counts.iter().sum::<u64>() as f64 / all.whole_s(end);
        json!({"window_s": seconds, "median": median, "mean": overall, "max": rates[n - 1], "cv": cv})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(times_s: &[f64]) -> Value {
        let mut windows = Windows::default();
        times_s.iter().for_each(|&time| windows.add(Nanos::from_secs(time)));
        windows.json(None)
    }

    #[test]
    fn rates_are_those_of_whole_windows() {
        // Seconds with 2, 0, 1, 1, ... calls; the last one is partial.
        let mut times = vec![5.0, 5.5];
        times.extend((2..=20).map(|second| 5.25 + f64::from(second)));
        let load = load(&times);
        assert_eq!((&load["window_s"], &load["median"], &load["max"]), (&json!(1.0), &json!(1.0), &json!(2.0)));
        assert!((load["mean"].as_f64().unwrap() - 21.0 / 20.25).abs() < 1e-9, "{load}");
    }

    #[test]
    fn windows_become_longer_with_the_trace() {
        assert_eq!(load(&[0.0, 0.5, 0.95])["window_s"], 0.01);
        assert_eq!(load(&[0.0, 1e6, 3e6])["window_s"], 1000.0);
        assert_eq!(load(&[]), Value::Null);
        assert_eq!(load(&[7.0]), Value::Null);
    }
}
