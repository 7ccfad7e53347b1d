//! `replay --progress json`: a JSON object on a line of standard error each second, and at each change of state.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use iosonar_pacing::live::{Live, Recent, Snapshot};
use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;
use iosonar_trace::run_info::Quantiles;
use serde::Serialize;

use super::state::{State, run_time};
use crate::console::status;
use crate::hang::Hang;

/// Interval between lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Rates over less time would be noise.
const SHORTEST_RATE: Duration = Duration::from_millis(500);

#[derive(Serialize)]
struct Line {
    state: State,
    /// Since time 0 of the run, negative before it; `None` until it is known.
    time_s: Option<f64>,
    of_s: Option<f64>,
    completed: u64,
    in_flight: u32,
    rate_per_s: f64,
    delay_s: Option<f64>,
    demanded: u64,
    submitted: u64,
    waiting: Option<u32>,
    bytes: u64,
    errors: u64,
    dropped: u64,
    demanded_per_s: f64,
    bytes_per_s: f64,
    delay_p50_s: Option<f64>,
    delay_p99_s: Option<f64>,
    latency_p50_s: Option<f64>,
    latency_p99_s: Option<f64>,
}

/// Prints the lines from another thread until it is dropped.
pub struct Lines {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// `expected` is the duration of the run, once it is known.
    pub fn start(progress: &Arc<Progress>, expected: &Arc<OnceLock<Nanos>>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let reporter = Reporter {
            progress: Arc::clone(progress),
            duration: Arc::clone(expected),
            is_timed: progress.live.as_ref().is_some_and(Live::is_timed),
            printed: None,
            recent: LastSecond {
                since: Instant::now(),
                completed: 0,
                rate_per_s: 0.0,
                delay: None,
                snapshot: None,
                recent: None,
            },
        };
        let seen = Arc::clone(&over);
        // If the thread cannot start, run without one.
        let thread = thread::Builder::new().spawn(move || reporter.run(&seen)).ok();
        if let Some(thread) = &thread {
            let _ = progress.observer.set(thread.thread().clone());
        }
        Self { over, thread }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Rate and longest delay of the last interval.
struct LastSecond {
    since: Instant,
    completed: u64,
    rate_per_s: f64,
    delay: Option<Nanos>,
    /// At its end.
    snapshot: Option<Snapshot>,
    recent: Option<Recent>,
}

struct Reporter {
    progress: Arc<Progress>,
    duration: Arc<OnceLock<Nanos>>,
    is_timed: bool,
    /// The last state printed.
    printed: Option<State>,
    recent: LastSecond,
}

impl Reporter {
    fn run(mut self, over: &AtomicBool) {
        let (begun, mut hang) = (Instant::now(), Hang::default());
        let mut next = begun + INTERVAL;
        loop {
            // Before looking, so that the last look sees all changes.
            let is_last = over.load(Ordering::Relaxed);
            let time = run_time(&self.progress);
            let has_changed = self.print_changes(time);
            if is_last {
                return;
            }
            if has_changed {
                // Full seconds of the run from its time 0 on.
                next = Instant::now() + INTERVAL;
            } else if Instant::now() >= next {
                next += INTERVAL;
                self.print(State::at(time, &self.progress), time);
                if let Some(news) = hang.news(begun.elapsed(), &self.progress) {
                    status!("{news}");
                }
            }
            let until_zero = time.filter(|time| *time < Nanos::ZERO).map(|time| Duration::from_nanos(-time.0 as u64));
            let until_next = next.saturating_duration_since(Instant::now());
            thread::park_timeout(until_zero.map_or(until_next, |zero| until_next.min(zero)));
        }
    }

    /// Prints a line for each state since the last one, also for those too short to be seen. Returns whether there are any.
    fn print_changes(&mut self, time: Option<Nanos>) -> bool {
        let now = State::at(time, &self.progress);
        let before = self.printed;
        let was_ready = self.progress.is_ready.load(Ordering::Relaxed);
        let is_reached = |state: State| {
            // A run that is stopped before time 0 skips its main state.
            state <= now
                && (state != State::Run || time.is_some_and(|time| time >= Nanos::ZERO))
                && (state != State::Ready || was_ready)
        };
        for state in State::ALL.into_iter().filter(|&state| Some(state) > before && is_reached(state)) {
            self.print(state, time);
        }
        self.printed = before.max(Some(now));
        self.printed != before
    }

    fn print(&mut self, state: State, time: Option<Nanos>) {
        let completed = self.progress.completed.load(Ordering::Relaxed);
        let (now, recent) = (Instant::now(), &mut self.recent);
        let interval = now - recent.since;
        let delay = self.progress.take_longest_delay().filter(|_| self.is_timed);
        let begins = state == State::Run && self.printed < Some(State::Run);
        if interval >= SHORTEST_RATE || begins {
            let rate_per_s = (completed - recent.completed) as f64 / interval.max(SHORTEST_RATE).as_secs_f64();
            let snapshot = self.progress.snapshot();
            let between =
                recent.snapshot.as_ref().zip(snapshot.as_ref()).map(|(before, now)| Recent::between(before, now));
            *recent = LastSecond { since: now, completed, rate_per_s, delay, snapshot, recent: between };
        } else {
            recent.delay = recent.delay.max(delay);
        }
        let seconds = |us: Option<f64>| us.map(|us| rounded(us / 1e6, 1e9));
        let of = |times: fn(&Recent) -> &Option<Quantiles>| recent.recent.as_ref().and_then(|all| *times(all));
        let (delays, latencies) = (of(|recent| &recent.delay_us), of(|recent| &recent.latency_us));
        let per_s = |rate: fn(&Recent) -> f64| recent.recent.as_ref().map_or(0.0, |recent| rounded(rate(recent), 10.0));
        let counts = self.progress.snapshot();
        let count = |of: fn(&Snapshot) -> u64| counts.as_ref().map_or(0, of);
        let line = Line {
            state,
            time_s: time.map(|time| rounded(time.as_secs(), 1e3)),
            of_s: self.duration.get().map(|duration| rounded(duration.as_secs(), 1e3)),
            completed,
            in_flight: self.progress.in_flight.total(),
            rate_per_s: rounded(recent.rate_per_s, 10.0),
            delay_s: recent.delay.map(|delay| rounded(delay.as_secs(), 1e6)),
            demanded: count(|now| now.demanded),
            submitted: count(|now| now.submitted),
            waiting: counts.as_ref().and_then(|now| now.waiting),
            bytes: count(|now| now.bytes),
            errors: count(|now| now.errors),
            dropped: count(|now| now.dropped),
            demanded_per_s: per_s(|recent| recent.demanded_per_s),
            bytes_per_s: per_s(|recent| recent.bytes_per_s),
            delay_p50_s: seconds(delays.as_ref().and_then(|all| all.p50)),
            delay_p99_s: seconds(delays.as_ref().and_then(|all| all.p99)),
            latency_p50_s: seconds(latencies.as_ref().and_then(|all| all.p50)),
            latency_p99_s: seconds(latencies.as_ref().and_then(|all| all.p99)),
        };
        let text = serde_json::to_string(&line).expect("plain data") + "\n";
        // One write, so that no other message gets into the line. A closed standard error does not end the run.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Rounded to a multiple of 1/`parts`.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
