//! Puts requests in time order and makes their times relative to the trace's zero.

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::model::row::{Footer as _, Row as _};
use crate::model::units::Nanos;
use crate::order::external_sort::Head;
use crate::order::reorder::Reorder;
use crate::text::human;

/// The number of requests that are sorted at a time, some 30 MB. A trace in the order of completion is out of order by at
/// most the number of requests in flight, which is far less.
const WINDOW: usize = 1 << 18;

/// The same for traces of events, which are nearly in time order: only a few events of other CPUs are late. A window that
/// fits into the CPU cache is several times as fast.
const EVENTS_WINDOW: usize = 1 << 13;

/// Yields the requests of a trace, roughly in time order.
pub trait Source: Send {
    /// The next request; its time is relative to the trace's own zero. Bad lines, lost events and devices are recorded in
    /// the metadata.
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>>;

    /// The share of the file that has been read, from 0 to 1, if known.
    fn progress(&self) -> Option<f64>;
}

/// The zero of a trace's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    TraceStart,
    /// An arbitrary moment, such as boot: the first request becomes time zero.
    Arbitrary,
    /// 1970 UTC: the first request becomes time zero, and its time becomes the trace's epoch.
    Unix,
}

/// Puts the requests of a source in time order, within a bounded window, and counts them.
pub struct InOrder<S> {
    source: S,
    metadata: Metadata,
    window: usize,
    waiting: Reorder<Head>,
    /// Requests read from the source.
    arrived: u64,
    source_ended: bool,
    zero: Nanos,
    epoch: Epoch,
    last: Nanos,
    late: u64,
}

/// The zero whose wall-clock time is the metadata's epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Epoch {
    /// The source's zero; the source may find its wall-clock time late.
    OfSource,
    OfLoad,
}

impl<S: Source> InOrder<S> {
    /// Reads the first window, so that the first request has its final time and its device is known.
    pub fn new(source: S, metadata: Metadata, zero: Zero) -> Result<Self> {
        Self::with_window(source, metadata, zero, WINDOW)
    }

    /// The same for requests that are made from events.
    pub fn of_events(source: S, metadata: Metadata, zero: Zero) -> Result<Self> {
        Self::with_window(source, metadata, zero, EVENTS_WINDOW)
    }

    fn with_window(source: S, metadata: Metadata, zero: Zero, window: usize) -> Result<Self> {
        let mut reader = Self {
            source,
            metadata,
            window,
            waiting: Reorder::default(),
            arrived: 0,
            source_ended: false,
            zero: Nanos::ZERO,
            epoch: Epoch::OfLoad,
            last: Nanos(i64::MIN),
            late: 0,
        };
        reader.fill()?;
        if let Some(first) = reader.waiting.peek().map(|head| head.at)
            && zero != Zero::TraceStart
        {
            reader.zero = first;
            if zero == Zero::Unix {
                reader.metadata.epoch_unix_ns = Some(first.0);
            } else {
                reader.epoch = Epoch::OfSource;
                reader.move_epoch();
            }
        }
        Ok(reader)
    }

    /// Makes the epoch that of the load's zero, once the source has set it.
    fn move_epoch(&mut self) {
        if self.epoch == Epoch::OfSource
            && let Some(epoch) = &mut self.metadata.epoch_unix_ns
        {
            *epoch = epoch.saturating_add(self.zero.0);
            self.epoch = Epoch::OfLoad;
        }
    }

    /// The next request, at its time since the trace's zero, which may be too far from that.
    fn pop_possible(&mut self) -> Option<Head> {
        loop {
            let mut head = self.waiting.pop()?;
            head.request.at = head.request.at - self.zero;
            match head.request.problem() {
                None => return Some(head),
                Some(problem) => self.metadata.count_bad_row(format!("a request left out: {problem}")),
            }
        }
    }

    fn fill(&mut self) -> Result<()> {
        while !self.source_ended && self.waiting.len() < self.window {
            match self.source.next(&mut self.metadata)? {
                Some(mut request) => {
                    if let Some(problem) = request.problem() {
                        self.metadata.count_bad_row(format!("a request left out: {problem}"));
                        continue;
                    }
                    self.metadata.count_impossible(request.remove_impossible());
                    self.waiting.push(Head { at: request.at, number: self.arrived, request });
                    self.arrived += 1;
                }
                None => self.source_ended = true,
            }
        }
        Ok(())
    }
}

impl<S: Source> Reader<Request> for InOrder<S> {
    fn next(&mut self) -> Result<Option<Request>> {
        self.fill()?;
        self.move_epoch();
        let Some(Head { mut request, .. }) = self.pop_possible() else {
            if self.late > 0 {
                let window = self.window;
                let what = format!(
                    "requests were more than {} places out of time order and got the time of their predecessor",
                    human::count(window as u64)
                );
                self.metadata.warning(human::agreed(std::mem::take(&mut self.late), &what));
            }
            return Ok(None);
        };
        if request.at < self.last {
            self.late += 1;
            self.metadata.counts.time_jumps += 1;
            request.at = self.last;
        }
        self.last = request.at;
        self.metadata.count_request(&request);
        Ok(Some(request))
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        self.source_ended
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metadata::Kind;
    use crate::model::request::Op;
    use crate::model::units::{Sector, Sectors};

    /// Yields requests of these times, from the last to the first.
    struct Times(Vec<i64>);

    impl Source for Times {
        fn next(&mut self, _: &mut Metadata) -> Result<Option<Request>> {
            Ok(self.0.pop().map(|at| Request::new(Nanos(at), Op::Read, Sector(0), Sectors(1))))
        }

        fn progress(&self) -> Option<f64> {
            None
        }
    }

    fn ordered(times: &[i64], zero: Zero, window: usize) -> (Vec<i64>, Metadata) {
        let metadata = Metadata::new(Kind::Load, "given");
        let mut reader =
            InOrder::with_window(Times(times.iter().rev().copied().collect()), metadata, zero, window).unwrap();
        let mut got = Vec::new();
        while let Some(request) = reader.next().unwrap() {
            got.push(request.at.0);
        }
        (got, reader.metadata().clone())
    }

    #[test]
    fn times_are_sorted_within_the_window() {
        assert_eq!(ordered(&[5, 3, 4, 9, 7], Zero::TraceStart, 3).0, [3, 4, 5, 7, 9]);
        let (times, metadata) = ordered(&[5, 6, 7, 8, 1], Zero::TraceStart, 2);
        assert_eq!(times, [5, 6, 7, 7, 8]);
        assert_eq!(metadata.counts.time_jumps, 1);
        assert_eq!(metadata.warnings.len(), 1);
    }

    /// Sets the epoch with its last request.
    struct LateEpoch(Times);

    impl Source for LateEpoch {
        fn next(&mut self, about: &mut Metadata) -> Result<Option<Request>> {
            if self.0.0.len() == 1 {
                about.epoch_unix_ns = Some(1000);
            }
            self.0.next(about)
        }

        fn progress(&self) -> Option<f64> {
            None
        }
    }

    #[test]
    fn an_epoch_found_late_is_moved_to_the_first_request() {
        for window in [1, 9] {
            let source = LateEpoch(Times(vec![70, 50, 30]));
            let metadata = Metadata::new(Kind::Load, "given");
            let mut reader = InOrder::with_window(source, metadata, Zero::Arbitrary, window).unwrap();
            while reader.next().unwrap().is_some() {}
            assert_eq!(reader.metadata().epoch_unix_ns, Some(1030), "{window}");
        }
    }

    #[test]
    fn the_first_request_becomes_zero_and_unix_time_the_epoch() {
        assert_eq!(ordered(&[50, 30], Zero::Arbitrary, 9).0, [0, 20]);
        let (times, metadata) = ordered(&[50, 30], Zero::Unix, 9);
        assert_eq!((times, metadata.epoch_unix_ns), (vec![0, 20], Some(30)));
    }
}
