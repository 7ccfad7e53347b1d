//! Progress bar, errors and signals of `wipe` and `slurp`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use iosonar_device::sweep::{Progress, Swept};

use crate::console::status;
use crate::signals::{SignalHandler, on_signal};
use crate::{exit, human};

/// Failed regions that are printed.
const SHOWN: usize = 20;

/// The first signal ends the sweep after the chunks in flight, a second one ends the program.
pub fn stop_on_signals(progress: &Arc<Progress>) -> Result<SignalHandler> {
    let progress = Arc::clone(progress);
    let stop = move |_, before| {
        if before > 0 {
            std::process::exit(i32::from(exit::CUT_SHORT));
        }
        progress.stop();
        status!("stopping; press Ctrl-C again to stop at once");
    };
    on_signal(stop).context("cannot handle signals")
}

/// Runs `work` with a progress bar, if standard error is a terminal.
pub fn with_bar<T>(bytes: u64, progress: &Arc<Progress>, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let drawer = io::stderr().is_terminal().then(|| scope.spawn(|| draw(bytes, progress, &over)));
        let result = work();
        over.store(true, Ordering::Relaxed);
        if let Some(drawer) = drawer {
            drawer.thread().unpark();
        }
        result
    })
}

fn draw(bytes: u64, progress: &Progress, over: &AtomicBool) {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}, {eta} left").expect("a valid template");
    let bar = ProgressBar::new(bytes).with_style(style);
    let begun = Instant::now();
    while !over.load(Ordering::Relaxed) {
        let done = progress.bytes.load(Ordering::Relaxed);
        let failed = progress.failed.load(Ordering::Relaxed);
        let rate = done as f64 / begun.elapsed().as_secs_f64().max(1e-3);
        let failed = if failed > 0 { format!(", {} failed", human::block(failed)) } else { String::new() };
        bar.set_message(format!(
            "{} of {}, {}/s{failed}",
            human::bytes(done),
            human::bytes(bytes),
            human::bytes(rate as u64)
        ));
        bar.set_position(done);
        thread::park_timeout(Duration::from_millis(250));
    }
    bar.finish_and_clear();
}

/// `67.1 MB in 1.2 s: 55.9 MB/s`.
pub fn rate<P>(swept: &Swept<P>) -> String {
    let seconds = swept.took.as_secs_f64();
    let rate = human::bytes((swept.bytes as f64 / seconds.max(1e-9)) as u64);
    format!("{} in {}: {rate}/s", human::bytes(swept.bytes), human::span(seconds))
}

/// The failed regions, a line for each.
pub fn failures<P>(swept: &Swept<P>) -> String {
    let mut text = String::new();
    for failure in swept.failures.iter().take(SHOWN) {
        let sector = failure.at / 512;
        _ = writeln!(
            text,
            "error: {} at sector {sector} (byte {}): {}",
            human::block(failure.bytes),
            failure.at,
            failure.error
        );
    }
    let more = swept.failures.len().saturating_sub(SHOWN);
    if more > 0 {
        _ = writeln!(text, "error: and {} more regions", human::count(more as u64));
    }
    text
}
