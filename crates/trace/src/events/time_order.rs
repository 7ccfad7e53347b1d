//! Sorts events by time, because the matcher needs them in this order. Not every text has it: bpftrace prints the buffer of
//! each CPU separately, so that a completion may precede its own issue.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::units::Nanos;
use crate::order::reorder::Reorder;

use super::{Event, EventSource, Window, warning_late};

/// A longer jump back in time is not due to another buffer, but to another clock, as after a restart of the machine.
const MIN_CLOCK_JUMP: Nanos = Nanos(60_000_000_000);

/// A source whose events are sorted by time, within a window. Events of equal times stay in the order of the file.
pub struct TimeOrder<S> {
    source: S,
    window: Window<Nanos>,
    held: Reorder<Numbered>,
    /// The first event after a jump back in time. It follows all events in `held`.
    after_jump: Option<Event>,
    read: u64,
    last_read: Nanos,
    last: Nanos,
    /// Reported losses: the number of events before them in the file, and how many events were lost.
    losses: VecDeque<(u64, u64)>,
    late: u64,
    ended: bool,
}

/// An event and its number in the file.
struct Numbered {
    event: Event,
    number: u64,
}

impl PartialEq for Numbered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Numbered {}
impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.event.at, self.number).cmp(&(other.event.at, other.number))
    }
}

impl<S: EventSource> TimeOrder<S> {
    /// Sorts the events of a source; the window determines how many are held back.
    pub fn new(window: Window<Nanos>, source: S) -> Self {
        Self {
            source,
            window,
            held: Reorder::default(),
            after_jump: None,
            read: 0,
            last_read: Nanos(i64::MIN),
            last: Nanos(i64::MIN),
            losses: VecDeque::new(),
            late: 0,
            ended: false,
        }
    }

    fn fill(&mut self, metadata: &mut Metadata) -> Result<()> {
        while !self.ended && self.after_jump.is_none() && self.held.len() < self.window.size() {
            let reported = std::mem::take(&mut metadata.counts.lost_events);
            let event = self.source.next(metadata);
            let lost = std::mem::replace(&mut metadata.counts.lost_events, reported);
            if lost > 0 {
                self.note_loss(lost);
            }
            let Some(event) = event? else {
                self.ended = true;
                break;
            };
            if self.last_read - event.at > MIN_CLOCK_JUMP {
                self.after_jump = Some(event);
            } else {
                self.hold(event);
            }
        }
        Ok(())
    }

    fn hold(&mut self, event: Event) {
        self.last_read = event.at;
        self.window.observe(event.at);
        self.held.push(Numbered { event, number: self.read });
        self.read += 1;
    }

    fn note_loss(&mut self, lost: u64) {
        match self.losses.back_mut() {
            Some((events, earlier)) if *events == self.read => *earlier = earlier.saturating_add(lost),
            _ => self.losses.push_back((self.read, lost)),
        }
    }

    /// Reports the losses after the first `up_to` events of the file. A loss belongs to the event before it in the file, which
    /// is usually of the same buffer: requests of that time may have lost events.
    fn report_losses(&mut self, up_to: u64, metadata: &mut Metadata) {
        while let Some(&(events, lost)) = self.losses.front()
            && events <= up_to
        {
            metadata.counts.lost_events = metadata.counts.lost_events.saturating_add(lost);
            self.losses.pop_front();
        }
    }
}

impl<S: EventSource> EventSource for TimeOrder<S> {
    fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Event>> {
        loop {
            self.fill(metadata)?;
            if let Some(Numbered { event, number }) = self.held.pop() {
                self.report_losses(number + 1, metadata);
                if event.at < self.last {
                    self.late += 1;
                    self.window.widen();
                }
                self.last = self.last.max(event.at);
                return Ok(Some(event));
            }
            let Some(event) = self.after_jump.take() else { break };
            self.last = Nanos(i64::MIN);
            self.window.reset_times();
            self.hold(event);
        }
        self.report_losses(u64::MAX, metadata);
        warning_late(std::mem::take(&mut self.late), self.window.min_size(), metadata);
        Ok(None)
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Action;
    use crate::model::metadata::Kind;
    use crate::model::request::{Comm, DeviceId, Flags, Op};
    use crate::model::units::{Sector, Sectors};

    /// Events with these times and increasing sectors. A negative number stands for that many lost events.
    struct Given<'a>(std::slice::Iter<'a, i64>, u64);

    impl EventSource for Given<'_> {
        fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Event>> {
            for &number in self.0.by_ref() {
                if number >= 0 {
                    self.1 += 1;
                    return Ok(Some(event(number, self.1)));
                }
                metadata.counts.lost_events = metadata.counts.lost_events.saturating_add(number.unsigned_abs());
            }
            Ok(None)
        }

        fn progress(&self) -> Option<f64> {
            None
        }
    }

    fn event(at: i64, sector: u64) -> Event {
        Event {
            at: Nanos(at),
            action: Action::Queue,
            device: DeviceId(0),
            sector: Sector(sector),
            sectors: Sectors(1),
            op: Op::Read,
            flags: Flags::NONE,
            is_append: false,
            pid: None,
            comm: Comm::default(),
        }
    }

    fn metadata() -> Metadata {
        Metadata::new(Kind::Load, "given")
    }

    /// The times, each with the number of lost events reported by then; and the metadata.
    fn sorted(given: &[i64], window: usize) -> (Vec<(i64, u64)>, Metadata) {
        let mut metadata = metadata();
        let mut source = TimeOrder::new(Window::fixed(window), Given(given.iter(), 0));
        let mut got = Vec::new();
        while let Some(event) = source.next(&mut metadata).unwrap() {
            got.push((event.at.0, metadata.counts.lost_events));
        }
        (got, metadata)
    }

    fn times(given: &[i64], window: usize) -> Vec<i64> {
        sorted(given, window).0.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn times_are_ordered_within_the_window() {
        assert_eq!(times(&[5, 3, 4, 9, 7], 3), [3, 4, 5, 7, 9]);
        assert_eq!(sorted(&[5, 3, 4, 9, 7], 3).1.warnings, [""; 0]);
        assert_eq!(times(&[], 3), [0; 0]);
        let (got, metadata) = sorted(&[5, 6, 7, 8, 1, 9], 2);
        assert_eq!(got.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [5, 6, 7, 1, 8, 9]);
        assert!(metadata.warnings[0].starts_with("1 event was more than 2 places"), "{:?}", metadata.warnings);
    }

    #[test]
    fn a_narrow_window_becomes_wide_when_events_are_out_of_order() {
        let buffers = |first: std::ops::Range<i64>| first.clone().map(|i| 2 * i + 1).chain(first.map(|i| 2 * i));
        let all = |window, given: &[i64]| {
            let mut source = TimeOrder::new(window, Given(given.iter(), 0));
            let mut metadata = metadata();
            let got =
                std::iter::from_fn(|| source.next(&mut metadata).unwrap()).map(|event| event.at.0).collect::<Vec<_>>();
            (got.is_sorted(), metadata.warnings.len())
        };
        let given: Vec<i64> = buffers(0..10).collect();
        assert_eq!(all(Window::fixed(4), &given), (false, 1));
        assert_eq!(all(Window::sampling_first(12, 4, 20), &given), (true, 0));
        // After the sample, the first late events remain out of order.
        let given: Vec<i64> = (0..100).chain(buffers(50..60)).chain(buffers(60..70)).collect();
        let (mut source, mut metadata) =
            (TimeOrder::new(Window::sampling_first(12, 4, 20), Given(given.iter(), 0)), metadata());
        let mut got = std::iter::from_fn(|| source.next(&mut metadata).unwrap()).map(|event| event.at.0);
        assert!(got.by_ref().take(120).last().is_some() && got.is_sorted());
    }

    #[test]
    fn events_of_another_clock_follow() {
        const HOUR: i64 = 3_600_000_000_000;
        assert_eq!(times(&[HOUR, HOUR + 9, HOUR + 5, 3, 2, 1], 100), [HOUR, HOUR + 5, HOUR + 9, 1, 2, 3]);
        // One wrong time does not affect other events.
        assert_eq!(times(&[7, 9 * HOUR, 9, 8], 100), [7, 9 * HOUR, 8, 9]);
        assert_eq!(times(&[HOUR, 0, HOUR + 2, HOUR + 1], 100), [HOUR, 0, HOUR + 1, HOUR + 2]);
        assert_eq!(sorted(&[HOUR, 0, HOUR + 2, HOUR + 1], 100).1.warnings, [""; 0]);
    }

    #[test]
    fn losses_are_reported_after_the_event_before_them() {
        let (got, metadata) = sorted(&[1, 2, 3, -17, -1, 8, 4, 5, 9, -2], 100);
        assert_eq!(got, [(1, 0), (2, 0), (3, 18), (4, 18), (5, 18), (8, 18), (9, 20)]);
        assert_eq!(metadata.counts.lost_events, 20);
        assert_eq!(sorted(&[-3, i64::MIN], 100).1.counts.lost_events, 3 + (1 << 63));
    }

    mod property {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn all_events_are_returned_and_sorted(given in prop::collection::vec(0_i64..20, 0..60), window in 1_usize..80) {
                let mut metadata = metadata();
                let mut source = TimeOrder::new(Window::fixed(window), Given(given.iter(), 0));
                let mut got = Vec::new();
                while let Some(event) = source.next(&mut metadata).unwrap() {
                    got.push((event.at.0, event.sector.0));
                }
                let mut expected: Vec<(i64, u64)> = given.iter().copied().zip(1..).collect();
                expected.sort_unstable();
                if window < given.len() {
                    got.sort_unstable();
                }
                prop_assert_eq!(got, expected);
            }
        }
    }
}
