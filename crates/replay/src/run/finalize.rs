//! Turns what the stages of a run return into its result. Does the same with the journal of a run that was killed.

use std::path::Path;

use iosonar_device::unsupported_operations;
use iosonar_device::{self, Device};
use iosonar_pacing::Result;
use iosonar_pacing::host::contention::Contention;
use iosonar_trace::journal::{self, Journal};
use iosonar_trace::run_info::{DeviceCounters, MachineUsage, RunStatistics};
use iosonar_trace::{IoResult, Metadata, Nanos, create_run, human};

use super::finished::Finished;
use super::targets;
use crate::address::device_map::DeviceMap;
use crate::advice;
use crate::advice::remedies::{Facts, remedies};
use crate::config::plan::Plan;
use crate::config::validation::check_format;
use crate::issuer::Pace;
use crate::pipeline::prepare::{PrepareStats, raise_extent};
use crate::result::completion_log::CompletionLogOutput;
use crate::result::statistics::{Counter, StatisticsInputs};
use crate::run::issuer_thread::LoopResult;
use crate::verify::Verify;
use crate::verify::final_pass::FinalPassOutcome;
use crate::verify::report::verification;

/// What the stages of a run returned, and what was measured around them.
pub struct StageResults {
    pub prepare_stats: PrepareStats,
    /// The error that ended the reading of the load, if any.
    pub read_outcome: Result<()>,
    pub loop_result: LoopResult,
    /// The final pass, with `--verify final` or stricter.
    pub final_pass: Option<FinalPassOutcome>,
    pub log: CompletionLogOutput,
    pub device_counters: Vec<DeviceCounters>,
    /// Warnings so far.
    pub warnings: Vec<String>,
    /// Contention for the processors before the run.
    pub contention: Option<Contention>,
    /// Processors that the program may use without --isolate.
    pub processors: usize,
    /// What the machine did during the run, and the percentage of processor time that the hypervisor stole.
    pub usage: Option<(MachineUsage, f64)>,
}

/// Writes the result.
pub fn finalize(
    plan: &Plan,
    devices: &[Device],
    map: &DeviceMap,
    mut metadata: Metadata,
    results: StageResults,
) -> Result<Finished> {
    let StageResults {
        mut prepare_stats,
        read_outcome,
        loop_result,
        final_pass,
        mut log,
        device_counters,
        mut warnings,
        contention,
        processors,
        usage,
    } = results;
    let options = &plan.options;
    let (usage, stolen_pct) = usage.unzip();
    if let Err(error) = read_outcome {
        warnings.push(format!("the load could be read only in part: {error}"));
    }
    warnings.extend(loop_result.warnings);
    if let Err(error) = loop_result.outcome {
        warnings.push(format!("the I/O engine failed, which ended the run: {error}"));
        metadata.complete = false;
    }
    if loop_result.counters.stands_still {
        warnings.push(
            "the run was ended, as virtual time does not go on: requests take no time, or none is issued; omit --virtual-time, or \
             simulate a device whose requests take time"
                .into(),
        );
        metadata.complete = false;
    }
    if let Some(why) = &loop_result.counters.early_end {
        warnings.push(format!("the program ended early: {why}"));
        metadata.complete = false;
    }
    let closed = log.journal.close();
    log.counter.unrecorded = closed.unrecorded;
    if let Some(error) = closed.failure {
        warnings.push(format!(
            "the journal could not be written ({error}), which ended the run: {} rows are missing",
            closed.unrecorded
        ));
        metadata.complete = false;
    }
    metadata.complete &= prepare_stats.load_complete;
    if !options.has_load() {
        // Those of the program.
        prepare_stats.devices.clone_from(&metadata.devices);
    }
    let targets: Vec<_> = devices.iter().map(|device| (device.path.clone(), device.geometry)).collect();
    let other_io = advice::other_io(log.counter.completed(), &device_counters);
    let mut statistics = log.counter.statistics(&StatisticsInputs {
        prepare_stats: &prepare_stats,
        loop_counters: Some(&loop_result.counters),
        map,
        targets: &targets,
        is_timed: options.pace() != Pace::AsFastAsPossible,
        waits_for_completions: options.modes.closed.is_some() || options.program.program.is_some(),
        is_complete: metadata.complete,
        other_io: other_io.as_ref(),
    });
    if !options.method.does_io() {
        // Nothing was read: read buffers hold what was in memory before.
        statistics.zero_reads = Some(0);
    }
    if let Some(verdict) = &mut statistics.verdict {
        let of_file = devices.iter().enumerate().find(|(_, device)| device.kind == iosonar_device::Kind::File);
        let file = of_file.map(|(_, device)| device);
        verdict.remedies = remedies(
            verdict,
            &Facts {
                plan,
                contention: contention.as_ref(),
                stolen_pct: stolen_pct.unwrap_or(0.0),
                processors,
                is_root: rustix::process::geteuid().is_root(),
                file: file.map(|device| device.path.as_path()),
                has_holes: of_file.is_some_and(|(target, device)| device.had_holes(log.zeroed.bytes(target))),
                other_io: other_io.as_ref(),
                burst: loop_result.counters.burst,
                elapsed_s: statistics.elapsed_s,
                has_disk: file.is_some_and(|device| device.disk().is_some()),
            },
        );
    }
    // In virtual time, all runs have the same result.
    statistics.usage = usage.filter(|_| !options.method.virtual_time).map(Box::new);
    statistics.set_fake(options.fake());
    let mut findings = Vec::new();
    let final_progress = final_pass.as_ref().map(|pass| pass.progress);
    let (checker, final_warning) = match final_pass {
        Some(pass) => (Some(pass.checker), pass.warning),
        None => (log.checker.take(), None),
    };
    warnings.extend(final_warning);
    if let Some(checker) = checker {
        statistics.verify = Some(verification(options.verification.verify, &checker, final_progress));
        findings = checker.findings.kept;
    }
    warnings.extend(devices.iter().filter_map(Device::loss));
    warnings.extend(advice::after(options, &prepare_stats, &statistics));
    if statistics.skipped.unsupported > 0 {
        let unsupported = human::counted(statistics.skipped.unsupported, "request");
        warnings.push(format!("skipped {unsupported}: {}", unsupported_operations(devices)));
    }
    // The statistics are not per target, and do not count the reads of `--verify paranoia`.
    if let [counters] = &device_counters[..]
        && options.verification.verify < Verify::Paranoia
    {
        let is_file = devices.iter().all(|device| device.kind == iosonar_device::Kind::File);
        warnings.extend(advice::device_counters(&statistics, counters, is_file));
    }
    // The names of a text load's devices are known only once it has been read.
    if prepare_stats.devices.len() >= metadata.devices.len() {
        metadata.devices.clone_from(&prepare_stats.devices);
    }
    metadata.counts.bad_lines = prepare_stats.bad_lines;
    metadata.warnings.clone_from(&prepare_stats.warnings);
    let run = metadata.run.as_mut().expect("set in `Prepared::new`");
    if let Some(data) = run.data.known_mut() {
        // Which buffers of a program were used is not known here.
        if run.program.known().is_none() {
            data.written = prepare_stats.written.into();
        }
    }
    run.warnings = warnings.clone().into();
    run.mean_in_flight = advice::mean_in_flight(&statistics).into();
    run.device_counters = device_counters.into();
    run.stolen_pct = stolen_pct.into();
    if options.verification.verify != Verify::Off {
        run.findings = findings.clone().into();
    }
    run.statistics = RunStatistics::from(statistics.clone()).into();
    warnings.extend(publish(&closed.path, options.output(), &metadata)?);
    let targets = devices.iter().map(|device| device.path.clone()).collect();
    Ok(Finished { output: options.output().to_owned(), statistics, findings, targets, warnings })
}

/// Converts a closed journal to the result. Returns warnings about losses.
fn publish(journal: &Path, output: &Path, metadata: &Metadata) -> Result<Vec<String>> {
    // Options come from the footer, as a recovered run has no others.
    let run = metadata.run.as_deref();
    let is_verbose = run.is_some_and(|run| run.is_verbose());
    let offset = run.map_or(Nanos::ZERO, |run| run.output_offset());
    let replaces = run.is_some_and(|run| run.overwrites());
    let change = |record: &mut IoResult| {
        if !is_verbose {
            (record.ready, record.submitted, record.last_empty_poll) = (None, None, None);
        }
        shift(record, offset);
    };
    let create = || create_run(output, metadata);
    Ok(journal::publish::<IoResult>(journal, output, replaces, metadata, create, change)?)
}

/// Adds `offset` to all times of a row.
fn shift(record: &mut IoResult, offset: Nanos) {
    record.scheduled = record.scheduled + offset;
    let IoResult { issued, completed, ready, submitted, last_empty_poll, .. } = record;
    for time in [issued, completed, ready, submitted, last_empty_poll] {
        *time = time.map(|time| time + offset);
    }
}

/// Writes the result of a run that was killed, from its journal. Counts the statistics anew, and marks the result as
/// incomplete.
pub fn recover(journal: &Path, output: &Path) -> Result<Finished> {
    check_format(output)?;
    let mut rows = Journal::<IoResult>::open(journal)?;
    let mut metadata = rows.header().clone();
    let mut counter = Counter::new();
    let mut prepare_stats = PrepareStats { devices: metadata.devices.clone(), ..PrepareStats::default() };
    while let Some(record) = rows.next_entry()? {
        raise_extent(&mut prepare_stats.device_extents, record.device, record.source_sector + record.sectors);
        counter.add(&record, 0);
    }
    let run = metadata.run.get_or_insert_default();
    let (targets, map) = targets::from_footer(run);
    let mut statistics = counter.statistics(&StatisticsInputs {
        prepare_stats: &prepare_stats,
        loop_counters: None,
        map: &map,
        targets: &targets,
        is_timed: !run.is_asap(),
        waits_for_completions: false,
        is_complete: false,
        other_io: None,
    });
    statistics.set_fake(run.fake.text().map(str::to_owned));
    let mut warnings = vec![
        "recovered from the journal of a run that was killed. Requests in flight at its end have no row. Not known \
         is what is counted at the end of a run: reads of zeros, bad lines, ordered waits, the most requests pushed back, \
         slow submissions, stalls of the completion log"
            .to_owned(),
    ];
    run.warnings = warnings.clone().into();
    run.statistics = RunStatistics::from(statistics.clone()).into();
    metadata.complete = false;
    warnings.extend(publish(journal, output, &metadata)?);
    Ok(Finished { output: output.to_owned(), statistics, findings: Vec::new(), targets: Vec::new(), warnings })
}
