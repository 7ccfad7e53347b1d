//! What a replay is asked to do, as the command line says it.

mod typed;

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iosonar_trace::Nanos;
use iosonar_trace::human;
use iosonar_trace::transforms::Pipeline;
use serde::Serialize;

use crate::address::device_map::Mapping;
use crate::address::placement::{Align, Fit};
use crate::engine::choice::{FAKE, Method};
use crate::engine::uring::BATCH;
use crate::host::contention::Contention;
use crate::host::isolation::Part;
use crate::issuer::conflicts::{Policy, Strong};
use crate::issuer::{Limits, Pace, Think};
use crate::pipeline::payload::DataSpec;
use crate::schedule::Window;
use crate::schedule::iterations::Iterations;
use crate::schedule::perturb::Perturb;
use crate::schedule::time_map::{Schedule, TimeMap};
use crate::verify::Verify;

/// The most requests in flight that can be asked for.
pub const MOST_DEPTH: usize = 65_536;
/// Requests a second from which threads beside the loop cost it more, on two processors, than doing their work itself
/// does: see docs/benchmarks.md.
const BUSY: f64 = 30_000.0;

/// Every option of a run. Kept in the run's footer under the same names.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// The load.
    #[serde(serialize_with = "crate::config::path_text::serialize")]
    pub load: PathBuf,
    /// How the load is changed on its way; window and speed-up come after.
    pub edit: Option<Pipeline>,
    /// The block devices or regular files to replay on, and which devices of the load go there.
    pub targets: Vec<Mapping>,
    /// Leave out everything but reads; nothing is overwritten then.
    pub reads_only: bool,
    /// What to do where the load reaches beyond its target.
    pub fit: Fit,
    /// The result.
    #[serde(serialize_with = "crate::config::path_text::serialize")]
    pub output: PathBuf,
    /// The part of the load to replay.
    #[serde(flatten)]
    pub window: Window,
    /// By how much the load's time is sped up.
    pub speedup: f64,
    /// As fast as possible instead of at the load's times.
    pub asap: bool,
    /// A closed loop instead of the load's times: each request goes when an earlier one is through.
    pub closed: Option<Think>,
    /// The window again and again.
    #[serde(rename = "loop")]
    pub again: bool,
    /// Ends the run at this time since virtual zero.
    #[serde(rename = "for")]
    pub run_for: Option<Nanos>,
    /// What is done to issue times on purpose.
    pub perturb: Option<Perturb>,
    /// What chance depends on, where the run leaves something to it.
    pub seed: u64,
    /// What does the I/O, and how.
    #[serde(flatten)]
    pub method: Method,
    /// The most requests in flight.
    pub depth: usize,
    /// Whose depth that is.
    pub depth_for: DepthFor,
    /// What to do with unaligned requests.
    pub align: Align,
    /// What to do with overlaps.
    pub conflicts: Policy,
    /// Which overlaps count.
    pub strong: Strong,
    /// What the data of writes is.
    pub data: DataSpec,
    /// The most bytes for the data of requests, in flight and ahead.
    pub buffers: u64,
    /// How many requests are made ready ahead of the loop.
    #[serde(rename = "ahead")]
    pub ahead_requests: usize,
    /// How far ahead of their deadline requests are made ready.
    #[serde(rename = "ahead_time")]
    pub ahead: Nanos,
    /// From the start of the program until virtual zero, for everything to be opened and filled.
    pub grace: Nanos,
    /// Added to all times of the result.
    pub output_offset: Nanos,
    /// What the loop does while it waits; `None` is what suits the run ([`Options::wait`]).
    pub wait: Option<Wait>,
    /// What to arrange on the machine for the loop.
    pub isolate: Vec<Part>,
    /// Whether what is read is checked, and when.
    pub verify: Verify,
    /// The most memory for what sectors must hold, in bytes, about.
    pub verify_memory: u64,
    /// Whether the record keeps what describes the replayer itself.
    pub verbose: bool,
    /// Read no samples of the target before the run.
    pub no_sample: bool,
    /// Overwrite a target that carries a file system or the like, and a file that holds data.
    pub force: bool,
    /// Replace an existing result.
    pub overwrite: bool,
}

/// Who has the depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DepthFor {
    /// All targets together.
    #[default]
    All,
    /// Each target by itself, so that a full one holds no other.
    Each,
}

/// What the loop does while it waits for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Spins: exact, takes a processor.
    Spin,
    /// Sleeps until shortly before the deadline, then spins.
    Hybrid,
    /// Sleeps until the deadline.
    Sleep,
    /// Makes requests ready and records them itself, instead of threads of their own; spins when there is nothing to do.
    Work,
}

impl Wait {
    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Hybrid => "hybrid",
            Self::Sleep => "sleep",
            Self::Work => "work",
        }
    }
}

impl Options {
    /// Of a replay of all devices of the load on one target, with the defaults.
    pub fn new(load: PathBuf, target: PathBuf, output: PathBuf) -> Self {
        Self {
            load,
            edit: None,
            targets: vec![Mapping { source: None, target }],
            reads_only: false,
            fit: Fit::default(),
            output,
            window: Window::default(),
            speedup: 1.0,
            asap: false,
            closed: None,
            again: false,
            run_for: None,
            perturb: None,
            seed: 1,
            method: Method::default(),
            depth: 512,
            depth_for: DepthFor::default(),
            align: Align::default(),
            conflicts: Policy::default(),
            strong: Strong::default(),
            data: DataSpec::default(),
            buffers: 256 << 20,
            ahead_requests: 4096,
            ahead: Nanos(1_000_000_000),
            grace: Nanos(200_000_000),
            output_offset: Nanos::ZERO,
            wait: None,
            isolate: Vec::new(),
            verify: Verify::default(),
            verify_memory: 1 << 30,
            verbose: false,
            no_sample: false,
            force: false,
            overwrite: false,
        }
    }

    /// How the loop keeps time.
    pub fn pace(&self) -> Pace {
        match (self.closed, self.asap) {
            (Some(think), _) => Pace::Closed(think),
            (None, true) => Pace::AsFastAsPossible,
            (None, false) => Pace::Timed,
        }
    }

    /// Whether requests go at the load's own times.
    pub fn keeps_times(&self) -> bool {
        self.pace() == Pace::Timed
    }

    /// Whether the load comes through a pipe: it can be read only once, and may let wait.
    pub fn is_piped(&self) -> bool {
        self.load == Path::new("-") || fs::metadata(&self.load).is_ok_and(|m| m.file_type().is_fifo())
    }

    /// How the loop waits.
    pub fn wait(&self) -> Wait {
        self.wait.unwrap_or_else(|| self.best_wait(processors(), None, None).0)
    }

    /// Decides how the loop waits, where the user has not: by the requests per second of the load, as far as they are
    /// known, and by who else wants the processors. Returns the reason.
    pub fn settle_wait(&mut self, rate: Option<f64>, contention: Option<&Contention>) -> String {
        if self.wait.is_some() {
            return "it was asked for".into();
        }
        let (wait, reason) = self.best_wait(processors(), rate, contention);
        self.wait = Some(wait);
        reason
    }

    /// Whether there are times to be exact about.
    pub fn has_deadlines(&self) -> bool {
        !self.asap && self.closed != Some(Think::Never)
    }

    /// Whether the loop comes before other programs.
    pub fn comes_first(&self) -> bool {
        self.isolate.contains(&Part::Priority)
    }

    /// What suits the run with that many processors, and requests a second, and why. Spinning is for deadlines, which as
    /// fast as possible has none of, nor has a closed loop without pauses; and where there is but one processor, a spinning
    /// loop would keep it from the very work that it waits for. Where more programs want processors than there are, a
    /// spinning loop uses its share up and is preempted for milliseconds, while one that sleeps gets a processor soon after
    /// it wakes. Where there are few, the device has queues of its own and there is much to do, the loop does best to do
    /// all work itself: threads beside it take the processor that the kernel serves the device with. But what takes long,
    /// as verification, transforms and pipes may, or a journal that has to wait for the page cache, would keep it from the
    /// device.
    fn best_wait(&self, processors: usize, rate: Option<f64>, contention: Option<&Contention>) -> (Wait, String) {
        let crowd = contention.filter(|contention| contention.is_crowd() && !self.comes_first());
        let wait = self.wait_among(processors, rate, crowd.is_some());
        let reason = match (wait, crowd) {
            (_, _) if processors == 1 => "only one processor may be used".into(),
            (Wait::Hybrid, Some(crowd)) => format!("a loop that spins would be preempted: {}", crowd.phrase()),
            (Wait::Work, _) => format!("{processors} processors are few for so many requests"),
            (Wait::Hybrid, None) => "there are no times to keep".into(),
            (Wait::Spin | Wait::Sleep, _) => match contention {
                Some(contention) if contention.is_crowd() => "--isolate=priority puts it before other programs".into(),
                Some(contention) => format!(
                    "a processor is left for it: {} threads of other programs want the {} processors",
                    human::rate(contention.ready),
                    contention.processors
                ),
                None => "it is the most exact".into(),
            },
        };
        (wait, reason)
    }

    fn wait_among(&self, processors: usize, rate: Option<f64>, is_crowded: bool) -> Wait {
        let is_quick = self.verify == Verify::Off && self.edit.is_none() && !self.is_piped();
        let suits_one = self.method.is_ring() && is_quick;
        let is_busy = self.keeps_times() && rate.is_some_and(|rate| rate >= BUSY) && !self.method.no_o_direct;
        match (self.has_deadlines(), processors) {
            (_, 1) => Wait::Hybrid,
            (true, _) if is_crowded => Wait::Hybrid,
            (true, 2..=3) if suits_one && is_busy => Wait::Work,
            (true, _) => Wait::Spin,
            (false, 2..=3) if suits_one => Wait::Work,
            (false, _) => Wait::Hybrid,
        }
    }

    /// How many requests wait before the loop at most. A loop that makes them ready itself needs no more than it can have
    /// in flight, unless there are deadlines to be ready for, and few buffers stay in the processor's cache.
    pub fn queue(&self) -> usize {
        match self.wait() {
            Wait::Work if !self.keeps_times() => self.ahead_requests.min(self.depth.max(BATCH)),
            _ => self.ahead_requests,
        }
    }

    /// The run's agenda, of iterations that were opened for it.
    pub fn schedule<'a>(&self, iterations: Iterations<'a>) -> Schedule<'a> {
        let schedule =
            Schedule::new(iterations, TimeMap::new(self.speedup, self.asap || self.closed == Some(Think::Never)));
        let schedule = schedule.until(self.run_for.unwrap_or(Nanos::MAX));
        match self.perturb {
            Some(how) => schedule.perturbed(how, self.seed),
            None => schedule,
        }
    }

    /// Why nobody may take the run for a faithful one, if so: it goes into the footer, and on every picture.
    pub fn fake(&self) -> Option<String> {
        let perturbed = self
            .perturb
            .map(|how| format!("issue times were perturbed on purpose (--perturb {how}, --seed {})", self.seed));
        match (self.method.fake(), perturbed) {
            (Some(fake), Some(perturbed)) => Some(format!("{fake}; {perturbed}")),
            (None, Some(perturbed)) => Some(format!("{FAKE}{perturbed}")),
            (fake, None) => fake,
        }
    }

    /// Whether requests that overlap, one of which writes, may be in flight together.
    pub fn may_overlap(&self) -> bool {
        self.conflicts == Policy::Allow || self.strong == Strong::Writes
    }

    /// What the loop keeps to with that many targets. As many places again as the depth are reserved for requests that
    /// were pushed back.
    pub fn limits(&self, targets: usize) -> Limits {
        let gates = match self.depth_for {
            DepthFor::All => 1,
            DepthFor::Each => targets,
        };
        let until = self.run_for.filter(|_| !self.keeps_times()).unwrap_or(Nanos::MAX);
        Limits { depth: self.depth, pushed_back: self.depth.max(64), batch: BATCH, gates, until }
    }
}

/// Processors that may be used.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::choice::Engine;

    #[test]
    fn waits_as_suits_run_and_machine() {
        let timed = Options::new("a".into(), "b".into(), "c".into());
        let asap = Options { asap: true, ..timed.clone() };
        let closed = |think| Options { closed: Some(think), ..timed.clone() };
        let cached = Method { no_o_direct: true, ..Method::default() };
        let threads = Method { engine: Some(Engine::Threads), ..Method::default() };
        let (spin, work) = ([Wait::Hybrid, Wait::Spin, Wait::Spin], [Wait::Hybrid, Wait::Work, Wait::Spin]);
        let calm = Some(BUSY / 2.0);
        for (options, rate, expected) in [
            (timed.clone(), None, spin),
            (timed.clone(), calm, spin),
            (timed.clone(), Some(BUSY), work),
            (Options { verify: Verify::Reads, ..timed.clone() }, Some(BUSY), spin),
            (Options { method: cached, ..timed.clone() }, Some(BUSY), spin),
            (closed(Think::AsLoad), Some(BUSY), spin),
            (asap.clone(), None, [Wait::Hybrid, Wait::Work, Wait::Hybrid]),
            (closed(Think::Never), calm, [Wait::Hybrid, Wait::Work, Wait::Hybrid]),
            (Options { verify: Verify::Reads, ..asap.clone() }, None, [Wait::Hybrid; 3]),
            (Options { load: "-".into(), ..asap.clone() }, None, [Wait::Hybrid; 3]),
            (Options { method: threads, ..asap.clone() }, None, [Wait::Hybrid; 3]),
        ] {
            let waits = [1, 2, 16].map(|processors| options.best_wait(processors, rate, None).0);
            assert_eq!(waits, expected, "{options:?}");
        }
        let mut settled = timed;
        settled.settle_wait(None, None);
        assert_eq!(settled.wait, Some(settled.best_wait(processors(), None, None).0));
        assert_eq!(settled.settle_wait(None, None), "it was asked for");
        assert_eq!(Options { wait: Some(Wait::Sleep), ..asap }.wait(), Wait::Sleep);
    }

    #[test]
    fn sleeps_between_requests_where_a_spinning_loop_would_be_preempted() {
        let timed = Options::new("a".into(), "b".into(), "c".into());
        let crowd = Contention { processors: 2, ready: 3.0, stolen_pct: 0.0 };
        let pair = Contention { ready: 2.0, ..crowd };
        let best = |options: &Options, contention: &Contention| options.best_wait(2, Some(BUSY), Some(contention)).0;
        let (wait, reason) = timed.best_wait(2, None, Some(&crowd));
        assert_eq!(wait, Wait::Hybrid);
        assert_eq!(
            reason,
            "a loop that spins would be preempted: 3 threads of other programs want the 2 processors at any time"
        );
        assert_eq!([best(&timed, &crowd), best(&timed, &pair)], [Wait::Hybrid, Wait::Work]);
        let (wait, reason) = timed.best_wait(2, None, Some(&pair));
        assert_eq!(wait, Wait::Spin);
        assert_eq!(reason, "a processor is left for it: 2 threads of other programs want the 2 processors");
        // Who comes first has its processor whatever others want.
        let first = Options { isolate: vec![Part::Priority], ..timed.clone() };
        assert_eq!(first.best_wait(2, None, Some(&crowd)).0, Wait::Spin);
        // Without times to keep, nothing is lost by being preempted.
        let asap = Options { asap: true, ..timed };
        assert_eq!(best(&asap, &crowd), Wait::Work);
    }
}
