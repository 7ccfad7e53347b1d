//! Counts lost events, as reported by lines between the events.

use memchr::memmem;

use crate::model::metadata::Metadata;
use crate::rows::{lost_events, words};
use crate::text::human;
use crate::text::number::{decimal, whole};

/// Events lost by perf. Since 2022 it reports each loss twice: where it happened, and in a total at the end.
#[derive(Default)]
pub struct Losses {
    in_place: u64,
    total: u64,
    /// The number of losses of unknown extent.
    chunks: u64,
}

impl Losses {
    /// Parses a line that is not an event. The number of events that ftrace's ring overwrote is in its heading: `#
    /// entries-in-buffer/entries-written: 140080/250280   #P:8`. They do not count as lost, because only the beginning of
    /// the trace is missing.
    pub fn read(&mut self, line: &[u8], about: &mut Metadata) {
        if let Some(counts) = line.strip_prefix(b"# entries-in-buffer/entries-written:") {
            let mut counts = words(counts).next().unwrap_or_default().splitn(2, |&byte| byte == b'/').map(whole);
            if let (Some(Ok(left)), Some(Ok(all))) = (counts.next(), counts.next())
                && all > left
            {
                about.warning(format!(
                    "the trace's ring was full: of {} events of any kind, the first {} were overwritten, and the events of \
                     some CPUs begin later than those of others",
                    human::count(all),
                    human::count(all - left)
                ));
            }
        } else if let Some(count) = self.lost(line) {
            about.counts.lost_events = about.counts.lost_events.saturating_add(count);
        }
    }

    /// The number of events lost at this line: the common forms, and those of perf, `… PERF_RECORD_LOST lost 17` of `perf
    /// script --show-lost-events`, and on standard error `Processed 90 events and lost 2 chunks!`, which has only the number of
    /// losses, and `Processed 5000 samples and lost 3.40%!`.
    fn lost(&mut self, line: &[u8]) -> Option<u64> {
        if let Some(rest) = line.strip_prefix(b"Processed ") {
            self.lost_of_processed(rest);
            return None;
        }
        if let Some(index) = memmem::find(line, b"LOST ")
            && let Some(count) = words(&line[index + 5..]).next().and_then(|count| whole(count).ok())
        {
            return Some(count);
        }
        if let Some(count) = lost_events(line) {
            return Some(count);
        }
        let mut from_the_end = words(line).rev();
        let (last, before, name) = (from_the_end.next()?, from_the_end.next()?, from_the_end.next()?);
        match (name, before) {
            (b"PERF_RECORD_LOST", b"lost") => {
                let count = whole(last).ok()?;
                self.in_place = self.in_place.saturating_add(count);
                Some(count)
            }
            (b"PERF_RECORD_LOST_SAMPLES", b"lost") => {
                self.total = self.total.saturating_add(whole(last).ok()?);
                None
            }
            _ => None,
        }
    }

    fn lost_of_processed(&mut self, rest: &[u8]) {
        let mut words = words(rest);
        let (all, share) = (words.next().and_then(|all| whole(all).ok()), words.next_back());
        let share = share.and_then(|share| share.strip_suffix(b"%!")).and_then(|share| decimal(share, 4).ok());
        match (all, share) {
            (Some(all), Some(share)) => {
                let lost = u128::from(all) * u128::from(share.unsigned_abs()) / 1_000_000;
                self.total = self.total.max(u64::try_from(lost).unwrap_or(u64::MAX));
            }
            _ => self.chunks += lost_events(rest).unwrap_or(0),
        }
    }

    /// Adds losses that only the total at the end contains.
    pub fn conclude(&mut self, about: &mut Metadata) {
        let Self { in_place, total, chunks } = std::mem::take(self);
        // Each loss is of one event at least.
        let lost = total.max(chunks).saturating_sub(in_place);
        about.counts.lost_events = about.counts.lost_events.saturating_add(lost);
    }
}
