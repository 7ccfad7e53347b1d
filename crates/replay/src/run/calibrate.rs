//! How many requests in a second this machine can replay faithfully: all rooms of a run, on a target that does nothing.

use std::sync::Arc;
use std::thread;

use iosonar_trace::run_info::{Verdict, Within};
use iosonar_trace::{Kind, Metadata, Nanos, Op, Reader, Request, Sector, Sectors};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rtrb::{Consumer, Producer, RingBuffer};
use serde::Serialize;

use super::STALLS;
use crate::address::device_map::DeviceMap;
use crate::address::placement::Geometry;
use crate::address::router::Routes;
use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::config::target::Rules;
use crate::engine::null::Null;
use crate::error::{Error, Result};
use crate::host::isolation::Isolation;
use crate::issuer::{Hybrid, Idle, IssueRules, Issuer, IssuerParts, Limits, Sleep, Spin, StallMonitor, Stop};
use crate::pipeline::buffers::{Pool, UNIT_BYTES};
use crate::pipeline::inline_stages::{InlineIdle, InlineStages};
use crate::pipeline::io::{CompletedIo, PreparedIo};
use crate::pipeline::payload::Payload;
use crate::pipeline::prepare::{PrepareConfig, PrepareInputs, Preparer};
use crate::result::completion_log::{CompletionLog, Progress};
use crate::result::fidelity::NEEDED_PCT;
use crate::result::journal::JournalWriter;
use crate::run::issuer_thread::{WAKE_MARGIN, lock_memory};
use crate::run::stages::spawn_stage;
use crate::schedule::Window;
use crate::schedule::clock::Monotonic;
use crate::schedule::iterations::Iterations;
use crate::schedule::time_map::{Schedule, TimeMap};

/// Requests in a second that are tried one after the other, until one is too much. More would fill the disk with records.
const RATES: [f64; 7] = [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6];
/// How often the step between the last that was faithful and the first that was not is halved.
const HALVINGS: u32 = 3;
/// Positions, in 4 KiB: a target of 1 TiB.
const PLACES: u64 = 1 << 28;

/// What was found at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Requests in a second that were asked for.
    pub rate: f64,
    /// Percentage of all requests that went out within 10, 50 and 100 µs of their time.
    pub within_pct: [f64; 3],
    /// The verdict on them, as of any run.
    pub verdict: Verdict,
}

impl Step {
    /// Whether it was fast enough. There is no device here, so that a full depth is the replayer's own as well.
    pub fn is_faithful(&self) -> bool {
        self.within_pct[1] >= NEEDED_PCT
    }

    fn of(rate: f64, verdict: Verdict) -> Self {
        let parts =
            || [&verdict.own, &verdict.device].into_iter().filter_map(|part| Some((part.requests, part.within_pct?)));
        let all = parts().map(|(requests, _)| requests).sum::<u64>() as f64;
        // In whole requests again: sums of shares would not be exact at the threshold.
        let share = |of: fn(&Within) -> f64| {
            let within = parts().map(|(requests, within)| (requests as f64 * of(&within) / 100.0).round());
            100.0 * within.sum::<f64>() / all
        };
        Self { rate, within_pct: [share(|w| w.us10), share(|w| w.us50), share(|w| w.us100)], verdict }
    }
}

/// The greatest rate that is still faithful, by rising rates and then halving the step; `None` if not even the first is.
/// `measure` tells whether one is; it may end all by an error.
pub fn search(mut measure: impl FnMut(f64) -> Result<bool>) -> Result<Option<f64>> {
    let mut faithful = None;
    for rate in RATES {
        // Any machine is taken away for once: only what fails twice is too much.
        if measure(rate)? || measure(rate)? {
            faithful = Some(rate);
            continue;
        }
        let (Some(mut good), mut bad) = (faithful, rate) else { return Ok(None) };
        for _ in 0..HALVINGS {
            // Halfway by their ratio.
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

/// Runs Poisson arrivals of that rate (4 KiB, 70 % reads) for so many seconds, with depth, waiting and queues as `options`
/// has them. The record goes into a journal in the folder for temporary files, which has no name.
pub fn measure(rate: f64, seconds: f64, options: &Options, isolation: Option<&Isolation>, stop: &Stop) -> Result<Step> {
    let limits = Limits::of(options, 1);
    let pool = Pool::new(options.issuing.buffers.min(64 << 20))?;
    let arena = Arc::clone(pool.arena());
    let (prepared_in, prepared_out) = RingBuffer::new(options.queue());
    let (done_in, done_out) = RingBuffer::new((limits.slots() * 2).max(65_536));
    let (returned_in, returned_out) = RingBuffer::new((pool.largest() / UNIT_BYTES) as usize);
    let (stalls_in, stalls_out) = RingBuffer::new(STALLS);
    let progress = Progress::default();
    let stall_monitor = StallMonitor::new(&progress.in_flight, stalls_in);
    let metadata = Metadata::new(Kind::Replay, "iosonar");
    let journal = JournalWriter::nameless(&metadata)?;
    let clock = Monotonic::starting_in(options.issuing.grace);
    let load = Box::new(Poisson::new(rate, (rate * seconds) as u64));
    let schedule = Schedule::new(Iterations::new(load, Window::default(), None), TimeMap::new(1.0, false));
    let geometry = Geometry { sectors: PLACES * 8, block_sectors: 1 };
    let routes = Routes::new(vec![geometry], DeviceMap::all_to_first(), Rules::default(), Vec::new());
    let config = PrepareConfig { routes, has_data: true, write_header: None, ahead: options.issuing.ahead_time };
    let inputs = PrepareInputs { schedule, config, pool, payload: Payload::new(&options.data, 1) };
    let feeder = Preparer::new(clock, inputs, stop, prepared_in, returned_out);
    let recorder = CompletionLog::new(done_out, stalls_out, returned_in, arena, journal, stop, &progress);
    let ends = (prepared_out, done_in, stall_monitor);
    let enter = || {
        lock_memory();
        isolation.inspect(|isolation| isolation.enter());
    };
    let (fed, recorded, looped) = thread::scope(|scope| {
        if options.wait() == Wait::Inline {
            let looped = spawn_stage(scope, "issuer", || {
                enter();
                let work = InlineIdle { stages: InlineStages::new(feeder, recorder), idle: Spin };
                let (work, outcome) = issue(clock, work, ends, options, stop);
                let (fed, recorded) = work.stages.finish();
                (fed, recorded, outcome)
            })?;
            return Ok::<_, Error>(looped.join().expect("the loop does not panic"));
        }
        let looped = spawn_stage(scope, "issuer", || {
            enter();
            match options.wait() {
                Wait::Spin | Wait::Inline => issue(clock, Spin, ends, options, stop).1,
                Wait::Sleep => issue(clock, Sleep, ends, options, stop).1,
                Wait::Hybrid => issue(clock, Hybrid { margin: WAKE_MARGIN }, ends, options, stop).1,
            }
        })?;
        let fed = spawn_stage(scope, "prepare", move || feeder.run()).inspect_err(|_| stop.abort())?;
        let recorded = recorder.run();
        let fed = fed.join().expect("the feeder does not panic");
        Ok((fed, recorded, looped.join().expect("the loop does not panic")))
    })?;
    fed.outcome?;
    looped.map_err(|e| Error::system("the loop", e))?;
    let path = recorded.journal.close();
    if let Some(error) = recorded.failure {
        return Err(Error::file(&path, error));
    }
    let verdict = recorded.counter.fidelity.verdict(!stop.is_requested());
    verdict
        .map(|verdict| Step::of(rate, verdict))
        .ok_or_else(|| Error::Options("stopped before anything was measured".into()))
}

fn issue<I: Idle<Null>>(
    clock: Monotonic,
    idle: I,
    (input, output, stall_monitor): (Consumer<PreparedIo>, Producer<CompletedIo>, StallMonitor<'_>),
    options: &Options,
    stop: &Stop,
) -> (I, std::io::Result<()>) {
    let rules = IssueRules::of(options, 1);
    let target = Null::new(rules.limits.slots());
    let parts = IssuerParts { clock, target, idle, rules, stop, input, output, stall_monitor, rereader: None };
    let (_, _, idle, outcome) = Issuer::new(parts).run();
    (idle, outcome)
}

/// Requests that come at random, as many in each second on average.
struct Poisson {
    random: Xoshiro256PlusPlus,
    mean_ns: f64,
    at_ns: f64,
    left: u64,
    metadata: Metadata,
}

impl Poisson {
    fn new(rate: f64, requests: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(rate as u64);
        let mut metadata = Metadata::new(Kind::Load, "calibrate");
        metadata.complete = true;
        Self { random, mean_ns: 1e9 / rate, at_ns: 0.0, left: requests, metadata }
    }

    /// Above 0, at most 1.
    fn chance(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

impl Reader<Request> for Poisson {
    fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.at_ns -= self.mean_ns * self.chance().ln();
        let op = if self.chance() <= 0.7 { Op::Read } else { Op::Write };
        let sector = Sector(self.random.next_u64() % PLACES * 8);
        Ok(Some(Request::new(Nanos(self.at_ns as i64), op, sector, Sectors(8))))
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_close_below_the_limit() {
        for limit in [1e3, 2e3, 44_000.0, 9e5, 5e6] {
            let mut tried = Vec::new();
            let found = search(|rate| {
                tried.push(rate);
                Ok(rate <= limit)
            });
            let found = found.unwrap().unwrap();
            assert!(found <= limit && (found > limit / 1.2 || found == 1e6), "{limit}: {found}");
            assert!(tried.len() <= RATES.len() + 1 + HALVINGS as usize, "{tried:?}");
        }
        assert_eq!(search(|_| Ok(false)).unwrap(), None);
        let mut first = true;
        let taken_away_once = search(|_| Ok(!std::mem::replace(&mut first, false)));
        assert_eq!(taken_away_once.unwrap(), Some(1e6));
    }

    #[test]
    fn arrivals_have_their_rate_and_are_random() {
        let mut load = Poisson::new(1e4, 50_000);
        let times: Vec<i64> = std::iter::from_fn(|| load.next().unwrap()).map(|request| request.at.0).collect();
        let seconds = *times.last().unwrap() as f64 / 1e9;
        assert!((4.9..5.1).contains(&seconds), "{seconds}");
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e5).collect();
        let longer = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
        assert!((0.35..0.39).contains(&longer), "1/e of them exceed the mean: {longer}");
    }

    #[test]
    fn every_request_is_issued() {
        let mut options = Options::of("--calibrate");
        options.issuing.grace = Nanos(1_000_000);
        for wait in [Wait::Spin, Wait::Hybrid, Wait::Sleep] {
            options.issuing.wait = Some(wait);
            let step = measure(5e3, 0.2, &options, None, &Stop::default()).unwrap();
            assert_eq!(step.verdict.own.requests + step.verdict.device.requests, 1000, "{wait:?}");
            assert!(step.within_pct.is_sorted(), "{step:?}");
        }
    }
}
