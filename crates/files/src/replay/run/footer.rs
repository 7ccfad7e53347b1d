//! The footer of a run.

use iosonar_device::mounts;
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::host::machine;
use iosonar_trace::{Span, path_text};
use serde_json::{Value, json};

use super::prepared::Prepared;
use crate::Metadata;
use crate::replay::options::Cache;
use crate::replay::statistics::{Counter, Engine, Statistics};

/// What the footer says about the time and the data of a run.
pub struct About {
    /// The clock of the run.
    pub clock: Monotonic,
    /// Wall-clock time of virtual zero.
    pub started_unix_ns: i64,
    /// Percentage of processor time that the hypervisor withheld.
    pub stolen_pct: Option<f64>,
    /// The data of writes.
    pub data: Value,
}

/// The warning in a result whose replay was killed.
const RECOVERED: &str =
    "the replay was killed: calls of its last seconds may be missing, and files are as it left them";

impl Prepared {
    /// The footer of a result that is cut short, with the statistics until then.
    pub(super) fn footer_so_far(
        &self,
        counter: &Counter,
        fake: Option<String>,
        warnings: &[String],
        about: &About,
    ) -> Box<dyn Fn(&Counter) -> Metadata + Send> {
        let factor = self.options.factor;
        let until_now = move |counter: &Counter| counter.statistics(factor, false, Engine::default(), fake.clone());
        let warnings = [warnings, &[RECOVERED.into()]].concat();
        let footer = self.footer(&until_now(counter), &warnings, about);
        Box::new(move |counter| {
            let mut so_far = footer.clone();
            let mut statistics = json!(until_now(counter));
            // Only the engine knows it, in the end.
            statistics["max_in_flight"] = Value::Null;
            so_far.run.as_mut().expect("a run")["statistics"] = statistics;
            so_far
        })
    }

    pub(super) fn footer(&self, statistics: &Statistics, warnings: &[String], about: &About) -> Metadata {
        let mount = mounts::of(&self.options.root);
        let root = json!({
            "path": path_text(&self.options.root),
            "confinement": self.roots[0].confinement(),
            "mount": mount.as_ref().map(mounts::Mount::describe),
        });
        let cache = match self.options.cache {
            Cache::Keep => "whatever was cached at the start could be read from memory; hits are not known",
            Cache::Drop => "the page cache was dropped before the replay (--drop-caches)",
            Cache::None => "pages of each file were dropped when it was opened (--no-cache)",
        };
        let run: Value = json!({
            "trace": path_text(&self.options.trace),
            "options": self.options,
            "root": root,
            "machine": machine::snapshot(),
            "started_unix_ns": about.started_unix_ns,
            "started_monotonic_ns": about.clock.zero_ns(),
            "wait": self.wait.name(),
            "wait_reason": self.wait_reason,
            "threads": self.workers(),
            "page_cache": cache,
            "first_call": self.prescan.first,
            "trace_zero_ns": self.prescan.zero.0,
            "fake": statistics.fake,
            "warnings": warnings,
            "stolen_pct": about.stolen_pct,
            "data": about.data,
            "statistics": statistics,
        });
        let mut metadata = Metadata {
            kind: "calls_run".into(),
            source: self.source.source.clone(),
            recorder: self.source.recorder,
            command: self.source.command.clone(),
            complete: statistics.complete,
            span: Span::default(),
            run: Some(run),
            ..Metadata::default()
        };
        metadata.source.path = Some(path_text(&self.options.trace));
        metadata
    }
}
