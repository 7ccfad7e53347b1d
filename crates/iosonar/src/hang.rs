//! Whether the target of a replay hangs: requests are in flight, and none comes back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use iosonar_replay::result::completion_log::Progress;

/// A device that is only slow answers earlier, nearly always.
const SLOW: Duration = Duration::from_secs(5);

/// What was seen of the target's answers.
#[derive(Debug, Default)]
pub struct Hang {
    completed: u64,
    /// When the last answer came, or something was in flight first.
    since: Duration,
    /// The next silence to be told of; each twice as long as the one before.
    next: Option<Duration>,
}

impl Hang {
    /// "no completion for N s, M in flight", if it is so; `now` counts from any beginning.
    pub fn silence(&mut self, now: Duration, progress: &Progress) -> Option<String> {
        let in_flight = progress.in_flight.load(Ordering::Relaxed);
        self.look(now, progress.completed.load(Ordering::Relaxed), in_flight).map(|silent| said(silent, in_flight))
    }

    /// The same when it is new, and when it is over.
    pub fn news(&mut self, now: Duration, progress: &Progress) -> Option<String> {
        let was_silent = now - self.since;
        let Some(said) = self.silence(now, progress) else {
            return self.next.take().map(|_| format!("completions again, after {} s", was_silent.as_secs()));
        };
        let silent = now - self.since;
        if silent < self.next.unwrap_or(SLOW) {
            return None;
        }
        self.next = Some(silent * 2);
        Some(format!("{said}; Ctrl-C ends the replay, a second Ctrl-C without waiting for them"))
    }

    /// How long it has been silent, if that is longer than a device is only slow.
    fn look(&mut self, now: Duration, completed: u64, in_flight: u32) -> Option<Duration> {
        if completed != self.completed || in_flight == 0 {
            (self.completed, self.since) = (completed, now);
        }
        Some(now - self.since).filter(|silent| *silent >= SLOW)
    }
}

fn said(silent: Duration, in_flight: u32) -> String {
    format!("no completion for {} s, {in_flight} in flight", silent.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_hangs_when_something_is_in_flight_and_nothing_comes_back() {
        let progress = Progress::default();
        let (mut hang, mut said) = (Hang::default(), Vec::new());
        for second in 0..60_u64 {
            // A pause of the load, then an answer each second until 20, a hang until 50, and answers again.
            progress.in_flight.store(if second < 10 { 0 } else { 7 }, Ordering::Relaxed);
            progress.completed.store(if second < 50 { second.clamp(10, 20) } else { second }, Ordering::Relaxed);
            said.extend(hang.news(Duration::from_secs(second), &progress).map(|news| (second, news)));
        }
        let begins = [
            (25, "no completion for 5 s, 7 in flight; Ctrl-C"),
            (30, "no completion for 10 s, 7 in flight"),
            (40, "no completion for 20 s, 7 in flight"),
            (50, "completions again, after 30 s"),
        ];
        assert_eq!(said.len(), begins.len(), "{said:?}");
        for ((second, news), (at, begin)) in said.iter().zip(begins) {
            assert!(*second == at && news.starts_with(begin), "{said:?}");
        }
    }
}
