//! One run from beginning to end: everything is opened and checked, the rooms are joined and started, and what they leave
//! behind becomes the result.

pub mod calibrate;
pub(crate) mod finalize;
mod finished;
pub(crate) mod issuer_thread;
#[cfg(test)]
mod odd;
pub(crate) mod prescan;
pub(crate) mod stages;
mod targets;
pub(crate) mod warnings;

use std::sync::{Arc, mpsc};
use std::thread;

use iosonar_trace::run_info::{OpenMap, RunData};
use iosonar_trace::{Kind, Metadata, Nanos, Reader, Request, RunInfo, path_text};
use rtrb::RingBuffer;

use crate::address::device_map::DeviceMap;
use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::config::validation as checks;
use crate::device::Device;
use crate::device::discarded::Discarded;
use crate::device::meter::Meter;
use crate::error::{Error, Result};
use crate::host::contention::{Contention, Watch};
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
use crate::run::finalize::{Ended, conclude};
use crate::run::issuer_thread::{After, IssuerThread, Start};
use crate::run::stages::{spawn_stage, spawn_with_result};
use crate::schedule::clock::{Monotonic, monotonic, wall};
use crate::schedule::iterations::{Iterations, Reopen};
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::FinalPass;
use crate::verify::header;

pub use crate::run::finalize::recover;
pub use crate::run::finished::Finished;
pub use crate::run::prescan::Prescan;

/// Stalls of the loop that may wait for the recorder to hear of them.
const STALLS: usize = 4096;

/// A run that could begin.
pub struct Prepared {
    options: Options,
    stop: Arc<Stop>,
    /// The targets, in the order of `Io::target`.
    devices: Vec<Device>,
    map: DeviceMap,
    load: Box<dyn Reader<Request>>,
    prescan: Option<Prescan>,
    journal: JournalWriter,
    pool: Pool,
    payload: Payload,
    metadata: Metadata,
    warnings: Vec<String>,
    /// Undone when the run has ended.
    isolation: Option<Isolation>,
    /// Why the loop waits as it does.
    wait_reason: String,
    contention: Option<Contention>,
}

impl Prepared {
    /// Opens load, target and journal, and refuses what must not be done. Nothing is written to the target yet.
    /// Once a stop is requested, reading the load ends, and so does the run.
    pub fn new(options: Options, stop: &Arc<Stop>) -> Result<Self> {
        // What a stop cut short, such as a pipe, may look wrong.
        Self::prepare(options, stop).map_err(|error| if stop.is_requested() { Error::Stopped } else { error })
    }

    fn prepare(mut options: Options, stop: &Arc<Stop>) -> Result<Self> {
        checks::check(&options)?;
        // Before what was left open is settled.
        let typed = OpenMap::of(options.typed.options());
        let prescan = crate::run::prescan::scan(&options, stop)?;
        // It matters to a loop that has times to keep, where the user leaves open how it waits.
        let matters = options.issuing.wait.is_none() && options.has_deadlines();
        let contention = if matters { Contention::look_unless_preferred() } else { None };
        let rate = prescan.as_ref().and_then(|prescan| prescan.rate(&options));
        let wait_reason = options.settle_wait(rate, contention.as_ref());
        let load = crate::run::prescan::ahead(&options, crate::run::prescan::open(&options, stop)?)?;
        let known = prescan.as_ref().map_or(&load.metadata().devices, |prescan| &prescan.devices);
        let (devices, map) = targets::open(&options, known, prescan.is_some())?;
        targets::check_fit(&options, prescan.as_ref(), &devices, &map)?;
        let pool = Pool::new(buffer_bytes(&options, prescan.as_ref(), devices.len()))?;
        // Another one for each run: what is written must not be what lies there from an earlier one.
        let seed = wall().0 as u64;
        let mut metadata = Metadata::new(Kind::Replay, "iosonar");
        metadata.source.path = Some(path_text(&options.load));
        metadata.source.preamble.clone_from(&load.metadata().source.preamble);
        metadata.devices.clone_from(known);
        let mut run = RunInfo {
            load: path_text(&options.load).into(),
            options: OpenMap::of(&options).into(),
            typed: typed.into(),
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
            parts => Some(Isolation::arrange(parts)?),
        };
        if let Some(isolation) = &isolation {
            run.isolation = isolation.said().to_vec().into();
        }
        metadata.run = Some(Box::new(run));
        let warnings = crate::run::warnings::before(&options, &devices, &map, prescan.as_ref(), load.metadata());
        let journal = JournalWriter::create(
            &journal::path_for(&options.output),
            &metadata,
            prescan.as_ref().map_or(0, |s| s.expected(&options)),
        )?;
        let payload = Payload::new(&options.data, seed);
        let stop = Arc::clone(stop);
        Ok(Self {
            options,
            stop,
            devices,
            map,
            load,
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

    /// The counts of the window; `None` if the load is a pipe.
    pub fn prescan(&self) -> Option<&Prescan> {
        self.prescan.as_ref()
    }

    /// How many rows the result is going to have, if all goes well and that is known.
    pub fn expected(&self) -> Option<u64> {
        let ends = !self.options.modes.again || (self.options.modes.run_for.is_some() && self.options.keeps_times());
        self.prescan.as_ref().filter(|_| ends).map(|prescan| prescan.expected(&self.options))
    }

    /// The targets.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// What the user should know before it begins. The run's own warnings start with these.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Which of them each device of the load goes to.
    pub fn map(&self) -> &DeviceMap {
        &self.map
    }

    /// What is done with them.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How long the run is going to take, in the run's own time, if it keeps its times.
    pub fn duration(&self) -> Option<Nanos> {
        self.prescan.as_ref().and_then(|prescan| prescan.duration(&self.options)).or(self.options.modes.run_for)
    }

    /// Why the loop waits as it does between requests.
    pub fn wait_reason(&self) -> &str {
        &self.wait_reason
    }

    /// What was arranged on the machine for this run, a sentence each.
    pub fn isolation(&self) -> &[String] {
        self.isolation.as_ref().map_or(&[], |isolation| isolation.said())
    }

    /// Replays. Returns when the result is whole under its name; `progress` tells how far it is.
    pub fn run(mut self, progress: &Progress) -> Result<Finished> {
        let rules = IssueRules::of(&self.options, self.devices.len());
        let arena = Arc::clone(self.pool.arena());
        // What is only read stays what it was: a file that a later run may overwrite by force alone.
        let overwrites = self.prescan.as_ref().is_none_or(|prescan| prescan.requests > prescan.reads);
        if self.options.method.does_io() && !self.options.target.rules.reads_only && overwrites {
            self.devices.iter().for_each(Device::mark);
        }
        let files = self.devices.iter().map(claimed).collect::<Result<_>>()?;
        let (prepared_in, prepared_out) = RingBuffer::new(self.options.queue());
        // Room for everything in flight or waiting, and as much again for the recorder's naps.
        let (done_in, done_out) = RingBuffer::new((rules.limits.slots() * 2).max(65_536));
        let buffers = (self.pool.largest() / UNIT_BYTES) as usize;
        let (returned_in, returned_out) = RingBuffer::new(buffers);
        let (options, shared) = (&self.options.clone(), &Arc::clone(&self.stop));
        let stop: &Stop = shared;
        let (stalls_in, stalls_out) = RingBuffer::new(STALLS);
        let isolation = self.isolation.take();
        let geometries: Vec<_> = self.devices.iter().map(|device| device.geometry).collect();
        let run = (options.verification.verify != Verify::Off).then(header::new_run);
        let issuer_thread = IssuerThread {
            options,
            isolation: isolation.as_ref(),
            files,
            rules,
            arena: Arc::clone(&arena),
            stop,
            stall_monitor: StallMonitor::new(&progress.in_flight, stalls_in),
            input: prepared_out,
            output: done_in,
            run,
            geometries: &geometries,
            progress,
        };
        let (start, started) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (ended, is_ended) = mpsc::channel();
        let (ask, asked) = mpsc::channel();
        let after = After { ended, asked };
        thread::scope(|scope| {
            let issuer = spawn_with_result(scope, "issuer", move || issuer_thread.run(&ready, &started, &after))?;
            let Ok(told) = is_ready.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it was not ready"));
            };
            self.warnings.extend(told.warnings);
            self.run_info().engine = told.engine.name().to_owned().into();
            let clock = Monotonic::starting_in(self.options.issuing.grace);
            self.note_start(clock);
            let disks = self.devices.iter().filter(|_| options.method.does_io()).filter_map(Device::disk);
            let watch = Watch::start();
            let meters: Vec<Meter> = disks.filter_map(Meter::start).collect();
            // Where it cannot be, entries cannot be either, and the recorder will say so.
            let _ = self.journal.restate(&self.metadata);
            let routes = targets::routes(options, self.prescan.as_ref(), &self.devices, &self.map);
            let config = PrepareConfig::of(options, routes, run);
            let again: Option<Reopen<'_>> = options.modes.again.then(|| {
                Box::new(|| crate::run::prescan::ahead(options, crate::run::prescan::open(options, shared)?)) as _
            });
            let schedule = options.schedule(Iterations::new(self.load, options.time.window, again));
            let inputs = PrepareInputs { schedule, config, pool: self.pool, payload: self.payload };
            let feeder = Preparer::new(clock, inputs, stop, prepared_in, returned_out);
            let discarded: Vec<_> = self.devices.iter().map(Discarded::on).collect();
            let checker = run.map(|run| Checker::of(options, run).with_discards(discarded));
            let recorder = CompletionLog::new(done_out, stalls_out, returned_in, arena, self.journal, stop, progress)
                .checked_by(checker);
            let beside = if options.wait() == Wait::Inline {
                let _ = start.send(Start { clock, inline_stages: Some(InlineStages::new(feeder, recorder)) });
                None
            } else {
                let _ = start.send(Start { clock, inline_stages: None });
                let feeder = spawn_stage(scope, "prepare", || feeder.run()).inspect_err(|_| stop.abort())?;
                // Without it nobody would take what the loop is through with.
                Some((feeder, spawn_stage(scope, "completion-log", || recorder.run()).inspect_err(|_| stop.abort())?))
            };
            let Ok(mut looped) = is_ended.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it did not end"));
            };
            let beside = beside.map(|(feeder, recorder)| {
                let fed = feeder.join().expect("the feeder does not panic");
                (fed, recorder.join().expect("the recorder does not panic"))
            });
            let (PrepareOutcome { stats: fed, outcome, memory }, mut recorded) =
                beside.or(looped.stages.take()).expect("in threads of their own, or with the loop");
            let counted = meters.iter().filter_map(Meter::read).collect();
            self.metadata.complete = !stop.is_requested();
            let last = recorded.checker.take_if(|_| options.verification.verify >= Verify::Final).map(|checker| {
                if stop.is_requested() || looped.outcome.is_err() {
                    drop(ask);
                    return FinalPass::skipped(checker);
                }
                let _ = ask.send((checker, memory.into_pool()));
                let done = issuer.recv().expect("the last pass does not panic");
                done.expect("the run was under way").expect("it was asked for")
            });
            let (contention, stolen_pct) = (self.contention, watch.stolen_pct());
            let warnings = self.warnings;
            let ended =
                Ended { fed: (fed, outcome), looped, last, recorded, counted, warnings, contention, stolen_pct };
            conclude(options, &self.devices, &self.map, self.metadata, ended)
        })
    }

    fn note_start(&mut self, clock: Monotonic) {
        let to_zero = Nanos(clock.zero_ns()) - monotonic();
        let run = self.run_info();
        run.started_monotonic_ns = clock.zero_ns().into();
        run.started_unix_ns = (wall() + to_zero).0.into();
    }

    fn run_info(&mut self) -> &mut RunInfo {
        self.metadata.run.as_mut().expect("made in `new`")
    }
}

/// No more than was allowed, and no more than can be used at once.
fn buffer_bytes(options: &Options, prescan: Option<&Prescan>, targets: usize) -> u64 {
    if !options.method.has_device() {
        return UNIT_BYTES;
    }
    let Some(prescan) = prescan else { return options.issuing.buffers };
    // Widening adds at most a block at each end.
    let largest = (prescan.longest_moved * iosonar_trace::SECTOR_BYTES + 2 * UNIT_BYTES).next_power_of_two();
    let at_once = (Limits::of(options, targets).slots() + options.issuing.ahead) as u64;
    options.issuing.buffers.min(largest.saturating_mul(at_once)).max(UNIT_BYTES)
}

fn claimed(device: &Device) -> Result<std::fs::File> {
    device.file.try_clone().map_err(|e| Error::file(&device.path, e))
}
