//! Counts lost events, as reported by lines between the events.

use memchr::memmem;

use crate::model::metadata::Metadata;
use crate::rows::words;
use crate::text::human;
use crate::text::number::whole;

/// Events lost by perf. Since 2022 it reports each loss twice: where it happened, and in a total at the end.
#[derive(Default)]
pub struct Losses {
    in_place: u64,
    total: u64,
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
                about.notice(format!(
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

    /// The number of events lost at this line: `CPU:3 [LOST 17 EVENTS]` of ftrace and trace-cmd while a ring was read,
    /// `Lost 17 events` of bpftrace, and `… PERF_RECORD_LOST lost 17` of `perf script --show-lost-events`.
    fn lost(&mut self, line: &[u8]) -> Option<u64> {
        if let Some(index) = memmem::find(line, b"LOST ")
            && let Some(count) = words(&line[index + 5..]).next().and_then(|count| whole(count).ok())
        {
            return Some(count);
        }
        let mut from_the_end = words(line).rev();
        let (last, before, name) = (from_the_end.next()?, from_the_end.next()?, from_the_end.next()?);
        match (name, before) {
            (b"Lost", count) if last == b"events" && from_the_end.next().is_none() => whole(count).ok(),
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

    /// Adds losses that only the total at the end contains.
    pub fn conclude(&mut self, about: &mut Metadata) {
        let Self { in_place, total } = std::mem::take(self);
        about.counts.lost_events = about.counts.lost_events.saturating_add(total.saturating_sub(in_place));
    }
}
