//! A run from beginning to end: opens and checks everything, connects and starts the stages, and turns what they return into
//! the result.

pub mod calibrate;
pub(crate) mod finalize;
mod finished;
pub(crate) mod issuer_thread;
#[cfg(test)]
mod odd_journals;
pub(crate) mod prescan;
mod program;
pub(crate) mod stages;
mod start;
mod targets;
pub(crate) mod warnings;

use std::sync::{Arc, mpsc};
use std::thread;

use iosonar_trace::run_info::{OpenMap, RunData, RunProgram};
use iosonar_trace::{Kind, Metadata, Nanos, Reader, Request, RunInfo, path_text};
use iosonar_workload::program::Demand;
use rtrb::RingBuffer;

use crate::address::device_map::DeviceMap;
use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::config::validation as checks;
use crate::device::Device;
use crate::device::discarded::Discarded;
use crate::device::meter::Meter;
use crate::error::{Error, Result};
use crate::host::contention::{Contention, StealMeter};
use crate::host::isolation::Isolation;
use crate::host::machine;
use crate::issuer::{IssueRules, Limits, StallMonitor, Stop};
use crate::pipeline::buffers::{Pool, UNIT_BYTES};
use crate::pipeline::inline_stages::InlineStages;
use crate::pipeline::payload::Payload;
use crate::pipeline::prepare::{PrepareConfig, PrepareInputs, PrepareOutcome, Preparer};
use crate::result::completion_log::{CompletionLog, Progress};
use crate::result::journal;
use crate::result::journal::JournalWriter;
use crate::run::finalize::{StageResults, finalize};
use crate::run::issuer_thread::{EndChannels, IssuerThread, Start};
use crate::run::program::Placed;
use crate::run::stages::{spawn_stage, spawn_with_result};
use crate::schedule::clock::{Monotonic, Virtual, wall, wall_offset};
use crate::schedule::iterations::{Iterations, Reopen};
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::FinalPass;
use crate::verify::header;

pub use crate::run::finalize::recover;
pub use crate::run::finished::Finished;
pub use crate::run::prescan::Prescan;

/// Capacity of the queue of stalls from the loop to the completion log.
const STALLS: usize = 4096;

/// A run that is ready to start.
pub struct Prepared {
    options: Options,
    stop: Arc<Stop>,
    /// The targets; `Io::target` is an index into them.
    devices: Vec<Device>,
    map: DeviceMap,
    load: Box<dyn Reader<Request>>,
    program: Option<Placed>,
    prescan: Option<Prescan>,
    journal: JournalWriter,
    pool: Pool,
    payload: Payload,
    metadata: Metadata,
    warnings: Vec<String>,
    /// Undone when dropped.
    isolation: Option<Isolation>,
    wait_reason: String,
    contention: Option<Contention>,
}

impl Prepared {
    /// Checks the options and opens load, targets and journal. Writes nothing to the targets yet. `stop` ends the prescan, and
    /// later the run.
    pub fn new(options: Options, stop: &Arc<Stop>) -> Result<Self> {
        // A load that the stop cut short, such as a pipe, can cause other errors.
        Self::prepare(options, stop).map_err(|error| if stop.is_requested() { Error::Stopped } else { error })
    }

    fn prepare(mut options: Options, stop: &Arc<Stop>) -> Result<Self> {
        checks::check(&options)?;
        start::check(&options.issuing)?;
        let program = program::open(&options)?;
        let prescan = prescan::scan(&options, stop)?;
        // Contention matters only for a loop with deadlines, and if --wait does not decide.
        let needs_contention =
            options.issuing.wait.is_none() && options.has_deadlines() && !options.method.virtual_time;
        let contention = if needs_contention { Contention::sample_unless_preferred() } else { None };
        let rate = prescan.as_ref().and_then(|prescan| prescan.rate(&options));
        let wait_reason = options.resolve_wait(rate, contention.as_ref());
        let load = prescan::read_ahead(&options, prescan::open(&options, stop)?)?;
        let mut load_devices = prescan.as_ref().map_or(&load.metadata().devices, |prescan| &prescan.devices).clone();
        if let Some(program) = program.as_ref().filter(|_| !options.has_load()) {
            load_devices = program::devices(program);
        }
        let are_all = prescan.is_some() || !options.has_load();
        let (devices, map) = targets::open(&options, &load_devices, are_all)?;
        let program = program.map(|program| program::place(&program, &options, &devices, &map)).transpose()?;
        targets::check_fit(&options, prescan.as_ref(), &devices, &map)?;
        let demand = program.as_ref().map(|program| program.demand);
        let pool = Pool::new(buffer_bytes(&options, prescan.as_ref(), demand, devices.len()))?;
        // A new seed for each run, so that it does not write the same data as an earlier run. In virtual time nothing is
        // written, and all runs have the same result.
        let seed = if options.method.virtual_time { options.modes.seed } else { wall().0 as u64 };
        let mut metadata = Metadata::new(Kind::Replay, "iosonar");
        metadata.source.path = options.has_load().then(|| path_text(&options.load));
        metadata.source.preamble.clone_from(&load.metadata().source.preamble);
        metadata.devices = match &program {
            Some(program) if !options.has_load() => program.devices.clone(),
            _ => load_devices,
        };
        let mut run = RunInfo {
            load: metadata.source.path.clone().map(Into::into).unwrap_or_default(),
            program: program.as_ref().map(|program| program.info.clone().into()).unwrap_or_default(),
            options: OpenMap::of(&options).into(),
            typed: options.typed.options().clone().into(),
            target: devices[0].describe().into(),
            targets: targets::describe(&devices, &map).into(),
            machine: machine::snapshot().into(),
            fake: options.fake().into(),
            wait: options.wait().name().into(),
            wait_reason: wait_reason.clone().into(),
            contention: contention.as_ref().map(Contention::describe).into(),
            data: RunData { what: options.data.to_string().into(), seed: seed.into(), ..RunData::default() }.into(),
            ..RunInfo::default()
        };
        let isolation = match options.issuing.isolate.as_slice() {
            [] => None,
            parts => Some(Isolation::apply(parts)?),
        };
        if let Some(isolation) = &isolation {
            run.isolation = isolation.changes().to_vec().into();
        }
        metadata.run = Some(Box::new(run));
        let mut warnings = warnings::before(&options, &devices, &map, prescan.as_ref(), load.metadata());
        warnings.extend(demand.and_then(|demand| warnings::depth(&options, &demand)));
        let journal = JournalWriter::create(
            &journal::path_for(&options.output),
            &metadata,
            prescan.as_ref().map_or(0, |prescan| prescan.expected_rows(&options)),
        )?;
        let payload = Payload::new(&options.data, seed);
        let stop = Arc::clone(stop);
        Ok(Self {
            options,
            stop,
            devices,
            map,
            load,
            program,
            prescan,
            journal,
            pool,
            payload,
            metadata,
            warnings,
            isolation,
            wait_reason,
            contention,
        })
    }

    /// The program that makes requests, if there is one.
    pub fn program(&self) -> Option<&RunProgram> {
        self.program.as_ref().map(|program| &program.info)
    }

    /// The prescan of the window; `None` if the load is a pipe, or there is none.
    pub fn prescan(&self) -> Option<&Prescan> {
        self.prescan.as_ref()
    }

    /// How many rows the result will have, if that is known.
    pub fn expected_rows(&self) -> Option<u64> {
        let ends = !self.options.modes.loops || (self.options.modes.run_for.is_some() && self.options.keeps_times());
        self.prescan.as_ref().filter(|_| ends).map(|prescan| prescan.expected_rows(&self.options))
    }

    /// The targets.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Warnings from before the run. [`Finished::warnings`] starts with them.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Maps devices of the load to targets.
    pub fn map(&self) -> &DeviceMap {
        &self.map
    }

    /// The options, with `wait` resolved.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How long the run takes if it keeps the scheduled times; `None` if unknown, as in virtual time.
    pub fn duration(&self) -> Option<Nanos> {
        if self.options.method.virtual_time {
            return None;
        }
        self.prescan.as_ref().and_then(|prescan| prescan.duration(&self.options)).or(self.options.modes.run_for)
    }

    /// Why the loop waits as it does between requests, as a phrase.
    pub fn wait_reason(&self) -> &str {
        &self.wait_reason
    }

    /// What --isolate changed on the machine, one sentence for each part.
    pub fn isolation(&self) -> &[String] {
        self.isolation.as_ref().map_or(&[], |isolation| isolation.changes())
    }

    /// Replays the load, and returns when the result is complete under its final name. Updates `progress` meanwhile.
    pub fn run(mut self, progress: &Progress) -> Result<Finished> {
        let rules = IssueRules::of(&self.options, self.devices.len());
        let arena = Arc::clone(self.pool.arena());
        let files = self.devices.iter().map(clone_file).collect::<Result<_>>()?;
        let (prepared_sender, prepared_receiver) = RingBuffer::new(self.options.queue_capacity());
        // Room for all requests in flight or waiting, and as many again for while the completion log sleeps.
        let (completed_sender, completed_receiver) = RingBuffer::new((rules.limits.slots() * 2).max(65_536));
        let buffers = (self.pool.largest() / UNIT_BYTES) as usize;
        let (buffer_sender, buffer_receiver) = RingBuffer::new(buffers);
        let (options, shared_stop) = (&self.options.clone(), &Arc::clone(&self.stop));
        let stop: &Stop = shared_stop;
        let (stall_sender, stall_receiver) = RingBuffer::new(STALLS);
        let isolation = self.isolation.take();
        let geometries: Vec<_> = self.devices.iter().map(|device| device.geometry).collect();
        let run = (options.verification.verify != Verify::Off).then(header::new_run);
        let virtual_clock = options.method.virtual_time.then(|| Virtual::starting_in(options.issuing.grace));
        let (program, refill, ahead) = match self.program.take().map(|placed| placed.start(options, &self.pool)) {
            Some((program, refill, ahead)) => (Some(program), refill, ahead),
            None => (None, None, None),
        };
        let issuer_thread = IssuerThread {
            options,
            virtual_clock: virtual_clock.clone(),
            isolation: isolation.as_ref(),
            files,
            rules,
            arena: Arc::clone(&arena),
            stop,
            stall_monitor: StallMonitor::new(&progress.in_flight, stall_sender),
            input: prepared_receiver,
            output: completed_sender,
            program,
            run,
            geometries: &geometries,
            progress,
        };
        let (start_sender, start_receiver) = mpsc::channel();
        let (ready_sender, ready_receiver) = mpsc::channel();
        let (result_sender, result_receiver) = mpsc::channel();
        let (final_pass_sender, final_pass_receiver) = mpsc::channel();
        let end = EndChannels { result: result_sender, final_pass: final_pass_receiver };
        thread::scope(|scope| {
            if let Some(ahead) = ahead {
                spawn_stage(scope, "scripts", move || ahead.run())?;
            }
            let issuer =
                spawn_with_result(scope, "issuer", move || issuer_thread.run(&ready_sender, &start_receiver, &end))?;
            let Ok(ready) = ready_receiver.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it was not ready"));
            };
            self.warnings.extend(ready.warnings);
            self.run_info().engine = ready.engine.name().to_owned().into();
            let clock = match start::clock(&self.options.issuing, stop, progress) {
                Ok(clock) => clock,
                Err(error) => {
                    // Ends the issuer thread, which waits for it.
                    drop(start_sender);
                    return Err(error);
                }
            };
            progress.set_zero(clock);
            self.record_start(clock);
            self.mark_targets();
            let disks = self.devices.iter().filter(|_| options.method.does_io()).filter_map(Device::disk);
            let steal_meter = StealMeter::start();
            let meters: Vec<Meter> = disks.filter_map(Meter::start).collect();
            // If this fails, writing entries fails as well, and the completion log reports it.
            let _ = self.journal.rewrite_header(&self.metadata);
            let routes = targets::routes(options, self.prescan.as_ref(), &self.devices, &self.map);
            let config = PrepareConfig::of(options, routes, run);
            let reopen: Option<Reopen<'_>> = options
                .modes
                .loops
                .then(|| Box::new(|| prescan::read_ahead(options, prescan::open(options, shared_stop)?)) as _);
            let schedule = options.schedule(Iterations::new(self.load, options.time.window, reopen));
            let inputs = PrepareInputs { schedule, config, pool: self.pool, payload: self.payload, refill };
            let discarded: Vec<_> = self.devices.iter().map(Discarded::on).collect();
            let checker = run.map(|run| Checker::of(options, run).with_discards(discarded));
            let completion_log = CompletionLog::new(
                completed_receiver,
                stall_receiver,
                buffer_sender,
                arena,
                self.journal,
                stop,
                progress,
            )
            .with_checker(checker);
            let threads = if let Some(clock) = virtual_clock {
                let preparer = Preparer::new(clock, inputs, stop, prepared_sender, buffer_receiver);
                let _ = start_sender.send(Start::Virtual(InlineStages::new(preparer, completion_log)));
                None
            } else if options.wait() == Wait::Inline {
                let preparer = Preparer::new(clock, inputs, stop, prepared_sender, buffer_receiver);
                let inline_stages = Some(InlineStages::new(preparer, completion_log));
                let _ = start_sender.send(Start::Real { clock, inline_stages });
                None
            } else {
                let preparer = Preparer::new(clock, inputs, stop, prepared_sender, buffer_receiver);
                let _ = start_sender.send(Start::Real { clock, inline_stages: None });
                let preparer = spawn_stage(scope, "prepare", || preparer.run()).inspect_err(|_| stop.abort())?;
                // Abort if this thread is missing: the loop's output queue would never be emptied.
                let completion_log =
                    spawn_stage(scope, "completion-log", || completion_log.run()).inspect_err(|_| stop.abort())?;
                Some((preparer, completion_log))
            };
            let Ok(mut loop_result) = result_receiver.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it did not end"));
            };
            progress.set_finishing();
            let thread_results = threads.map(|(preparer, completion_log)| {
                let prepare = preparer.join().expect("the preparer does not panic");
                (prepare, completion_log.join().expect("the completion log does not panic"))
            });
            let (PrepareOutcome { stats, outcome, memory }, mut log) =
                thread_results.or(loop_result.inline_results.take()).expect("one of them ran the stages");
            let device_counters = meters.iter().filter_map(Meter::read).collect();
            self.metadata.complete = !stop.is_requested();
            let final_pass = log.checker.take_if(|_| options.verification.verify >= Verify::Final).map(|checker| {
                if stop.is_requested() || loop_result.outcome.is_err() {
                    drop(final_pass_sender);
                    return FinalPass::skipped(checker);
                }
                let _ = final_pass_sender.send((checker, memory.into_pool()));
                let done = issuer.recv().expect("the final pass does not panic");
                done.expect("the engine was set up").expect("a final pass was requested")
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
                stolen_pct: steal_meter.stolen_pct(),
            };
            finalize(options, &self.devices, &self.map, self.metadata, results)
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
        if self.options.method.does_io() && !self.options.target.rules.reads_only && overwrites {
            self.devices.iter().for_each(Device::mark);
        }
    }

    fn run_info(&mut self) -> &mut RunInfo {
        self.metadata.run.as_mut().expect("set in `new`")
    }
}

/// Memory for buffers: at most --buffers, and no more than the requests prepared, waiting or in flight can use.
fn buffer_bytes(options: &Options, prescan: Option<&Prescan>, demand: Option<Demand>, targets: usize) -> u64 {
    if !options.method.has_device() {
        return UNIT_BYTES;
    }
    if let Some(demand) = demand {
        // Some of the largest, beside those that are ready.
        return options.issuing.buffers.max(demand.largest.bytes().next_power_of_two().saturating_mul(4));
    }
    let Some(prescan) = prescan else { return options.issuing.buffers };
    // Widening adds at most a block at each end.
    let largest = (prescan.longest_transfer * iosonar_trace::SECTOR_BYTES + 2 * UNIT_BYTES).next_power_of_two();
    let at_once = (Limits::of(options, targets).slots() + options.issuing.ahead) as u64;
    options.issuing.buffers.min(largest.saturating_mul(at_once)).max(UNIT_BYTES)
}

fn clone_file(device: &Device) -> Result<std::fs::File> {
    device.file.try_clone().map_err(|e| Error::file(&device.path, e))
}
