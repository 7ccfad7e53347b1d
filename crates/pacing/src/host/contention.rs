//! Contention for the processors: decides whether a spinning loop can have one.
//!
//! Measured by counting runnable threads, not by busy time: two programs that are always runnable keep two processors as busy
//! as ten do, but leave a spinning loop a much larger share.

use std::thread;
use std::time::Duration;

use iosonar_trace::human;
use iosonar_trace::run_info::ProcessorContention;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::proc_stat::ProcStat;
use crate::host::isolation::session_priority;

/// Samples of the number of runnable threads, and the time between them: long enough that a short burst of other work does
/// not count as a busy machine.
const SAMPLES: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(10);

/// Contention for the processors, averaged over a tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// Processors that this program may use.
    pub processors: usize,
    /// Mean number of other runnable threads, scaled to these processors.
    pub ready: f64,
    /// Percentage of processor time stolen by the hypervisor.
    pub stolen_pct: f64,
}

impl Contention {
    /// Samples for a tenth of a second; `None` if `/proc/stat` cannot be read. No other thread of this program may run
    /// meanwhile.
    pub fn sample() -> Option<Self> {
        let before = ProcStat::now()?;
        let mut ready = 0;
        for _ in 0..SAMPLES {
            thread::sleep(INTERVAL);
            // Without this thread, which is running.
            ready += ProcStat::now()?.ready.saturating_sub(1);
        }
        let stolen_pct = ProcStat::now()?.percent_since(&before, |stat| stat.stolen);
        let online = before.processors.max(1);
        let processors = allowed().unwrap_or(online).min(online);
        let ready = ready as f64 / f64::from(SAMPLES) * processors as f64 / online as f64;
        Some(Self { processors, ready, stolen_pct })
    }

    /// Samples, unless this session has a higher priority than others (`/proc/self/autogroup`): then other threads do not
    /// take its processors.
    pub fn sample_unless_preferred() -> Option<Self> {
        let has_priority = session_priority().is_some_and(|(_, nice)| is_preferred(&nice));
        if has_priority { None } else { Self::sample() }
    }

    /// Whether so many threads compete for the processors that sleeping delays the loop less than spinning, which uses up its
    /// time slice: see docs/benchmarks.md.
    pub fn is_oversubscribed(&self) -> bool {
        self.ready >= self.processors as f64 + 0.5 || self.stolen_pct >= 30.0
    }

    /// `run.contention` of the footer.
    pub fn describe(&self) -> ProcessorContention {
        let &Self { processors, ready, stolen_pct } = self;
        ProcessorContention { processors, ready, stolen_pct }
    }

    /// For people, to follow "because".
    pub fn phrase(&self) -> String {
        let Self { processors, ready, stolen_pct } = self;
        if *stolen_pct >= 30.0 {
            return format!("the hypervisor steals {} of the processor time", human::percent(stolen_pct / 100.0));
        }
        format!("runnable threads of other programs: {} on {processors} processors", human::rate(*ready))
    }
}

/// Whether a session with this nice value gets about ten times the processor share of one with nice 0.
fn is_preferred(nice: &str) -> bool {
    nice.parse().is_ok_and(|nice: i32| nice <= -10)
}

fn allowed() -> Option<usize> {
    let set = sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnable_threads_or_steal_time_show_oversubscription() {
        let of = |processors, ready, stolen_pct| Contention { processors, ready, stolen_pct };
        assert!(
            !of(2, 0.0, 0.0).is_oversubscribed()
                && !of(2, 2.0, 5.0).is_oversubscribed()
                && !of(16, 12.0, 0.0).is_oversubscribed()
        );
        assert!(
            of(2, 3.1, 0.0).is_oversubscribed()
                && of(16, 20.0, 0.0).is_oversubscribed()
                && of(4, 0.1, 45.0).is_oversubscribed()
        );
        assert_eq!(of(2, 3.12, 0.0).phrase(), "runnable threads of other programs: 3.12 on 2 processors");
        assert_eq!(of(2, 3.12, 45.0).phrase(), "the hypervisor steals 45.0 % of the processor time");
    }

    #[test]
    fn a_session_is_preferred_from_nice_minus_10_on() {
        assert!(is_preferred("-20") && is_preferred("-10"));
        assert!(!is_preferred("0") && !is_preferred("-6") && !is_preferred("19") && !is_preferred(""));
    }

    #[test]
    fn contention_of_this_machine_can_be_sampled() {
        let sampled = Contention::sample().unwrap();
        assert!(sampled.processors >= 1 && sampled.ready >= 0.0, "{sampled:?}");
        assert!((0.0..=100.0).contains(&sampled.stolen_pct), "{sampled:?}");
    }
}
