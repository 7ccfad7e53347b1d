//! Writes traces for `bench/files_replay.py`.
//!
//!     make_calls reads OUT COUNT BYTES SIZE     one thread reads SIZE bytes at positions in turn of a file of BYTES
//!     make_calls mixed OUT COUNT RATE THREADS   THREADS read, write, open, stat and close files at random times

use std::error::Error;
use std::path::Path;

use iosonar_files::{AT_FDCWD, Call, CallKind, Metadata, Name, table};
use iosonar_trace::{Nanos, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, out, numbers @ ..] = words.as_slice() else { return Err("see the top of the source".into()) };
    let numbers: Vec<u64> = numbers.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
    let metadata = Metadata { complete: true, ..Metadata::default() };
    let mut writer = table::create(Path::new(out), &metadata)?;
    match (kind.as_str(), numbers.as_slice()) {
        ("reads", &[count, bytes, size]) => reads(&mut *writer, count, bytes, size)?,
        ("mixed", &[count, rate, threads]) => mixed(&mut *writer, count, rate, threads)?,
        _ => return Err("see the top of the source".into()),
    }
    writer.finish(&metadata)?;
    Ok(())
}

fn opening(at: i64, thread: u32, path: &str, flags: i32, fd: i64) -> Call {
    Call {
        process: 100,
        fd: Some(AT_FDCWD),
        path: Some(Name::from(path)),
        flags: flags as u64,
        mode: Some(0o644),
        duration: Some(Nanos(2000)),
        result: Some(fd),
        ..Call::new(Nanos(at), thread, CallKind::Openat)
    }
}

fn on(at: i64, thread: u32, kind: CallKind, fd: i64, length: u64, offset: u64) -> Call {
    Call {
        process: 100,
        fd: Some(fd as i32),
        length: Some(length),
        offset: Some(offset as i64),
        duration: Some(Nanos(1000)),
        result: Some(length as i64),
        ..Call::new(Nanos(at), thread, kind)
    }
}

fn reads(to: &mut dyn Writer<Call>, count: u64, bytes: u64, size: u64) -> iosonar_trace::Result<()> {
    to.write(&opening(0, 100, "/data", libc::O_RDONLY, 3))?;
    for n in 0..count {
        let call = on(10_000 + n as i64 * 2000, 100, CallKind::Pread64, 3, size, n * size % (bytes / size * size));
        to.write(&call)?;
    }
    Ok(())
}

/// Each thread has a file of its own, and works in turns with the others; times are exponential.
fn mixed(to: &mut dyn Writer<Call>, count: u64, rate: u64, threads: u64) -> iosonar_trace::Result<()> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for thread in 0..threads {
        let path = format!("/file-{thread}");
        to.write(&opening(
            thread as i64 * 10_000,
            100 + thread as u32,
            &path,
            libc::O_CREAT | libc::O_RDWR,
            3 + thread as i64,
        ))?;
    }
    let mut at = 10_000_000;
    let mean = 1e9 / rate as f64;
    let mut ends = vec![0_i64; threads as usize];
    for _ in 0..count {
        let uniform = (next() >> 11) as f64 / (1_u64 << 53) as f64;
        at += (-(1.0 - uniform).ln() * mean) as i64;
        let thread = next() % threads;
        let begin = at.max(ends[thread as usize] + 500);
        at = begin;
        let number = 100 + thread as u32;
        let fd = 3 + thread as i64;
        let offset = next() % 256 * 4096;
        let call = match next() % 10 {
            0..=3 => on(begin, number, CallKind::Pwrite64, fd, 4096, offset),
            4..=7 => on(begin, number, CallKind::Pread64, fd, 4096, offset),
            _ => Call { length: None, offset: None, result: Some(0), ..on(begin, number, CallKind::Fstat, fd, 0, 0) },
        };
        ends[thread as usize] = begin + 1000;
        to.write(&call)?;
    }
    Ok(())
}
