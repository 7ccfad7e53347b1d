//! Detects a hung target: requests are in flight, and none completes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use iosonar_pacing::progress::Progress;

/// Even a slow device nearly always completes a request within this time.
const SLOW: Duration = Duration::from_secs(5);

/// The state of the detection.
#[derive(Debug, Default)]
pub struct Hang {
    completed: u64,
    /// Time of the last completion, or since when requests are in flight.
    since: Duration,
    /// The time without completions at which the next message is due; it doubles with each message.
    next: Option<Duration>,
}

impl Hang {
    /// "no completion for N s, M in flight", if the target hangs. `now` has an arbitrary origin.
    pub fn silence(&mut self, now: Duration, progress: &Progress) -> Option<String> {
        let in_flight = progress.in_flight.total();
        self.look(now, progress.completed.load(Ordering::Relaxed), in_flight).map(|silent| message(silent, in_flight))
    }

    /// A message when the target begins to hang, and when it completes requests again.
    pub fn news(&mut self, now: Duration, progress: &Progress) -> Option<String> {
        let was_silent = now - self.since;
        let Some(message) = self.silence(now, progress) else {
            return self.next.take().map(|_| format!("completions again, after {} s", was_silent.as_secs()));
        };
        let silent = now - self.since;
        if silent < self.next.unwrap_or(SLOW) {
            return None;
        }
        self.next = Some(silent * 2);
        Some(format!("{message}; Ctrl-C ends the replay, a second Ctrl-C does not wait for them"))
    }

    /// Time without completions, if at least [`SLOW`].
    fn look(&mut self, now: Duration, completed: u64, in_flight: u32) -> Option<Duration> {
        if completed != self.completed || in_flight == 0 {
            (self.completed, self.since) = (completed, now);
        }
        Some(now - self.since).filter(|silent| *silent >= SLOW)
    }
}

fn message(silent: Duration, in_flight: u32) -> String {
    format!("no completion for {} s, {in_flight} in flight", silent.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_hangs_if_no_request_in_flight_completes() {
        let progress = Progress::default();
        let (mut hang, mut messages) = (Hang::default(), Vec::new());
        for second in 0..60_u64 {
            // A pause of the load, then a completion each second until 20, a hang until 50, then completions again.
            progress.in_flight.of(0).store(if second < 10 { 0 } else { 7 }, Ordering::Relaxed);
            progress.completed.store(if second < 50 { second.clamp(10, 20) } else { second }, Ordering::Relaxed);
            messages.extend(hang.news(Duration::from_secs(second), &progress).map(|news| (second, news)));
        }
        let begins = [
            (25, "no completion for 5 s, 7 in flight; Ctrl-C"),
            (30, "no completion for 10 s, 7 in flight"),
            (40, "no completion for 20 s, 7 in flight"),
            (50, "completions again, after 30 s"),
        ];
        assert_eq!(messages.len(), begins.len(), "{messages:?}");
        for ((second, news), (at, begin)) in messages.iter().zip(begins) {
            assert!(*second == at && news.starts_with(begin), "{messages:?}");
        }
    }
}
