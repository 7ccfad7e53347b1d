//! Measures the highest rate that this machine replays faithfully: runs all stages on a target without I/O.

use std::sync::Arc;
use std::thread;

use iosonar_device::geometry::Geometry;
use iosonar_pacing::Stop;
use iosonar_pacing::buffers::{Pool, UNIT_BYTES};
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::fidelity::FAITHFUL_PCT;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::idle::{Hybrid, Idle, Sleep, Spin};
use iosonar_pacing::options::PacingOptions;
use iosonar_pacing::payload::Payload;
use iosonar_pacing::progress::Progress;
use iosonar_pacing::stalls::StallMonitor;
use iosonar_pacing::wait::Wait;
use iosonar_pacing::{Error, Result};
use iosonar_trace::journal::JournalWriter;
use iosonar_trace::run_info::{Verdict, Within};
use iosonar_trace::{Kind, Metadata, Nanos, Sectors};
use iosonar_workload::Recipe;
use iosonar_workload::filament::OpenLoad;
use rtrb::{Consumer, Producer, RingBuffer};
use serde::Serialize;

use super::queues::STALLS;
use crate::address::device_map::DeviceMap;
use crate::address::router::Routes;
use crate::address::router::Rules;
use crate::config::plan::Plan;
use crate::engine::null::Null;
use crate::io::{CompletedIo, PreparedIo};
use crate::issuer::{Issuer, IssuerParts};
use crate::pipeline::prepare::{PrepareConfig, PrepareInputs, Preparer};
use crate::result::completion_log::CompletionLog;
use crate::run::inline_stages::{InlineIdle, InlineStages};
use crate::run::issuer_thread::{WAKE_MARGIN, lock_memory};
use crate::run::stages::spawn_stage;
use crate::schedule::Window;
use crate::schedule::iterations::Iterations;
use crate::schedule::time_map::{Schedule, TimeMap};

/// Requests per second, measured in this order until one is not faithful. Higher rates would fill the disk with the journal.
const RATES: [f64; 7] = [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6];
/// Bisections between the highest faithful rate and the first that is not.
const BISECTIONS: u32 = 3;
/// Size of the simulated target, in blocks of 4 KiB: 1 TiB.
const BLOCKS: u64 = 1 << 28;

/// The measurement of one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Scheduled requests per second.
    pub rate: f64,
    /// Percentage of all requests that were issued within 10, 50 and 100 µs of their scheduled time.
    pub within_pct: [f64; 3],
    /// The verdict, as for any run.
    pub verdict: Verdict,
}

impl Step {
    /// Whether enough of all requests were on time. Requests delayed by a full depth count as well: there is no device that
    /// could have held them back.
    pub fn is_faithful(&self) -> bool {
        self.within_pct[1] >= FAITHFUL_PCT
    }

    fn new(rate: f64, verdict: Verdict) -> Self {
        let parts =
            || [&verdict.own, &verdict.device].into_iter().filter_map(|part| Some((part.requests, part.within_pct?)));
        let all = parts().map(|(requests, _)| requests).sum::<u64>() as f64;
        // Computed from whole requests: a mean of percentages would be inexact at the threshold.
        let share = |pct: fn(&Within) -> f64| {
            let within = parts().map(|(requests, within)| (requests as f64 * pct(&within) / 100.0).round());
            100.0 * within.sum::<f64>() / all
        };
        Self { rate, within_pct: [share(|w| w.us10), share(|w| w.us50), share(|w| w.us100)], verdict }
    }
}

/// Searches the highest faithful rate: tries increasing rates, then bisects. `None` if not even the lowest is faithful.
/// `measure` returns whether a rate is faithful; its error ends the search.
pub fn search(mut measure: impl FnMut(f64) -> Result<bool>) -> Result<Option<f64>> {
    let mut faithful = None;
    for rate in RATES {
        // A second try, as any machine can be disturbed once.
        if measure(rate)? || measure(rate)? {
            faithful = Some(rate);
            continue;
        }
        let (Some(mut good), mut bad) = (faithful, rate) else { return Ok(None) };
        for _ in 0..BISECTIONS {
            // Rates grow geometrically.
            let middle = (good * bad).sqrt();
            if measure(middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        return Ok(Some(good));
    }
    Ok(faithful)
}

/// Replays Poisson arrivals (4 KiB, 70 % reads) at `rate` requests per second, with the depth, waiting and queues of
/// `plan`. Journals to an unnamed temporary file.
pub fn measure(rate: f64, seconds: f64, plan: &Plan, isolation: Option<&Isolation>, stop: &Stop) -> Result<Step> {
    let (options, wait) = (&plan.options, plan.waiting.wait);
    let limits = plan.limits(0, 1);
    let pool = Pool::new(options.issuing.buffers.min(64 << 20))?;
    let arena = Arc::clone(pool.arena());
    let (prepared_sender, prepared_receiver) = RingBuffer::new(plan.queue_capacity());
    let (completed_sender, completed_receiver) = RingBuffer::new((limits.slots() * 2).max(65_536));
    let (buffer_sender, buffer_receiver) = RingBuffer::new((pool.largest() / UNIT_BYTES) as usize);
    let (stall_sender, stall_receiver) = RingBuffer::new(STALLS);
    let progress = Progress::default();
    let stall_monitor = StallMonitor::new(progress.in_flight.of(0), stall_sender);
    let metadata = Metadata::new(Kind::Replay, "iosonar");
    let journal = JournalWriter::unnamed(&metadata)?;
    let clock = Monotonic::starting_in(options.issuing.grace);
    let load = Box::new(poisson(rate, (rate * seconds) as u64)?);
    let timed = PacingOptions::parse([""; 0]).expect("no option is required");
    let schedule = Schedule::new(Iterations::new(load, Window::default(), None), TimeMap::new(timed, true));
    let geometry = Geometry { sectors: BLOCKS * 8, block_sectors: 1 };
    let routes = Routes::new(vec![geometry], DeviceMap::all_to_first(), Rules::default(), Vec::new());
    let config = PrepareConfig { routes, has_data: true, write_header: None, ahead: options.issuing.ahead_time };
    let inputs = PrepareInputs {
        schedule,
        config,
        pool,
        payload: Payload::new(&options.data, 1),
        refill: None,
        dependencies: None,
    };
    let preparer = Preparer::new(clock, inputs, stop, prepared_sender, buffer_receiver);
    let completion_log =
        CompletionLog::new(completed_receiver, vec![stall_receiver], buffer_sender, arena, journal, stop, &progress);
    let loop_ends = (prepared_receiver, completed_sender, stall_monitor);
    let enter = || {
        lock_memory();
        isolation.inspect(|isolation| isolation.enter());
    };
    let (prepare, log, outcome) = thread::scope(|scope| {
        if wait == Wait::Inline {
            let issuer = spawn_stage(scope, "issuer", || {
                enter();
                let idle = InlineIdle { stages: InlineStages::new(preparer, completion_log), idle: Spin };
                let (idle, outcome) = issue(clock, idle, loop_ends, plan, stop);
                let (prepare, log) = idle.stages.finish();
                (prepare, log, outcome)
            })?;
            return Ok::<_, Error>(issuer.join().expect("the loop does not panic"));
        }
        let issuer = spawn_stage(scope, "issuer", || {
            enter();
            match wait {
                Wait::Spin | Wait::Inline => issue(clock, Spin, loop_ends, plan, stop).1,
                Wait::Sleep => issue(clock, Sleep, loop_ends, plan, stop).1,
                Wait::Hybrid => issue(clock, Hybrid { margin: WAKE_MARGIN }, loop_ends, plan, stop).1,
            }
        })?;
        let preparer = spawn_stage(scope, "prepare", move || preparer.run()).inspect_err(|_| stop.abort())?;
        let log = completion_log.run();
        let prepare = preparer.join().expect("the preparer does not panic");
        Ok((prepare, log, issuer.join().expect("the loop does not panic")))
    })?;
    prepare.outcome?;
    outcome.map_err(|e| Error::system("the issuing loop failed", e))?;
    let closed = log.journal.close();
    if let Some(error) = closed.failure {
        return Err(Error::file(&closed.path, error));
    }
    let verdict = log.counter.fidelity.verdict(!stop.is_requested());
    verdict
        .map(|verdict| Step::new(rate, verdict))
        .ok_or_else(|| Error::Options("stopped before the first measurement".into()))
}

fn issue<I: Idle<Null>>(
    clock: Monotonic,
    idle: I,
    (input, output, stall_monitor): (Consumer<PreparedIo>, Producer<CompletedIo>, StallMonitor<'_>),
    plan: &Plan,
    stop: &Stop,
) -> (I, std::io::Result<()>) {
    let rules = plan.rules(0, 1);
    let target = Null::new(rules.limits.slots());
    let (rereader, program) = (None, None);
    let parts = IssuerParts { clock, target, idle, rules, stop, input, output, stall_monitor, rereader, program };
    let (_, _, idle, outcome) = Issuer::new(parts).run();
    (idle, outcome)
}

/// A load of random requests with Poisson arrivals.
fn poisson(rate: f64, requests: u64) -> Result<OpenLoad> {
    let recipe = Recipe::new(&format!("poisson rate={rate}"), "uniform").map_err(Error::Options)?;
    let (span, duration, requests) = (Sectors(BLOCKS * 8), Nanos::MAX, Some(requests));
    Recipe { span, duration, requests, seed: rate as u64, ..recipe }.generate().map_err(Error::Options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_ends_close_below_the_limit() {
        for limit in [1e3, 2e3, 44_000.0, 9e5, 5e6] {
            let mut tried = Vec::new();
            let found = search(|rate| {
                tried.push(rate);
                Ok(rate <= limit)
            });
            let found = found.unwrap().unwrap();
            assert!(found <= limit && (found > limit / 1.2 || found == 1e6), "{limit}: {found}");
            assert!(tried.len() <= RATES.len() + 1 + BISECTIONS as usize, "{tried:?}");
        }
        assert_eq!(search(|_| Ok(false)).unwrap(), None);
        let mut first = true;
        let disturbed_once = search(|_| Ok(!std::mem::replace(&mut first, false)));
        assert_eq!(disturbed_once.unwrap(), Some(1e6));
    }

    #[test]
    fn each_way_of_waiting_issues_every_request() {
        let mut plan = Plan::of("--calibrate --grace 1ms");
        for wait in [Wait::Spin, Wait::Hybrid, Wait::Sleep] {
            plan.waiting.wait = wait;
            let step = measure(5e3, 0.2, &plan, None, &Stop::default()).unwrap();
            assert_eq!(step.verdict.own.requests + step.verdict.device.requests, 1000, "{wait:?}");
            assert!(step.within_pct.is_sorted(), "{step:?}");
        }
    }
}
