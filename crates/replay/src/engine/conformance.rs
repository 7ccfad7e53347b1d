//! What every target must do, asked of each in the same words.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use iosonar_trace::{Flags, Nanos, Op};

use super::null::Null;
use super::service::{Law, Service};
use super::simulate::Simulate;
use super::threads::Threads;
use super::uring::Uring;
use super::{Io, Target};
use crate::config::method::RingOptions;
use crate::pipeline::buffers::{Arena, Buffer, Pool};
use crate::schedule::clock::Monotonic;

const MIB: u64 = 1 << 20;
const SLOTS: usize = 64;

/// A file of one MiB on which direct I/O works, a pool, and a target over both.
struct Stand {
    file: tempfile::NamedTempFile,
    pool: Pool,
    target: Box<dyn Target>,
}

type Make = dyn Fn(Vec<File>, Arc<Arena>) -> Box<dyn Target>;

fn stand(make: &Make) -> Stand {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().set_len(MIB).unwrap();
    let open = || File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(file.path()).unwrap();
    let pool = Pool::new(16 * MIB).unwrap();
    let target = make(vec![open()], Arc::clone(pool.arena()));
    Stand { file, pool, target }
}

/// Those that do I/O.
fn real() -> Vec<(&'static str, Box<Make>)> {
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

/// Those that do none.
fn fake() -> Vec<(&'static str, Box<Make>)> {
    let simulated = |servers| -> Box<Make> {
        Box::new(move |_, _| {
            let service = Service::new(&Law::LogNormal { median: Nanos(50_000), sigma: 1.0 }, 1).unwrap();
            Box::new(Simulate::new(Monotonic::starting_in(Nanos::ZERO), service, servers, SLOTS))
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

impl Stand {
    /// Stages nothing more, and waits until so many are through. Results by slot.
    fn results(&mut self, count: usize) -> BTreeMap<u32, i64> {
        self.target.submit().unwrap();
        let mut results = BTreeMap::new();
        for _ in 0..100_000 {
            while let Some(through) = self.target.reap() {
                assert!(results.insert(through.slot, through.result).is_none(), "{through:?} came twice");
            }
            if results.len() == count {
                assert_eq!(self.target.reap(), None, "nothing more was asked");
                return results;
            }
            self.target.wait(Nanos(1_000_000)).unwrap();
        }
        panic!("{} of {count} came back", results.len());
    }

    fn one(&mut self, io: Io<'_>) -> i64 {
        let slot = io.slot;
        self.target.stage(io);
        self.results(1)[&slot]
    }

    fn filled(&mut self, bytes: u64, with: u8) -> Buffer {
        let mut buffer = self.pool.take(bytes).unwrap();
        self.pool.arena().bytes_mut(&mut buffer, bytes).fill(with);
        buffer
    }
}

#[test]
fn everything_staged_comes_back_once_with_its_length() {
    for (name, make) in real().into_iter().chain(fake()) {
        let mut stand = stand(&*make);
        let buffers: Vec<_> = (0..SLOTS).map(|_| stand.pool.take(4096).unwrap()).collect();
        for round in 0..20 {
            for half in [0..SLOTS / 2, SLOTS / 2..SLOTS] {
                for slot in half {
                    let op = if (slot + round) % 3 == 0 { Op::Write } else { Op::Read };
                    stand.target.stage(io(slot as u32, op, slot as u64 * 4096, 4096, Some(&buffers[slot])));
                }
                stand.target.submit().unwrap();
            }
            let results = stand.results(SLOTS);
            assert!(results.values().all(|&bytes| bytes == 4096), "{name}: {results:?}");
        }
    }
}

#[test]
fn nothing_is_done_before_it_is_submitted() {
    for (name, make) in real() {
        let mut stand = stand(&*make);
        let data = stand.filled(4096, 7);
        stand.target.stage(io(3, Op::Write, 0, 4096, Some(&data)));
        stand.target.wait(Nanos(0)).ok();
        if name.starts_with("io_uring") {
            // Waiting enters the kernel, which takes what is staged; the loop never waits with something staged.
            stand.results(1);
            continue;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(stand.target.reap(), None, "{name}");
        assert_eq!(std::fs::read(stand.file.path()).unwrap()[0], 0, "{name}");
        assert_eq!(stand.results(1)[&3], 4096);
    }
}

#[test]
fn what_is_written_is_read_back() {
    for (name, make) in real() {
        let mut stand = stand(&*make);
        let sizes = [512, 4096, 65_536, 262_144];
        for (slot, &bytes) in sizes.iter().enumerate() {
            let data = stand.filled(bytes, slot as u8 + 1);
            let durable = Flags([0, Flags::FUA.0, Flags::PREFLUSH.0, Flags::FUA.with(Flags::PREFLUSH).0][slot]);
            let write = Io { flags: durable, ..io(slot as u32, Op::Write, bytes, bytes, Some(&data)) };
            assert_eq!(stand.one(write), bytes as i64, "{name}");
            stand.pool.give(data);
            let found = stand.filled(bytes, 0);
            assert_eq!(stand.one(io(9, Op::Read, bytes, bytes, Some(&found))), bytes as i64, "{name}");
            let read = stand.pool.arena().bytes(&found, bytes);
            assert!(read.iter().all(|&b| b == slot as u8 + 1), "{name}: {bytes} bytes");
            stand.pool.give(found);
        }
    }
}

#[test]
fn flushes_and_discards_are_done() {
    for (name, make) in real() {
        let mut stand = stand(&*make);
        let data = stand.filled(8192, 5);
        assert_eq!(stand.one(io(0, Op::Write, 0, 8192, Some(&data))), 8192);
        assert_eq!(stand.one(io(1, Op::Flush, 0, 0, None)), 0, "{name}");
        assert_eq!(stand.one(io(2, Op::Discard, 4096, 4096, None)), 0, "{name}");
        let content = std::fs::read(stand.file.path()).unwrap();
        assert_eq!((content[4095], content[4096], content[8191]), (5, 0, 0), "{name}");
    }
}

#[test]
fn beyond_the_end_comes_less_and_errors_are_negated_numbers() {
    for (name, make) in real() {
        let mut stand = stand(&*make);
        let buffer = stand.pool.take(8192).unwrap();
        assert_eq!(stand.one(io(0, Op::Read, MIB - 4096, 8192, Some(&buffer))), 4096, "{name}: short at the end");
        assert_eq!(stand.one(io(1, Op::Read, MIB, 8192, Some(&buffer))), 0, "{name}: nothing behind it");
        let write = io(2, Op::Write, 1 << 63, 4096, Some(&buffer));
        assert_eq!(stand.one(write), -i64::from(libc::EINVAL), "{name}: no such offset");
        let after = stand.one(io(3, Op::Read, 0, 4096, Some(&buffer)));
        assert_eq!(after, 4096, "{name}: an error ends nothing");
    }
}

#[test]
fn each_of_several_files_is_reached() {
    for (name, make) in real() {
        let files: Vec<_> = (0..3).map(|_| tempfile::NamedTempFile::new_in("/dev/shm").unwrap()).collect();
        let open = |file: &tempfile::NamedTempFile| file.reopen().unwrap();
        let mut pool = Pool::new(MIB).unwrap();
        let buffer = pool.take(4096).unwrap();
        let target = make(files.iter().map(open).collect(), Arc::clone(pool.arena()));
        let mut stand = Stand { file: tempfile::NamedTempFile::new().unwrap(), pool, target };
        for target in 0..3_u16 {
            let length = 512 * (u64::from(target) + 1);
            let write = Io { target, ..io(u32::from(target), Op::Write, 0, length, Some(&buffer)) };
            assert_eq!(stand.one(write), length as i64, "{name}");
            assert_eq!(files[usize::from(target)].as_file().metadata().unwrap().len(), length, "{name}");
        }
    }
}

#[test]
fn a_target_can_be_left_with_requests_in_flight() {
    for (_, make) in real().into_iter().chain(fake()) {
        let mut stand = stand(&*make);
        let buffers: Vec<_> = (0..SLOTS).map(|_| stand.pool.take(65_536).unwrap()).collect();
        for (slot, buffer) in buffers.iter().enumerate() {
            stand.target.stage(io(slot as u32, Op::Read, 0, 65_536, Some(buffer)));
            if slot % 32 == 31 {
                stand.target.submit().unwrap();
            }
        }
        drop(stand);
    }
}
