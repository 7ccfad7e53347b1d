//! Discards on real devices: every discard that a run reports as done was done, at any depth, and verification expects
//! its effect.

use std::fs;
use std::path::PathBuf;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{Flags, Op, Outcome, Request};

use crate::replaying::{Bench, Finished, MIB, request, run};

/// The size of a block in bytes, and in sectors.
const BLOCK: usize = 4096;
const SECTORS: u64 = 8;

/// Discards every second block in scattered order, so that the kernel cannot merge them, each with four requests of
/// another operation.
fn scattered(blocks: u64, other: Op) -> Vec<Request> {
    let place = |i: u64| (i * 7919 % (blocks / 2)) * 2;
    let of = |i: u64| {
        let at = i as f64 / 1e6;
        match i % 5 {
            0 => request(at, Op::Discard, place(i / 5) * SECTORS, SECTORS),
            // The odd blocks are never discarded.
            _ => request(at, other, (place(i) + 1) * SECTORS, SECTORS),
        }
    };
    (0..blocks / 2 * 5).map(of).collect()
}

/// Blocks that were discarded but still have data, according to the backing file.
fn left_over(device: &LoopDevice) -> Vec<usize> {
    let content = fs::read(device.backing_file()).unwrap();
    let blocks = content.chunks_exact(BLOCK).enumerate();
    blocks.filter(|(i, block)| i % 2 == 0 && block.iter().any(|&byte| byte != 0)).map(|(i, _)| i).collect()
}

/// Sets the queue to the fewest requests that the kernel allows, so that a few in flight exceed it. Restored when
/// dropped, as loop devices keep it for their next user.
struct ShortQueue(PathBuf, String);

impl ShortQueue {
    fn of(device: &LoopDevice) -> Self {
        let name = device.path().file_name().unwrap().to_string_lossy().into_owned();
        let path = PathBuf::from(format!("/sys/block/{name}/queue/nr_requests"));
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, "4").unwrap();
        Self(path, before)
    }
}

impl Drop for ShortQueue {
    fn drop(&mut self) {
        fs::write(&self.0, &self.1).ok();
    }
}

fn failed(ran: &Finished) -> Vec<(u64, Outcome, i32)> {
    let rows = ran.rows().into_iter().filter(|row| row.outcome != Outcome::Ok);
    rows.map(|row| (row.sector.0, row.outcome, row.errno)).collect()
}

/// Regression test: with more in flight than the queue has requests, Linux 6.12 to 6.18 at least read the command again
/// from a submission queue entry that io_uring had reused.
#[test]
fn every_discard_is_done_beyond_the_depth_of_the_queue() {
    if left_out(Need::Loop) {
        return;
    }
    let bytes = 16 * MIB;
    for (other, more) in [
        (Op::Read, &["--engine", "io_uring"][..]),
        (Op::Write, &["--engine", "io_uring"]),
        (Op::Read, &["--sqpoll"]),
        (Op::Read, &["--engine", "threads"]),
    ] {
        let (bench, device) = (Bench::new(), LoopDevice::new(bytes));
        let _short = ShortQueue::of(&device);
        fs::write(device.backing_file(), vec![7; bytes as usize]).unwrap();
        let load = bench.parquet(&scattered(bytes / BLOCK as u64, other));
        let ran = bench.replay(&load, device.path(), &[&["--asap", "--depth", "4096"], more].concat());
        assert_eq!(failed(&ran), [], "{other:?} {more:?}");
        assert_eq!(left_over(&device), Vec::<usize>::new(), "{other:?} {more:?}");
        ran.with_code(0);
    }
}

/// Discards and write-zeroes of a file are fallocate calls, and a flush before a write is linked to it: the kernel
/// reads these entries once.
#[test]
fn a_file_takes_discards_zeroes_and_flushes_at_any_depth() {
    if left_out(Need::Loop) {
        return;
    }
    let bytes = 8 * MIB;
    let device = LoopDevice::new(64 * MIB);
    run("mkfs.ext4", &["-q".as_ref(), device.path().as_ref()]);
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mounted = Mount::new(directory.path(), [device.path()]);
    let blocks = bytes / BLOCK as u64;
    // Of four adjacent blocks one is discarded, one zeroed, one written after a flush, one read.
    let row = |i: u64| {
        let block = i * 7919 % blocks;
        let op = [Op::Discard, Op::WriteZeroes, Op::Write, Op::Read][(block % 4) as usize];
        let flags = if op == Op::Write { Flags::PREFLUSH } else { Flags::NONE };
        Request { flags, ..request(i as f64 / 1e6, op, block * SECTORS, SECTORS) }
    };
    let rows: Vec<_> = (0..blocks).map(row).collect();
    let place = mounted.path().join("target");
    for more in ["io_uring", "threads"] {
        let bench = Bench::new();
        fs::write(&place, vec![7; bytes as usize]).unwrap();
        let load = bench.parquet(&rows);
        let ran = bench.replay(&load, &place, &["--asap", "--depth", "4096", "--engine", more, "--force"]);
        assert_eq!(failed(&ran), [], "{more}: {}", ran.stderr);
        let content = fs::read(&place).unwrap();
        for (number, block) in content.chunks_exact(BLOCK).enumerate() {
            let is_all = |byte: u8| block.iter().all(|&found| found == byte);
            let is_right = [is_all(0), is_all(0), !is_all(0) && !is_all(7), is_all(7)][number % 4];
            assert!(is_right, "{more}: block {number} of {}", place.display());
        }
    }
}
