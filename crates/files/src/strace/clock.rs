//! The times of lines, as times of the trace.

use iosonar_trace::Nanos;

use super::line::Time;
use super::split::Problem;
use crate::model::times::MAX_TIME;

/// The distance of lines without times.
const STEP: i64 = 1_000;
/// Nanoseconds of a day.
pub const DAY: i64 = 86_400_000_000_000;

/// Converts the times of lines into times since the first one, which never decrease.
#[derive(Default)]
pub struct Clock {
    kind: Option<Kind>,
    /// The time of the first line, as it is in the file.
    zero: i64,
    /// The time of the latest line, as it is in the file.
    latest: i64,
    /// What is added to times in the file.
    shift: i64,
    /// How many times the clock went back, and by how much in total.
    pub steps_back: u64,
    /// The sum of these steps.
    pub stepped_back: Nanos,
}

/// What kind of times the lines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Since 1970.
    Unix,
    /// Since midnight.
    OfDay,
    /// None.
    None,
}

impl Clock {
    /// What kind of times the lines have, as soon as one was read.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The kind and the time of the first line, as it is in the file.
    pub fn zero(&self) -> Option<(Kind, i64)> {
        self.kind.map(|kind| (kind, self.zero))
    }

    /// The time of the first line since 1970, if it is known.
    pub fn epoch(&self) -> Option<i64> {
        (self.kind == Some(Kind::Unix)).then_some(self.zero)
    }

    /// The time of a line. Without times, each line is 1 µs after the one before.
    pub fn at(&mut self, time: Option<Time>) -> Result<Nanos, Problem> {
        let (kind, nanos) = match time {
            Some(Time::Unix(nanos)) => (Kind::Unix, nanos),
            Some(Time::OfDay(nanos)) => (Kind::OfDay, nanos),
            None => (Kind::None, self.latest.saturating_add(STEP)),
            Some(Time::Relative) => return Err("the time is relative"),
        };
        match self.kind {
            None => {
                self.kind = Some(kind);
                (self.zero, self.latest) = (nanos, nanos);
            }
            Some(expected) if expected != kind => {
                return Err(match kind {
                    Kind::None => "the line has no time",
                    Kind::Unix | Kind::OfDay => "the time is of another kind than those before",
                });
            }
            Some(_) => {}
        }
        // A single damaged line must not move all that follow.
        if nanos.saturating_sub(self.zero) > MAX_TIME {
            return Err("the time is more than 73 years after the first");
        }
        if nanos < self.latest {
            let back = self.latest - nanos;
            if kind == Kind::OfDay && back > DAY / 2 {
                self.shift = self.shift.saturating_add(DAY);
            } else {
                self.shift = self.shift.saturating_add(back);
                self.steps_back += 1;
                self.stepped_back = self.stepped_back + Nanos(back);
            }
        }
        self.latest = nanos;
        let at = nanos.saturating_sub(self.zero).saturating_add(self.shift);
        Ok(Nanos(at.min(MAX_TIME)))
    }

    /// A call that no other line interrupted took this time: without times, the next line comes after its end.
    pub fn passed(&mut self, duration: Nanos) {
        if self.kind == Some(Kind::None) {
            self.latest = self.latest.saturating_add(duration.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_first_line() {
        let mut clock = Clock::default();
        assert_eq!(clock.at(Some(Time::Unix(1_000_000_000_500))), Ok(Nanos(0)));
        assert_eq!(clock.at(Some(Time::Unix(1_000_000_000_700))), Ok(Nanos(200)));
        assert_eq!(clock.epoch(), Some(1_000_000_000_500));
        assert!(clock.at(None).is_err() && clock.at(Some(Time::OfDay(3))).is_err());
    }

    #[test]
    fn times_never_decrease() {
        let mut clock = Clock::default();
        let times = [100, 200, 150, 160, 400].map(|nanos| clock.at(Some(Time::Unix(nanos))).unwrap().0);
        assert_eq!(times, [0, 100, 100, 110, 350]);
        assert_eq!((clock.steps_back, clock.stepped_back), (1, Nanos(50)));
    }

    #[test]
    fn a_time_too_far_ahead_moves_no_other() {
        let mut clock = Clock::default();
        assert_eq!(clock.at(Some(Time::Unix(100))), Ok(Nanos(0)));
        assert!(clock.at(Some(Time::Unix(i64::MAX))).is_err());
        assert_eq!(clock.at(Some(Time::Unix(150))), Ok(Nanos(50)));
        assert_eq!(clock.steps_back, 0);
        for _ in 0..10 {
            clock.at(Some(Time::Unix(MAX_TIME))).unwrap();
            clock.at(Some(Time::Unix(0))).unwrap();
        }
        assert_eq!(clock.at(Some(Time::Unix(1))), Ok(Nanos(MAX_TIME)));
    }

    #[test]
    fn the_next_day_follows_midnight() {
        let mut clock = Clock::default();
        let second = 1_000_000_000;
        let times =
            [DAY - second, 2 * second, DAY - second, second].map(|nanos| clock.at(Some(Time::OfDay(nanos))).unwrap().0);
        assert_eq!(times, [0, 3 * second, DAY, DAY + 2 * second]);
        assert_eq!(clock.steps_back, 0);
        assert_eq!(clock.epoch(), None);
    }

    #[test]
    fn lines_without_times_are_a_microsecond_apart() {
        let mut clock = Clock::default();
        assert_eq!(clock.at(None), Ok(Nanos(0)));
        assert_eq!(clock.at(None), Ok(Nanos(1000)));
        clock.passed(Nanos(50_000));
        assert_eq!(clock.at(None), Ok(Nanos(52_000)));
    }
}
