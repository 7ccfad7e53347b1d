//! What a replay shows while it runs: a bar, lines of JSON, `--live`, `--metrics`.

pub mod json;
mod metrics;
mod sonar;
mod state;
mod terminal;

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use iosonar_pacing::live::Live;
use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;

use self::json::Lines;
use self::metrics::{Address, Metrics, Run};
use self::terminal::View;
use crate::usage::misuse;
use crate::watch::{Bar, Words};

/// How to show progress.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Progress")]
pub struct ProgressOptions {
    /// How to show progress on standard error
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    progress: ProgressFormat,
    /// Show rates, delays, latencies and a small sonar on the terminal, each second
    #[arg(long, conflicts_with = "progress")]
    live: bool,
    /// Serve metrics for Prometheus: a port of this machine alone, or ADDRESS:PORT
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<Address>,
}

/// The value of `--progress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressFormat {
    /// A bar on a terminal, otherwise only messages about a target that hangs
    Auto,
    /// A JSON object on a line each second and at each change of state
    Json,
}

/// Shows runs, one after the other.
pub struct Shows {
    format: ProgressFormat,
    is_live: bool,
    metrics: Option<Metrics>,
}

impl ProgressOptions {
    /// Checks the options, and begins to serve.
    pub fn start(&self) -> Result<Shows> {
        if self.live && !terminal::can_draw() {
            misuse!(
                "--live draws on a terminal, and standard error is none: use --progress json, or --metrics for Prometheus"
            );
        }
        let metrics = self.metrics.as_ref().map(Metrics::start).transpose()?;
        Ok(Shows { format: self.progress, is_live: self.live, metrics })
    }

    /// Whether any of them is given.
    pub fn is_given(&self) -> bool {
        self.progress != ProgressFormat::Auto || self.live || self.metrics.is_some()
    }
}

/// What is known of a run before it begins.
pub struct About {
    /// The name of what is replayed: a load, a program, a trace.
    pub input: String,
    /// The path of its result.
    pub output: String,
    /// What it issues.
    pub words: Words,
}

impl Shows {
    /// Shows a run from now on, also while it is prepared. `live` counts its rows, if that is needed.
    pub fn show(&self, about: About, live: impl FnOnce() -> Live) -> Shown {
        let is_counted = self.is_live || self.metrics.is_some() || self.format == ProgressFormat::Json;
        let progress = Arc::new(Progress::with_live(is_counted.then(live)));
        let expected = Arc::new(OnceLock::new());
        if let Some(metrics) = &self.metrics {
            let plural = progress.live.as_ref().map_or("", |live| live.words().plural);
            let labels = vec![("kind", plural.to_owned()), ("input", about.input), ("output", about.output)];
            metrics.show(Run { progress: Arc::clone(&progress), expected: Arc::clone(&expected), about: labels });
        }
        let lines = (self.format == ProgressFormat::Json).then(|| Lines::start(&progress, &expected));
        let view = self.is_live.then(|| View::start(&progress, &expected));
        Shown { progress, expected, lines, view, bar: None, words: about.words }
    }
}

/// A run that is shown until this is dropped.
pub struct Shown {
    pub progress: Arc<Progress>,
    expected: Arc<OnceLock<Nanos>>,
    lines: Option<Lines>,
    view: Option<View>,
    bar: Option<Bar>,
    words: Words,
}

impl Shown {
    /// The run is prepared, and has these expected totals.
    pub fn begin(&mut self, requests: Option<u64>, duration: Option<Nanos>) {
        if let Some(duration) = duration {
            let _ = self.expected.set(duration);
        }
        if self.lines.is_none() && self.view.is_none() {
            self.bar = Some(Bar::start(&self.progress, requests, duration, self.words));
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.lines = None;
        self.view = None;
        if let Some(bar) = self.bar.take() {
            bar.finish();
        }
    }
}
