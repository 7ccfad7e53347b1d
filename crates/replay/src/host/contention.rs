//! Who else wants the processors: what decides whether a loop that spins can have one for itself.
//!
//! Counted, not timed: two programs that are always ready to run keep two processors as busy as ten do, but leave a
//! spinning loop far more of them.

use std::fs;
use std::thread;
use std::time::Duration;

use iosonar_trace::human;
use iosonar_trace::run_info::ProcessorContention;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::host::isolation::session_priority;

/// How often the ready threads are counted, and how far apart: long enough that a short burst of other work is not taken
/// for a busy machine.
const LOOKS: u32 = 10;
const APART: Duration = Duration::from_millis(10);

/// What was seen of others in a tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// Processors that this program may use.
    pub processors: usize,
    /// Other threads that were running or ready to, on average, for that many processors.
    pub ready: f64,
    /// The percentage of the processors' time that the host gave to others.
    pub stolen_pct: f64,
}

impl Contention {
    /// Looks for a tenth of a second; `None` where `/proc/stat` does not tell. Nothing else of this program may work
    /// meanwhile.
    pub fn look() -> Option<Self> {
        let before = Counts::now()?;
        let mut ready = 0;
        for _ in 0..LOOKS {
            thread::sleep(APART);
            // This very thread is one of them.
            ready += Counts::now()?.ready.saturating_sub(1);
        }
        let stolen_pct = Counts::now()?.stolen_since(&before);
        let online = before.processors.max(1);
        let processors = allowed().unwrap_or(online).min(online);
        let ready = ready as f64 / f64::from(LOOKS) * processors as f64 / online as f64;
        Some(Self { processors, ready, stolen_pct })
    }

    /// Looks, unless this session was put before others (`/proc/self/autogroup`): then it has its processors, however many
    /// threads want them.
    pub fn look_unless_preferred() -> Option<Self> {
        let comes_first = session_priority().is_some_and(|(_, nice)| is_preferred(&nice));
        if comes_first { None } else { Self::look() }
    }

    /// Whether so many want the processors that a loop loses less by sleeping than by spinning, which uses up its share:
    /// see docs/benchmarks.md.
    pub fn is_crowd(&self) -> bool {
        self.ready >= self.processors as f64 + 0.5 || self.stolen_pct >= 30.0
    }

    /// As the run's footer holds it.
    pub fn describe(&self) -> ProcessorContention {
        let &Self { processors, ready, stolen_pct } = self;
        ProcessorContention { processors, ready, stolen_pct }
    }

    /// For people, behind "because".
    pub fn phrase(&self) -> String {
        let Self { processors, ready, stolen_pct } = self;
        if *stolen_pct >= 30.0 {
            let kept = human::percent(stolen_pct / 100.0);
            return format!("the host keeps {kept} of the processors' time for others");
        }
        format!("{} threads of other programs want the {processors} processors at any time", human::rate(*ready))
    }
}

/// Watches what the host takes from this machine.
#[derive(Clone, Copy, Debug)]
pub struct Watch(Option<Counts>);

impl Watch {
    /// Watches from now on.
    pub fn start() -> Self {
        Self(Counts::now())
    }

    /// The percentage of the processors' time that the host gave to others since then; `None` where that is not told.
    pub fn stolen_pct(&self) -> Option<f64> {
        Some(Counts::now()?.stolen_since(&self.0?))
    }
}

/// The lines of `/proc/stat` that matter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counts {
    processors: usize,
    ready: u64,
    /// Ticks since the machine started, of all processors.
    ticks: u64,
    stolen: u64,
}

impl Counts {
    fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(text: &str) -> Option<Self> {
        let (mut processors, mut all, mut ready) = (0, None, None);
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next()? {
                // User, nice, system, idle, waiting for I/O, interrupts, soft ones, stolen; guests are among the first.
                "cpu" => all = Some(words.take(8).map_while(|word| word.parse().ok()).collect::<Vec<u64>>()),
                "procs_running" => ready = words.next()?.parse().ok(),
                name => processors += usize::from(name.starts_with("cpu")),
            }
        }
        let all = all?;
        Some(Self { processors, ready: ready?, ticks: all.iter().sum(), stolen: all.get(7).copied().unwrap_or(0) })
    }

    fn stolen_since(&self, before: &Self) -> f64 {
        let ticks = self.ticks.saturating_sub(before.ticks);
        if ticks == 0 { 0.0 } else { 100.0 * self.stolen.saturating_sub(before.stolen) as f64 / ticks as f64 }
    }
}

/// Whether a session with that nice value gets some ten times as much of a processor as one with the ordinary 0.
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

    const STAT: &str = "cpu  10 0 5 80 0 0 1 4 3 0\ncpu0 5 0 2 40 0 0 1 2 3 0\ncpu1 5 0 3 40 0 0 0 2 0 0\nintr 5\n\
        ctxt 1\nprocs_running 4\nprocs_blocked 0\n";

    #[test]
    fn the_lines_of_proc_stat_are_understood() {
        let counts = Counts::of(STAT).unwrap();
        assert_eq!(counts, Counts { processors: 2, ready: 4, ticks: 100, stolen: 4 });
        let later = Counts { ticks: 140, stolen: 14, ..counts };
        assert_eq!(later.stolen_since(&counts), 25.0);
        assert_eq!(counts.stolen_since(&counts), 0.0, "no tick in between");
        assert_eq!(Counts::of("intr 1\n"), None);
    }

    #[test]
    fn a_crowd_is_more_than_the_processors_can_serve() {
        let of = |processors, ready, stolen_pct| Contention { processors, ready, stolen_pct };
        assert!(!of(2, 0.0, 0.0).is_crowd() && !of(2, 2.0, 5.0).is_crowd() && !of(16, 12.0, 0.0).is_crowd());
        assert!(of(2, 3.1, 0.0).is_crowd() && of(16, 20.0, 0.0).is_crowd() && of(4, 0.1, 45.0).is_crowd());
        assert_eq!(of(2, 3.12, 0.0).phrase(), "3.12 threads of other programs want the 2 processors at any time");
        assert_eq!(of(2, 3.12, 45.0).phrase(), "the host keeps 45.0 % of the processors' time for others");
    }

    #[test]
    fn a_session_before_others_has_its_processors() {
        assert!(is_preferred("-20") && is_preferred("-10"));
        assert!(!is_preferred("0") && !is_preferred("-6") && !is_preferred("19") && !is_preferred(""));
    }

    #[test]
    fn this_machine_tells() {
        let seen = Contention::look().unwrap();
        assert!(seen.processors >= 1 && seen.ready >= 0.0 && (0.0..=100.0).contains(&seen.stolen_pct), "{seen:?}");
    }
}
