//! What the lines between the events tell of events that were lost.

use memchr::memmem;

use crate::model::metadata::Metadata;
use crate::rows::words;
use crate::text::human;
use crate::text::number::whole;

/// Losses that perf tells of. Since 2022 it tells of each twice: where it was, and at the end.
#[derive(Default)]
pub struct Losses {
    on_the_way: u64,
    at_the_end: u64,
}

impl Losses {
    /// Reads a line that is no event's. What ftrace's ring overwrote before it was read stands in its heading, `#
    /// entries-in-buffer/entries-written: 140080/250280   #P:8`, and makes no request doubtful that is in the trace.
    pub fn read(&mut self, line: &[u8], about: &mut Metadata) {
        if let Some(counts) = line.strip_prefix(b"# entries-in-buffer/entries-written:") {
            let mut counts = words(counts).next().unwrap_or_default().splitn(2, |&byte| byte == b'/').map(whole);
            if let (Some(Ok(left)), Some(Ok(all))) = (counts.next(), counts.next())
                && all > left
            {
                about.notice(format!(
                    "the trace's ring was full: of {} events, of whatever kind, the first {} were overwritten, and some \
                     processors' events begin later than others'",
                    human::count(all),
                    human::count(all - left)
                ));
            }
        } else if let Some(count) = self.lost(line) {
            about.counts.lost_events = about.counts.lost_events.saturating_add(count);
        }
    }

    /// How many events were lost there: `CPU:3 [LOST 17 EVENTS]` of ftrace and trace-cmd while a ring was read, `Lost 17
    /// events` of bpftrace, and `… PERF_RECORD_LOST lost 17` of `perf script --show-lost-events`.
    fn lost(&mut self, line: &[u8]) -> Option<u64> {
        if let Some(place) = memmem::find(line, b"LOST ")
            && let Some(count) = words(&line[place + 5..]).next().and_then(|count| whole(count).ok())
        {
            return Some(count);
        }
        let mut from_the_end = words(line).rev();
        let (last, before, name) = (from_the_end.next()?, from_the_end.next()?, from_the_end.next()?);
        match (name, before) {
            (b"Lost", count) if last == b"events" && from_the_end.next().is_none() => whole(count).ok(),
            (b"PERF_RECORD_LOST", b"lost") => {
                let count = whole(last).ok()?;
                self.on_the_way = self.on_the_way.saturating_add(count);
                Some(count)
            }
            (b"PERF_RECORD_LOST_SAMPLES", b"lost") => {
                self.at_the_end = self.at_the_end.saturating_add(whole(last).ok()?);
                None
            }
            _ => None,
        }
    }

    /// Counts what was told at the end alone.
    pub fn conclude(&mut self, about: &mut Metadata) {
        let Self { on_the_way, at_the_end } = std::mem::take(self);
        about.counts.lost_events = about.counts.lost_events.saturating_add(at_the_end.saturating_sub(on_the_way));
    }
}
