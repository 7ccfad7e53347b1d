//! What processors, memory and network of the machine do during a run: counters of /proc at its start and its end, and samples
//! in between.
//!
//! A thread of its own samples once a second, with the lowest priority: it does not preempt the loop, which neither knows nor
//! waits for it. On a machine without a free processor, samples come late or not at all; the totals need none.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use iosonar_trace::run_info::{InterfaceUsage, MachineUsage, UsageSamples};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use super::proc_stat::ProcStat;

/// The first distance of samples; it doubles when there are [`MOST`].
const EVERY: Duration = Duration::from_secs(1);
/// The most samples that are kept.
const MOST: usize = 64;
/// The nice value of the sampling thread.
const NICE: i32 = 19;

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
struct Counters {
    at_s: f64,
    stat: ProcStat,
    memory: Memory,
    /// Since the interfaces exist.
    interfaces: Vec<InterfaceUsage>,
    replayer_s: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Memory {
    available: u64,
    cached: u64,
    dirty: u64,
}

impl Counters {
    fn now(begin: Instant) -> Option<Self> {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        Some(Self {
            at_s: begin.elapsed().as_secs_f64(),
            stat: ProcStat::now()?,
            memory: Memory::of(&fs::read_to_string("/proc/meminfo").ok()?),
            interfaces: fs::read_to_string("/proc/self/net/dev").map(|text| interfaces(&text)).unwrap_or_default(),
            replayer_s: own.tv_sec as f64 + own.tv_nsec as f64 / 1e9,
        })
    }

    /// What the interfaces received and sent since `before`. One that is new then has counted from 0.
    fn network_since(&self, before: &Self) -> Vec<InterfaceUsage> {
        let of = |now: &InterfaceUsage| {
            let then = before.interfaces.iter().find(|then| then.name == now.name);
            let (received, sent) = then.map_or((0, 0), |then| (then.received_bytes, then.sent_bytes));
            InterfaceUsage {
                name: now.name.clone(),
                received_bytes: now.received_bytes.saturating_sub(received),
                sent_bytes: now.sent_bytes.saturating_sub(sent),
            }
        };
        self.interfaces.iter().map(of).collect()
    }
}

impl Memory {
    fn of(meminfo: &str) -> Self {
        let bytes = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name));
            let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            kib.unwrap_or(0).saturating_mul(1024)
        };
        Self {
            available: bytes("MemAvailable:"),
            cached: bytes("Cached:"),
            dirty: bytes("Dirty:").saturating_add(bytes("Writeback:")),
        }
    }
}

/// The lines of `/proc/net/dev`, which are those of the process's network namespace.
fn interfaces(text: &str) -> Vec<InterfaceUsage> {
    let lines = text.lines().filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let mut counters = counters.split_whitespace().map(str::parse);
        let received_bytes = counters.next()?.ok()?;
        Some(InterfaceUsage { name: name.trim().to_owned(), received_bytes, sent_bytes: counters.nth(7)?.ok()? })
    });
    lines.collect()
}

/// Bytes received and sent over the network: by the hardware, as bridges, bonds and tunnels count the same bytes again. In a
/// network namespace there is often none.
fn total(interfaces: &[InterfaceUsage], is_hardware: impl Fn(&str) -> bool) -> (u64, u64) {
    let has_hardware = interfaces.iter().any(|each| is_hardware(&each.name));
    let counts = |name: &str| if has_hardware { is_hardware(name) } else { name != "lo" };
    interfaces.iter().filter(|each| counts(&each.name)).fold((0, 0), |(received, sent), each| {
        (received.saturating_add(each.received_bytes), sent.saturating_add(each.sent_bytes))
    })
}

fn is_hardware(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).join("device").exists()
}

/// Measures the machine from its start on.
#[derive(Debug)]
pub struct UsageMeter {
    begin: Instant,
    before: Option<Counters>,
    sampler: Option<(Sender<()>, JoinHandle<Vec<Counters>>)>,
}

impl UsageMeter {
    /// Starts measuring.
    pub fn start() -> Self {
        let begin = Instant::now();
        let (end, ended) = channel();
        let sampler = thread::Builder::new().name("usage".into()).spawn(move || sample(begin, &ended));
        Self { begin, before: Counters::now(begin), sampler: sampler.ok().map(|thread| (end, thread)) }
    }

    /// What the machine did since the start, and the percentage of its processor time that was stolen; `None` if /proc cannot be
    /// read.
    pub fn finish(mut self) -> Option<(MachineUsage, f64)> {
        let (before, after) = (self.before.take()?, Counters::now(self.begin)?);
        let samples = self.end();
        let stolen_pct = after.stat.percent_since(&before.stat, |stat| stat.stolen);
        Some((usage(&before, samples, &after, is_hardware), stolen_pct))
    }

    fn end(&mut self) -> Vec<Counters> {
        let Some((end, thread)) = self.sampler.take() else { return Vec::new() };
        drop(end);
        thread.join().unwrap_or_default()
    }
}

impl Drop for UsageMeter {
    fn drop(&mut self) {
        self.end();
    }
}

fn sample(begin: Instant, ended: &Receiver<()>) -> Vec<Counters> {
    let _ = setpriority_process(Some(gettid()), NICE);
    let (mut samples, mut every) = (Vec::new(), EVERY);
    while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        samples.extend(Counters::now(begin));
        if samples.len() >= MOST {
            every *= 2;
            samples = samples.into_iter().skip(1).step_by(2).collect();
        }
    }
    samples
}

fn usage(
    before: &Counters,
    mut samples: Vec<Counters>,
    after: &Counters,
    is_hardware: impl Fn(&str) -> bool,
) -> MachineUsage {
    samples.push(after.clone());
    let percent = |part: fn(&ProcStat) -> u64| round(after.stat.percent_since(&before.stat, part), 100.0);
    let all = || [before].into_iter().chain(&samples).map(|counters| counters.memory);
    let interfaces = after.network_since(before);
    let (received_bytes, sent_bytes) = total(&interfaces, &is_hardware);
    let mut course = UsageSamples::default();
    let mut earlier = before;
    for counters in &samples {
        let (received, sent) = total(&counters.network_since(earlier), &is_hardware);
        course.at_s.push(round(counters.at_s, 1000.0));
        course.busy_pct.push(round(counters.stat.percent_since(&earlier.stat, |stat| stat.busy), 100.0));
        course.available_bytes.push(counters.memory.available);
        course.received_bytes.push(received);
        course.sent_bytes.push(sent);
        earlier = counters;
    }
    MachineUsage {
        seconds: round(after.at_s - before.at_s, 1e6),
        busy_pct: percent(|stat| stat.busy),
        kernel_pct: percent(|stat| stat.kernel),
        iowait_pct: percent(|stat| stat.iowait),
        replayer_s: round(after.replayer_s - before.replayer_s, 1e6),
        available_bytes: all().map(|memory| memory.available).min().unwrap_or(0),
        cached_bytes: all().map(|memory| memory.cached).max().unwrap_or(0),
        dirty_bytes: all().map(|memory| memory.dirty).max().unwrap_or(0),
        received_bytes,
        sent_bytes,
        interfaces: interfaces.into_iter().filter(|each| each.received_bytes + each.sent_bytes > 0).collect(),
        samples: course,
    }
}

fn round(value: f64, per_unit: f64) -> f64 {
    (value * per_unit).round() / per_unit
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n\
        \x20   lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0  0\n\
        \x20 eth0: 5000000    4000    0    0    0     0          0         0   250000    2000    0    0    0     0       0  0\n\
        \x20  br0:4999000    4000    0    0    0     0          0         0   250000    2000    0    0    0     0       0  0\n";

    fn interface(name: &str, received_bytes: u64, sent_bytes: u64) -> InterfaceUsage {
        InterfaceUsage { name: name.into(), received_bytes, sent_bytes }
    }

    #[test]
    fn the_network_is_that_of_the_hardware_or_all_but_loopback() {
        let found = interfaces(DEV);
        let (lo, eth0, br0) =
            (interface("lo", 100, 100), interface("eth0", 5_000_000, 250_000), interface("br0", 4_999_000, 250_000));
        assert_eq!(found, [lo, eth0, br0]);
        assert_eq!(total(&found, |name| name == "eth0"), (5_000_000, 250_000));
        assert_eq!(total(&found, |_| false), (9_999_000, 500_000));
    }

    #[test]
    fn memory_is_what_proc_says_in_kib() {
        let text = "MemTotal: 9 kB\nMemAvailable:    5 kB\nCached: 3 kB\nSwapCached: 8 kB\nDirty: 1 kB\nWriteback: 1 kB\n\
            WritebackTmp: 7 kB\n";
        assert_eq!(Memory::of(text), Memory { available: 5 * 1024, cached: 3 * 1024, dirty: 2 * 1024 });
    }

    #[test]
    fn totals_are_from_start_to_end_samples_from_each_to_the_next() {
        let counters = |at_s: f64, busy: u64, available: u64, received: u64| Counters {
            at_s,
            stat: ProcStat { ticks: at_s as u64 * 100, busy, ..ProcStat::default() },
            memory: Memory { available, ..Memory::default() },
            interfaces: vec![interface("eth0", received, 0), interface("lo", received, received)],
            replayer_s: at_s / 2.0,
        };
        let (before, after) = (counters(10.0, 500, 70, 1000), counters(14.0, 700, 60, 9000));
        let found = usage(&before, vec![counters(11.0, 600, 50, 3000)], &after, |_| false);
        assert_eq!((found.seconds, found.busy_pct, found.replayer_s), (4.0, 50.0, 2.0));
        assert_eq!((found.available_bytes, found.received_bytes, found.sent_bytes), (50, 8000, 0));
        assert_eq!(found.interfaces, [interface("eth0", 8000, 0), interface("lo", 8000, 8000)]);
        let UsageSamples { at_s, busy_pct, available_bytes, received_bytes, sent_bytes } = found.samples;
        assert_eq!((at_s, busy_pct), (vec![11.0, 14.0], vec![100.0, 33.33]));
        assert_eq!((available_bytes, received_bytes, sent_bytes), (vec![50, 60], vec![2000, 6000], vec![0, 0]));
    }

    #[test]
    fn this_machine_can_be_measured() {
        let (found, stolen_pct) = UsageMeter::start().finish().unwrap();
        assert!(found.available_bytes > 0 && found.seconds > 0.0, "{found:?}");
        assert!((0.0..=100.0).contains(&found.busy_pct) && (0.0..=100.0).contains(&stolen_pct), "{found:?}");
        assert!(!found.samples.at_s.is_empty(), "the end");
    }
}
