//! A replay from its first call to its result.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use iosonar_pacing::clock::{Clock, Monotonic, wall, wall_offset};
use iosonar_pacing::host::usage::UsageMeter;
use iosonar_pacing::progress::Progress;
use iosonar_pacing::start;
use iosonar_trace::human::agreed;
use iosonar_trace::journal::{self, Closed, Journal, JournalWriter};
use iosonar_trace::run_info::{RunData, Written};
use iosonar_trace::{Nanos, human};

use super::footer::RunFacts;
use super::initial_descriptors::open_before;
use super::prepared::Prepared;
use super::proof::Proof;
use crate::order::Policy;
use crate::replay::devices::Devices;
use crate::replay::engine::core::Rules;
use crate::replay::engine::stalls::{BEAT, Heartbeat};
use crate::replay::error::{Error, Result};
use crate::replay::instance::{Instance, InstanceOptions, Reading};
use crate::replay::journal::Recorded;
use crate::replay::limits::raise_descriptors;
use crate::replay::options::{Cache, Threads, Timing};
use crate::replay::prescan::scan;
use crate::replay::recorder::Recorder;
use crate::replay::share::Share;
use crate::replay::source::TraceSource;
use crate::replay::statistics::{Counter, Engine, Statistics};
use crate::replay::threads::spawn;
use crate::{Metadata, table};

/// Time to prepare calls before the first one is issued.
const GRACE: Nanos = Nanos(100_000_000);
/// How often the end is looked for.
const LOOK: Duration = Duration::from_nanos(BEAT.0 as u64);

/// Shorter times in which the whole process stood still are not worth a warning.
const WORTH_A_WARNING: Nanos = Nanos(100_000_000);

/// A replay that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The file of the result.
    pub output: PathBuf,
    /// The statistics as the footer has them.
    pub statistics: Statistics,
    /// Warnings, those from before the replay first.
    pub warnings: Vec<String>,
}

impl Prepared {
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
        let keeps_times = self.options.timing.has_times();
        let seed = wall().0 as u64;
        let is_perturbed = self.options.extra_delay != Nanos::ZERO || self.options.pacing.fake().is_some();
        let counter =
            Counter::new(keeps_times, is_perturbed, self.options.instances).without(&self.prescan.unreplayable);
        let unissued = self.options.fake_io.then(|| "no call was issued (--fake-io)".to_owned());
        let fake: Vec<_> = unissued.into_iter().chain(self.options.pacing.fake()).collect();
        let fake = (!fake.is_empty()).then(|| format!("FAKE RESULT: {}", fake.join("; ")));
        let data = |written: Option<Written>| RunData {
            what: self.options.data.to_string().into(),
            seed: seed.into(),
            written: written.into(),
            ..RunData::default()
        };
        let clock = Monotonic::starting_in(GRACE);
        let mut about = RunFacts { clock, started_unix_ns: 0, stolen_pct: None, data: data(None) };
        let at_start = counter.statistics(self.options.factor, false, Engine::default(), fake.clone());
        let path = journal::path_for(&self.options.output);
        let header = self.footer(&at_start, &warnings, &about);
        let mut journal = JournalWriter::create(&path, &header, self.expected_rows())?;
        let (mut reading, mut instances, mut from) = (Vec::new(), Vec::new(), Vec::new());
        let devices = (self.options.special_files && !self.options.fake_io)
            .then(|| Devices::new(self.options.force).map(Arc::new))
            .transpose()?;
        let options = InstanceOptions { devices: devices.clone(), ..self.instance_options(seed, progress) };
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
                open_before(root, &open, devices.as_deref(), self.options.instances)?
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
        let clock = start::clock(self.options.pacing.start(GRACE), &self.stop, progress)?;
        let usage_meter = UsageMeter::start();
        progress.set_zero(clock);
        let heartbeat = Arc::new(Heartbeat::new(clock.now()));
        (about.clock, about.started_unix_ns) = (clock, wall_offset().0 + clock.zero_ns());
        journal.rewrite_header(&self.footer(&at_start, &warnings, &about));
        for ((ahead, descriptors), root) in reading.into_iter().zip(self.roots.iter().zip(0..)) {
            let (instance, done) = Instance::start(ahead, root, descriptors, clock, &heartbeat, &options)
                .inspect_err(|_| self.stop.abort())?;
            instances.push(instance);
            heartbeat.beat(clock.now());
            from.push(done);
        }
        // Calls that have scheduled times are chosen by them instead.
        let until = self.options.pacing.until().filter(|_| self.options.timing != Timing::Exact);
        let end = until.unwrap_or(Nanos::MAX);
        let recorder = Recorder {
            from,
            journal,
            counter,
            keeps_times,
            progress: Arc::clone(progress),
            stop: Arc::clone(&self.stop),
        };
        let recorder = spawn("record", move || recorder.run())?;
        let mut is_over = false;
        while !instances.iter().all(Instance::has_ended) {
            thread::sleep(LOOK);
            heartbeat.beat(clock.now());
            if !is_over && !self.stop.is_requested() && clock.now() >= end {
                self.stop.drain();
                is_over = true;
            }
            if self.stop.is_abort() {
                instances.iter().for_each(|instance| {
                    instance.try_end();
                });
            }
        }
        let (usage, stolen_pct) = usage_meter.finish().unzip();
        let was_stopped = self.stop.is_requested() && !is_over;
        let (mut written, mut max_in_flight, mut lacks_descriptors, mut failed) = (Written::default(), 0, false, None);
        let mut idle = Nanos::ZERO;
        for instance in instances {
            match instance.finish(&self.stop) {
                Ok(finished) => {
                    written.bytes += finished.written.bytes;
                    written.duplicates += finished.written.duplicates;
                    max_in_flight += finished.max_in_flight;
                    idle = idle.max(finished.idle);
                    lacks_descriptors |= finished.lacks_descriptors;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let (journal, counter) = recorder.join().expect("the recorder does not panic");
        progress.set_finishing();
        let Closed { path: journal, failure, unrecorded, lock: _lock } = journal.close();
        if let Some(error) = failure {
            failed = failed.or(Some(Error::Options(format!(
                "the journal could not be written ({error}), which ended the replay: {unrecorded} rows are missing"
            ))));
        }
        if lacks_descriptors && failed.is_none() {
            let limit = limit.map_or("no limit".into(), |limit| limit.to_string());
            failed = Some(Error::Options(format!(
                "the trace has more files open at once than this process may ({limit}): raise the limit with `ulimit -n`, or \
                 replay a window of the trace"
            )));
        }
        let complete = !was_stopped && failed.is_none();
        let engine = Engine { max_in_flight: Some(max_in_flight), idle: Some(idle) };
        let mut statistics = counter.statistics(self.options.factor, complete, engine, fake);
        statistics.usage = usage.map(Box::new);
        warnings.extend(counter.interruption(engine));
        if heartbeat.sum() > WORTH_A_WARNING {
            let stood_still = human::span(heartbeat.sum().as_secs());
            warnings.push(format!(
                "the replayer stood still for {stood_still}: it was stopped, or given no processor. Calls that were in progress \
                 then seem to have taken as long"
            ));
        }
        warnings.extend(warnings_after(&statistics));
        let unread = if complete && !is_over { 0 } else { self.expected_rows().saturating_sub(statistics.calls) };
        if unread > 0 {
            warnings.push(agreed(unread, "calls were not reached, and have no rows: the replay ended before"));
        }
        warnings.extend(devices.iter().flat_map(|devices| devices.refusals()));
        (about.stolen_pct, about.data) = (stolen_pct, data(Some(written)));
        let mut checked = Ok(());
        if self.options.verify_order && !self.options.fake_io && failed.is_none() {
            let mut rows = Journal::<Recorded>::open(&journal)?;
            checked = self.prove(&mut rows).map(|Proof { report, outdegrees }| {
                if report.violations > 0 || (complete && !is_over && report.missing > 0) {
                    warnings.push("the order was not kept: this is an error of the replayer".into());
                }
                statistics.order = Some(report);
                statistics.outdegree = Some(outdegrees.histogram());
            });
        }
        let footer = self.footer(&statistics, &warnings, &about);
        warnings.extend(publish(&journal, &self.options.output, self.options.overwrite, &footer)?);
        if let Some(error) = failed {
            return Err(Error::CutShort { error: error.into(), output: self.options.output });
        }
        // The result is valid even if the order could not be checked.
        checked?;
        Ok(Finished { output: self.options.output, statistics, warnings })
    }

    fn instance_options(&self, seed: u64, progress: &Arc<Progress>) -> InstanceOptions {
        let share = Share::of(self.options.instances);
        let ahead = match (self.options.timing, self.options.order) {
            // If a call waits, all later ones do.
            (Timing::Asap, Policy::Conservative) => 8,
            (Timing::Asap, _) => 1024.min(share.queue),
            _ => share.queue,
        };
        InstanceOptions {
            rules: Rules {
                pace: self.pace(),
                ahead,
                history: share.history,
                fake_io: self.options.fake_io,
                announces: self.options.order == Policy::FsDispatched,
                workers: self.workers(),
            },
            wait: self.wait,
            data: self.options.data.clone(),
            seed,
            devices: None,
            share,
            no_cache: self.options.cache == Cache::None,
            isolation: self.isolation.clone(),
            progress: Arc::clone(progress),
            stop: Arc::clone(&self.stop),
        }
    }
}

/// Converts a closed journal to the result. Returns warnings about losses.
pub fn publish(journal: &Path, output: &Path, replaces: bool, metadata: &Metadata) -> Result<Vec<String>> {
    let create = || Ok(Box::new(table::create_run(output)?) as _);
    Ok(journal::publish::<Recorded>(journal, output, replaces, metadata, create, |_| ())?)
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
            "{} failed because a file does not exist: `iosonar files check` lists what the root lacks, \
             `iosonar files prepare` creates it",
            human::counted(missing, "call")
        ));
    }
    let full: u64 = s.mismatch_kinds.iter().filter(|kind| kind.errno == libc::ENOSPC).map(|kind| kind.calls).sum();
    if full > 0 {
        warnings.push(format!("{} failed because the file system of the root was full", human::counted(full, "call")));
    }
    warnings
}
