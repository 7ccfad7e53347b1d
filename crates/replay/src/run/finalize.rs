//! The end of a run: what the rooms left becomes the result, and so does the journal of a run that never ended.

use std::path::Path;

use iosonar_trace::run_info::{DeviceCounters, RunStatistics};
use iosonar_trace::{IoResult, Metadata, Nanos, create_run, human};

use super::finished::Finished;
use super::targets;
use crate::address::device_map::DeviceMap;
use crate::advice;
use crate::advice::remedies::{Facts, remedies};
use crate::config::options::Options;
use crate::config::validation::check_format;
use crate::config::wait_choice::processors;
use crate::device::unsupported_operations;
use crate::device::{self, Device};
use crate::error::{Error, Result};
use crate::host::contention::Contention;
use crate::issuer::{LoopCounters, Pace};
use crate::pipeline::prepare::{PrepareStats, raise_extent};
use crate::result::completion_log::Recorded;
use crate::result::journal::Journal;
use crate::result::statistics::{Closing, Counter};
use crate::run::issuer_thread::Looped;
use crate::verify::Verify;
use crate::verify::final_pass::FinalPassOutcome;
use crate::verify::report::verification;

/// What the rooms left, and what was to be said before they ended.
pub struct Ended {
    pub fed: (PrepareStats, Result<()>),
    pub looped: Looped,
    /// The last pass over what was written, if one was asked for.
    pub last: Option<FinalPassOutcome>,
    pub recorded: Recorded,
    /// What the devices counted themselves.
    pub counted: Vec<DeviceCounters>,
    pub warnings: Vec<String>,
    /// Who else wanted the processors before the run.
    pub contention: Option<Contention>,
    /// What the host took during it.
    pub stolen_pct: Option<f64>,
}

/// Makes the result of what the rooms left.
pub fn conclude(
    options: &Options,
    devices: &[Device],
    map: &DeviceMap,
    mut metadata: Metadata,
    ended: Ended,
) -> Result<Finished> {
    let Ended { fed: (fed, read), looped, last, mut recorded, counted, mut warnings, contention, stolen_pct } = ended;
    let counters = looped.counters;
    if let Err(error) = read {
        warnings.push(format!("the load could be read only in part: {error}"));
    }
    warnings.extend(looped.warnings);
    if let Err(error) = looped.outcome {
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
    let targets: Vec<_> = devices.iter().map(|device| (device.path.clone(), device.geometry)).collect();
    let (timed, complete) = (Pace::of(options) != Pace::AsFastAsPossible, metadata.complete);
    let closing = Closing { fed: &fed, counters: &counters, map, targets: &targets, timed, complete };
    let mut statistics = recorded.counter.close(&closing);
    statistics.fake = options.fake();
    if !options.method.does_io() {
        // What lies in the buffers of reads came from nowhere.
        statistics.zero_reads = 0;
    }
    if let Some(verdict) = &mut statistics.verdict {
        let file = devices.iter().find(|device| device.kind == device::Kind::File);
        verdict.remedies = remedies(
            verdict,
            &Facts {
                options,
                contention: contention.as_ref(),
                stolen_pct: stolen_pct.unwrap_or(0.0),
                processors: processors(),
                is_root: rustix::process::geteuid().is_root(),
                file: file.map(|device| device.path.as_path()),
                has_holes: file.is_some_and(Device::has_holes),
            },
        );
    }
    let mut findings = Vec::new();
    let far = last.as_ref().map(|last| last.progress);
    let (checker, said) = match last {
        Some(last) => (Some(last.checker), last.warning),
        None => (recorded.checker.take(), None),
    };
    warnings.extend(said);
    if let Some(checker) = checker {
        statistics.verify = Some(verification(options.verification.verify, &checker, far));
        findings = checker.findings.kept;
    }
    warnings.extend(devices.iter().filter_map(Device::loss));
    warnings.extend(advice::after(options, &fed, &statistics));
    if statistics.skipped.unsupported > 0 {
        let unsupported = human::counted(statistics.skipped.unsupported, "request");
        warnings.push(format!("{unsupported} left out: {}", unsupported_operations(devices)));
    }
    // With several targets nobody knows which of them had how many of the replay's, and what paranoia reads again is not
    // among its requests.
    if let [counted] = &counted[..]
        && options.verification.verify < Verify::Paranoia
    {
        warnings.extend(advice::seen(&statistics, counted));
    }
    // All that appeared: a load in text has no names before it is read.
    if fed.devices.len() >= metadata.devices.len() {
        metadata.devices.clone_from(&fed.devices);
    }
    metadata.counts.bad_lines = fed.bad_lines;
    metadata.notices.clone_from(&fed.notices);
    let run = metadata.run.as_mut().expect("made with the run");
    if let Some(data) = run.data.known_mut() {
        data.written = fed.written.into();
    }
    run.warnings = warnings.clone().into();
    run.mean_in_flight = advice::mean_in_flight(&statistics).into();
    run.device_counters = counted.into();
    run.stolen_pct = stolen_pct.into();
    if options.verification.verify != Verify::Off {
        run.findings = findings.clone().into();
    }
    run.statistics = RunStatistics::from(statistics.clone()).into();
    let journal = recorded.journal.close();
    warnings.extend(publish(&journal, &options.output, &metadata)?);
    let targets = devices.iter().map(|device| device.path.clone()).collect();
    Ok(Finished { output: options.output.clone(), statistics, findings, targets, warnings })
}

/// Turns a journal into the result, and removes it when that is whole. Returns what the result could not take.
fn publish(journal: &Path, output: &Path, metadata: &Metadata) -> Result<Vec<String>> {
    let kept = |error: Error| {
        Error::Options(format!(
            "{error}; the result is not written, but nothing is lost: remove the cause (make room on a full disk), then run \
             `iosonar recover {}`",
            journal.display()
        ))
    };
    let replaces = metadata.run.as_ref().is_some_and(|run| run.has("overwrite"));
    if output.exists() && !replaces {
        return Err(Error::Options(format!(
            "{} appeared during the run, and is not replaced. Nothing is lost: `iosonar recover {} --output ANOTHER`",
            output.display(),
            journal.display()
        )));
    }
    let losses = write_result(journal, output, metadata).map_err(kept)?;
    std::fs::remove_file(journal).map_err(|e| Error::file(journal, e))?;
    Ok(losses)
}

fn write_result(journal: &Path, output: &Path, metadata: &Metadata) -> Result<Vec<String>> {
    // A recovered run has its options from the journal alone.
    let run = metadata.run.as_deref();
    let verbose = run.is_some_and(|run| run.has("verbose"));
    let offset = Nanos(run.and_then(|run| run.option("output_offset").integer()).unwrap_or(0));
    let mut rows = Journal::open(journal)?;
    let mut writer = create_run(output, metadata)?;
    while let Some(mut record) = rows.read().map_err(|e| Error::file(journal, e))? {
        if !verbose {
            (record.ready, record.submitted, record.last_empty_poll) = (None, None, None);
        }
        if offset != Nanos::ZERO {
            shift(&mut record, offset);
        }
        writer.write(&record)?;
    }
    let mut losses = writer.finish(metadata)?.warnings;
    if rows.damaged > 0 {
        losses.push(format!("{} entries of the journal are damaged; their rows are missing", rows.damaged));
    }
    Ok(losses)
}

/// Moves a row in time; what is measured between its times stays.
fn shift(record: &mut IoResult, by: Nanos) {
    record.scheduled = record.scheduled + by;
    let IoResult { issued, completed, ready, submitted, last_empty_poll, .. } = record;
    for at in [issued, completed, ready, submitted, last_empty_poll] {
        *at = at.map(|at| at + by);
    }
}

/// Makes a result of a journal whose run never ended. Its statistics are counted anew; it is marked as cut short.
pub fn recover(journal: &Path, output: &Path) -> Result<Finished> {
    check_format(output)?;
    let mut rows = Journal::open(journal)?;
    let mut metadata = rows.header.clone();
    let mut counter = Counter::new();
    let mut fed = PrepareStats { devices: metadata.devices.clone(), ..PrepareStats::default() };
    let mut counters = LoopCounters::default();
    while let Some(record) = rows.read().map_err(|e| Error::file(journal, e))? {
        raise_extent(&mut fed.device_extents, record.device, record.source_sector + record.sectors);
        counters.max_in_flight = counters.max_in_flight.max(record.in_flight);
        counter.add(&record);
    }
    let run = metadata.run.get_or_insert_default();
    let (targets, map) = targets::described(run);
    let timed = !run.has("asap");
    let closing = Closing { fed: &fed, counters: &counters, map: &map, targets: &targets, timed, complete: false };
    let mut statistics = counter.close(&closing);
    statistics.fake = run.fake.text().map(str::to_owned);
    let mut warnings = vec![
        "the run did not end by itself: this was recovered from its journal. Requests in flight at its end have no row, and \
         what is counted only at the end of a run is 0: reads of zeros, bad lines, ordered waits, slow submissions"
            .to_owned(),
    ];
    run.warnings = warnings.clone().into();
    run.statistics = RunStatistics::from(statistics.clone()).into();
    metadata.complete = false;
    warnings.extend(publish(journal, output, &metadata)?);
    Ok(Finished { output: output.to_owned(), statistics, findings: Vec::new(), targets: Vec::new(), warnings })
}
