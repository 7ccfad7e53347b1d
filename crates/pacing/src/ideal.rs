//! Who made a request or call late: the replayer, or what it had to wait for. One definition for every engine, depth and way
//! of waiting.
//!
//! Beside the replay runs a model of an *ideal replayer*, which never stalls. It has the same depth, order and overlaps, and
//! each of its requests takes as long as that of the replay took. What would have held back its request as well, a full
//! depth or an overlap, is the device's. What is on top is the replayer's: its stalls, and the backlog that a stall makes,
//! until that is gone. Overheads of up to [`LATE`] between the end of a hold and the issue are no stalls, and the ideal
//! replayer has them, too.

use std::collections::VecDeque;

use iosonar_trace::Nanos;

/// Requests with a longer delay are late.
pub const LATE: Nanos = Nanos(50_000);
/// A request that was held back is the replayer's if the replayer added more than this part of the time that it would have
/// been held in any case.
const PART: i64 = 10;

/// What held back a request: a full depth, an overlap, or an earlier call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// When it ended.
    pub until: Nanos,
    /// When it would have ended with an ideal replayer: not later.
    pub ideal: Nanos,
}

impl Hold {
    /// Nothing held it.
    pub const NONE: Self = Self { until: Nanos(i64::MIN), ideal: Nanos(i64::MIN) };

    /// A hold that ends with a completion seen at `completed`, where `seen` is the earliest moment at which it can have
    /// happened if the replayer did not run in between, of a request that was `issued` then, and at `ideal` by an ideal
    /// replayer.
    #[inline]
    pub fn by_completion(completed: Nanos, seen: Nanos, issued: Nanos, ideal: Nanos) -> Self {
        Self { until: completed, ideal: ideal + (seen - issued) }
    }

    /// Both.
    #[inline]
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { until: self.until.max(other.until), ideal: self.ideal.max(other.ideal) }
    }

    /// When an ideal replayer would have issued a request that was due at `due` and `issued` then.
    #[inline]
    pub fn ideal_issue(self, due: Nanos, issued: Nanos) -> Nanos {
        let overhead = issued - due.max(self.until);
        let ideal = due.max(self.ideal);
        if overhead <= LATE { (ideal + overhead.max(Nanos::ZERO)).min(issued) } else { ideal }
    }
}

/// Whether the replayer, and not what held it back, made a request late that was due at `due`, `issued` then, and would have
/// been issued at `ideal` by an ideal replayer.
#[inline]
pub fn is_late_by_replayer(due: Nanos, ideal: Nanos, issued: Nanos) -> bool {
    let (own, held) = (issued - ideal, ideal - due);
    own > LATE && own.0 > held.0 / PART
}

/// The free places of a depth, with the time since when an ideal replayer would have had them.
#[derive(Debug)]
pub struct Places {
    /// The earliest first.
    free: VecDeque<Nanos>,
    /// When the last of them became free while there was none.
    until: Nanos,
}

impl Places {
    /// All are free.
    pub fn new(depth: usize) -> Self {
        Self { free: std::iter::repeat_n(Hold::NONE.ideal, depth).collect(), until: Hold::NONE.until }
    }

    /// Whether none is free.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// What holds back the next request if nothing else does.
    #[inline]
    pub fn next(&self) -> Hold {
        let ideal = self.free.front().map_or(self.until, |ideal| *ideal);
        Hold { until: self.until.max(ideal), ideal }
    }

    /// Takes the place that an ideal replayer would have had first.
    #[inline]
    pub fn take(&mut self) -> Hold {
        let next = self.next();
        self.free.pop_front();
        next
    }

    /// A completion frees a place.
    #[inline]
    pub fn free(&mut self, Hold { until, ideal }: Hold) {
        if self.free.is_empty() {
            self.until = until;
        }
        // They become free in this order unless a stall came in between.
        if self.free.back().is_none_or(|last| *last <= ideal) {
            self.free.push_back(ideal);
        } else {
            let at = self.free.partition_point(|other| *other <= ideal);
            self.free.insert(at, ideal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn at(ms: i64) -> Nanos {
        Nanos(ms * MS)
    }

    fn hold(until: i64, ideal: i64) -> Hold {
        Hold { until: at(until), ideal: at(ideal) }
    }

    #[test]
    fn without_a_stall_the_ideal_replayer_issues_at_the_same_time() {
        for (until, due) in [(10, 3), (3, 10)] {
            let issued = at(10) + Nanos(30_000);
            assert_eq!(hold(until, until).ideal_issue(at(due), issued), issued);
            assert!(!is_late_by_replayer(at(due), issued, issued));
        }
    }

    #[test]
    fn a_request_is_the_replayers_if_that_added_a_notable_part() {
        // Held until 10 ms in any case, and 1 to 9 ms longer by the replayer.
        for (own, expected) in [(0, false), (1, false), (2, true), (9, true)] {
            let issued = at(10 + own);
            let ideal = hold(10 + own, 10).ideal_issue(at(0), issued);
            assert_eq!((ideal, is_late_by_replayer(at(0), ideal, issued)), (at(10), expected), "{own}");
        }
        // Not held: each time above the limit counts.
        assert!(is_late_by_replayer(at(1), at(1), at(1) + Nanos(50_001)));
        assert!(!is_late_by_replayer(at(1), at(1), at(1) + Nanos(50_000)));
    }

    #[test]
    fn the_ideal_replayer_takes_the_place_that_it_has_first() {
        let mut places = Places::new(2);
        assert_eq!([places.take(), places.take()], [Hold::NONE; 2]);
        assert!(places.is_full());
        places.free(hold(20, 20));
        places.free(hold(21, 5));
        assert_eq!(places.take(), hold(20, 5));
        assert_eq!(places.next(), hold(20, 20));
    }
}
