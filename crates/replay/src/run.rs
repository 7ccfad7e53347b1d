//! One run from beginning to end: everything is opened and checked, the rooms are joined and started, and what they leave
//! behind becomes the result.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use iosonar_trace::{Kind, Metadata, Nanos, Reader, Request, Span, create_run, open_load};
use rtrb::RingBuffer;
use serde_json::{Value, json};

use crate::buffers::{Pool, UNIT_BYTES};
use crate::checks;
use crate::clock::{Monotonic, monotonic, wall};
use crate::conflicts::Tracker;
use crate::data::Content;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::feeder::{Fed, Feeder, Plan};
use crate::issuer::{Hybrid, Idle, Issuer, Limits, Pace, Spin, Stop, Tally};
use crate::journal::{self, Journal, JournalWriter};
use crate::machine;
use crate::options::{Options, Wait, Window};
use crate::recorder::{Progress, Recorded, Recorder};
use crate::statistics::{Counter, Statistics};
use crate::target::Target;
use crate::target::uring::Uring;

/// A sleeping loop wakes up that long before a deadline: more than waking takes on an idle machine, most of the time.
const WAKE_MARGIN: Nanos = Nanos(100_000);

/// What is known of the load's window before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Requests; at most, where `exact` is false.
    pub requests: u64,
    /// Those that modify the target.
    pub writes: u64,
    /// Times and positions.
    pub span: Span,
}

/// A run that could begin.
pub struct Prepared {
    options: Options,
    device: Device,
    load: Box<dyn Reader<Request>>,
    survey: Option<Survey>,
    journal: JournalWriter,
    pool: Pool,
    metadata: Metadata,
    warnings: Vec<String>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Where the result is.
    pub output: PathBuf,
    /// What happened.
    pub statistics: Statistics,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Prepared {
    /// Opens load, target and journal, and refuses what must not be done. Nothing is written to the target yet.
    pub fn new(options: Options) -> Result<Self> {
        checks::check(&options)?;
        let survey = survey(&options)?;
        let load = open(&options)?;
        let device = Device::open(&options.target, options.force)?;
        let pool = Pool::new(buffer_bytes(&options, survey))?;
        let mut metadata = Metadata::new(Kind::Replay, "iosonar");
        metadata.source.path = Some(options.load.display().to_string());
        metadata.source.preamble.clone_from(&load.metadata().source.preamble);
        metadata.devices.clone_from(&load.metadata().devices);
        metadata.run = Some(json!({
            "load": options.load,
            "options": options,
            "target": device.describe(),
            "machine": machine::snapshot(),
            "fake": Value::Null,
        }));
        let journal =
            JournalWriter::create(&journal::path_for(&options.output), &metadata, survey.map_or(0, |s| s.requests))?;
        Ok(Self { options, device, load, survey, journal, pool, metadata, warnings: Vec::new() })
    }

    /// What is known of the window; nothing for a load that comes through a pipe.
    pub fn survey(&self) -> Option<Survey> {
        self.survey
    }

    /// The target.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How long the run is going to take, in the run's own time, if it keeps its times.
    pub fn duration(&self) -> Option<Nanos> {
        let span = self.survey?.span;
        (!self.options.asap).then(|| Nanos(((span.last_ns - span.first_ns) as f64 / self.options.speedup) as i64))
    }

    /// Replays. Returns when the result is whole under its name; `stop` ends it early, `progress` tells how far it is.
    pub fn run(mut self, stop: &Stop, progress: &Progress) -> Result<Finished> {
        let limits = self.options.limits();
        let arena = Arc::clone(self.pool.arena());
        let files = vec![claimed(&self.device)?];
        let (planned_in, planned_out) = RingBuffer::new(self.options.ahead_requests);
        // Room for everything in flight or waiting, and as much again for the recorder's naps.
        let (done_in, done_out) = RingBuffer::new((limits.slots() * 2).max(65_536));
        let buffers = (self.pool.largest() / UNIT_BYTES) as usize;
        let (returned_in, returned_out) = RingBuffer::new(buffers);
        let tracker = Tracker::new(self.options.conflicts, self.options.strong, limits.slots());
        let options = &self.options.clone();
        let ring_arena = Arc::clone(&arena);
        let (start, started) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        thread::scope(|rooms| {
            let issuer = heard_from(rooms, "issuer", move || {
                let target = Uring::new(files, ring_arena, limits.slots())
                    .map_err(|e| Error::system("io_uring can't be set up", e))?;
                lock_memory();
                // Locking and registering the buffers takes longer than any grace on a busy machine: only now may the
                // run's own time begin.
                let _ = ready.send(target.warnings.clone());
                let clock = started.recv().expect("whoever waits for us starts us");
                Ok::<_, Error>(match options.wait() {
                    Wait::Spin => issue(clock, target, Spin, options, limits, stop, planned_out, done_in, tracker),
                    Wait::Hybrid => {
                        let idle = Hybrid { margin: WAKE_MARGIN };
                        issue(clock, target, idle, options, limits, stop, planned_out, done_in, tracker)
                    }
                })
            });
            let Ok(told) = is_ready.recv() else {
                return Err(issuer.recv().expect("the loop does not panic").expect_err("it was not ready"));
            };
            self.warnings.extend(told);
            let clock = Monotonic::starting_in(self.options.grace);
            self.note_start(clock);
            let _ = start.send(clock);
            let plan = Plan {
                window: self.options.window,
                speedup: self.options.speedup,
                asap: self.options.asap,
                geometry: self.device.geometry,
                align: self.options.align,
                ahead: self.options.ahead,
            };
            let content = Content::new(wall().0 as u64);
            let feeder = Feeder::new(clock, plan, stop, self.pool, content, planned_in, returned_out);
            let recorder = Recorder::new(done_out, returned_in, arena, self.journal, stop, progress);
            let mut load = self.load;
            let feeder = in_room(rooms, "feeder", move || feeder.run(&mut *load));
            let recorder = in_room(rooms, "recorder", || recorder.run());
            let looped = issuer.recv().expect("the loop does not panic")?;
            let fed = feeder.join().expect("the feeder does not panic");
            let recorded = recorder.join().expect("the recorder does not panic");
            self.metadata.complete = !stop.is_ordered();
            conclude(&self.options, self.device, self.metadata, self.warnings, fed, looped, recorded)
        })
    }

    fn note_start(&mut self, clock: Monotonic) {
        let to_zero = Nanos(clock.zero_ns()) - monotonic();
        let run = self.metadata.run.as_mut().expect("made in `new`");
        run["started_monotonic_ns"] = clock.zero_ns().into();
        run["started_unix_ns"] = (wall() + to_zero).0.into();
    }
}

fn in_room<'scope, T: Send + 'scope>(
    rooms: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, T> {
    thread::Builder::new().name(name.into()).spawn_scoped(rooms, work).expect("threads can be made")
}

/// Like [`in_room`], but what it returns is heard of without waiting for the thread's end: the kernel does not let a thread
/// go that has requests which hang in the device, and the result must not wait for those.
fn heard_from<'scope, T: Send + 'scope>(
    rooms: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> mpsc::Receiver<T> {
    let (tell, heard) = mpsc::channel();
    in_room(rooms, name, move || {
        // Nobody listens any more only if another room panicked.
        let _ = tell.send(work());
    });
    heard
}

#[expect(clippy::too_many_arguments, reason = "the loop's plugs, each once")]
fn issue<T: Target, I: Idle<T>>(
    clock: Monotonic,
    target: T,
    idle: I,
    options: &Options,
    limits: Limits,
    stop: &Stop,
    input: rtrb::Consumer<crate::Planned>,
    output: rtrb::Producer<crate::Done>,
    tracker: Tracker,
) -> (Tally, std::io::Result<()>) {
    let issuer =
        Issuer::new(clock, target, idle, options.pace(), options.conflicts, limits, stop, input, output, tracker);
    let (tally, _target, outcome) = issuer.run();
    (tally, outcome)
}

/// Makes the result of what the rooms left.
fn conclude(
    options: &Options,
    device: Device,
    mut metadata: Metadata,
    mut warnings: Vec<String>,
    (fed, read): (Fed, Result<()>),
    (tally, looped): (Tally, std::io::Result<()>),
    recorded: Recorded,
) -> Result<Finished> {
    if let Err(error) = read {
        warnings.push(format!("the load could be read only in part: {error}"));
    }
    if let Err(error) = looped {
        warnings.push(format!("the target failed as a whole, and the run ended there: {error}"));
        metadata.complete = false;
    }
    if let Some(error) = recorded.failure {
        warnings.push(format!(
            "the record could not be written ({error}), and the run ended there: {} rows are missing from it",
            recorded.counter.unrecorded
        ));
        metadata.complete = false;
    }
    metadata.complete &= fed.load_complete;
    let pace = options.pace();
    let statistics = recorded.counter.close(&fed, &tally, device.geometry, pace == Pace::Timed, metadata.complete);
    warnings.extend(advice(options, &device, &fed, &statistics));
    metadata.counts.bad_lines = fed.bad_lines;
    metadata.notices.clone_from(&fed.notices);
    let run = metadata.run.as_mut().expect("made with the run");
    run["warnings"] = json!(warnings);
    run["statistics"] = serde_json::to_value(&statistics).expect("statistics are plain data");
    let journal = recorded.journal.close();
    warnings.extend(publish(&journal, &options.output, &metadata, options.verbose)?);
    Ok(Finished { output: options.output.clone(), statistics, warnings })
}

/// Turns a journal into the result, and removes it when that is whole. Returns what the result could not take.
fn publish(journal: &Path, output: &Path, metadata: &Metadata, verbose: bool) -> Result<Vec<String>> {
    let kept = |error: Error| {
        Error::Options(format!(
            "{error}\nThe result could not be written, but nothing is lost: make room, then `iosonar recover {}`",
            journal.display()
        ))
    };
    let losses = write_result(journal, output, metadata, verbose).map_err(kept)?;
    std::fs::remove_file(journal).map_err(|e| Error::file(journal, e))?;
    Ok(losses)
}

fn write_result(journal: &Path, output: &Path, metadata: &Metadata, verbose: bool) -> Result<Vec<String>> {
    let mut rows = Journal::open(journal)?;
    let mut writer = create_run(output, metadata)?;
    while let Some(mut record) = rows.read().map_err(|e| Error::file(journal, e))? {
        if !verbose {
            (record.ready, record.submitted) = (None, None);
        }
        writer.write(&record)?;
    }
    let mut losses = writer.finish(metadata)?;
    if rows.damaged > 0 {
        losses.push(format!("{} entries of the journal are damaged; their rows are missing", rows.damaged));
    }
    Ok(losses)
}

/// Makes a result of a journal whose run never ended. Its statistics are counted anew; it is marked as cut short.
pub fn recover(journal: &Path, output: &Path) -> Result<Finished> {
    let mut rows = Journal::open(journal)?;
    let mut metadata = rows.header.clone();
    let mut counter = Counter::new();
    let mut max_end_sector = 0;
    let mut tally = Tally::default();
    while let Some(record) = rows.read().map_err(|e| Error::file(journal, e))? {
        max_end_sector = max_end_sector.max((record.source_sector + record.sectors).0);
        tally.max_in_flight = tally.max_in_flight.max(record.in_flight);
        counter.add(&record);
    }
    let fed = Fed { max_end_sector, ..Fed::default() };
    let run = metadata.run.get_or_insert_with(|| json!({}));
    let sectors = run["target"]["sectors"].as_u64().unwrap_or(1);
    let geometry = crate::placement::Geometry { sectors, block_sectors: 1 };
    let timed = run["options"]["asap"] != json!(true);
    let statistics = counter.close(&fed, &tally, geometry, timed, false);
    let mut warnings = vec!["the run did not end by itself: this was recovered from its journal".to_owned()];
    run["warnings"] = json!(warnings);
    run["statistics"] = serde_json::to_value(&statistics).expect("statistics are plain data");
    let verbose = run["options"]["verbose"] == json!(true);
    metadata.complete = false;
    warnings.extend(publish(journal, output, &metadata, verbose)?);
    Ok(Finished { output: output.to_owned(), statistics, warnings })
}

/// The manual's advice, as far as a run shows that it was not followed.
fn advice(options: &Options, device: &Device, fed: &Fed, s: &Statistics) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |when: bool, text: String| all.extend(when.then_some(text));
    let reads = s.reads.max(1) as f64;
    say(
        s.wrap_factor >= 2.0 || (s.wrap_factor < 0.5 && s.requests > 0),
        format!(
            "the load reaches over {:.3} times the target's size; a target of about the original's size gives other results",
            s.wrap_factor
        ),
    );
    say(s.wrap_factor > 1.0, format!("sectors beyond the end of {} wrapped around", device.path.display()));
    say(s.bad_lines > 0, format!("{} lines of the load could not be understood", s.bad_lines));
    say(!fed.load_complete, "the load itself was cut short".into());
    say(options.speedup != 1.0, format!("a speed-up of {} distorts a natural load", options.speedup));
    say(
        s.dropped as f64 > 0.05 * s.requests as f64,
        "more than 5 % of the requests were dropped; --conflicts partial or ordering keeps them".into(),
    );
    say(
        s.zero_reads as f64 > 0.01 * reads,
        format!(
            "{} of {} reads came back all zero: areas that were never written answer too fast; fill the target with data first",
            s.zero_reads, s.reads
        ),
    );
    say(
        s.skipped.too_large > 0,
        format!("{} requests exceed the memory for buffers; raise --buffers", s.skipped.too_large),
    );
    all
}

/// The load as it is replayed.
fn open(options: &Options) -> Result<Box<dyn Reader<Request>>> {
    let load = open_load(&options.load)?;
    Ok(match &options.edit {
        Some(edit) => edit.apply(load)?,
        None => load,
    })
}

/// Counts what lies in the window. A file that knows itself is asked; others are read through; a pipe can't be.
fn survey(options: &Options) -> Result<Option<Survey>> {
    let (load, window) = (&options.load, options.window);
    if load == Path::new("-") {
        return Ok(None);
    }
    let mut reader = open(options)?;
    if reader.is_surveyed() && window == Window::default() {
        let known = reader.metadata();
        let counts = &known.counts;
        return Ok(Some(Survey { requests: counts.requests, writes: counts.writes + counts.others, span: known.span }));
    }
    let mut inside = Metadata::new(Kind::Load, "window");
    while let Some(request) = reader.next()? {
        if request.at >= window.end {
            break;
        }
        if request.at >= window.start {
            inside.count_request(&request);
        }
    }
    let counts = inside.counts;
    if counts.requests == 0 {
        return Err(Error::Options(format!(
            "{}: no request to replay{}",
            load.display(),
            if window == Window::default() { "" } else { " in that window; `iosonar info` tells how long the load is" }
        )));
    }
    Ok(Some(Survey { requests: counts.requests, writes: counts.writes + counts.others, span: inside.span }))
}

/// No more than was allowed, and no more than can be used at once.
fn buffer_bytes(options: &Options, survey: Option<Survey>) -> u64 {
    let Some(survey) = survey else { return options.buffers };
    // Widening adds at most a block at each end.
    let largest = (survey.span.max_sectors * iosonar_trace::SECTOR_BYTES + 2 * UNIT_BYTES).next_power_of_two();
    let at_once = (options.limits().slots() + options.ahead_requests) as u64;
    options.buffers.min(largest.saturating_mul(at_once)).max(UNIT_BYTES)
}

fn claimed(device: &Device) -> Result<std::fs::File> {
    device.file.try_clone().map_err(|e| Error::file(&device.path, e))
}

/// Nothing that the loop touches may have to be fetched first. Where the limit does not allow it, it is not so.
#[allow(unsafe_code, reason = "a system call without arguments that could be wrong")]
fn lock_memory() {
    // SAFETY: changes only whether pages are resident.
    unsafe { libc::mlockall(libc::MCL_CURRENT) };
}
