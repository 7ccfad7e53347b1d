//! A replay that is ready to start: everything is read, checked and opened.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use iosonar_pacing::Stop;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::host::machine::available_memory;
use iosonar_pacing::wait::Wait;
use iosonar_trace::Nanos;

use super::checks::check;
use super::preflight::{choose_wait, compare_roots, warnings};
use crate::replay::engine::pace::Pace;
use crate::replay::error::Result;
use crate::replay::options::{Options, Threads, Timing};
use crate::replay::prescan::{Prescan, scan};
use crate::replay::root::Root;
use crate::replay::share::Share;
use crate::replay::source::{Trace, Window};
use crate::state::{self, Ignore, PathMap};
use crate::tree::{RootPath, Tree, beside};
use crate::{Metadata, Name};

/// A replay that is ready to start.
pub struct Prepared {
    pub(super) options: Options,
    pub(super) stop: Arc<Stop>,
    pub(super) prescan: Prescan,
    pub(super) tree: Option<Arc<Tree>>,
    pub(super) map: PathMap,
    pub(super) ignore: Ignore,
    pub(super) roots: Vec<Root>,
    pub(super) wait: Wait,
    pub(super) wait_reason: String,
    pub(super) warnings: Vec<String>,
    pub(super) source: Metadata,
    /// Undone when dropped.
    pub(super) isolation: Option<Arc<Isolation>>,
}

impl Prepared {
    /// Checks the options, reads the trace once, and opens the root. Nothing is changed yet.
    ///
    /// # Errors
    /// If options contradict each other, or the root lacks what the trace needs.
    pub fn new(options: Options, stop: &Arc<Stop>) -> Result<Self> {
        check(&options)?;
        let map = options.map.as_deref().map(PathMap::read).transpose()?.unwrap_or_default();
        let ignore = options.ignore.as_deref().map(Ignore::read).transpose()?.unwrap_or_default();
        let beside = || Some(beside(&options.trace)).filter(|path| path.is_file());
        let tree = options.tree_from.clone().or_else(beside);
        let tree = tree.as_deref().map(Tree::load).transpose()?.map(Arc::new);
        let has_own_files = options.instances == 1 || map.has_instances();
        let roots = if has_own_files {
            vec![Root::open(&RootPath::of(&options.root), options.special_files)?; options.instances as usize]
        } else {
            let places = RootPath::of_instances(&options.root, options.instances);
            places.iter().map(|place| Root::open(place, options.special_files)).collect::<Result<_>>()?
        };
        let mut prepared = Self {
            stop: Arc::clone(stop),
            prescan: Prescan::default(),
            tree,
            map,
            ignore,
            roots,
            wait: Wait::Spin,
            wait_reason: String::new(),
            warnings: Vec::new(),
            source: Metadata::default(),
            isolation: None,
            options,
        };
        let mut trace = prepared.trace(0)?;
        prepared.source = trace.reader().metadata().clone();
        prepared.prescan = scan(&mut trace, prepared.window(), stop)?;
        if let Some(until) = prepared.options.pacing.until().filter(|_| prepared.options.timing == Timing::Exact) {
            let end = prepared.prescan.zero + prepared.options.pacing.time_in_load(until);
            prepared.options.end = Some(prepared.options.end.map_or(end, |given| given.min(end)));
            trace = prepared.trace(0)?;
            prepared.prescan = scan(&mut trace, prepared.window(), stop)?;
        }
        Share::check(prepared.options.instances, prepared.prescan.calls, available_memory())?;
        (prepared.wait, prepared.wait_reason) = choose_wait(&prepared.options);
        prepared.warnings = warnings(&prepared.prescan, &prepared.options);
        let Self { ref options, ref roots, ref tree, ref map, ref ignore, .. } = prepared;
        if let Some(needs) = trace.state().needs().filter(|_| !options.fake_io) {
            let differ = compare_roots(options, roots, needs, tree.as_deref(), map, ignore)?;
            prepared.warnings.extend(differ);
        }
        if !prepared.options.pacing.isolate.is_empty() {
            prepared.isolation = Some(Arc::new(Isolation::apply(&prepared.options.pacing.isolate)?));
        }
        Ok(prepared)
    }

    /// What --isolate changed on the machine, one sentence for each part.
    pub fn isolation(&self) -> &[String] {
        self.isolation.as_ref().map_or(&[], |isolation| isolation.changes())
    }

    /// What the prescan found.
    pub fn prescan(&self) -> &Prescan {
        &self.prescan
    }

    /// Rows of the result, if the replay is not stopped.
    pub fn expected_rows(&self) -> u64 {
        self.prescan.calls * u64::from(self.options.instances)
    }

    /// How long the replay takes if it keeps the times; `None` if it has none.
    pub fn duration(&self) -> Option<Nanos> {
        let span = self.prescan.last - self.prescan.zero;
        (self.options.timing == Timing::Exact).then(|| self.options.pacing.scheduled(span))
    }

    /// Warnings from before the replay.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn window(&self) -> Window {
        Window { start: self.options.start.unwrap_or(Nanos(i64::MIN)), end: self.options.end }
    }

    pub(super) fn pace(&self) -> Pace {
        let Options { timing, extra_delay, ref pacing, .. } = self.options;
        Pace { timing, extra_delay, options: pacing.clone() }
    }

    pub(super) fn trace(&self, instance: u32) -> Result<Trace> {
        let cwd = self.options.cwd.as_ref().map(|cwd| Name::from(cwd.as_os_str().as_bytes()));
        let options = state::Options {
            tree: self.tree.clone(),
            cwd,
            with_needs: instance == 0 && self.prescan.calls == 0 && self.options.start.is_none(),
            map: self.map.for_instance(instance),
            ignore: self.ignore.clone(),
            special_files: self.options.special_files,
        };
        Trace::open(&self.options.trace, self.options.cwd.clone(), options)
    }

    pub(super) fn workers(&self) -> usize {
        let threads = self.prescan.threads.len();
        match self.options.threads {
            Threads::Trace => threads,
            // These keep the sequence of each thread, or as many calls at once as in the trace.
            Threads::Pool(most) if self.options.order.keeps_threads() => most.min(threads),
            Threads::Pool(most) => most,
        }
    }
}
