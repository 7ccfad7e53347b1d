//! The footer of a run.

use iosonar_device::mounts;
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::host::machine;
use iosonar_trace::run_info::{OpenMap, RunData};
use iosonar_trace::{Span, path_text};

use super::prepared::Prepared;
use crate::replay::options::Cache;
use crate::replay::statistics::Statistics;
use crate::{CallsRun, Metadata, RunRoot};

/// What the footer says about the time and the data of a run.
pub struct RunFacts {
    /// The clock of the run.
    pub clock: Monotonic,
    /// Wall-clock time of virtual zero.
    pub started_unix_ns: i64,
    /// Percentage of processor time that the hypervisor withheld.
    pub stolen_pct: Option<f64>,
    /// The data of writes.
    pub data: RunData,
}

impl Prepared {
    /// The footer with these statistics.
    pub(super) fn footer(&self, statistics: &Statistics, warnings: &[String], about: &RunFacts) -> Metadata {
        let mount = mounts::of(&self.options.root);
        let root = RunRoot {
            path: path_text(&self.options.root).into(),
            confinement: self.roots[0].confinement().name().to_owned().into(),
            mount: mount.as_ref().map(mounts::Mount::describe).into(),
            ..RunRoot::default()
        };
        let cache = match self.options.cache {
            Cache::Keep => "whatever was cached at the start could be read from memory; hits are not known",
            Cache::Drop => "the page cache was dropped before the replay (--drop-caches)",
            Cache::None => "pages of each file were dropped when it was opened (--no-cache)",
        };
        let run = CallsRun {
            trace: path_text(&self.options.trace).into(),
            options: OpenMap::of(&self.options).into(),
            configured: self.options.configured.clone().into(),
            root: root.into(),
            machine: machine::snapshot().into(),
            started_unix_ns: about.started_unix_ns.into(),
            started_monotonic_ns: about.clock.zero_ns().into(),
            wait: self.wait.name().to_owned().into(),
            wait_reason: self.wait_reason.clone().into(),
            threads: (self.workers() as u64).into(),
            page_cache: cache.to_owned().into(),
            first_call: self.prescan.first.into(),
            trace_zero_ns: self.prescan.zero.0.into(),
            fake: statistics.fake.clone().into(),
            warnings: warnings.to_vec().into(),
            stolen_pct: about.stolen_pct.into(),
            data: about.data.clone().into(),
            statistics: OpenMap::of(statistics).into(),
            ..CallsRun::default()
        };
        let mut metadata = Metadata {
            kind: "calls_run".into(),
            source: self.source.source.clone(),
            recorder: self.source.recorder,
            command: self.source.command.clone(),
            complete: statistics.complete,
            span: Span::default(),
            run: Some(Box::new(run)),
            ..Metadata::default()
        };
        metadata.source.path = Some(path_text(&self.options.trace));
        metadata
    }
}
