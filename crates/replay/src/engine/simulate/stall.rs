//! A periodic stall: each `every` after the first arrival, the device does nothing for the time `lasts`: services pause,
//! caches do not answer, and nothing completes.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Key, Section, Takes};

use super::values::Period;

/// Settings of the stall.
#[derive(Clone, Debug, PartialEq)]
pub struct StallSettings {
    /// From the start of one stall to that of the next.
    pub every: Period,
    pub lasts: Period,
}

impl StallSettings {
    pub const KEYS: &[Key] = &[
        Key::new("every", Takes::Number, "From the start of one stall to that of the next").required(),
        Key::new("lasts", Takes::Number, "Its duration, shorter than every").required(),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let (every, lasts) = (section.required("every", Period::parse)?, section.required("lasts", Period::parse)?);
        if lasts.0 >= every.0 {
            return Err(section.error("lasts", "as long as every or longer; shorten it"));
        }
        Ok(Self { every, lasts })
    }
}

/// Skips the time of stalls.
#[derive(Debug)]
pub struct Stall {
    every: i64,
    lasts: i64,
}

impl Stall {
    /// With valid settings.
    pub fn new(settings: &StallSettings) -> Self {
        Self { every: settings.every.0.0, lasts: settings.lasts.0.0 }
    }

    /// When work that begins at `start`, since the first arrival, and takes `time` without stalls is done.
    pub fn end(&self, start: Nanos, time: Nanos) -> Nanos {
        let done = self.working_time(start.0).saturating_add(time.0);
        let Self { every, lasts } = *self;
        // The last stall that ends before the work does.
        let stalls = if done <= every { 0 } else { (done - every - 1) / (every - lasts) + 1 };
        Nanos(done.saturating_add(stalls.saturating_mul(lasts)).max(start.0))
    }

    /// Time without stalls until `at`.
    fn working_time(&self, at: i64) -> i64 {
        let Self { every, lasts } = *self;
        let stalls = at.div_euclid(every).max(0);
        if stalls == 0 {
            return at;
        }
        let into_last = at - stalls * every;
        at - (stalls - 1) * lasts - into_last.min(lasts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_pauses_during_stalls() {
        let stall = Stall { every: 100, lasts: 10 };
        for (start, time, end) in [
            (0, 100, 100),
            (0, 101, 111),
            (0, 190, 200),
            (0, 191, 211),
            (99, 2, 111),
            (100, 5, 115),
            (105, 5, 115),
            (109, 5, 115),
            (110, 5, 115),
            (250, 500, 800),
            (-5, 3, -2),
        ] {
            assert_eq!(stall.end(Nanos(start), Nanos(time)), Nanos(end), "{start} {time}");
        }
    }
}
