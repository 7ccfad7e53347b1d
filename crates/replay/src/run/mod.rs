//! One run from beginning to end: everything is opened and checked, the rooms are joined and started, and what they leave
//! behind becomes the result.

pub mod calibrate;
mod cautions;
mod conclude;
mod looping;
mod rooms;
mod survey;
mod targets;

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

use iosonar_trace::{Kind, Metadata, Nanos, Reader, Request};
use rtrb::RingBuffer;
use serde_json::json;

use self::conclude::{Ended, conclude};
use self::looping::{After, Looping, Start};
use self::rooms::{heard_from, in_room};
use crate::buffers::{Pool, UNIT_BYTES};
use crate::checks;
use crate::chores::Chores;
use crate::clock::{Monotonic, monotonic, wall};
use crate::data::Content;
use crate::device::Device;
use crate::device::meter::Meter;
use crate::error::{Error, Result};
use crate::feeder::{Feeder, Feeding, Plan, Supplies};
use crate::isolate::Isolation;
use crate::issuer::{Stop, Telltale};
use crate::journal::{self, JournalWriter};
use crate::machine;
use crate::mapping::Map;
use crate::options::{Options, Wait};
use crate::recorder::{Progress, Recorder};
use crate::rounds::{Reopen, Rounds};
use crate::statistics::Statistics;
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::findings::Finding;
use crate::verify::header;
use crate::verify::last::LastPass;

pub use self::conclude::recover;
pub use self::survey::Survey;

/// Stalls of the loop that may wait for the recorder to hear of them.
const STALLS: usize = 4096;

/// A run that could begin.
pub struct Prepared {
    options: Options,
    stop: Arc<Stop>,
    /// The targets, in the order of `Io::target`.
    devices: Vec<Device>,
    map: Map,
    load: Box<dyn Reader<Request>>,
    survey: Option<Survey>,
    journal: JournalWriter,
    pool: Pool,
    content: Content,
    metadata: Metadata,
    warnings: Vec<String>,
    /// Undone when the run has ended.
    isolation: Option<Isolation>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Where the result is.
    pub output: PathBuf,
    /// What happened.
    pub statistics: Statistics,
    /// What verification found: the first ones.
    pub findings: Vec<Finding>,
    /// The targets that these are about.
    pub targets: Vec<PathBuf>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Opens load, target and journal, and refuses what must not be done. Nothing is written to the target yet.
    /// Once `stop` is ordered, reading the load ends, and so does the run.
    pub fn new(mut options: Options, stop: &Arc<Stop>) -> Result<Self> {
        checks::check(&options)?;
        let survey = survey::survey(&options, stop)?;
        if let Some((survey, takes)) = survey.as_ref().and_then(|survey| Some((survey, survey.duration(&options)?))) {
            options.settle_wait(survey.expected(&options), takes);
        }
        let load = survey::ahead(&options, survey::open(&options, stop)?)?;
        let known = survey.as_ref().map_or(&load.metadata().devices, |survey| &survey.devices);
        let (devices, map) = targets::open(&options, known, survey.is_some())?;
        targets::check_fit(&options, survey.as_ref(), &devices, &map)?;
        let pool = Pool::new(buffer_bytes(&options, survey.as_ref(), devices.len()))?;
        // Another one for each run: what is written must not be what lies there from an earlier one.
        let seed = wall().0 as u64;
        let mut metadata = Metadata::new(Kind::Replay, "iosonar");
        metadata.source.path = Some(options.load.display().to_string());
        metadata.source.preamble.clone_from(&load.metadata().source.preamble);
        metadata.devices.clone_from(known);
        metadata.run = Some(json!({
            "load": options.load,
            "options": options,
            "target": devices[0].describe(),
            "targets": targets::describe(&devices, &map),
            "machine": machine::snapshot(),
            "fake": options.fake(),
            "wait": options.wait(),
            "data": { "what": options.data.to_string(), "seed": seed },
        }));
        let isolation = match options.isolate.as_slice() {
            [] => None,
            parts => Some(Isolation::arrange(parts)?),
        };
        if let Some(isolation) = &isolation {
            metadata.run.as_mut().expect("just made")["isolation"] = json!(isolation.said());
        }
        let warnings = cautions::before(&options, &devices, &map, survey.as_ref(), load.metadata());
        let journal = JournalWriter::create(
            &journal::path_for(&options.output),
            &metadata,
            survey.as_ref().map_or(0, |s| s.expected(&options)),
        )?;
        let content = Content::new(&options.data, seed);
        let stop = Arc::clone(stop);
        Ok(Self { options, stop, devices, map, load, survey, journal, pool, content, metadata, warnings, isolation })
    }

    /// What is known of the window; nothing for a load that comes through a pipe.
    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_ref()
    }

    /// How many rows the result is going to have, if all goes well and that is known.
    pub fn expected(&self) -> Option<u64> {
        let ends = !self.options.again || (self.options.run_for.is_some() && self.options.keeps_times());
        self.survey.as_ref().filter(|_| ends).map(|survey| survey.expected(&self.options))
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
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// What is done with them.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How long the run is going to take, in the run's own time, if it keeps its times.
    pub fn duration(&self) -> Option<Nanos> {
        self.survey.as_ref().and_then(|survey| survey.duration(&self.options)).or(self.options.run_for)
    }

    /// What was arranged on the machine for this run, a sentence each.
    pub fn isolation(&self) -> &[String] {
        self.isolation.as_ref().map_or(&[], |isolation| isolation.said())
    }

    /// Replays. Returns when the result is whole under its name; `progress` tells how far it is.
    pub fn run(mut self, progress: &Progress) -> Result<Finished> {
        let limits = self.options.limits(self.devices.len());
        let arena = Arc::clone(self.pool.arena());
        let files = self.devices.iter().map(claimed).collect::<Result<_>>()?;
        let (planned_in, planned_out) = RingBuffer::new(self.options.queue());
        // Room for everything in flight or waiting, and as much again for the recorder's naps.
        let (done_in, done_out) = RingBuffer::new((limits.slots() * 2).max(65_536));
        let buffers = (self.pool.largest() / UNIT_BYTES) as usize;
        let (returned_in, returned_out) = RingBuffer::new(buffers);
        let (options, shared) = (&self.options.clone(), &Arc::clone(&self.stop));
        let stop: &Stop = shared;
        let (stalls_in, stalls_out) = RingBuffer::new(STALLS);
        let isolation = self.isolation.take();
        let geometries: Vec<_> = self.devices.iter().map(|device| device.geometry).collect();
        let run = (options.verify != Verify::Off).then(header::new_run);
        let looping = Looping {
            options,
            isolation: isolation.as_ref(),
            files,
            limits,
            arena: Arc::clone(&arena),
            stop,
            telltale: Telltale::new(&progress.in_flight, stalls_in),
            input: planned_out,
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
        thread::scope(|rooms| {
            let issuer = heard_from(rooms, "issuer", move || looping.run(&ready, &started, &after))?;
            let Ok(told) = is_ready.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it was not ready"));
            };
            self.warnings.extend(told.warnings);
            self.metadata.run.as_mut().expect("made in `new`")["engine"] = json!(told.engine);
            let clock = Monotonic::starting_in(self.options.grace);
            self.note_start(clock);
            let disks = self.devices.iter().filter(|_| options.method.does_io()).filter_map(Device::disk);
            let meters: Vec<Meter> = disks.filter_map(Meter::start).collect();
            // Where it can't be, entries can't be either, and the recorder will say so.
            let _ = self.journal.restate(&self.metadata);
            let plan = Plan {
                routes: targets::routes(options, self.survey.as_ref(), &self.devices, &self.map),
                has_data: options.method.has_device(),
                ahead: options.ahead,
                stamp: run,
            };
            let again: Option<Reopen<'_>> =
                options.again.then(|| Box::new(|| survey::ahead(options, survey::open(options, shared)?)) as _);
            let agenda = options.agenda(Rounds::new(self.load, options.window, again));
            let supplies = Supplies { agenda, plan, pool: self.pool, content: self.content };
            let feeder = Feeder::new(clock, supplies, stop, planned_in, returned_out);
            let checker = run.map(|run| Checker::new(run, options.verify_memory, options.may_overlap()));
            let recorder = Recorder::new(done_out, stalls_out, returned_in, arena, self.journal, stop, progress)
                .checked_by(checker);
            let beside = if options.wait() == Wait::Work {
                let _ = start.send(Start { clock, chores: Some(Chores::new(feeder, recorder)) });
                None
            } else {
                let _ = start.send(Start { clock, chores: None });
                let feeder = in_room(rooms, "feeder", || feeder.run()).inspect_err(|_| stop.at_once())?;
                // Without it nobody would take what the loop is through with.
                Some((feeder, in_room(rooms, "recorder", || recorder.run()).inspect_err(|_| stop.at_once())?))
            };
            let Ok(mut looped) = is_ended.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it did not end"));
            };
            let beside = beside.map(|(feeder, recorder)| {
                let fed = feeder.join().expect("the feeder does not panic");
                (fed, recorder.join().expect("the recorder does not panic"))
            });
            let (Feeding { fed, outcome, memory }, mut recorded) =
                beside.or(looped.rooms.take()).expect("in threads of their own, or with the loop");
            let counted = meters.iter().filter_map(Meter::read).collect();
            self.metadata.complete = !stop.is_ordered();
            let last = recorded.checker.take_if(|_| options.verify >= Verify::Final).map(|checker| {
                if stop.is_ordered() || looped.outcome.is_err() {
                    drop(ask);
                    return LastPass::left_out(checker);
                }
                let _ = ask.send((checker, memory.into_pool()));
                let done = issuer.recv().expect("the last pass does not panic");
                done.expect("the run was under way").expect("it was asked for")
            });
            let ended = Ended { fed: (fed, outcome), looped, last, recorded, counted, warnings: self.warnings };
            conclude(options, &self.devices, &self.map, self.metadata, ended)
        })
    }

    fn note_start(&mut self, clock: Monotonic) {
        let to_zero = Nanos(clock.zero_ns()) - monotonic();
        let run = self.metadata.run.as_mut().expect("made in `new`");
        run["started_monotonic_ns"] = clock.zero_ns().into();
        run["started_unix_ns"] = (wall() + to_zero).0.into();
    }
}

/// No more than was allowed, and no more than can be used at once.
fn buffer_bytes(options: &Options, survey: Option<&Survey>, targets: usize) -> u64 {
    if !options.method.has_device() {
        return UNIT_BYTES;
    }
    let Some(survey) = survey else { return options.buffers };
    // Widening adds at most a block at each end.
    let largest = (survey.longest_moved * iosonar_trace::SECTOR_BYTES + 2 * UNIT_BYTES).next_power_of_two();
    let at_once = (options.limits(targets).slots() + options.ahead_requests) as u64;
    options.buffers.min(largest.saturating_mul(at_once)).max(UNIT_BYTES)
}

fn claimed(device: &Device) -> Result<std::fs::File> {
    device.file.try_clone().map_err(|e| Error::file(&device.path, e))
}
