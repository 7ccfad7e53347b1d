//! Loads the eBPF program into the kernel, and reads its events and counters.

use std::time::Duration;

use aya::maps::{Array, MapData};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use iosonar_ebpf::{Drained, Refusal, Ring, attach, has_btf, recursion_misses};

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::event::Event;
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
    ring: Ring,
    counters: Array<MapData, Counters>,
    programs: Ebpf,
}

impl Kernel {
    /// Loads the program and attaches it to its tracepoints, for these devices.
    pub fn load(devices: &[BlockDevice], options: &Options) -> Result<Self> {
        if !has_btf() {
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
        for program in PROGRAMS {
            attach(&mut programs, program, &btf).map_err(|e| refusal(&*e))?;
        }
        let mut map = |name| programs.take_map(name).expect("built into the object");
        Ok(Self {
            ring: Ring::try_from(map("events")).map_err(|e| refusal(&e))?,
            counters: Array::try_from(map(".bss")).map_err(|e| refusal(&e))?,
            programs,
        })
    }

    /// Waits until the ring is filling up, at most `at_most`.
    pub fn wait(&self, at_most: Duration) -> Result<()> {
        self.ring.wait(at_most).map_err(|e| Error::system("cannot wait for events of the kernel", e))
    }

    /// Passes at most `at_most` events to `take`, in the order of the ring.
    pub fn drain(&mut self, at_most: usize, mut take: impl FnMut(&Event)) -> Drained {
        self.ring.drain(at_most, |bytes| Event::from_bytes(bytes).as_ref().map(&mut take).is_some())
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
        recursion_misses(&self.programs)
    }

    fn counter(&self, index: usize) -> u64 {
        self.counters.get(&0, 0).map_or(0, |counters| counters[index])
    }
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

/// An error of the kernel or the loader.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Error {
    match Refusal::of(error) {
        Refusal::Permission(refusal) => Error::Permission { refusal },
        Refusal::Kernel { release, problem } => Error::Kernel { release, problem },
    }
}
