//! Progress bar and signals of a replay.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use iosonar_pacing::Stop;
use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;
use iosonar_trace::pipe::end_pipes;

use crate::console::{self, status};
use crate::hang::Hang;
use crate::human;
use crate::signals::{SignalHandler, on_signal};

/// The first signal stops issuing, and waiting for a load from a pipe; a second one does not wait for what is in flight.
/// `what` is issued: requests or calls.
pub fn stop_on_signals(stop: &Arc<Stop>, what: &'static str) -> io::Result<SignalHandler> {
    let stop = Arc::clone(stop);
    on_signal(move |_, before| {
        if before == 0 {
            stop.drain();
            end_pipes();
            status!("stopping: waiting for {what} in flight; press Ctrl-C again to stop at once");
        } else {
            stop.abort();
        }
    })
}

/// For the final pass of verification, which counts sectors.
const VERIFY_STYLE: &str = "{bar:30} {percent:>3} %  {msg}, {eta} left";

/// What a replay issues, in words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// One of them.
    one: &'static str,
    /// Those that went wrong.
    wrong: &'static str,
}

/// Requests to devices.
pub const REQUESTS: Words = Words { one: "request", wrong: "errors" };
/// Calls on files.
pub const CALLS: Words = Words { one: "call", wrong: "mismatches" };

/// Shows the progress of a replay: a bar on a terminal; otherwise only messages about a hung target.
pub struct Bar {
    over: Arc<AtomicBool>,
    drawer: Option<JoinHandle<()>>,
}

impl Bar {
    /// `requests` and `duration` are the expected totals, if known.
    pub fn start(progress: &Arc<Progress>, requests: Option<u64>, duration: Option<Nanos>, words: Words) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (progress, seen) = (Arc::clone(progress), Arc::clone(&over));
        let drawer = if io::stderr().is_terminal() {
            thread::Builder::new().spawn(move || draw(&progress, &seen, requests, duration, words))
        } else {
            thread::Builder::new().spawn(move || listen(&progress, &seen))
        };
        // If the thread cannot start, run without one.
        Self { over, drawer: drawer.ok() }
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(drawer) = self.drawer {
            drawer.thread().unpark();
            // A failed bar does not affect the run.
            let _ = drawer.join();
        }
    }
}

/// Interval between updates.
const TICK: Duration = Duration::from_millis(250);

/// Prints when the target hangs, and when it completes requests again.
fn listen(progress: &Progress, over: &AtomicBool) {
    let begun = Instant::now();
    let mut hang = Hang::default();
    while !over.load(Ordering::Relaxed) {
        if let Some(news) = hang.news(begun.elapsed(), progress) {
            status!("{news}");
        }
        thread::park_timeout(4 * TICK);
    }
}

fn draw(progress: &Progress, over: &AtomicBool, requests: Option<u64>, duration: Option<Nanos>, words: Words) {
    // Progress by time if the duration is known, otherwise by requests.
    let (length, by_time) = match (duration, requests) {
        (Some(duration), _) => (duration.0.max(1) as u64, true),
        (None, requests) => (requests.unwrap_or(0), false),
    };
    let style = if length > 0 { "{bar:30} {percent:>3} %  {msg}, {eta} left" } else { "{spinner} {msg}" };
    let bar = ProgressBar::new(length).with_style(ProgressStyle::with_template(style).expect("a valid template"));
    let _above = console::above(&bar);
    let mut before = 0;
    let (begun, mut hang) = (Instant::now(), Hang::default());
    while !over.load(Ordering::Relaxed) {
        let to_verify = progress.to_verify.load(Ordering::Relaxed);
        if to_verify > 0 {
            let wrong = progress.mismatches.load(Ordering::Relaxed);
            bar.set_style(ProgressStyle::with_template(VERIFY_STYLE).expect("a valid template"));
            bar.set_length(to_verify);
            bar.set_position(progress.verified.load(Ordering::Relaxed));
            bar.set_message(format!("reading back written sectors, {wrong} mismatches"));
            thread::park_timeout(TICK);
            continue;
        }
        let done = progress.requests.load(Ordering::Relaxed);
        let errors = progress.errors.load(Ordering::Relaxed);
        let rate = (done - before) as f64 / TICK.as_secs_f64();
        let bytes = human::bytes(progress.bytes.load(Ordering::Relaxed));
        before = done;
        let failed = if errors > 0 { format!(", {} {}", human::count(errors), words.wrong) } else { String::new() };
        let silence = hang.silence(begun.elapsed(), progress).map(|message| format!(", {message}")).unwrap_or_default();
        let shown = human::counted(done, words.one);
        bar.set_message(format!("{shown}, {}/s, {bytes}{failed}{silence}", human::rate(rate)));
        let scheduled = progress.scheduled_ns.load(Ordering::Relaxed).max(0) as u64;
        bar.set_position(if by_time { scheduled } else { done });
        thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}
