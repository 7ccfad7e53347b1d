//! Events in the order of time.
//!
//! What happens to a request is told in the order in which it happened, if times are right; but not every text is: bpftrace
//! prints the buffer of each CPU by itself, so that a completion may stand in front of its own issue. What belongs together
//! is found in the order of time only.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::units::Nanos;
use crate::order::reorder::Reorder;

use super::{Event, EventSource, Window, notice_late};

/// What goes back that far does not come from another buffer but from another clock, as behind a restart of the machine.
const ANOTHER_CLOCK: Nanos = Nanos(60_000_000_000);

/// A source whose events are put in the order of time, within a window; those of one time stay in the order of the file.
pub struct InTime<S> {
    source: S,
    window: Window<Nanos>,
    held: Reorder<Numbered>,
    /// The first event by another clock, which follows all that are held.
    by_another_clock: Option<Event>,
    read: u64,
    last_read: Nanos,
    last: Nanos,
    /// Events that were lost, behind how many others in the file.
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

impl<S: EventSource> InTime<S> {
    /// Of that source; so many events are held back to put them in order.
    pub fn within(window: Window<Nanos>, source: S) -> Self {
        Self {
            source,
            window,
            held: Reorder::default(),
            by_another_clock: None,
            read: 0,
            last_read: Nanos(i64::MIN),
            last: Nanos(i64::MIN),
            losses: VecDeque::new(),
            late: 0,
            ended: false,
        }
    }

    fn fill(&mut self, about: &mut Metadata) -> Result<()> {
        while !self.ended && self.by_another_clock.is_none() && self.held.len() < self.window.places() {
            let told = std::mem::take(&mut about.counts.lost_events);
            let event = self.source.next(about);
            let lost = std::mem::replace(&mut about.counts.lost_events, told);
            if lost > 0 {
                self.note_loss(lost);
            }
            let Some(event) = event? else {
                self.ended = true;
                break;
            };
            if self.last_read - event.at > ANOTHER_CLOCK {
                self.by_another_clock = Some(event);
            } else {
                self.hold(event);
            }
        }
        Ok(())
    }

    fn hold(&mut self, event: Event) {
        self.last_read = event.at;
        self.window.see(event.at);
        self.held.push(Numbered { event, number: self.read });
        self.read += 1;
    }

    fn note_loss(&mut self, lost: u64) {
        match self.losses.back_mut() {
            Some((behind, before)) if *behind == self.read => *before = before.saturating_add(lost),
            _ => self.losses.push_back((self.read, lost)),
        }
    }

    /// A loss is told with the event in front of it in the file, which is mostly of the same buffer: requests of that time
    /// are those that may have lost something.
    fn tell_losses(&mut self, up_to: u64, about: &mut Metadata) {
        while let Some(&(behind, lost)) = self.losses.front()
            && behind <= up_to
        {
            about.counts.lost_events = about.counts.lost_events.saturating_add(lost);
            self.losses.pop_front();
        }
    }
}

impl<S: EventSource> EventSource for InTime<S> {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
        loop {
            self.fill(about)?;
            if let Some(Numbered { event, number }) = self.held.pop() {
                self.tell_losses(number + 1, about);
                if event.at < self.last {
                    self.late += 1;
                    self.window.widen();
                }
                self.last = self.last.max(event.at);
                return Ok(Some(event));
            }
            let Some(event) = self.by_another_clock.take() else { break };
            self.last = Nanos(i64::MIN);
            self.window.forget_times();
            self.hold(event);
        }
        self.tell_losses(u64::MAX, about);
        notice_late(std::mem::take(&mut self.late), self.window.least(), about);
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

    /// Events of those times, at one place behind the other; a negative number is so many lost ones.
    struct Given<'a>(std::slice::Iter<'a, i64>, u64);

    impl EventSource for Given<'_> {
        fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
            for &number in self.0.by_ref() {
                if number >= 0 {
                    self.1 += 1;
                    return Ok(Some(event(number, self.1)));
                }
                about.counts.lost_events = about.counts.lost_events.saturating_add(number.unsigned_abs());
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

    fn about() -> Metadata {
        Metadata::new(Kind::Load, "given")
    }

    /// The times, with how many events were told to be lost by then; and what else was told.
    fn sorted(given: &[i64], window: usize) -> (Vec<(i64, u64)>, Metadata) {
        let mut about = about();
        let mut source = InTime::within(Window::of(window), Given(given.iter(), 0));
        let mut got = Vec::new();
        while let Some(event) = source.next(&mut about).unwrap() {
            got.push((event.at.0, about.counts.lost_events));
        }
        (got, about)
    }

    fn times(given: &[i64], window: usize) -> Vec<i64> {
        sorted(given, window).0.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn times_are_ordered_within_the_window() {
        assert_eq!(times(&[5, 3, 4, 9, 7], 3), [3, 4, 5, 7, 9]);
        assert_eq!(sorted(&[5, 3, 4, 9, 7], 3).1.notices, [""; 0]);
        assert_eq!(times(&[], 3), [0; 0]);
        let (got, about) = sorted(&[5, 6, 7, 8, 1, 9], 2);
        assert_eq!(got.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [5, 6, 7, 1, 8, 9]);
        assert!(about.notices[0].starts_with("1 event stood more than 2 places"), "{:?}", about.notices);
    }

    #[test]
    fn a_narrow_window_becomes_wide_where_it_has_to() {
        let buffers = |first: std::ops::Range<i64>| first.clone().map(|i| 2 * i + 1).chain(first.map(|i| 2 * i));
        let all = |window, given: &[i64]| {
            let mut source = InTime::within(window, Given(given.iter(), 0));
            let mut about = about();
            let got =
                std::iter::from_fn(|| source.next(&mut about).unwrap()).map(|event| event.at.0).collect::<Vec<_>>();
            (got.is_sorted(), about.notices.len())
        };
        let given: Vec<i64> = buffers(0..10).collect();
        assert_eq!(all(Window::of(4), &given), (false, 1));
        assert_eq!(all(Window::looking_at(12, 4, 20), &given), (true, 0));
        // Later it costs the order of the first that are late.
        let given: Vec<i64> = (0..100).chain(buffers(50..60)).chain(buffers(60..70)).collect();
        let (mut source, mut about) = (InTime::within(Window::looking_at(12, 4, 20), Given(given.iter(), 0)), about());
        let mut got = std::iter::from_fn(|| source.next(&mut about).unwrap()).map(|event| event.at.0);
        assert!(got.by_ref().take(120).last().is_some() && got.is_sorted());
    }

    #[test]
    fn what_happens_by_another_clock_follows() {
        const HOUR: i64 = 3_600_000_000_000;
        assert_eq!(times(&[HOUR, HOUR + 9, HOUR + 5, 3, 2, 1], 100), [HOUR, HOUR + 5, HOUR + 9, 1, 2, 3]);
        // One wild time moves nothing else.
        assert_eq!(times(&[7, 9 * HOUR, 9, 8], 100), [7, 9 * HOUR, 8, 9]);
        assert_eq!(times(&[HOUR, 0, HOUR + 2, HOUR + 1], 100), [HOUR, 0, HOUR + 1, HOUR + 2]);
        assert_eq!(sorted(&[HOUR, 0, HOUR + 2, HOUR + 1], 100).1.notices, [""; 0]);
    }

    #[test]
    fn losses_are_told_where_they_were() {
        let (got, about) = sorted(&[1, 2, 3, -17, -1, 8, 4, 5, 9, -2], 100);
        assert_eq!(got, [(1, 0), (2, 0), (3, 18), (4, 18), (5, 18), (8, 18), (9, 20)]);
        assert_eq!(about.counts.lost_events, 20);
        assert_eq!(sorted(&[-3, i64::MIN], 100).1.counts.lost_events, 3 + (1 << 63));
    }

    mod property {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn it_sorts_and_loses_nothing(given in prop::collection::vec(0_i64..20, 0..60), window in 1_usize..80) {
                let mut about = about();
                let mut source = InTime::within(Window::of(window), Given(given.iter(), 0));
                let mut got = Vec::new();
                while let Some(event) = source.next(&mut about).unwrap() {
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
