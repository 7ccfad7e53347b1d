//! How the loop waits, where the user leaves it open.

use iosonar_trace::human;

use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::engine::uring::BATCH;
use crate::host::contention::Contention;
use crate::verify::Verify;

/// Requests a second from which threads beside the loop cost it more, on two processors, than doing their work itself
/// does: see docs/benchmarks.md.
const BUSY: f64 = 30_000.0;

impl Options {
    /// How the loop waits.
    pub fn wait(&self) -> Wait {
        self.issuing.wait.unwrap_or_else(|| self.best_wait(processors(), None, None).0)
    }

    /// Decides how the loop waits, where the user has not: by the requests per second of the load, as far as they are
    /// known, and by who else wants the processors. Returns the reason.
    pub fn settle_wait(&mut self, rate: Option<f64>, contention: Option<&Contention>) -> String {
        if self.issuing.wait.is_some() {
            return "it was asked for".into();
        }
        let (wait, reason) = self.best_wait(processors(), rate, contention);
        self.issuing.wait = Some(wait);
        reason
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
        let crowd = contention.filter(|contention| contention.is_crowd() && !self.issuing.has_priority());
        let wait = self.wait_among(processors, rate, crowd.is_some());
        let reason = match (wait, crowd) {
            (_, _) if processors == 1 => "only one processor may be used".into(),
            (Wait::Hybrid, Some(crowd)) => format!("a loop that spins would be preempted: {}", crowd.phrase()),
            (Wait::Inline, _) => format!("{processors} processors are few for so many requests"),
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
        let is_quick = self.verification.verify == Verify::Off && self.edit.is_none() && !self.is_piped();
        let suits_one = self.method.is_ring() && is_quick;
        let is_busy = self.keeps_times() && rate.is_some_and(|rate| rate >= BUSY) && !self.method.no_o_direct;
        match (self.has_deadlines(), processors) {
            (_, 1) => Wait::Hybrid,
            (true, _) if is_crowded => Wait::Hybrid,
            (true, 2..=3) if suits_one && is_busy => Wait::Inline,
            (true, _) => Wait::Spin,
            (false, 2..=3) if suits_one => Wait::Inline,
            (false, _) => Wait::Hybrid,
        }
    }

    /// How many requests wait before the loop at most. A loop that makes them ready itself needs no more than it can have
    /// in flight, unless there are deadlines to be ready for, and few buffers stay in the processor's cache.
    pub fn queue(&self) -> usize {
        match self.wait() {
            Wait::Inline if !self.keeps_times() => self.issuing.ahead.min(self.issuing.depth.requests.max(BATCH)),
            _ => self.issuing.ahead,
        }
    }
}

/// Processors that may be used.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_as_suits_run_and_machine() {
        let (spin, inline) = ([Wait::Hybrid, Wait::Spin, Wait::Spin], [Wait::Hybrid, Wait::Inline, Wait::Spin]);
        let calm = Some(BUSY / 2.0);
        for (words, rate, expected) in [
            ("", None, spin),
            ("", calm, spin),
            ("", Some(BUSY), inline),
            ("--verify reads", Some(BUSY), spin),
            ("--no-o-direct", Some(BUSY), spin),
            ("--closed", Some(BUSY), spin),
            ("--asap", None, [Wait::Hybrid, Wait::Inline, Wait::Hybrid]),
            ("--closed=no-think", calm, [Wait::Hybrid, Wait::Inline, Wait::Hybrid]),
            ("--asap --verify reads", None, [Wait::Hybrid; 3]),
            ("--asap --edit reverse", None, [Wait::Hybrid; 3]),
            ("--asap --engine threads", None, [Wait::Hybrid; 3]),
        ] {
            let options = Options::of(&format!("a -t b -o c {words}"));
            let waits = [1, 2, 16].map(|processors| options.best_wait(processors, rate, None).0);
            assert_eq!(waits, expected, "{words}");
        }
        let piped = Options::of("- -t b -o c --asap");
        assert_eq!(piped.best_wait(2, None, None).0, Wait::Hybrid);
        let mut settled = Options::of("a -t b -o c");
        settled.settle_wait(None, None);
        assert_eq!(settled.issuing.wait, Some(settled.best_wait(processors(), None, None).0));
        assert_eq!(settled.settle_wait(None, None), "it was asked for");
        assert_eq!(Options::of("a -t b -o c --asap --wait sleep").wait(), Wait::Sleep);
    }

    #[test]
    fn sleeps_between_requests_where_a_spinning_loop_would_be_preempted() {
        let timed = Options::of("a -t b -o c");
        let crowd = Contention { processors: 2, ready: 3.0, stolen_pct: 0.0 };
        let pair = Contention { ready: 2.0, ..crowd };
        let best = |options: &Options, contention: &Contention| options.best_wait(2, Some(BUSY), Some(contention)).0;
        let (wait, reason) = timed.best_wait(2, None, Some(&crowd));
        assert_eq!(wait, Wait::Hybrid);
        assert_eq!(
            reason,
            "a loop that spins would be preempted: 3 threads of other programs want the 2 processors at any time"
        );
        assert_eq!([best(&timed, &crowd), best(&timed, &pair)], [Wait::Hybrid, Wait::Inline]);
        let (wait, reason) = timed.best_wait(2, None, Some(&pair));
        assert_eq!(wait, Wait::Spin);
        assert_eq!(reason, "a processor is left for it: 2 threads of other programs want the 2 processors");
        // With priority the loop has its processor whatever others want.
        let first = Options::of("a -t b -o c --isolate=priority");
        assert_eq!(first.best_wait(2, None, Some(&crowd)).0, Wait::Spin);
        // Without times to keep, nothing is lost by being preempted.
        assert_eq!(best(&Options::of("a -t b -o c --asap"), &crowd), Wait::Inline);
    }
}
