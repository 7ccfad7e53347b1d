//! The contract of [`Target`], tested on each engine.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use iosonar_pacing::buffers::{Arena, Buffer, Pool};
use iosonar_pacing::clock::{Monotonic, monotonic};
use iosonar_trace::{Flags, Nanos, Op};

use super::null::Null;
use super::service::Distribution;
use super::simulate::Simulate;
use super::simulate::device::Device;
use super::threads::Threads;
use super::uring::Uring;
use super::{Io, Target};
use crate::engine::method::RingOptions;

const MIB: u64 = 1 << 20;
const SLOTS: usize = 64;

/// A 1 MiB file that supports direct I/O, a buffer pool, and an engine on both.
struct Fixture {
    file: tempfile::NamedTempFile,
    pool: Pool,
    target: Box<dyn Target>,
}

type Make = dyn Fn(Vec<File>, Arc<Arena>) -> Box<dyn Target>;

fn fixture(make: &Make) -> Fixture {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().set_len(MIB).unwrap();
    let open = || File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(file.path()).unwrap();
    let pool = Pool::new(16 * MIB).unwrap();
    let target = make(vec![open()], Arc::clone(pool.arena()));
    Fixture { file, pool, target }
}

/// Engines that do I/O.
fn io_engines() -> Vec<(&'static str, Box<Make>)> {
    let uring = |options: RingOptions| -> Box<Make> {
        Box::new(move |files, arena| Box::new(Uring::new(files, arena, SLOTS, options).unwrap()))
    };
    vec![
        ("io_uring", uring(RingOptions::default())),
        ("io_uring with sqpoll", uring(RingOptions { sqpoll: true, ..RingOptions::default() })),
        ("threads", Box::new(|files, arena| Box::new(Threads::new(files, arena, SLOTS, SLOTS).unwrap()))),
        ("one thread", Box::new(|files, arena| Box::new(Threads::new(files, arena, SLOTS, 1).unwrap()))),
    ]
}

/// Engines that do no I/O.
fn fake_engines() -> Vec<(&'static str, Box<Make>)> {
    let simulated = |servers| -> Box<Make> {
        Box::new(move |_, _| {
            let distribution = Distribution::LogNormal { median: Nanos(50_000), sigma: 1.0 };
            let device = Device::with_times(&distribution, servers, 1).unwrap();
            Box::new(Simulate::new(Monotonic::starting_in(Nanos::ZERO), device, SLOTS))
        })
    };
    vec![
        ("null", Box::new(|_, _| Box::new(Null::new(SLOTS)))),
        ("simulate", simulated(None)),
        ("simulate, two servers", simulated(Some(2))),
    ]
}

fn io<'a>(slot: u32, op: Op, offset: u64, length: u64, buffer: Option<&'a Buffer>) -> Io<'a> {
    Io { slot, key: u64::from(slot), target: 0, op, flags: Flags::NONE, offset, length, buffer }
}

impl Fixture {
    /// Submits, waits until `count` requests have completed, and returns their results by slot.
    fn results(&mut self, count: usize) -> BTreeMap<u32, i64> {
        self.target.submit().unwrap();
        let mut results = BTreeMap::new();
        for _ in 0..100_000 {
            while let Some(completion) = self.target.reap() {
                assert!(results.insert(completion.slot, completion.result).is_none(), "{completion:?} repeats");
            }
            if results.len() == count {
                assert_eq!(self.target.reap(), None, "no further completions");
                return results;
            }
            self.target.wait(Nanos(1_000_000)).unwrap();
        }
        panic!("{} of {count} requests completed", results.len());
    }

    fn complete_one(&mut self, io: Io<'_>) -> i64 {
        let slot = io.slot;
        self.target.stage(io);
        self.results(1)[&slot]
    }

    fn filled_buffer(&mut self, bytes: u64, with: u8) -> Buffer {
        let mut buffer = self.pool.take(bytes).unwrap();
        self.pool.arena().bytes_mut(&mut buffer, bytes).fill(with);
        buffer
    }
}

#[test]
fn threads_say_when_they_made_each_call() {
    for (name, make) in io_engines() {
        let mut fixture = fixture(&*make);
        let buffer = fixture.pool.take(4096).unwrap();
        for _ in 0..20 {
            fixture.target.stage(io(0, Op::Read, 0, 4096, Some(&buffer)));
            let before = monotonic();
            fixture.target.submit().unwrap();
            let completion = loop {
                fixture.target.wait(Nanos(1_000_000)).unwrap();
                if let Some(completion) = fixture.target.reap() {
                    break completion;
                }
            };
            assert_eq!(completion.issued.is_some(), name.contains("thread"), "{name}");
            assert!(completion.issued.is_none_or(|at| (before..=monotonic()).contains(&at)), "{name}: {completion:?}");
        }
    }
}

#[test]
fn every_staged_request_completes_once_with_its_length() {
    for (name, make) in io_engines().into_iter().chain(fake_engines()) {
        let mut fixture = fixture(&*make);
        let buffers: Vec<_> = (0..SLOTS).map(|_| fixture.pool.take(4096).unwrap()).collect();
        for round in 0..20 {
            for half in [0..SLOTS / 2, SLOTS / 2..SLOTS] {
                for slot in half {
                    let op = if (slot + round) % 3 == 0 { Op::Write } else { Op::Read };
                    fixture.target.stage(io(slot as u32, op, slot as u64 * 4096, 4096, Some(&buffers[slot])));
                }
                fixture.target.submit().unwrap();
            }
            let results = fixture.results(SLOTS);
            assert!(results.values().all(|&bytes| bytes == 4096), "{name}: {results:?}");
        }
    }
}

#[test]
fn nothing_is_issued_before_submit() {
    for (name, make) in io_engines() {
        let mut fixture = fixture(&*make);
        let data = fixture.filled_buffer(4096, 7);
        fixture.target.stage(io(3, Op::Write, 0, 4096, Some(&data)));
        fixture.target.wait(Nanos(0)).ok();
        if name.starts_with("io_uring") {
            // Waiting enters the kernel, which takes staged requests. The loop never waits while requests are staged.
            fixture.results(1);
            continue;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(fixture.target.reap(), None, "{name}");
        assert_eq!(std::fs::read(fixture.file.path()).unwrap()[0], 0, "{name}");
        assert_eq!(fixture.results(1)[&3], 4096);
    }
}

#[test]
fn written_data_is_read_back() {
    for (name, make) in io_engines() {
        let mut fixture = fixture(&*make);
        let sizes = [512, 4096, 65_536, 262_144];
        for (slot, &bytes) in sizes.iter().enumerate() {
            let data = fixture.filled_buffer(bytes, slot as u8 + 1);
            let durable = Flags([0, Flags::FUA.0, Flags::PREFLUSH.0, Flags::FUA.with(Flags::PREFLUSH).0][slot]);
            let write = Io { flags: durable, ..io(slot as u32, Op::Write, bytes, bytes, Some(&data)) };
            assert_eq!(fixture.complete_one(write), bytes as i64, "{name}");
            fixture.pool.give(data);
            let found = fixture.filled_buffer(bytes, 0);
            assert_eq!(fixture.complete_one(io(9, Op::Read, bytes, bytes, Some(&found))), bytes as i64, "{name}");
            let read = fixture.pool.arena().bytes(&found, bytes);
            assert!(read.iter().all(|&b| b == slot as u8 + 1), "{name}: {bytes} bytes");
            fixture.pool.give(found);
        }
    }
}

#[test]
fn flushes_and_discards_work() {
    for (name, make) in io_engines() {
        let mut fixture = fixture(&*make);
        let data = fixture.filled_buffer(8192, 5);
        assert_eq!(fixture.complete_one(io(0, Op::Write, 0, 8192, Some(&data))), 8192);
        assert_eq!(fixture.complete_one(io(1, Op::Flush, 0, 0, None)), 0, "{name}");
        assert_eq!(fixture.complete_one(io(2, Op::Discard, 4096, 4096, None)), 0, "{name}");
        let content = std::fs::read(fixture.file.path()).unwrap();
        assert_eq!((content[4095], content[4096], content[8191]), (5, 0, 0), "{name}");
    }
}

#[test]
fn reads_at_the_end_are_short_and_errors_are_negated_numbers() {
    for (name, make) in io_engines() {
        let mut fixture = fixture(&*make);
        let buffer = fixture.pool.take(8192).unwrap();
        assert_eq!(
            fixture.complete_one(io(0, Op::Read, MIB - 4096, 8192, Some(&buffer))),
            4096,
            "{name}: short at the end"
        );
        assert_eq!(fixture.complete_one(io(1, Op::Read, MIB, 8192, Some(&buffer))), 0, "{name}: empty beyond the end");
        let write = io(2, Op::Write, 1 << 63, 4096, Some(&buffer));
        assert_eq!(fixture.complete_one(write), -i64::from(libc::EINVAL), "{name}: no such offset");
        let after = fixture.complete_one(io(3, Op::Read, 0, 4096, Some(&buffer)));
        assert_eq!(after, 4096, "{name}: I/O works after an error");
    }
}

#[test]
fn requests_reach_their_target() {
    for (name, make) in io_engines() {
        let files: Vec<_> = (0..3).map(|_| tempfile::NamedTempFile::new_in("/dev/shm").unwrap()).collect();
        let open = |file: &tempfile::NamedTempFile| file.reopen().unwrap();
        let mut pool = Pool::new(MIB).unwrap();
        let buffer = pool.take(4096).unwrap();
        let target = make(files.iter().map(open).collect(), Arc::clone(pool.arena()));
        let mut fixture = Fixture { file: tempfile::NamedTempFile::new().unwrap(), pool, target };
        for target in 0..3_u16 {
            let length = 512 * (u64::from(target) + 1);
            let write = Io { target, ..io(u32::from(target), Op::Write, 0, length, Some(&buffer)) };
            assert_eq!(fixture.complete_one(write), length as i64, "{name}");
            assert_eq!(files[usize::from(target)].as_file().metadata().unwrap().len(), length, "{name}");
        }
    }
}

#[test]
fn an_engine_can_be_dropped_with_requests_in_flight() {
    for (_, make) in io_engines().into_iter().chain(fake_engines()) {
        let mut fixture = fixture(&*make);
        let buffers: Vec<_> = (0..SLOTS).map(|_| fixture.pool.take(65_536).unwrap()).collect();
        for (slot, buffer) in buffers.iter().enumerate() {
            fixture.target.stage(io(slot as u32, Op::Read, 0, 65_536, Some(buffer)));
            if slot % 32 == 31 {
                fixture.target.submit().unwrap();
            }
        }
        drop(fixture);
    }
}
