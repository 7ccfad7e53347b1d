//! Counters of all processors, from `/proc/stat`.

use std::fs;

/// The counters at one moment. Times are in ticks of all processors since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProcStat {
    pub processors: usize,
    /// Runnable threads.
    pub ready: u64,
    /// All ticks.
    pub ticks: u64,
    /// In programs and in the kernel.
    pub busy: u64,
    /// Of these, in the kernel.
    pub kernel: u64,
    /// Idle while a thread waited for I/O.
    pub iowait: u64,
    /// Given to other guests by the hypervisor.
    pub stolen: u64,
}

impl ProcStat {
    pub fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    pub fn of(text: &str) -> Option<Self> {
        let (mut found, mut has_ticks, mut ready) = (Self::default(), false, None);
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next()? {
                // guest and guest_nice follow, but are part of user and nice (`man 5 proc_stat`).
                "cpu" => {
                    let mut next = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0_u64);
                    let [user, nice, system, idle, iowait, irq, softirq, stolen] = std::array::from_fn(|_| next());
                    found.kernel = system + irq + softirq;
                    found.busy = user + nice + found.kernel;
                    found.ticks = found.busy + idle + iowait + stolen;
                    (found.iowait, found.stolen, has_ticks) = (iowait, stolen, true);
                }
                "procs_running" => ready = words.next()?.parse().ok(),
                name => found.processors += usize::from(name.starts_with("cpu")),
            }
        }
        found.ready = ready?;
        has_ticks.then_some(found)
    }

    /// The share of all ticks since `before` that `part` counts, in percent.
    pub fn percent_since(&self, before: &Self, part: impl Fn(&Self) -> u64) -> f64 {
        let ticks = self.ticks.saturating_sub(before.ticks);
        if ticks == 0 { 0.0 } else { 100.0 * part(self).saturating_sub(part(before)) as f64 / ticks as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 0 5 80 0 0 1 4 3 0\ncpu0 5 0 2 40 0 0 1 2 3 0\ncpu1 5 0 3 40 0 0 0 2 0 0\nintr 5\n\
        ctxt 1\nprocs_running 4\nprocs_blocked 0\n";

    #[test]
    fn counters_of_proc_stat_are_parsed() {
        let counts = ProcStat::of(STAT).unwrap();
        let expected = ProcStat { processors: 2, ready: 4, ticks: 100, busy: 16, kernel: 6, iowait: 0, stolen: 4 };
        assert_eq!(counts, expected);
        let later = ProcStat { ticks: 140, busy: 26, stolen: 14, ..counts };
        assert_eq!(later.percent_since(&counts, |counts| counts.stolen), 25.0);
        assert_eq!(later.percent_since(&counts, |counts| counts.busy), 25.0);
        assert_eq!(counts.percent_since(&counts, |counts| counts.stolen), 0.0, "no tick in between");
        assert_eq!(ProcStat::of("intr 1\n"), None);
    }
}
