//! Which processor the loop gets, and who runs where.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Error, Result};

/// The processors that this program may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    /// The loop's.
    pub own: usize,
    /// All others.
    pub others: Vec<usize>,
    allowed: Vec<usize>,
}

impl Processors {
    /// Chooses the one that has served the fewest interrupts of devices since the machine started.
    pub fn choose() -> Result<Self> {
        let allowed = allowed()?;
        let served = served_interrupts(&fs::read_to_string("/proc/interrupts").unwrap_or_default());
        let burden = |cpu: usize| served.iter().find(|(number, _)| *number == cpu).map_or(0, |(_, count)| *count);
        let own = *allowed.iter().min_by_key(|&&cpu| burden(cpu)).expect("this very thread runs somewhere");
        let others: Vec<usize> = allowed.iter().copied().filter(|&cpu| cpu != own).collect();
        if others.is_empty() {
            let why = "--isolate needs two processors at least, one for the loop and one for everything else";
            return Err(Error::Options(why.into()));
        }
        Ok(Self { own, others, allowed })
    }

    /// This thread, and those that it starts from now on, leave the loop's processor.
    pub fn leave_own(&self) {
        bind(&self.others);
    }

    /// This thread moves to the loop's processor.
    pub fn take_own(&self) {
        bind(&[self.own]);
    }

    /// This thread may run anywhere again.
    pub fn give_back(&self) {
        bind(&self.allowed);
    }
}

fn allowed() -> Result<Vec<usize>> {
    let set =
        sched_getaffinity(None).map_err(|e| Error::system("this program's processors are not known", e.into()))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

fn bind(cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    // Processors that went offline meanwhile: the thread stays where it is, which is only less exact.
    let _ = sched_setaffinity(None, &set);
}

/// This thread is preferred to all others but real-time ones, and its timers fire when they are due. Real-time scheduling
/// is no choice: the kernel's own work for completions would starve behind a loop that never sleeps.
#[allow(unsafe_code, reason = "two system calls about this thread alone")]
pub fn come_first() {
    // SAFETY: both change only how this thread is scheduled.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

/// As `linux/sched/types.h` has it, first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For ordinary threads the time slice that they ask for, in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest time slice that the kernel grants.
const SHORT_SLICE_NS: u64 = 100_000;

/// This thread asks for short time slices, which needs no rights: of two that want a processor, the one with the shorter
/// slice gets it first when it wakes up. Kernels before 6.12 don't care. For a loop that sleeps; one that never does would
/// only be preempted more often.
#[allow(unsafe_code, reason = "two system calls about this thread alone")]
pub fn wake_up_first() {
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

/// Where the kernel keeps the priority of a session among others (`man 7 sched`, "The autogroup feature"), and what it is.
/// While that is on, nice values count only among the threads of one session. `None` also in the session of process 1, which
/// the kernel puts into no group: its file is empty.
pub fn session_priority() -> Option<(String, String)> {
    let is_on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|on| on.trim() == "1");
    let own = fs::read_to_string("/proc/self/autogroup").ok().filter(|_| is_on)?;
    // Of the session's leader, who outlives a program that is killed; unless it is in another group.
    let leader = session_leader().map(|leader| format!("/proc/{leader}/autogroup"));
    let of_leader = leader.filter(|file| fs::read_to_string(file).is_ok_and(|text| text == own));
    let file = of_leader.unwrap_or_else(|| format!("/proc/{}/autogroup", std::process::id()));
    Some((file, nice_of(&own)?.to_owned()))
}

/// The leader of this session; `None` if it is outside of this process's PID namespace, where the kernel says 0 (which
/// `rustix::process::getsid` takes for impossible).
#[allow(unsafe_code, reason = "a system call that only asks")]
fn session_leader() -> Option<libc::pid_t> {
    // SAFETY: it takes no pointer.
    let leader = unsafe { libc::getsid(0) };
    (leader > 0).then_some(leader)
}

/// Of a line such as `/autogroup-8 nice 0`.
fn nice_of(line: &str) -> Option<&str> {
    line.trim().rsplit_once(" nice ").map(|(_, nice)| nice)
}

/// How many interrupts of devices each processor has served. Timers and the like have names instead of numbers there, and
/// come to every processor.
fn served_interrupts(table: &str) -> Vec<(usize, u64)> {
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

/// Whether an interrupt is served by that processor, by its `effective_affinity_list`, such as `0,2-3`.
pub fn serves(list: &Path, cpu: usize) -> bool {
    fs::read_to_string(list).is_ok_and(|text| {
        text.trim().split(',').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&cpu))
        })
    })
}

/// As the kernel writes sets of processors: hexadecimal, in groups of 32 bits.
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
    fn masks_are_written_as_the_kernel_does() {
        assert_eq!(mask_of(&[1]), "00000002");
        assert_eq!(mask_of(&[0, 33]), "00000002,00000001");
    }

    #[test]
    fn interrupts_of_devices_count_and_timers_do_not() {
        let table =
            "           CPU0       CPU2\n 24:   1   5  IO-APIC   5-edge  ACPI:Ged\n 36:   0   7  x\nLOC:  900  1\n";
        assert_eq!(served_interrupts(table), [(0, 1), (2, 12)]);
    }

    #[test]
    fn the_priority_of_a_session_is_found() {
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
    fn a_thread_gets_short_slices_and_keeps_its_nice_value() {
        std::thread::spawn(|| {
            wake_up_first();
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
    fn lists_of_processors_are_understood() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        fs::write(&list, "0,2-3\n").unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|cpu| serves(&list, cpu)), [true, false, true, true, false]);
        assert!(!serves(&folder.path().join("none"), 0));
    }
}
