//! Loads the eBPF program into the kernel, and reads its events and counters.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData};
use aya::programs::perf_event::SoftwareEvent;
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use iosonar_ebpf::{Drained, Refusal, Ring, attach, attach_to_software_event, has_btf, last_part, recursion_misses};

use super::event::{Event, FAULT, RawCall};
use super::layout::instructions;
use super::losses::Losses;
use super::numbers::{NUMBERS, numbers};
use super::options::Options;
use crate::record::error::{Error, Result};
use crate::record::processes::{is_in_first_pid_namespace, threads_of};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/calls.bpf.o"));

/// The functions and their tracepoints. Ends first: every call whose begin is seen is also seen to end.
const PROGRAMS: [(&str, &str); 5] = [
    ("call_ends", "sys_exit"),
    ("thread_ends", "sched_process_exit"),
    ("program_begins", "sched_process_exec"),
    ("thread_begins", "sched_process_fork"),
    ("call_begins", "sys_enter"),
];

/// The same for io_uring: without them, system calls are recorded all the same. The first that loads is taken.
const URING_END: [(&str, &str); 2] =
    [("request_ends_with_completion", "io_uring_complete"), ("request_ends_with_result", "io_uring_complete")];
const URING_BEGIN: (&str, &str) = ("request_begins", "io_uring_submit_req");

/// The function that counts how long threads are blocked, since Linux 5.18.
const WAITING: (&str, &str) = ("processor_changes", "sched_switch");

/// The functions for page faults. Their ends are events of perf, which count minor and major ones.
const FAULT_ENDS: [(&str, SoftwareEvent); 2] =
    [("minor_fault_ends", SoftwareEvent::PageFaultsMin), ("major_fault_ends", SoftwareEvent::PageFaultsMaj)];
const FAULT_BEGINS: [(&str, &str); 2] =
    [("user_fault_begins", "page_fault_user"), ("kernel_fault_begins", "page_fault_kernel")];

/// The counters of the eBPF program, in the order of its `enum counter`.
type Counters = [u64; 9];

/// `struct thread` of the eBPF program.
type Thread = [u64; 16];

/// `struct call` of the eBPF program.
type Request = [u64; 15];

/// The bit of [`Thread`]'s state that says that a call is being made, and the one of a thread before its program.
const IS_CALLING: u64 = 1;
const AWAITS_EXEC: u64 = 2;

/// The loaded eBPF program; dropping it unloads it.
pub struct Kernel {
    ring: Ring,
    counters: Array<MapData, Counters>,
    threads: HashMap<MapData, u32, Thread>,
    requests: HashMap<MapData, u64, Request>,
    programs: Option<Ebpf>,
    skipped: u64,
    /// The position in a file that announces the command: known to this recording alone.
    signal_position: u64,
    uring_problem: Option<String>,
    knows_waiting: bool,
    max_threads: u32,
}

impl Kernel {
    /// Loads the program and attaches it to its tracepoints. It records no thread yet.
    pub fn load(options: &Options) -> Result<Self> {
        if !has_btf() {
            return Err(Error::NoBtf);
        }
        let btf = Btf::from_sys_fs().map_err(|e| refusal(&e))?;
        let mut what_of = [0_u16; NUMBERS];
        for (kind, number) in numbers() {
            what_of[number] = instructions(kind);
        }
        let signal_position = signal_position();
        let mut programs = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("what_of", &what_of[..], true)
            .override_global("wake_bytes", &(u64::from(options.ring_bytes) / 4), true)
            .override_global("signal_position", &signal_position, true)
            .override_global("seek_number", &(libc::SYS_lseek as u32), true)
            .override_global("records_all", &u32::from(options.all), true)
            .map_max_entries("events", options.ring_bytes)
            .map_max_entries("threads", options.max_threads())
            .load(OBJECT)
            .map_err(|e| refusal(&e))?;
        let uring_problem = attach_uring(&mut programs, &btf).err().map(|e| last_part(&e.to_string()));
        let knows_waiting = attach(&mut programs, WAITING, &btf).is_ok();
        if options.faults {
            attach_faults(&mut programs, &btf).map_err(|e| Error::PageFaults { problem: last_part(&e.to_string()) })?;
        }
        for program in PROGRAMS {
            attach(&mut programs, program, &btf).map_err(|e| refusal(&*e))?;
        }
        let mut map = |name| programs.take_map(name).expect("built into the object");
        Ok(Self {
            ring: Ring::try_from(map("events")).map_err(|e| refusal(&e))?,
            counters: Array::try_from(map(".bss")).map_err(|e| refusal(&e))?,
            threads: HashMap::try_from(map("threads")).map_err(|e| refusal(&e))?,
            requests: HashMap::try_from(map("requests")).map_err(|e| refusal(&e))?,
            programs: Some(programs),
            skipped: 0,
            signal_position,
            uring_problem,
            knows_waiting,
            max_threads: options.max_threads(),
        })
    }

    /// Records the next process that this thread creates, from its first successful execve on, and all that it creates. If
    /// every process is recorded, leaves out this one.
    pub fn announce(&self) -> Result<()> {
        let announced = File::open("/dev/null").and_then(|mut file| file.seek(SeekFrom::Start(self.signal_position)));
        announced.map(drop).map_err(|e| Error::system("cannot announce the recorder or its command by /dev/null", e))
    }

    /// Records a process with all its threads, and all that it creates. Returns the threads.
    pub fn follow(&mut self, process: u32) -> Result<Vec<u32>> {
        if !is_in_first_pid_namespace() {
            return Err(Error::PidNamespace);
        }
        let mut followed = BTreeSet::new();
        loop {
            let found = threads_of(process)?;
            let before = followed.len();
            for thread in found {
                if followed.insert(thread) {
                    let mut state: Thread = [0; 16];
                    state[9] = process.into();
                    // A thread created in the meantime is there already.
                    let _ = self.threads.insert(thread, state, NO_REPLACEMENT);
                }
            }
            if followed.len() == before {
                return Ok(followed.into_iter().collect());
            }
        }
    }

    /// Waits until the ring is filling up, at most `at_most`.
    pub fn wait(&self, at_most: Duration) -> Result<()> {
        self.ring.wait(at_most).map_err(|e| Error::system("cannot wait for events of the kernel", e))
    }

    /// Passes at most `at_most` events to `take`, in the order of the ring.
    pub fn drain(&mut self, at_most: usize, mut take: impl FnMut(&Event)) -> Drained {
        self.ring.drain(at_most, |bytes| Event::from_bytes(bytes).as_ref().map(&mut take).is_some())
    }

    /// Counts the events that the kernel skipped so far.
    pub fn note_skipped(&mut self) {
        if let Some(programs) = &self.programs {
            self.skipped = recursion_misses(programs);
        }
    }

    /// Unloads the program. The ring keeps its events. What is in flight then has no end.
    pub fn stop(&mut self) {
        self.note_skipped();
        self.programs = None;
    }

    /// The calls and requests in flight. Each call that began earlier is among them, or its end is in the ring.
    pub fn in_flight(&self) -> Vec<RawCall> {
        let (mut calls, mut faults) = (Vec::new(), Vec::new());
        for (id, thread) in self.threads.iter().flatten() {
            if is_calling(&thread) {
                calls.push((id, thread));
            }
            if thread[14] != 0 {
                faults.push(fault_of_thread(id, &thread));
            }
        }
        // The program may change a thread while it is read.
        let unchanged = |(id, thread): &(u32, Thread)| {
            self.threads.get(id, 0).is_ok_and(|now| is_calling(&now) && now[0] == thread[0])
        };
        let calls = calls.into_iter().filter(unchanged).map(|(_, thread)| call_of_thread(&thread));
        let requests = self.requests.iter().flatten().map(|(_, request)| call_of_request(&request));
        calls.chain(faults).chain(requests).collect()
    }

    /// What could not be recorded so far.
    pub fn losses(&self) -> Losses {
        let [events, threads, paths, compat_calls, fixed_files, faults, ..] =
            self.counters.get(&0, 0).unwrap_or_default();
        Losses {
            events,
            threads,
            paths,
            compat_calls,
            fixed_files,
            faults,
            skipped: self.skipped,
            max_threads: self.max_threads,
            ..Losses::default()
        }
    }

    /// Whether calls have the time that their thread was blocked before.
    pub fn knows_waiting(&self) -> bool {
        self.knows_waiting
    }

    /// Why requests of io_uring are not recorded.
    pub fn uring_problem(&self) -> Option<&str> {
        self.uring_problem.as_deref()
    }
}

/// `BPF_NOEXIST`.
const NO_REPLACEMENT: u64 = 1;

/// Whether the thread is making a call that is recorded.
fn is_calling(thread: &Thread) -> bool {
    thread[10] >> 48 & (IS_CALLING | AWAITS_EXEC) == IS_CALLING
}

/// The call that a thread is making.
fn call_of_thread(thread: &Thread) -> RawCall {
    RawCall {
        number: (thread[10] >> 32) as u16,
        thread: thread[10] as u32,
        process: thread[9] as u32,
        child: (thread[9] >> 32) as u32,
        begin_ns: thread[0],
        end_ns: None,
        arguments: std::array::from_fn(|i| thread[1 + i]),
        extra: [thread[7], thread[8]],
        result: 0,
        cgroup: thread[11],
        waited_ns: thread[12],
    }
}

/// The page fault of a thread, in whatever it is.
fn fault_of_thread(thread: u32, state: &Thread) -> RawCall {
    RawCall { number: FAULT, thread, process: state[9] as u32, begin_ns: state[14], ..RawCall::default() }
}

/// A request of io_uring.
fn call_of_request(request: &Request) -> RawCall {
    RawCall {
        number: (request[0] >> 16) as u16,
        thread: (request[0] >> 32) as u32,
        process: request[1] as u32,
        child: 0,
        begin_ns: request[2],
        end_ns: None,
        arguments: std::array::from_fn(|i| request[4 + i]),
        extra: [request[10], request[11]],
        result: 0,
        cgroup: request[13],
        waited_ns: 0,
    }
}

/// A position in a file that no program uses: random, and far beyond the end of all files.
fn signal_position() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) >> 1 | 1 << 62
}

fn attach_uring(programs: &mut Ebpf, btf: &Btf) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [newer, older] = URING_END;
    attach(programs, newer, btf).or_else(|_| attach(programs, older, btf))?;
    attach(programs, URING_BEGIN, btf)
}

fn attach_faults(programs: &mut Ebpf, btf: &Btf) -> std::result::Result<(), Box<dyn std::error::Error>> {
    if !cfg!(target_arch = "x86_64") {
        return Err("the error codes of this kind of processor are unknown".into());
    }
    for (function, event) in FAULT_ENDS {
        attach_to_software_event(programs, function, event)?;
    }
    FAULT_BEGINS.iter().try_for_each(|&program| attach(programs, program, btf))
}

/// An error of the kernel or the loader.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Error {
    match Refusal::of(error) {
        Refusal::Permission(refusal) => Error::Permission { refusal },
        Refusal::Kernel { release, problem } => Error::Kernel { release, problem },
    }
}
