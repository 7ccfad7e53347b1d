//! `--live`: rates, latencies and a small sonar on the terminal, drawn anew in place each second.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use iosonar_pacing::live::{Recent, Snapshot};
use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;
use iosonar_trace::run_info::Quantiles;

use super::sonar::{Characters, Sonar};
use super::state::{State, run_time};
use crate::hang::Hang;
use crate::{console, human};

/// Interval between pictures.
const INTERVAL: Duration = Duration::from_secs(1);

/// Draws from another thread until it is dropped, which removes the picture.
pub struct View {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Whether standard error is a terminal that can move its cursor.
pub fn can_draw() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What the terminal shows, by the locale.
fn characters() -> Characters {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let is_utf8 = locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"));
    if is_utf8 { Characters::Unicode } else { Characters::Ascii }
}

/// Columns of the terminal; not all know theirs.
fn width() -> usize {
    let known = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    if known == 0 { 80 } else { known.clamp(20, 500) }
}

impl View {
    /// Shows a run; `expected` is its duration, once it is known.
    pub fn start(progress: &Arc<Progress>, expected: &Arc<OnceLock<Nanos>>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (progress, expected, seen) = (Arc::clone(progress), Arc::clone(expected), Arc::clone(&over));
        // If the thread cannot start, run without one.
        let thread = thread::Builder::new().spawn(move || draw(&progress, &expected, &seen)).ok();
        Self { over, thread }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn draw(progress: &Progress, expected: &OnceLock<Nanos>, over: &AtomicBool) {
    let style = ProgressStyle::with_template("{msg}").expect("a valid template");
    let bar = ProgressBar::no_length().with_style(style);
    let _above = console::above(&bar);
    let (characters, mut sonar, mut before) = (characters(), Sonar::default(), None::<Snapshot>);
    let (begun, mut hang) = (Instant::now(), Hang::default());
    let mut next = begun;
    while !over.load(Ordering::Relaxed) {
        let time = run_time(progress);
        let silence = hang.silence(begun.elapsed(), progress);
        if let Some(now) = progress.snapshot() {
            let recent = before.as_ref().map(|before| Recent::between(before, &now));
            if let (Some(recent), Some(true)) = (&recent, time.map(|time| time > Nanos::ZERO)) {
                sonar.add(&recent.latency);
            }
            let head = Head { state: State::at(time, progress), time, expected: expected.get().copied(), silence };
            let width = width();
            let mut lines = numbers(&head, &now, recent.as_ref());
            lines.iter_mut().for_each(|line| *line = characters.text(line));
            lines.extend(sonar.lines(width - 1, characters));
            // A line that wraps would not be removed as a whole.
            let cut: Vec<String> = lines.iter().map(|line| line.chars().take(width - 1).collect()).collect();
            bar.set_message(cut.join("\n"));
            before = Some(now);
        }
        next += INTERVAL;
        thread::park_timeout(next.saturating_duration_since(Instant::now()));
    }
    bar.finish_and_clear();
}

/// What the first line begins with.
struct Head {
    state: State,
    time: Option<Nanos>,
    expected: Option<Nanos>,
    silence: Option<String>,
}

fn numbers(head: &Head, now: &Snapshot, recent: Option<&Recent>) -> Vec<String> {
    let mut first = head.state.name().to_owned();
    if let Some(time) = head.time {
        let _ = write!(first, " {:.0} s", time.as_secs());
    }
    if let Some(expected) = head.expected {
        let _ = write!(first, " of {:.0} s", expected.as_secs());
    }
    let mut counts = format!("in flight {}", now.in_flight);
    if let Some(waiting) = now.waiting {
        let _ = write!(counts, " · waiting {waiting}");
    }
    let _ = write!(counts, " · errors {} · dropped {}", human::count(now.errors), human::count(now.dropped));
    if let Some(silence) = &head.silence {
        let _ = write!(counts, " · {silence}");
    }
    let mut lines = vec![first, counts];
    if let Some(recent) = recent {
        let rates = format!(
            " · demand {}/s · actual {}/s · {}/s",
            human::rate(recent.demanded_per_s),
            human::rate(recent.completed_per_s),
            human::bytes(recent.bytes_per_s as u64)
        );
        lines[0].push_str(&rates);
        lines.push(format!("delay    {}", quantiles(recent.delay_us.as_ref())));
        lines.push(format!("latency  {}", quantiles(recent.latency_us.as_ref())));
    }
    lines
}

/// Of the last second.
fn quantiles(of: Option<&Quantiles>) -> String {
    let Some(of) = of else { return "–".to_owned() };
    format!(
        "p50 {} · p99 {} · longest {}",
        human::percentile(of.p50),
        human::percentile(of.p99),
        human::span(of.max / 1e6)
    )
}

#[cfg(test)]
mod tests {
    use iosonar_replay::result::live::{of_requests, row_of};
    use iosonar_trace::{IoResult, Op, Request, Sector, Sectors};

    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_last_second() {
        let live = of_requests(true);
        let before = live.snapshot(|| 0);
        let request = Request::new(Nanos(1000), Op::Read, Sector(0), Sectors(8));
        for number in 0..2000 {
            let (issued, completed) = (Some(Nanos(3000)), Some(Nanos(93_000)));
            live.add(&row_of(&IoResult {
                issued,
                completed,
                bytes_done: 4096,
                waiting: 7,
                ..IoResult::of(&request, number)
            }));
        }
        let now = live.snapshot(|| 3);
        let recent = Recent::between(&Snapshot { at: now.at - Duration::from_secs(1), ..before }, &now);
        let head = Head {
            state: State::Run,
            time: Some(Nanos(12_000_000_000)),
            expected: Some(Nanos(60_000_000_000)),
            silence: None,
        };
        let lines = numbers(&head, &now, Some(&recent));
        assert_eq!(lines[0], "run 12 s of 60 s · demand 2,010/s · actual 2,000/s · 8.19 MB/s");
        assert_eq!(lines[1], "in flight 3 · waiting 7 · errors 0 · dropped 0");
        assert_eq!(lines[2], "delay    p50 2 µs · p99 2 µs · longest 2 µs");
        assert_eq!(lines[3], "latency  p50 90 µs · p99 90 µs · longest 90 µs");
    }
}
