//! A limit of requests or bytes per second with a burst bucket.
//!
//! A bucket holds `burst` tokens and is full at first; `rate` tokens per second flow in. A request takes one token, or one
//! for each byte, and waits until the bucket has them; one that needs more than the bucket holds waits for a full bucket
//! and leaves a debt. With demand above the rate, the bucket is empty after burst / (demand − rate).

use iosonar_trace::params::{Key, Section, Takes};
use iosonar_trace::{Nanos, Op};

use super::law::{Arrival, Law, Passage};
use super::values::{Burst, Factor, Size, Speed};

/// Settings of a limit. One of `iops` and `bytes_per_second` is set.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSettings {
    /// Requests per second.
    pub iops: Option<Factor>,
    /// Requests that the bucket holds; 1 unless set.
    pub burst_requests: Option<Burst>,
    /// Bytes per second.
    pub bytes_per_second: Option<Speed>,
    /// Bytes that the bucket holds; 128 KiB unless set.
    pub burst_bytes: Option<Size>,
}

impl LimitSettings {
    pub const KEYS: &[Key] = &[
        Key::new("iops", Takes::Number, "Requests per second"),
        Key::new("burst_requests", Takes::Number, "Requests that the bucket holds (default 1)"),
        Key::new("bytes_per_second", Takes::Number, "Bytes per second of reads and writes"),
        Key::new("burst_bytes", Takes::Number, "Bytes that the bucket holds (default 128K)"),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let settings = Self {
            iops: section.parsed("iops", Factor::parse)?,
            burst_requests: section.parsed("burst_requests", Burst::parse)?,
            bytes_per_second: section.parsed("bytes_per_second", Speed::parse)?,
            burst_bytes: section.parsed("burst_bytes", Size::parse)?,
        };
        let (key, why) = match (settings.iops, settings.bytes_per_second) {
            (Some(_), Some(_)) => {
                ("bytes_per_second", "a limit has iops or bytes_per_second; write a [[limit]] for each")
            }
            (None, None) => ("iops", "missing; add iops or bytes_per_second"),
            (Some(_), _) if section.has("burst_bytes") => ("burst_bytes", "a limit of iops has burst_requests"),
            (_, Some(_)) if section.has("burst_requests") => {
                ("burst_requests", "a limit of bytes_per_second has burst_bytes")
            }
            _ => return Ok(settings),
        };
        Err(section.error(key, why))
    }
}

/// A token bucket.
#[derive(Debug)]
pub struct Limit {
    counts_bytes: bool,
    /// Nanoseconds between two tokens.
    interval: f64,
    burst: f64,
    /// When the bucket was empty, if nothing had been taken since: it holds the tokens that came in after that.
    empty_at: Nanos,
}

impl Limit {
    /// With valid settings.
    pub fn new(settings: &LimitSettings) -> Self {
        let (counts_bytes, rate, burst) = match (settings.iops, settings.bytes_per_second) {
            (Some(iops), _) => (false, iops.0, settings.burst_requests.map_or(1.0, |burst| burst.0)),
            (None, Some(speed)) => (true, speed.0, settings.burst_bytes.map_or(131_072.0, |burst| burst.0 as f64)),
            (None, None) => unreachable!("checked"),
        };
        let interval = 1e9 / rate;
        Self { counts_bytes, interval, burst, empty_at: Nanos(-((burst * interval) as i64)) }
    }
}

impl Law for Limit {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        let tokens = match (self.counts_bytes, request.op) {
            (false, _) => 1.0,
            (true, Op::Read | Op::Write) => request.length as f64,
            (true, _) => return,
        };
        let time = |tokens: f64| Nanos((tokens * self.interval).round() as i64);
        passage.start = passage.start.max(self.empty_at + time(tokens.min(self.burst)));
        self.empty_at = self.empty_at.max(passage.start - time(self.burst)) + time(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{arrival, pass};
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let settings = LimitSettings {
            iops: Some(Factor(1000.0)),
            burst_requests: Some(Burst(3.0)),
            bytes_per_second: None,
            burst_bytes: None,
        };
        let mut limit = Limit::new(&settings);
        let starts: Vec<_> = (0..6).map(|_| pass(&mut limit, &arrival(0, Op::Read, 0)).start.0).collect();
        assert_eq!(starts, [0, 0, 0, 1_000_000, 2_000_000, 3_000_000]);
        // 3 ms + 2 ms later it holds two tokens.
        let starts: Vec<_> = (0..3).map(|_| pass(&mut limit, &arrival(5_000_000, Op::Read, 0)).start.0).collect();
        assert_eq!(starts, [5_000_000, 5_000_000, 6_000_000]);
    }
}
