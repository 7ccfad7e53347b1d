//! `replay --progress json`: a JSON object on a line of standard error each second, and at each change of state.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use iosonar_pacing::clock::monotonic;
use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;
use serde::Serialize;

use crate::console::status;
use crate::hang::Hang;

/// Interval between lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Rates over less time would be noise.
const SHORTEST_RATE: Duration = Duration::from_millis(500);

/// What a replay does, in the order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Prepare,
    Ready,
    Wait,
    Run,
    Finish,
}

const STATES: [State; 5] = [State::Prepare, State::Ready, State::Wait, State::Run, State::Finish];

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
}

/// Prints the lines from another thread until it is dropped.
pub struct Lines {
    over: Arc<AtomicBool>,
    duration: Arc<OnceLock<Nanos>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// `is_timed` is whether requests have scheduled times, and so delays.
    pub fn start(progress: &Arc<Progress>, is_timed: bool) -> Self {
        let (over, duration) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let reporter = Reporter {
            progress: Arc::clone(progress),
            duration: Arc::clone(&duration),
            is_timed,
            printed: None,
            recent: Recent { since: Instant::now(), completed: 0, rate_per_s: 0.0, delay: None },
        };
        let seen = Arc::clone(&over);
        // If the thread cannot start, run without one.
        let thread = thread::Builder::new().spawn(move || reporter.run(&seen)).ok();
        if let Some(thread) = &thread {
            let _ = progress.observer.set(thread.thread().clone());
        }
        Self { over, duration, thread }
    }

    /// Sets the expected duration of the run.
    pub fn expect(&self, duration: Option<Nanos>) {
        if let Some(duration) = duration {
            let _ = self.duration.set(duration);
        }
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
struct Recent {
    since: Instant,
    completed: u64,
    rate_per_s: f64,
    delay: Option<Nanos>,
}

struct Reporter {
    progress: Arc<Progress>,
    duration: Arc<OnceLock<Nanos>>,
    is_timed: bool,
    /// The last state printed.
    printed: Option<State>,
    recent: Recent,
}

impl Reporter {
    fn run(mut self, over: &AtomicBool) {
        let (begun, mut hang) = (Instant::now(), Hang::default());
        let mut next = begun + INTERVAL;
        loop {
            // Before looking, so that the last look sees all changes.
            let is_last = over.load(Ordering::Relaxed);
            let time = self.time();
            let has_changed = self.print_changes(time);
            if is_last {
                return;
            }
            if has_changed {
                // Full seconds of the run from its time 0 on.
                next = Instant::now() + INTERVAL;
            } else if Instant::now() >= next {
                next += INTERVAL;
                self.print(self.state(time), time);
                if let Some(news) = hang.news(begun.elapsed(), &self.progress) {
                    status!("{news}");
                }
            }
            let until_zero = time.filter(|time| *time < Nanos::ZERO).map(|time| Duration::from_nanos(-time.0 as u64));
            let until_next = next.saturating_duration_since(Instant::now());
            thread::park_timeout(until_zero.map_or(until_next, |zero| until_next.min(zero)));
        }
    }

    fn time(&self) -> Option<Nanos> {
        let zero = Some(self.progress.zero_ns.load(Ordering::Relaxed)).filter(|zero| *zero != 0)?;
        Some(Nanos(monotonic().0 - zero))
    }

    fn is_ready(&self) -> bool {
        self.progress.is_ready.load(Ordering::Relaxed)
    }

    fn state(&self, time: Option<Nanos>) -> State {
        match time {
            _ if self.progress.is_finishing.load(Ordering::Relaxed) => State::Finish,
            None if self.is_ready() => State::Ready,
            None => State::Prepare,
            Some(time) if time < Nanos::ZERO => State::Wait,
            Some(_) => State::Run,
        }
    }

    /// Prints a line for each state since the last one, also for those too short to be seen. Returns whether there are any.
    fn print_changes(&mut self, time: Option<Nanos>) -> bool {
        let now = self.state(time);
        let before = self.printed;
        let was_ready = self.is_ready();
        let is_reached = |state: State| {
            // A run that is stopped before time 0 skips its main state.
            state <= now
                && (state != State::Run || time.is_some_and(|time| time >= Nanos::ZERO))
                && (state != State::Ready || was_ready)
        };
        for state in STATES.into_iter().filter(|&state| Some(state) > before && is_reached(state)) {
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
            *recent = Recent { since: now, completed, rate_per_s, delay };
        } else {
            recent.delay = recent.delay.max(delay);
        }
        let line = Line {
            state,
            time_s: time.map(|time| rounded(time.as_secs(), 1e3)),
            of_s: self.duration.get().map(|duration| rounded(duration.as_secs(), 1e3)),
            completed,
            in_flight: self.progress.in_flight.total(),
            rate_per_s: rounded(recent.rate_per_s, 10.0),
            delay_s: recent.delay.map(|delay| rounded(delay.as_secs(), 1e6)),
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
