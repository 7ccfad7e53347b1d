//! Chooses a processor for the loop, binds threads to processors, and sets their priority.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{Error, Result};

/// The processors that this program may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    /// The processor that only the loop uses.
    pub dedicated: usize,
    /// All others.
    pub others: Vec<usize>,
    allowed: Vec<usize>,
}

impl Processors {
    /// Dedicates the processor that has served the fewest device interrupts since boot.
    pub fn choose() -> Result<Self> {
        let allowed = allowed()?;
        let counts = interrupt_counts(&fs::read_to_string("/proc/interrupts").unwrap_or_default());
        let count = |cpu: usize| counts.iter().find(|(number, _)| *number == cpu).map_or(0, |(_, count)| *count);
        let dedicated = *allowed.iter().min_by_key(|&&cpu| count(cpu)).expect("this thread runs on one");
        let others: Vec<usize> = allowed.iter().copied().filter(|&cpu| cpu != dedicated).collect();
        if others.is_empty() {
            let why = "--isolate needs at least two processors, one for the issuing loop and one for everything else";
            return Err(Error::Options(why.into()));
        }
        Ok(Self { dedicated, others, allowed })
    }

    /// One dedicated processor, and one other: of a machine that this program does not run on.
    pub fn of(dedicated: usize, other: usize) -> Self {
        Self { dedicated, others: vec![other], allowed: vec![dedicated, other] }
    }

    /// Keeps the calling thread, and threads that it starts from now on, off the dedicated processor.
    pub fn bind_to_others(&self) {
        bind(&self.others);
    }

    /// Moves the calling thread to the dedicated processor.
    pub fn bind_to_dedicated(&self) {
        bind(&[self.dedicated]);
    }

    /// Lets the calling thread run on all processors again.
    pub fn bind_to_all(&self) {
        bind(&self.allowed);
    }
}

fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).map_err(|e| Error::system("cannot read the processor affinity", e.into()))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

fn bind(cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    // Fails if the processors went offline meanwhile. The run is then less exact, but still correct.
    let _ = sched_setaffinity(None, &set);
}

/// Gives the calling thread priority over all others but real-time ones, and exact timers. Not real-time scheduling: a loop
/// that never sleeps would starve the kernel threads that process completions.
#[allow(unsafe_code, reason = "two system calls that change the calling thread only")]
pub fn raise_priority() {
    // SAFETY: both change only how this thread is scheduled.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// `struct sched_attr` of `linux/sched/types.h`, first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The requested time slice of a SCHED_OTHER thread, in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest time slice that the kernel grants.
const SHORT_SLICE_NS: u64 = 100_000;

/// Requests short time slices for the calling thread, which needs no privileges: a thread with a shorter slice gets the
/// processor earlier when it wakes up. Kernels before 6.12 ignore it. Only for a loop that sleeps: a spinning one would just be
/// preempted more often.
#[allow(unsafe_code, reason = "two system calls that change the calling thread only")]
pub fn request_short_time_slice() {
    // SAFETY: both change only how this thread is scheduled; the structure lives as long as the call.
    unsafe {
        let attr = SchedAttr {
            size: size_of::<SchedAttr>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: 0,
            nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            priority: 0,
            runtime: SHORT_SLICE_NS,
            deadline: 0,
            period: 0,
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0);
    }
}

/// The nice value of this session's autogroup (`man 7 sched`, "The autogroup feature"), and the file that sets it. With
/// autogrouping, nice values of threads count only within a session. `None` without autogrouping, and in the session of
/// process 1, which has no group: its file is empty.
pub fn session_priority() -> Option<(String, String)> {
    let is_enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|on| on.trim() == "1");
    let group = fs::read_to_string("/proc/self/autogroup").ok().filter(|_| is_enabled)?;
    // Prefer the file of the session leader, which still exists if this program is killed. It may be in another group.
    let leader = session_leader().map(|leader| format!("/proc/{leader}/autogroup"));
    let same_group = leader.filter(|file| fs::read_to_string(file).is_ok_and(|text| text == group));
    let file = same_group.unwrap_or_else(|| format!("/proc/{}/autogroup", std::process::id()));
    Some((file, nice_of(&group)?.to_owned()))
}

/// The session leader; `None` if it is outside of this PID namespace: then the system call returns 0, which
/// `rustix::process::getsid` does not expect.
#[allow(unsafe_code, reason = "a system call that changes nothing")]
fn session_leader() -> Option<libc::pid_t> {
    // SAFETY: it takes no pointer.
    let leader = unsafe { libc::getsid(0) };
    (leader > 0).then_some(leader)
}

/// The nice value in a line such as `/autogroup-8 nice 0`.
fn nice_of(line: &str) -> Option<&str> {
    line.trim().rsplit_once(" nice ").map(|(_, nice)| nice)
}

/// Device interrupts that each processor has served, from `/proc/interrupts`. Lines with a name instead of a number, such as
/// the local timer, are left out: every processor gets those.
fn interrupt_counts(table: &str) -> Vec<(usize, u64)> {
    let mut lines = table.lines();
    let cpus: Vec<usize> = lines
        .next()
        .unwrap_or("")
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut counts: Vec<(usize, u64)> = cpus.into_iter().map(|cpu| (cpu, 0)).collect();
    for line in lines {
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|name| name.trim_end_matches(':').parse::<u32>().is_ok()) {
            for ((_, count), served) in counts.iter_mut().zip(words) {
                *count += served.parse().unwrap_or(0);
            }
        }
    }
    counts
}

/// Whether a file with a list of processors, such as `0,2-3`, contains `cpu`.
pub fn contains(list: &Path, cpu: usize) -> bool {
    fs::read_to_string(list).is_ok_and(|text| {
        text.trim().split(',').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&cpu))
        })
    })
}

/// The kernel's notation for a set of processors: hexadecimal, in groups of 32 bits.
pub fn mask_of(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let mut words = vec![0u32; groups];
    cpus.iter().for_each(|cpu| words[cpu / 32] |= 1 << (cpu % 32));
    words.iter().rev().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_groups_of_32_bits() {
        assert_eq!(mask_of(&[1]), "00000002");
        assert_eq!(mask_of(&[0, 33]), "00000002,00000001");
    }

    #[test]
    fn device_interrupts_are_counted_and_timers_are_not() {
        let table =
            "           CPU0       CPU2\n 24:   1   5  IO-APIC   5-edge  ACPI:Ged\n 36:   0   7  x\nLOC:  900  1\n";
        assert_eq!(interrupt_counts(table), [(0, 1), (2, 12)]);
    }

    #[test]
    fn session_priority_is_the_nice_value_of_the_autogroup() {
        assert_eq!(nice_of("/autogroup-8 nice 0\n"), Some("0"));
        assert_eq!(nice_of("/autogroup-117 nice -20\n"), Some("-20"));
        assert_eq!(nice_of(""), None);
        let Some((file, nice)) = session_priority() else {
            let on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
            let group = fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
            assert!(on.trim() != "1" || group.trim().is_empty(), "this session has a priority");
            return;
        };
        assert!(fs::read_to_string(file).unwrap().trim().ends_with(&format!(" nice {nice}")));
    }

    #[test]
    fn requesting_a_short_time_slice_keeps_the_nice_value() {
        std::thread::spawn(|| {
            request_short_time_slice();
            let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
            let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().to_owned();
            let own = fs::read_to_string("/proc/self/stat").unwrap();
            let before = own.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().to_owned();
            assert_eq!(nice, before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn lists_of_processors_may_have_ranges() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        fs::write(&list, "0,2-3\n").unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|cpu| contains(&list, cpu)), [true, false, true, true, false]);
        assert!(!contains(&directory.path().join("none"), 0));
    }
}
