//! A replay of calls from beginning to end: opens and checks everything, starts the instances, and writes the result.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use iosonar_replay::config::issuing::Wait;
use iosonar_replay::config::wait_choice::processors;
use iosonar_replay::device::mounts;
use iosonar_replay::host::contention::{Contention, StealMeter};
use iosonar_replay::host::machine;
use iosonar_replay::issuer::Stop;
use iosonar_replay::schedule::clock::{Monotonic, wall, wall_offset};
use iosonar_trace::output::try_create;
use iosonar_trace::run_info::Written;
use iosonar_trace::{Nanos, Span, path_text};
use serde_json::{Value, json};

use super::engine::core::Rules;
use super::engine::descriptors::DescriptorTable;
use super::engine::schedule::Pace;
use super::error::{Error, Result};
use super::instance::{Instance, InstanceOptions, Reading, spawn};
use super::limits::raise_descriptors;
use super::options::{Cache, Options, Threads, Timing};
use super::prescan::{Prescan, scan};
use super::recorder::{Progress, Recorder};
use super::root::Root;
use super::source::{Trace, TraceSource, Window};
use super::statistics::{Counter, Statistics};
use crate::order::Policy;
use crate::state::{self, Ignore, PathMap};
use crate::tree::{Confined, Plan, Tree, beside, differences};
use crate::{Metadata, Name, OpenOptions, table, verify};

/// Time to prepare calls before the first one is issued.
const GRACE: Nanos = Nanos(100_000_000);
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// The most threads of a trace that get threads of their own.
const MOST_THREADS: usize = 4096;

/// A replay that is ready to start.
pub struct Prepared {
    options: Options,
    stop: Arc<Stop>,
    prescan: Prescan,
    tree: Option<Arc<Tree>>,
    map: PathMap,
    ignore: Ignore,
    roots: Vec<Root>,
    wait: Wait,
    wait_reason: String,
    warnings: Vec<String>,
    source: Metadata,
}

/// A replay that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The result.
    pub output: PathBuf,
    /// The closing statistics.
    pub statistics: Statistics,
    /// Warnings, those from before the replay first.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Checks the options, reads the trace once, and opens the root. Nothing is changed yet.
    ///
    /// # Errors
    /// If anything is missing, contradictory or in the way.
    pub fn new(options: Options, stop: &Arc<Stop>) -> Result<Self> {
        check(&options)?;
        let map = options.map.as_deref().map(PathMap::read).transpose()?.unwrap_or_default();
        let ignore = options.ignore.as_deref().map(Ignore::read).transpose()?.unwrap_or_default();
        let root = Root::open(&options.root)?;
        let beside = || Some(beside(&options.trace)).filter(|path| path.is_file());
        let tree = options.tree_from.clone().or_else(beside);
        let tree = tree.as_deref().map(Tree::load).transpose()?.map(Arc::new);
        let has_own_files = options.instances == 1 || map.has_instances();
        let roots = (0..options.instances).map(|instance| {
            let own = options.root.join(format!("instance-{instance}"));
            if has_own_files { Ok(root.clone()) } else { Root::open(&own) }
        });
        let roots = roots.collect::<Result<Vec<_>>>()?;
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
            options,
        };
        let mut trace = prepared.trace(0)?;
        prepared.source = trace.reader().metadata().clone();
        prepared.prescan = scan(&mut trace, prepared.window(), stop)?;
        prepared.choose_wait();
        prepared.warnings = prepared.warnings_before();
        prepared.warnings.extend(prepared.missing(&mut trace));
        Ok(prepared)
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
        (self.options.timing == Timing::Exact).then(|| self.pace().scaled(span))
    }

    /// Warnings from before the replay.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn window(&self) -> Window {
        Window { start: self.options.start.unwrap_or(Nanos(i64::MIN)), end: self.options.end }
    }

    fn pace(&self) -> Pace {
        let Options { timing, factor, extra_delay, .. } = self.options;
        Pace { timing, factor, extra_delay }
    }

    fn trace(&self, instance: u32) -> Result<Trace> {
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

    /// A sentence if the root lacks something that the trace needs.
    fn missing(&self, trace: &mut Trace) -> Option<String> {
        if self.options.fake_io {
            return None;
        }
        let map = self.map.for_instance(0);
        let plan = Plan::new(trace.state().needs()?, self.tree.as_deref(), &map, &self.ignore);
        let root = Confined::open(self.roots[0].path()).ok()?;
        let found = differences(&root, &plan, self.options.special_files, || {}).len();
        (found > 0).then(|| {
            let differ = if found == 1 { "path differs" } else { "paths differ" };
            format!(
                "{found} {differ} from what the trace needs below the root: `iosonar files check` lists them, `iosonar files \
                 prepare` creates what is missing"
            )
        })
    }

    fn choose_wait(&mut self) {
        if let Some(wait) = self.options.wait {
            (self.wait, self.wait_reason) = (wait, "set with --wait".into());
            return;
        }
        let contention = if self.options.timing.has_times() { Contention::sample_unless_preferred() } else { None };
        (self.wait, self.wait_reason) = match contention {
            _ if processors() == 1 => (Wait::Hybrid, "only one processor is available".into()),
            Some(contention) if contention.is_oversubscribed() => {
                (Wait::Hybrid, format!("a spinning thread would be preempted: {}", contention.phrase()))
            }
            _ => (Wait::Spin, "it is the most exact".into()),
        };
    }

    fn workers(&self) -> usize {
        let threads = self.prescan.threads.len();
        match self.options.threads {
            Threads::Trace => threads,
            // These keep the sequence of each thread, or as many calls at once as in the trace.
            Threads::Pool(most) if self.options.order != Policy::Fs => most.min(threads),
            Threads::Pool(most) => most,
        }
    }

    fn warnings_before(&self) -> Vec<String> {
        let mut warnings = self.prescan.notices.clone();
        let Prescan { uring, mapped, ref open, is_complete, .. } = self.prescan;
        let mut warn_if = |condition: bool, text: String| warnings.extend(condition.then_some(text));
        warn_if(!is_complete, "the trace is incomplete: its recording or conversion was cut short".into());
        warn_if(
            mapped > 0,
            format!(
                "{mapped} calls map files into memory: accesses to mapped files are not recorded, and not replayed"
            ),
        );
        warn_if(uring > 0, format!("{uring} calls of io_uring are replayed as system calls"));
        let deleted = open.iter().filter(|open| open.is_deleted).count();
        warn_if(deleted > 0, format!("{deleted} files that were open at the start had no name: they cannot be opened"));
        warn_if(
            self.options.factor != 1.0 && self.options.timing.has_times(),
            format!("a factor of {} changes the load", self.options.factor),
        );
        warnings
    }

    /// Replays the calls, and returns when the result is complete under its final name.
    ///
    /// # Errors
    /// If the trace cannot be read, the result not be written, or descriptors or threads are missing.
    pub fn run(self, progress: &Arc<Progress>) -> Result<Finished> {
        let mut warnings = self.warnings.clone();
        let limit = raise_descriptors();
        if self.options.cache == Cache::Drop {
            drop_caches()?;
        }
        let writer = table::create_run(&self.options.output, &Metadata::default())?;
        let keeps_times = self.options.timing.has_times();
        let seed = wall().0 as u64;
        let (mut reading, mut instances, mut from) = (Vec::new(), Vec::new(), Vec::new());
        let options = self.instance_options(seed);
        for number in 0..self.options.instances {
            let root = &self.roots[number as usize];
            let open = if self.map.has_instances() && number > 0 {
                scan(&mut self.trace(number)?, self.window(), &self.stop)?.open
            } else {
                self.prescan.open.clone()
            };
            let (descriptors, missing) = if self.options.fake_io {
                Default::default()
            } else {
                open_before(root, &open, self.options.special_files)
            };
            warnings.extend(missing);
            let mut source =
                TraceSource::new(self.trace(number)?, self.window(), self.prescan.zero, self.options.order);
            if self.options.threads == Threads::Trace {
                source.workers = Some(Arc::new(self.prescan.threads.clone()));
            }
            let options = InstanceOptions { seed: seed.wrapping_add(u64::from(number)), ..options.clone() };
            let ahead = Reading::start(Box::new(source), self.prescan.first, &options)?;
            reading.push((ahead, descriptors));
        }
        while !reading.iter().all(|(ahead, _)| ahead.is_ready()) && !self.stop.is_requested() {
            thread::sleep(LOOK);
        }
        let steal_meter = StealMeter::start();
        let clock = Monotonic::starting_in(GRACE);
        let started_unix_ns = wall_offset().0 + clock.zero_ns();
        for ((ahead, descriptors), root) in reading.into_iter().zip(&self.roots) {
            let (instance, done) =
                Instance::start(ahead, root, descriptors, clock, &options).inspect_err(|_| self.stop.abort())?;
            instances.push(instance);
            from.push(done);
        }
        let recorder = Recorder {
            from,
            writer,
            counter: Counter::new(keeps_times, self.options.extra_delay != Nanos::ZERO, self.options.instances),
            keeps_times,
            progress: Arc::clone(progress),
            stop: Arc::clone(&self.stop),
        };
        let recorder = spawn("record", move || recorder.run())?;
        while !instances.iter().all(Instance::has_ended) {
            thread::sleep(LOOK);
            if self.stop.is_abort() {
                instances.iter().for_each(|instance| {
                    instance.try_end();
                });
            }
        }
        let was_stopped = self.stop.is_requested();
        let (mut written, mut max_in_flight, mut lacks_descriptors, mut failed) = (Written::default(), 0, false, None);
        for instance in instances {
            match instance.finish(&self.stop) {
                Ok(finished) => {
                    written.bytes += finished.written.bytes;
                    written.duplicates += finished.written.duplicates;
                    max_in_flight += finished.max_in_flight;
                    lacks_descriptors |= finished.lacks_descriptors;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let recorded = recorder.join().expect("the recorder does not panic");
        recorded.outcome?;
        if let Some(error) = failed {
            return Err(error);
        }
        if lacks_descriptors {
            let limit = limit.map_or("no limit".into(), |limit| limit.to_string());
            return Err(Error::Options(format!(
                "the trace has more files open at once than this process may ({limit}): raise the limit with `ulimit -n`, or \
                 replay a window of the trace"
            )));
        }
        let complete = !was_stopped;
        let fake = self.options.fake_io.then(|| "FAKE RESULT: no call was issued (--fake-io)".to_owned());
        let statistics = recorded.counter.statistics(self.options.factor, complete, max_in_flight, fake);
        warnings.extend(warnings_after(&statistics));
        let mut metadata = self.footer(&statistics, &warnings, clock, started_unix_ns);
        let run = metadata.run.as_mut().expect("a run");
        run["stolen_pct"] = json!(steal_meter.stolen_pct());
        run["data"] = json!({ "what": self.options.data.to_string(), "seed": seed, "written": written });
        recorded.writer.finish(&metadata)?;
        let mut finished = Finished { output: self.options.output.clone(), statistics, warnings };
        if self.options.verify_order && !self.options.fake_io {
            let report = self.verify()?;
            if report.violations > 0 || (complete && report.missing > 0) {
                finished.warnings.push("the order was not kept: this is an error of the replayer".into());
            }
            finished.statistics.order = serde_json::to_value(&report).ok();
        }
        Ok(finished)
    }

    fn instance_options(&self, seed: u64) -> InstanceOptions {
        let ahead = match (self.options.timing, self.options.order) {
            // If a call waits, all later ones do.
            (Timing::Asap, Policy::Conservative) => 8,
            (Timing::Asap, _) => 1024,
            _ => 16_384,
        };
        InstanceOptions {
            rules: Rules { pace: self.pace(), ahead, fake_io: self.options.fake_io, workers: self.workers() },
            wait: self.wait,
            data: self.options.data.clone(),
            seed,
            special_files: self.options.special_files,
            no_cache: self.options.cache == Cache::None,
            stop: Arc::clone(&self.stop),
        }
    }

    /// Proves the order from the result.
    fn verify(&self) -> Result<verify::Report> {
        let mut calls = crate::open(&self.options.trace, &OpenOptions { cwd: self.options.cwd.clone() })?;
        let mut results = table::open_run(&self.options.output)?;
        let mut state = self.trace(0)?;
        let options = verify::Options {
            policy: self.options.order,
            dispatched: false,
            window: (self.options.start, self.options.end),
            instances: self.options.instances,
        };
        Ok(verify::check(&mut *calls, &mut *results, &options, |call| state.resolve(call))?)
    }

    fn footer(&self, statistics: &Statistics, warnings: &[String], clock: Monotonic, started: i64) -> Metadata {
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
            "started_unix_ns": started,
            "started_monotonic_ns": clock.zero_ns(),
            "wait": self.wait.name(),
            "wait_reason": self.wait_reason,
            "threads": self.workers(),
            "page_cache": cache,
            "first_call": self.prescan.first,
            "trace_zero_ns": self.prescan.zero.0,
            "fake": statistics.fake,
            "warnings": warnings,
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

/// Refuses options that cannot work, before anything is read.
fn check(options: &Options) -> Result<()> {
    let usage = |text: &str| Err(Error::Usage(text.into()));
    if !(options.factor.is_finite() && options.factor > 0.0) {
        return usage("--factor must be above 0, for example 0.5");
    }
    if options.start.zip(options.end).is_some_and(|(start, end)| end <= start) {
        return usage("the window is empty: --end must be after --start, for example --start 5m --end 10m");
    }
    if options.extra_delay < Nanos::ZERO {
        return usage("--extra-delay must not be negative, for example 100us");
    }
    match options.threads {
        Threads::Trace if options.order == Policy::Fs => {
            return usage("--order fs does not keep the order of threads: omit --threads trace");
        }
        Threads::Pool(0) => return usage("--pool must be at least 1, for example 64"),
        Threads::Pool(more) if more > MOST_THREADS => return usage("--pool must be at most 4096, for example 64"),
        Threads::Pool(_) | Threads::Trace => {}
    }
    if options.instances == 0 {
        return usage("--instances must be at least 1, for example 4");
    }
    if options.cache == Cache::Drop && options.fake_io {
        return usage("--fake-io issues no calls: omit --drop-caches");
    }
    if !fs::metadata(&options.trace).is_ok_and(|meta| !meta.is_file()) {
        check_output(options)
    } else {
        Err(Error::Options(format!("{}: give a file: the trace is read several times", options.trace.display())))
    }
}

fn check_output(options: &Options) -> Result<()> {
    let shown = options.output.display();
    if !options.output.as_os_str().as_encoded_bytes().ends_with(b".calls-run.parquet") {
        return Err(Error::Usage(format!("{shown}: the name of the result must end in .calls-run.parquet")));
    }
    let folder = options.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(Error::Options(format!(
            "{shown}: folder {folder} does not exist; create it, or choose another --output"
        )));
    }
    if let Ok(meta) = options.output.metadata() {
        if iosonar_replay::config::validation::is_same_file(&options.output, &options.trace) {
            return Err(Error::Usage(format!(
                "{shown} is the trace, which the result would replace; choose another --output"
            )));
        }
        if !meta.is_file() {
            return Err(Error::Options(format!("{shown} is not a regular file; choose another --output")));
        }
        if !options.overwrite {
            return Err(Error::Options(format!(
                "{shown} exists; choose another --output, or replace it with --overwrite"
            )));
        }
    }
    Ok(try_create(&options.output)?)
}

/// Opens what was open when the window began. Returns sentences about what cannot be opened.
fn open_before(root: &Root, open: &[state::OpenDescription], special_files: bool) -> (DescriptorTable, Vec<String>) {
    let (mut table, mut missing) = (DescriptorTable::default(), Vec::new());
    for description in open.iter().filter(|description| !description.is_deleted) {
        let Ok(path) = std::ffi::CString::new(description.path.as_bytes()) else { continue };
        let flags = description.flags | (libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK) as u64;
        // A file that only is readable was not open for writing.
        let opened = root.open_beneath(&path, flags, 0).or_else(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EISDIR | libc::EROFS) => {
                root.open_beneath(&path, flags & !(libc::O_ACCMODE as u64), 0)
            }
            _ => Err(error),
        });
        let is_special = |file: &File| {
            let kind = file.metadata().map(|meta| meta.file_type());
            kind.is_ok_and(|kind| !(kind.is_file() || kind.is_dir() || kind.is_symlink()))
        };
        match opened.map(File::from) {
            Ok(file) if !special_files && is_special(&file) => {
                missing.push(format!("{}: it is a device node, socket or FIFO", description.path));
            }
            Ok(file) => {
                seek(&file, description.position);
                table.insert(description.id, file.into_raw_fd());
            }
            Err(error) => missing.push(format!("{}: {error}", description.path)),
        }
    }
    let text = match missing.as_slice() {
        [] => return (table, Vec::new()),
        [one] => format!("a file that was open at the start cannot be opened: {one}"),
        [first, ..] => format!("{} files that were open at the start cannot be opened: {first}, …", missing.len()),
    };
    (table, vec![text + "; `iosonar files prepare` creates what the trace needs"])
}

fn seek(file: &impl AsRawFd, position: u64) {
    if position > 0 {
        // SAFETY: an open descriptor. A directory or pipe stays where it is.
        #[allow(unsafe_code, reason = "a system call on an open descriptor")]
        unsafe {
            libc::lseek(file.as_raw_fd(), position as i64, libc::SEEK_SET)
        };
    }
}

fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    let write = || -> io::Result<()> { io::Write::write_all(&mut File::create("/proc/sys/vm/drop_caches")?, b"3") };
    write().map_err(|source| Error::system("--drop-caches: cannot drop the page cache; run as root", source))
}

fn warnings_after(s: &Statistics) -> Vec<String> {
    let mut warnings = Vec::new();
    let missing: u64 = s
        .mismatch_kinds
        .iter()
        .filter(|kind| kind.errno == libc::ENOENT && kind.outcome == "failed")
        .map(|kind| kind.calls)
        .sum();
    if missing > 0 {
        warnings.push(format!(
            "{missing} calls failed because a file does not exist: `iosonar files check` lists what the root lacks, \
             `iosonar files prepare` creates it"
        ));
    }
    let full: u64 = s.mismatch_kinds.iter().filter(|kind| kind.errno == libc::ENOSPC).map(|kind| kind.calls).sum();
    if full > 0 {
        warnings.push(format!("{full} calls failed because the file system of the root was full"));
    }
    warnings
}
