//! Loads the eBPF program into the kernel, and reads its events and counters.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use aya::maps::{Array, MapData, RingBuf};
use aya::programs::{BtfTracePoint, Program};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::device::BlockDevice;
use crate::error::{BTF, Error, Result};
use crate::event::{Drained, Event};
use crate::options::{Level, Options};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/record.bpf.o"));

/// The functions and their tracepoints. Completions first: every request whose start is seen is also seen to complete.
const PROGRAMS: [(&str, &str); 6] = [
    ("rq_complete", "block_rq_complete"),
    ("bio_complete", "block_bio_complete"),
    ("rq_requeue", "block_rq_requeue"),
    ("rq_issue", "block_rq_issue"),
    ("split", "block_split"),
    ("bio_queue", "block_bio_queue"),
];

/// The most devices in one recording: `DEVICES` of the eBPF program.
const DEVICES: usize = 16;

/// The counters of the eBPF program.
type Counters = [u64; 2];

/// Their indices: `enum counter` of the eBPF program.
const LOST_EVENTS: usize = 0;
const OTHER_COMMANDS: usize = 1;

/// The loaded eBPF program; dropping it unloads it.
pub struct Kernel {
    ring: RingBuf<MapData>,
    counters: Array<MapData, Counters>,
    programs: Ebpf,
}

impl Kernel {
    /// Loads the program and attaches it to its tracepoints, for these devices.
    pub fn load(devices: &[BlockDevice], options: &Options) -> Result<Self> {
        if !Path::new(BTF).exists() {
            return Err(Error::NoBtf);
        }
        if devices.len() > DEVICES {
            return Err(Error::device(
                &devices[DEVICES].name,
                format!("one recording takes at most {DEVICES} devices"),
            ));
        }
        let btf = Btf::from_sys_fs().map_err(|e| refusal(&e))?;
        let filter = Filter::new(devices);
        let mut programs = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("device_count", &filter.count, true)
            .override_global("disk", &filter.disk[..], true)
            .override_global("partition", &filter.partition[..], true)
            .override_global("first_sector", &filter.first_sector[..], true)
            .override_global("end_sector", &filter.end_sector[..], true)
            .override_global("per_bio", &u32::from(options.level == Level::Queue), true)
            .override_global("wake_bytes", &(u64::from(options.ring_bytes) / 4), true)
            .map_max_entries("events", options.ring_bytes)
            .load(OBJECT)
            .map_err(|e| refusal(&e))?;
        for (function, tracepoint) in PROGRAMS {
            let program = programs.program_mut(function).expect("built into the object");
            let program: &mut BtfTracePoint = program.try_into().map_err(|e| refusal(&e))?;
            program.load(tracepoint, &btf).map_err(|e| refusal(&e))?;
            program.attach().map_err(|e| refusal(&e))?;
        }
        let mut map = |name| programs.take_map(name).expect("built into the object");
        Ok(Self {
            ring: RingBuf::try_from(map("events")).map_err(|e| refusal(&e))?,
            counters: Array::try_from(map(".bss")).map_err(|e| refusal(&e))?,
            programs,
        })
    }

    /// Waits until the ring is filling up, at most `at_most`.
    pub fn wait(&self, at_most: Duration) -> Result<()> {
        let timeout = Timespec::try_from(at_most).expect("a fraction of a second");
        match rustix::event::poll(&mut [PollFd::from_borrowed_fd(self.ring.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Error::system("cannot wait for events of the kernel", e)),
        }
    }

    /// Passes at most `at_most` events to `take`, in the order of the ring.
    pub fn drain(&mut self, at_most: usize, mut take: impl FnMut(&Event)) -> Drained {
        let mut malformed = 0;
        for _ in 0..at_most {
            let Some(bytes) = self.ring.next() else { return Drained { is_empty: true, malformed } };
            match Event::from_bytes(&bytes) {
                Some(event) => take(&event),
                None => malformed += 1,
            }
        }
        Drained { is_empty: false, malformed }
    }

    /// Unloads the program.
    pub fn stop(self) {
        drop(self);
    }

    /// Events lost because the ring was full.
    pub fn lost_events(&self) -> u64 {
        self.counter(LOST_EVENTS)
    }

    /// Commands that a load cannot represent.
    pub fn other_commands(&self) -> u64 {
        self.counter(OTHER_COMMANDS)
    }

    /// Times that the kernel skipped a program because another one was running on that processor: an upper bound for
    /// the missing events, as some were of other devices.
    pub fn skipped_events(&self) -> u64 {
        self.programs.programs().filter_map(|(_, program)| recursion_misses(program)).sum()
    }

    fn counter(&self, index: usize) -> u64 {
        self.counters.get(&0, 0).map_or(0, |counters| counters[index])
    }
}

/// The kernel's counter in the `fdinfo` of the program's file descriptor (since Linux 5.12).
fn recursion_misses(program: &Program) -> Option<u64> {
    let fd = program.fd().ok()?.as_fd().as_raw_fd();
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}

/// What to record: the constants of the eBPF program.
struct Filter {
    count: u32,
    disk: [u32; DEVICES],
    partition: [u32; DEVICES],
    first_sector: [u64; DEVICES],
    end_sector: [u64; DEVICES],
}

impl Filter {
    fn new(devices: &[BlockDevice]) -> Self {
        let mut filter = Self {
            count: devices.len() as u32,
            disk: [0; DEVICES],
            partition: [0; DEVICES],
            first_sector: [0; DEVICES],
            end_sector: [0; DEVICES],
        };
        for (i, device) in devices.iter().enumerate() {
            filter.disk[i] = device.disk.to_kernel();
            filter.partition[i] = device.partition.map_or(0, |partition| partition.number.to_kernel());
            filter.first_sector[i] = device.first().0;
            // A disk may grow while it is recorded.
            filter.end_sector[i] = device.partition.map_or(u64::MAX, |p| (p.first + device.sectors).0);
        }
        filter
    }
}

/// Translates an error of the kernel or the loader for the user.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::PermissionDenied
        {
            return Error::Permission { refusal: io::Error::from(io.kind()) };
        }
        cause = inner.source();
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    // The verifier's log has thousands of lines; the last ones state the reason.
    let message = error.to_string();
    let problem = match message.char_indices().rev().nth(500) {
        Some((start, _)) => format!("… {}", &message[start..]),
        None => message,
    };
    Error::Kernel { release, problem }
}
