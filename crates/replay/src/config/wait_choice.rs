//! Chooses how the loop waits, without `--wait`.

use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::wait::Wait;
use iosonar_trace::{Nanos, human};

use crate::config::options::Options;
use crate::config::plan::{Expected, WaitChoice};
use crate::verify::Verify;

/// From this many requests per second on, with two processors, other threads delay the loop more than doing their work inline:
/// see bench/results/accuracy.md.
const BUSY_RATE: f64 = 30_000.0;

/// The default of `--busy-poll`: more than the response time of flash, and little beside that of a disk.
const BUSY_POLL: Nanos = Nanos(200_000);

impl Options {
    /// Chooses how the loops wait unless `--wait` or the first run of the series does, and how long they poll unless
    /// `--busy-poll` or that run does. With the reason for the former.
    pub fn choose_wait(&self, issuers: usize, processors: usize, expected: Expected<'_>) -> (WaitChoice, String) {
        let (wait, reason) = match (*self.pacing.wait, expected.first) {
            (Some(wait), _) => (wait, "set with --wait".into()),
            (None, Some(first)) => (first.wait, "as in the first run of the series".into()),
            (None, None) => self.best_wait(issuers, processors, expected),
        };
        let polls = || {
            self.leaves_processor(issuers, processors, expected.contention)
                && matches!(wait, Wait::Inline | Wait::Hybrid)
                && self.has_use_for_polling()
        };
        let busy_poll = match (self.issuing.busy_poll, expected.first) {
            (Some(busy_poll), _) => busy_poll,
            (None, Some(first)) => first.busy_poll,
            (None, None) if polls() => BUSY_POLL,
            (None, None) => Nanos::ZERO,
        };
        (WaitChoice { wait, busy_poll }, reason)
    }

    /// Whether contention for the processors decides how the loop waits.
    pub fn needs_contention(&self, has_deadlines: bool) -> bool {
        let (wait, busy_poll) = (*self.pacing.wait, self.issuing.busy_poll);
        let may_poll = !matches!(wait, Some(Wait::Spin | Wait::Sleep)) && self.has_use_for_polling();
        !self.method.virtual_time && ((wait.is_none() && has_deadlines) || (busy_poll.is_none() && may_poll))
    }

    /// Whether polling can be worth its time: not where nothing takes any, and not where other threads of this program do
    /// the I/O and need the processor.
    fn has_use_for_polling(&self) -> bool {
        self.method.is_ring() || (self.method.simulate.is_some() && !self.method.virtual_time)
    }

    /// Whether a processor is free while the loops poll: for the kernel, which would otherwise take one from a loop.
    fn leaves_processor(&self, issuers: usize, processors: usize, contention: Option<&Contention>) -> bool {
        let (processors, ready) = match contention {
            Some(contention) => (contention.processors, contention.ready),
            None => (processors, 0.0),
        };
        processors as f64 - ready >= issuers as f64 + 0.5
    }

    /// The best way of waiting for the run and the machine, with the reason.
    ///
    /// - Spinning is for deadlines, which `--asap`, `--closed=no-think` and closed programs without think times do not have.
    ///   With a single processor, a spinning loop would block the work that it waits for.
    /// - If more threads are runnable than there are processors, a spinning loop uses up its time slice and is preempted for
    ///   milliseconds, while a sleeping loop gets a processor soon after it wakes up.
    /// - With few processors, an engine without threads, and many requests, the loop should do all work inline: other threads
    ///   would compete with the kernel's work for the device. But slow work would keep the loop from the device: verification,
    ///   transforms, pipes, or a journal that waits for the page cache.
    /// - Several issuing loops never work inline.
    fn best_wait(&self, issuers: usize, processors: usize, expected: Expected<'_>) -> (Wait, String) {
        let Expected { rate, contention, only_completions, .. } = expected;
        let has_deadlines = self.has_deadlines() && !only_completions;
        let preempting = contention.filter(|contention| contention.is_oversubscribed() && !self.pacing.has_priority());
        let wait = self.wait_for((issuers, processors), rate, has_deadlines, preempting.is_some());
        let reason = match (wait, preempting) {
            (_, _) if self.method.virtual_time => "time is virtual".into(),
            (_, _) if processors == 1 => "only one processor is available".into(),
            (Wait::Hybrid, Some(contention)) => format!("a spinning loop would be preempted ({})", contention.phrase()),
            (Wait::Inline, _) => format!("best for many requests on {processors} processors"),
            (Wait::Hybrid, None) => "requests have no deadlines".into(),
            (Wait::Spin | Wait::Sleep, _) => match contention {
                Some(contention) if contention.is_oversubscribed() => {
                    "--isolate=priority gives it priority over other programs".into()
                }
                Some(contention) => format!(
                    "few runnable threads of other programs: {} on {} processors",
                    human::rate(contention.ready),
                    contention.processors
                ),
                None => "it is the most exact".into(),
            },
        };
        (wait, reason)
    }

    fn wait_for(
        &self,
        (issuers, processors): (usize, usize),
        rate: Option<f64>,
        has_deadlines: bool,
        is_preempted: bool,
    ) -> Wait {
        let is_fast = self.verification.verify == Verify::Off && self.edit.is_none() && !self.is_piped();
        let can_inline = self.method.is_ring() && is_fast && issuers == 1;
        let is_busy = self.keeps_times() && rate.is_some_and(|rate| rate >= BUSY_RATE) && !self.method.no_o_direct;
        match (has_deadlines, processors) {
            _ if self.method.virtual_time => Wait::Inline,
            (_, 1) => Wait::Hybrid,
            (true, _) if is_preempted => Wait::Hybrid,
            (true, 2..=3) if can_inline && is_busy => Wait::Inline,
            (true, _) => Wait::Spin,
            (false, 2..=3) if can_inline => Wait::Inline,
            (false, _) => Wait::Hybrid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::plan::Plan;

    #[test]
    fn the_best_wait_depends_on_options_rate_and_processors() {
        let (spin, inline) = ([Wait::Hybrid, Wait::Spin, Wait::Spin], [Wait::Hybrid, Wait::Inline, Wait::Spin]);
        let low_rate = Some(BUSY_RATE / 2.0);
        for (words, rate, expected) in [
            ("", None, spin),
            ("", low_rate, spin),
            ("", Some(BUSY_RATE), inline),
            ("--verify reads", Some(BUSY_RATE), spin),
            ("--no-o-direct", Some(BUSY_RATE), spin),
            ("--closed", Some(BUSY_RATE), spin),
            ("--asap", None, [Wait::Hybrid, Wait::Inline, Wait::Hybrid]),
            ("--closed=no-think", low_rate, [Wait::Hybrid, Wait::Inline, Wait::Hybrid]),
            ("--asap --verify reads", None, [Wait::Hybrid; 3]),
            ("--asap --edit reverse", None, [Wait::Hybrid; 3]),
            ("--asap --engine threads", None, [Wait::Hybrid; 3]),
        ] {
            let options = Options::of(&format!("a -t b -o c {words}"));
            let waits = [1, 2, 16].map(|processors| {
                options.best_wait(options.issuing.issuers, processors, Expected { rate, ..Expected::default() }).0
            });
            assert_eq!(waits, expected, "{words}");
        }
        let waits = |words: &str, processors: [usize; 3]| {
            let options = Options::of(&format!("a -t b -o c {words}"));
            let expected = Expected { rate: Some(BUSY_RATE), ..Expected::default() };
            processors.map(|processors| options.best_wait(options.issuing.issuers, processors, expected).0)
        };
        assert_eq!(waits("--issuers 2", [1, 3, 4]), [Wait::Hybrid, Wait::Spin, Wait::Spin]);
        assert_eq!(waits("--issuers 2 --asap", [1, 2, 3]), [Wait::Hybrid; 3]);
        let program = Options::of("a -t b -o c --program random-reads");
        let closed = Expected { only_completions: true, ..Expected::default() };
        assert_eq!(
            [1, 2, 16].map(|processors| program.best_wait(1, processors, closed).0),
            [Wait::Hybrid, Wait::Inline, Wait::Hybrid]
        );
        assert_eq!(program.best_wait(1, 2, Expected::default()).0, Wait::Spin);
        let piped = Options::of("- -t b -o c --asap");
        assert_eq!(piped.best_wait(1, 2, Expected::default()).0, Wait::Hybrid);
        let typed = Plan::of("a -t b -o c --asap --wait sleep");
        assert_eq!((typed.waiting.wait, typed.wait_reason.as_str()), (Wait::Sleep, "set with --wait"));
    }

    #[test]
    fn later_runs_of_a_series_wait_as_the_first() {
        let [busy, idle] = [3.0, 0.0].map(|ready| Contention { processors: 2, ready, stolen_pct: 0.0 });
        let on = |contention| Expected { contention: Some(contention), ..Expected::default() };
        for (words, reason) in [("", "as in the first run of the series"), ("--wait hybrid", "set with --wait")] {
            let typed = Options::of(&format!("a -t b -o c {words}"));
            let (first, _) = typed.choose_wait(1, 2, on(&busy));
            assert_eq!(first, WaitChoice { wait: Wait::Hybrid, busy_poll: Nanos::ZERO });
            let later = Expected { first: Some(first), ..on(&idle) };
            assert_eq!(typed.choose_wait(1, 2, later), (first, reason.into()));
        }
    }

    #[test]
    fn a_loop_polls_before_it_sleeps_if_a_processor_is_idle() {
        let contention = |ready| Contention { processors: 2, ready, stolen_pct: 0.0 };
        let busy_poll = |words: &str, ready| {
            let options = Options::of(&format!("a -t b -o c {words}"));
            let expected = Expected { contention: Some(&contention(ready)), ..Expected::default() };
            options.choose_wait(options.issuing.issuers, 2, expected).0.busy_poll
        };
        let free = ["--asap --wait inline", "--asap --wait hybrid", "--simulate constant=1ms --wait hybrid"];
        for words in free {
            assert_eq!([0.0, 0.5, 0.6, 2.0].map(|ready| busy_poll(words, ready)), [200_000, 200_000, 0, 0].map(Nanos));
            assert_eq!(busy_poll(&format!("{words} --busy-poll 10us"), 2.0), Nanos(10_000));
        }
        for words in ["", "--wait sleep", "--engine threads --wait hybrid", "--engine null --wait hybrid"] {
            assert_eq!(busy_poll(words, 0.0), Nanos::ZERO, "{words}");
        }
        assert_eq!(busy_poll("--asap --issuers 2", 0.0), Nanos::ZERO, "the loops use both processors");
        assert_eq!(busy_poll("--wait sleep --busy-poll 1ms", 2.0), Nanos(1_000_000));
        let needs = |words: &str| {
            let options = Options::of(&format!("a -t b -o c {words}"));
            options.needs_contention(options.has_deadlines())
        };
        for words in ["", "--asap", "--wait inline", "--wait hybrid", "--asap --engine threads --wait inline"] {
            assert_eq!(needs(words), !words.contains("threads"), "{words}");
        }
        for words in ["--wait spin", "--wait sleep", "--asap --busy-poll 0", "--asap --engine null"] {
            assert!(!needs(words), "{words}");
        }
    }

    #[test]
    fn a_loop_sleeps_if_spinning_would_get_it_preempted() {
        let timed = Options::of("a -t b -o c");
        let three = Contention { processors: 2, ready: 3.0, stolen_pct: 0.0 };
        let two = Contention { ready: 2.0, ..three };
        let with = |contention| Expected { contention: Some(contention), ..Expected::default() };
        let best = |options: &Options, contention| {
            options.best_wait(1, 2, Expected { rate: Some(BUSY_RATE), ..with(contention) }).0
        };
        let (wait, reason) = timed.best_wait(1, 2, with(&three));
        assert_eq!(wait, Wait::Hybrid);
        assert_eq!(
            reason,
            "a spinning loop would be preempted (runnable threads of other programs: 3 on 2 processors)"
        );
        assert_eq!([best(&timed, &three), best(&timed, &two)], [Wait::Hybrid, Wait::Inline]);
        let (wait, reason) = timed.best_wait(1, 2, with(&two));
        assert_eq!(wait, Wait::Spin);
        assert_eq!(reason, "few runnable threads of other programs: 2 on 2 processors");
        // With priority the loop is not preempted.
        let priority = Options::of("a -t b -o c --isolate=priority");
        assert_eq!(priority.best_wait(1, 2, with(&three)).0, Wait::Spin);
        // Without deadlines preemption does no harm.
        assert_eq!(best(&Options::of("a -t b -o c --asap"), &three), Wait::Inline);
    }
}
