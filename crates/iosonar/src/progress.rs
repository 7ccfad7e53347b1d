//! A progress bar on standard error, if that is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::console::one_line;

/// Rows between two readings of the clock.
const ROWS: u64 = 1 << 14;

/// A bar over the rows of a file. It appears only after 500 ms.
pub struct Rows {
    bar: ProgressBar,
    rows: u64,
    unit: &'static str,
    started: Instant,
}

impl Rows {
    /// `what` is the label of the bar.
    pub fn new(what: &str) -> Self {
        Self::of(what, "request")
    }

    /// The same, with the name of its rows.
    pub fn of(what: &str, unit: &'static str) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_message(one_line(what));
        Self { bar, rows: 0, unit, started: Instant::now() }
    }

    /// Counts a row; calls `progress` (0 to 1) every [`ROWS`] rows.
    pub fn row(&mut self, progress: impl Fn() -> Option<f64>) {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS) && self.started.elapsed() > Duration::from_millis(500) {
            self.show(progress());
        }
    }

    fn show(&mut self, progress: Option<f64>) {
        const STEPS: f64 = 1000.0;
        if self.bar.length().is_none() && self.bar.is_hidden() {
            let template = match progress {
                Some(_) => "{msg} [{bar:40}] {percent} % · {prefix} · {eta} left",
                None => "{spinner} {msg}: {prefix}",
            };
            let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar.set_style(style.progress_chars("=> "));
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            if progress.is_some() {
                self.bar.set_length(STEPS as u64);
            }
        }
        self.bar.set_prefix(format!("{} {}s", self.rows, self.unit));
        match progress {
            Some(done) => self.bar.set_position((done * STEPS) as u64),
            None => self.bar.tick(),
        }
    }

    /// Removes the bar; returns the number of rows.
    pub fn finish(self) -> u64 {
        self.bar.finish_and_clear();
        self.rows
    }
}
