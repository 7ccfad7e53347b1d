//! A run from beginning to end: opens and checks everything, connects and starts the stages, and turns what they return into
//! the result.

pub mod calibrate;
mod describe;
pub(crate) mod finalize;
mod finished;
pub(crate) mod inline_stages;
pub(crate) mod issuer_thread;
mod loops;
#[cfg(test)]
mod odd_journals;
pub(crate) mod prescan;
mod program;
mod queues;
pub(crate) mod stages;
mod targets;
pub(crate) mod warnings;

use std::sync::Arc;
use std::thread;

use iosonar_device::Device;
use iosonar_device::discarded::Discarded;
use iosonar_device::meter::Meter;
use iosonar_pacing::Stop;
use iosonar_pacing::buffers::Pool;
use iosonar_pacing::clock::{Monotonic, Virtual, wall, wall_offset};
use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::host::processors;
use iosonar_pacing::host::usage::UsageMeter;
use iosonar_pacing::payload::Payload;
use iosonar_pacing::progress::Progress;
use iosonar_pacing::stalls::StallMonitor;
use iosonar_pacing::start;
use iosonar_pacing::wait::Wait;
use iosonar_pacing::{Error, Result};
use iosonar_trace::journal::{self, JournalWriter};
use iosonar_trace::run_info::{RunDependencies, RunProgram};
use iosonar_trace::{IoResult, Metadata, Nanos, Reader, Request, RunInfo};
use iosonar_workload::program::{Demand, Program};

use crate::address::device_map::DeviceMap;
use crate::config::issuers;
use crate::config::options::Options;
use crate::config::plan::{Expected, Plan, WaitChoice};
use crate::config::validation as checks;
use crate::dependencies::Dependencies;
use crate::pipeline::prepare::{PrepareInputs, PrepareOutcome, Preparer};
use crate::result::completion_log::CompletionLog;
use crate::result::live;
use crate::run::describe::Described;
use crate::run::finalize::{StageResults, finalize};
use crate::run::inline_stages::InlineStages;
use crate::run::issuer_thread::IssuerThread;
use crate::run::loops::Loops;
use crate::run::program::Placed;
use crate::run::stages::spawn_stage;
use crate::schedule::iterations::{Iterations, Reopen};
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::FinalPass;
use crate::verify::header;

pub use crate::run::finalize::recover;
pub use crate::run::finished::Finished;
pub use crate::run::prescan::Prescan;

/// A run that is ready to start.
pub struct Prepared {
    plan: Plan,
    stop: Arc<Stop>,
    /// The targets; `Io::target` is an index into them.
    devices: Vec<Device>,
    map: DeviceMap,
    load: Box<dyn Reader<Request>>,
    program: Option<Placed>,
    prescan: Option<Prescan>,
    dependencies: Option<Dependencies>,
    journal: JournalWriter<IoResult>,
    pool: Pool,
    payload: Payload,
    /// Of the data of writes.
    seed: u64,
    metadata: Metadata,
    warnings: Vec<String>,
    /// Undone when dropped.
    isolation: Option<Isolation>,
    contention: Option<Contention>,
    /// Processors that the program may use without --isolate.
    processors: usize,
}

impl Prepared {
    /// Checks the options and opens load, targets and journal. Writes nothing to the targets yet. `stop` ends the prescan, and
    /// later the run. In a series, its later runs wait as the `first` one.
    pub fn new(options: Options, first: Option<WaitChoice>, stop: &Arc<Stop>) -> Result<Self> {
        // A load that the stop cut short, such as a pipe, can cause other errors.
        Self::prepare(options, first, stop).map_err(|error| if stop.is_requested() { Error::Stopped } else { error })
    }

    fn prepare(options: Options, first: Option<WaitChoice>, stop: &Arc<Stop>) -> Result<Self> {
        checks::check(&options)?;
        start::check(options.start())?;
        let program = program::open(&options)?;
        let mut warnings = program.as_ref().map_or_else(Vec::new, Program::warnings);
        let prescan = prescan::scan(&options, stop)?;
        let only_completions = !options.has_load() && program.as_ref().is_some_and(|program| !program.has_timers());
        let contention =
            options.needs_contention(!only_completions).then(Contention::sample_unless_preferred).flatten();
        let dependencies = prescan::dependencies(&options, stop)?;
        let load = prescan::open(&options, stop)?;
        let mut load_devices = prescan.as_ref().map_or(&load.metadata().devices, |prescan| &prescan.devices).clone();
        if let Some(program) = program.as_ref().filter(|_| !options.has_load()) {
            load_devices = program::devices(program);
        }
        let are_all = prescan.is_some() || !options.has_load();
        let (devices, map) = targets::open(&options, &load_devices, are_all)?;
        let (loops, _) = Plan::most_issuers(&options, only_completions);
        let program = program.map(|program| program::place(&program, &options, loops, &devices, &map)).transpose()?;
        targets::check_fit(&options, prescan.as_ref(), &devices, &map)?;
        let demand = program.as_ref().map(|program| program.demand);
        let only_reads = !changes_targets(&options, prescan.as_ref(), demand);
        issuers::check_overlaps(&options, devices.len(), only_reads)?;
        let at_once = program.as_ref().map(Placed::at_once).unwrap_or_default();
        let expected = Expected {
            rate: prescan.as_ref().and_then(|prescan| prescan.rate(&options)),
            contention: contention.as_ref(),
            only_completions,
            at_once: &at_once,
            only_reads,
            first,
        };
        let plan = Plan::new(options, expected);
        let options = &plan.options;
        let load = prescan::read_ahead(&plan, load)?;
        let pool = Pool::new(queues::buffer_bytes(&plan, prescan.as_ref(), demand, devices.len()))?;
        // A new seed for each run, so that it does not write the same data as an earlier run. In virtual time nothing is
        // written, and all runs have the same result.
        let seed = if options.method.virtual_time { *options.pacing.seed } else { wall().0 as u64 };
        let isolation = match options.pacing.isolate.as_slice() {
            [] => None,
            parts => Some(Isolation::apply(parts)?),
        };
        let described = Described {
            plan: &plan,
            load: load.metadata(),
            load_devices,
            program: program.as_ref(),
            dependencies: dependencies.as_ref(),
            targets: &devices,
            map: &map,
            seed,
            contention: contention.as_ref(),
            isolation: isolation.as_ref(),
        };
        let metadata = described.metadata();
        warnings.extend(warnings::before(options, &devices, &map, prescan.as_ref(), load.metadata()));
        warnings.extend(plan.warnings.iter().cloned());
        warnings.extend(demand.and_then(|demand| warnings::depth(&plan, &demand)));
        warnings.extend(demand.and_then(|demand| warnings::buffers(&plan, &demand, pool.largest())));
        warnings.extend(demand.and_then(|demand| warnings::memory(&demand)));
        let journal = JournalWriter::create(
            &journal::path_for(options.output()),
            &metadata,
            prescan.as_ref().map_or(0, |prescan| prescan.expected_rows(options)),
        )?;
        let payload = Payload::new(&options.data, seed);
        let stop = Arc::clone(stop);
        Ok(Self {
            plan,
            stop,
            devices,
            map,
            load,
            program,
            prescan,
            dependencies,
            journal,
            pool,
            payload,
            seed,
            metadata,
            warnings,
            isolation,
            contention,
            processors: processors(),
        })
    }

    /// The program that makes requests, if there is one.
    pub fn program(&self) -> Option<&RunProgram> {
        self.program.as_ref().map(|program| &program.info)
    }

    /// The devices of the load, or of a program without one; unknown, and so empty, if the load is a pipe.
    pub fn source_devices(&self) -> &[iosonar_trace::Device] {
        match (&self.prescan, &self.program) {
            (Some(prescan), _) => &prescan.devices,
            (None, Some(program)) if !self.plan.options.has_load() => &program.devices,
            _ => &[],
        }
    }

    /// Whether the run may change what its targets hold.
    pub fn changes_targets(&self) -> bool {
        let demand = self.program.as_ref().map(|program| program.demand);
        changes_targets(&self.plan.options, self.prescan.as_ref(), demand)
    }

    /// The prescan of the window; `None` if the load is a pipe, or there is none.
    pub fn prescan(&self) -> Option<&Prescan> {
        self.prescan.as_ref()
    }

    /// How many rows the result will have, if that is known.
    pub fn expected_rows(&self) -> Option<u64> {
        let ends = !self.plan.options.modes.loops
            || (self.plan.options.pacing.until().is_some() && self.plan.options.keeps_times());
        self.prescan.as_ref().filter(|_| ends).map(|prescan| prescan.expected_rows(&self.plan.options))
    }

    /// The opened targets, by index.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// What the requests of the load wait for, with `--closed=dependencies`.
    pub fn dependencies(&self) -> Option<RunDependencies> {
        self.dependencies.as_ref().map(Dependencies::summary)
    }

    /// What the conversion of a job file to the program left out, a line each.
    pub fn left_out(&self) -> &[String] {
        self.program.as_ref().map_or(&[], |program| &program.left_out)
    }

    /// Warnings from before the run. [`Finished::warnings`] starts with them.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Maps devices of the load to targets.
    pub fn map(&self) -> &DeviceMap {
        &self.map
    }

    /// The options, and what was decided.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How long the run takes if it keeps the scheduled times; `None` if unknown, as in virtual time.
    pub fn duration(&self) -> Option<Nanos> {
        if self.plan.options.method.virtual_time {
            return None;
        }
        let options = &self.plan.options;
        self.prescan.as_ref().and_then(|prescan| prescan.duration(options)).or(options.pacing.until())
    }

    /// What --isolate changed on the machine, one sentence for each part.
    pub fn isolation(&self) -> &[String] {
        self.isolation.as_ref().map_or(&[], |isolation| isolation.changes())
    }

    /// Replays the load, and returns when the result is complete under its final name. Updates `progress` meanwhile.
    pub fn run(mut self, progress: &Progress) -> Result<Finished> {
        let (plan, shared_stop) = (&self.plan.clone(), &Arc::clone(&self.stop));
        let options = &plan.options;
        let (stop, isolation): (&Stop, _) = (shared_stop, self.isolation.take());
        let (mut ends, loop_ends) = queues::connect(plan, self.devices.len(), &self.pool);
        let geometries: Vec<_> = self.devices.iter().map(|device| device.geometry).collect();
        let run = (options.verification.verify != Verify::Off).then(header::new_run);
        let virtual_clock = options.method.virtual_time.then(|| Virtual::starting_in(options.issuing.grace));
        let first = program::first_number(options, self.prescan.as_ref());
        let started = self.program.take().map(|placed| placed.start(options, &self.pool, first, self.seed));
        let (parts, refill, ahead) = started.unwrap_or_default();
        let mut parts = parts.into_iter();
        let mut threads = Vec::new();
        for ends in loop_ends {
            threads.push(IssuerThread {
                plan,
                virtual_clock: virtual_clock.clone(),
                isolation: isolation.as_ref(),
                files: self.devices.iter().map(clone_file).collect::<Result<_>>()?,
                rules: ends.rules,
                arena: Arc::clone(self.pool.arena()),
                stop,
                stall_monitor: StallMonitor::new(progress.in_flight.of(ends.sharing.issuer.into()), ends.stalls),
                sharing: ends.sharing,
                input: ends.prepared,
                output: ends.completed,
                program: parts.next().map(Box::new),
                run,
                geometries: &geometries,
                progress,
            });
        }
        thread::scope(|scope| {
            if let Some(ahead) = ahead {
                spawn_stage(scope, "ahead", move || ahead.run())?;
            }
            let loops = Loops::spawn(scope, threads)?;
            let ready = loops.ready()?;
            self.warnings.extend(ready.warnings);
            self.run_info().engine = ready.engine.name().to_owned().into();
            let clock = start::clock(options.start(), stop, progress)?;
            progress.set_zero(clock);
            self.record_start(clock);
            self.mark_targets();
            let disks = self.devices.iter().filter(|_| options.method.does_io()).filter_map(Device::disk);
            let usage_meter = UsageMeter::start();
            let meters: Arc<[Meter]> = disks.filter_map(Meter::start).collect();
            if let Some(live) = &progress.live {
                live::describe(live, &self.metadata.devices, &self.map, &self.devices, &meters);
            }
            self.journal.rewrite_header(&self.metadata);
            let discarded: Vec<_> = self.devices.iter().map(Discarded::on).collect();
            let checker = run.map(|run| {
                Checker::new(run, options.verification.verify_memory, options.overlaps.may_overlap())
                    .with_discards(discarded)
            });
            let (completed, arena) = (ends.take_completed(clock), Arc::clone(self.pool.arena()));
            let completion_log =
                CompletionLog::new(completed, ends.stalls, ends.to_return, arena, self.journal, stop, progress)
                    .with_checker(checker)
                    .with_targets(geometries.iter().filter(|_| options.method.does_io()).map(|each| each.sectors));
            let routes = targets::routes(options, self.prescan.as_ref(), &self.devices, &self.map);
            let config = options.preparation(routes, run);
            let reopen: Option<Reopen<'_>> = options
                .modes
                .loops
                .then(|| Box::new(|| prescan::read_ahead(plan, prescan::open(options, shared_stop)?)) as _);
            let schedule = options.schedule(Iterations::new(self.load, options.time.window, reopen));
            let dependencies = self.dependencies.take();
            let inputs =
                PrepareInputs { schedule, config, pool: self.pool, payload: self.payload, refill, dependencies };
            let threads = if let Some(clock) = virtual_clock {
                let preparer = Preparer::new(clock, inputs, stop, ends.outputs, ends.returned);
                loops.start_virtual(InlineStages::new(preparer, completion_log));
                None
            } else if plan.waiting.wait == Wait::Inline {
                let preparer = Preparer::new(clock, inputs, stop, ends.outputs, ends.returned);
                loops.start_inline(clock, InlineStages::new(preparer, completion_log));
                None
            } else {
                let preparer = Preparer::new(clock, inputs, stop, ends.outputs, ends.returned);
                loops.start(clock);
                let preparer = spawn_stage(scope, "prepare", || preparer.run()).inspect_err(|_| stop.abort())?;
                // Abort if this thread is missing: the loops' output queues would never be emptied.
                let completion_log =
                    spawn_stage(scope, "completion-log", || completion_log.run()).inspect_err(|_| stop.abort())?;
                Some((preparer, completion_log))
            };
            let mut loop_result = loops.finish()?;
            progress.set_finishing();
            let thread_results = threads.map(|(preparer, completion_log)| {
                let prepare = preparer.join().expect("the preparer does not panic");
                (prepare, completion_log.join().expect("the completion log does not panic"))
            });
            let (PrepareOutcome { stats, outcome, memory }, mut log) =
                thread_results.or(loop_result.inline_results.take()).expect("one of them ran the stages");
            let device_counters = meters.iter().filter_map(Meter::read).collect();
            let usage = usage_meter.finish();
            self.metadata.complete = !stop.is_requested();
            let final_pass = log.checker.take_if(|_| options.verification.verify >= Verify::Final).map(|checker| {
                if stop.is_requested() || loop_result.outcome.is_err() {
                    return FinalPass::skipped(checker);
                }
                loops.final_pass((checker, memory.into_pool()))
            });
            let results = StageResults {
                prepare_stats: stats,
                read_outcome: outcome,
                loop_result,
                final_pass,
                log,
                device_counters,
                warnings: self.warnings,
                contention: self.contention,
                processors: self.processors,
                usage,
            };
            finalize(plan, &self.devices, &self.map, self.metadata, results)
        })
    }

    fn record_start(&mut self, clock: Monotonic) {
        let run = self.run_info();
        run.started_monotonic_ns = clock.zero_ns().into();
        run.started_unix_ns = (Nanos(clock.zero_ns()) + wall_offset()).0.into();
    }

    /// A later run may overwrite a marked file without --force. A file that is only read must not be marked.
    fn mark_targets(&self) {
        let overwrites = self.prescan.as_ref().is_none_or(|prescan| prescan.requests > prescan.reads);
        if self.plan.options.method.does_io() && !self.plan.options.target.rules.reads_only && overwrites {
            self.devices.iter().for_each(Device::mark);
        }
    }

    fn run_info(&mut self) -> &mut RunInfo {
        self.metadata.run.as_mut().expect("set in `new`")
    }
}

/// Whether a run may change what its targets hold.
fn changes_targets(options: &Options, prescan: Option<&Prescan>, demand: Option<Demand>) -> bool {
    let load = prescan.map_or(options.has_load(), |prescan| prescan.requests > prescan.reads);
    !options.target.rules.reads_only && (load || demand.is_some_and(|demand| demand.changes))
}

fn clone_file(device: &Device) -> Result<std::fs::File> {
    device.file.try_clone().map_err(|e| Error::file(&device.path, e))
}
