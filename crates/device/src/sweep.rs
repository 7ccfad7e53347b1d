//! A multi-threaded pass over a whole device, for `wipe` and `slurp`.
//!
//! Threads take chunks in order: access is nearly sequential, and when a sweep stops, everything before the chunks in flight
//! is done. A failed chunk is retried in ever smaller pieces, to locate the error and to transfer everything around it.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::zeroes::Aligned;

/// Size of a chunk.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Sizes of the pieces of a failed chunk, then of a failed piece.
const SMALLER: [u64; 2] = [64 << 10, 4 << 10];
/// Failures listed with their position; more are only counted.
const MAX_FAILURES: usize = 10_000;

/// The work on each chunk; one instance per thread.
pub trait Pass: Send {
    /// Prepares the memory, once per chunk at this position.
    fn prepare(&mut self, at: u64, memory: &mut [u8]);
    /// Transfers data between memory and storage. Called again for parts of a failed chunk.
    fn transfer(&mut self, at: u64, memory: &mut [u8]) -> io::Result<()>;
    /// Called after a complete transfer.
    fn done(&mut self, at: u64, memory: &[u8]);
}

/// Progress of a sweep, and the request to stop it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes done.
    pub bytes: AtomicU64,
    /// Bytes failed.
    pub failed: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Ends the sweep after the chunks in flight.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A failed range.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    /// Position in bytes.
    pub at: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The text of the system's error.
    pub error: String,
}

/// What all threads of a sweep did.
#[derive(Debug)]
pub struct Swept<P> {
    /// The pass of each thread.
    pub passes: Vec<P>,
    /// Bytes done, in total over the progress.
    pub bytes: u64,
    /// Bytes failed.
    pub failed_bytes: u64,
    /// Failed ranges, adjacent ones with the same error joined; at most [`MAX_FAILURES`] before joining.
    pub failures: Vec<Failure>,
    /// The error that ended it early: the device is full or gone.
    pub fatal: Option<io::Error>,
    /// Everything before this position was tried.
    pub reached: u64,
    /// Duration.
    pub took: Duration,
    /// Position and time of the slowest chunk.
    pub slowest: Option<(u64, Duration)>,
}

/// Number of threads: enough to use all processors and the device's parallelism.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(8, |n| (2 * n.get()).clamp(8, 64))
}

impl<P> Swept<P> {
    /// Converts each pass.
    pub fn map<Q>(self, make: impl FnMut(P) -> Q) -> Swept<Q> {
        let Self { passes, bytes, failed_bytes, failures, fatal, reached, took, slowest } = self;
        let passes = passes.into_iter().map(make).collect();
        Swept { passes, bytes, failed_bytes, failures, fatal, reached, took, slowest }
    }

    /// Joins a sweep that continued this one with the same progress.
    pub fn and_then(mut self, next: Self) -> Self {
        self.passes.extend(next.passes);
        self.failures.extend(next.failures);
        Self {
            bytes: next.bytes,
            failed_bytes: next.failed_bytes,
            fatal: next.fatal,
            reached: next.reached,
            took: self.took + next.took,
            slowest: [self.slowest, next.slowest].into_iter().flatten().max_by_key(|(_, took)| *took),
            ..self
        }
    }
}

/// Sweeps a range, whose ends are multiples of `block_bytes`.
pub fn sweep<P: Pass>(
    range: Range<u64>,
    block_bytes: u64,
    threads: usize,
    progress: &Progress,
    make: impl Fn() -> P,
) -> Swept<P> {
    let next = AtomicU64::new(range.start);
    let common = Common { end: range.end, block_bytes, progress, next, log: Mutex::new(Log::default()) };
    let begun = Instant::now();
    let passes = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (mut pass, common) = (make(), &common);
                scope.spawn(move || {
                    common.work(&mut pass);
                    pass
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    let took = begun.elapsed();
    let mut log = common.log.into_inner().expect("no worker panics");
    let reached = log.left_at.unwrap_or(u64::MAX).min(common.next.into_inner()).min(range.end);
    log.failures.sort_by_key(|failure| failure.at);
    Swept {
        passes,
        bytes: progress.bytes.load(Ordering::Relaxed),
        failed_bytes: progress.failed.load(Ordering::Relaxed),
        failures: joined(log.failures),
        fatal: log.fatal,
        reached,
        took,
        slowest: log.slowest,
    }
}

/// State shared by the threads.
struct Common<'a> {
    end: u64,
    block_bytes: u64,
    progress: &'a Progress,
    next: AtomicU64,
    log: Mutex<Log>,
}

/// Rarely updated state, under a lock.
#[derive(Default)]
struct Log {
    failures: Vec<Failure>,
    fatal: Option<io::Error>,
    /// The lowest position that a thread abandoned.
    left_at: Option<u64>,
    slowest: Option<(u64, Duration)>,
}

impl Common<'_> {
    fn work(&self, pass: &mut impl Pass) {
        let mut memory = Aligned::new(CHUNK_BYTES as usize);
        while !self.progress.is_stopped() {
            let at = self.next.fetch_add(CHUNK_BYTES, Ordering::Relaxed);
            if at >= self.end {
                break;
            }
            let memory = &mut memory.bytes_mut()[..CHUNK_BYTES.min(self.end - at) as usize];
            pass.prepare(at, memory);
            let begun = Instant::now();
            self.transfer(pass, at, memory, &SMALLER);
            let took = begun.elapsed();
            let mut log = self.log.lock().expect("no worker panics");
            if log.slowest.is_none_or(|(_, longest)| took > longest) {
                log.slowest = Some((at, took));
            }
        }
    }

    /// Transfers a piece; if it fails, smaller parts of it.
    fn transfer(&self, pass: &mut impl Pass, at: u64, memory: &mut [u8], smaller: &[u64]) {
        let error = match pass.transfer(at, memory) {
            Ok(()) => {
                pass.done(at, memory);
                self.progress.bytes.fetch_add(memory.len() as u64, Ordering::Relaxed);
                return;
            }
            Err(error) => error,
        };
        if is_fatal(&error) {
            self.leave(at, Some(error));
        } else if let [part, smaller @ ..] = smaller
            && memory.len() as u64 > (*part).max(self.block_bytes)
        {
            let part = (*part).max(self.block_bytes);
            for (index, piece) in memory.chunks_mut(part as usize).enumerate() {
                let at = at + index as u64 * part;
                if self.progress.is_stopped() {
                    return self.leave(at, None);
                }
                self.transfer(pass, at, piece, smaller);
            }
        } else {
            self.fail(at, memory.len() as u64, &error);
        }
    }

    fn fail(&self, at: u64, bytes: u64, error: &io::Error) {
        self.progress.failed.fetch_add(bytes, Ordering::Relaxed);
        let mut log = self.log.lock().expect("no worker panics");
        if log.failures.len() < MAX_FAILURES {
            log.failures.push(Failure { at, bytes, error: error.to_string() });
        }
    }

    fn leave(&self, at: u64, fatal: Option<io::Error>) {
        self.progress.stop();
        let mut log = self.log.lock().expect("no worker panics");
        log.left_at = Some(log.left_at.unwrap_or(u64::MAX).min(at));
        log.fatal = log.fatal.take().or(fatal);
    }
}

/// Whether nothing else can succeed: no space, no device.
fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSPC | libc::EDQUOT | libc::ENODEV | libc::ENXIO | libc::EROFS | libc::EFBIG | libc::EBADF)
    )
}

/// Joins adjacent failures with the same error.
fn joined(failures: Vec<Failure>) -> Vec<Failure> {
    let mut all: Vec<Failure> = Vec::new();
    for failure in failures {
        match all.last_mut() {
            Some(last) if last.at + last.bytes == failure.at && last.error == failure.error => {
                last.bytes += failure.bytes;
            }
            _ => all.push(failure),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A device with bad blocks that logs transfers.
    struct Mock<'a> {
        bad: &'a (dyn Fn(u64) -> Option<i32> + Sync),
        progress: &'a Progress,
        stop_at: u64,
        done: Vec<(u64, u64)>,
    }

    impl Pass for Mock<'_> {
        fn prepare(&mut self, _: u64, _: &mut [u8]) {}

        fn transfer(&mut self, at: u64, memory: &mut [u8]) -> io::Result<()> {
            if at >= self.stop_at {
                self.progress.stop();
            }
            let blocks = (at..at + memory.len() as u64).step_by(4096);
            blocks.filter_map(|block| (self.bad)(block)).next().map_or(Ok(()), |e| Err(io::Error::from_raw_os_error(e)))
        }

        fn done(&mut self, at: u64, memory: &[u8]) {
            self.done.push((at, memory.len() as u64));
        }
    }

    /// Sweeps 10.25 MiB; returns the result and all transferred ranges in order.
    fn swept(bad: &(dyn Fn(u64) -> Option<i32> + Sync), stop_at: u64) -> (Swept<Mock<'_>>, Vec<(u64, u64)>) {
        let progress = Box::leak(Box::new(Progress::default()));
        let mut swept =
            sweep(0..10 * MIB + 262_144, 4096, 4, progress, || Mock { bad, progress, stop_at, done: Vec::new() });
        let mut done: Vec<_> = swept.passes.iter_mut().flat_map(|pass| std::mem::take(&mut pass.done)).collect();
        done.sort_unstable();
        (swept, done)
    }

    fn total(done: &[(u64, u64)]) -> u64 {
        done.iter().map(|(_, bytes)| bytes).sum()
    }

    #[test]
    fn every_byte_is_transferred_once() {
        let (swept, done) = swept(&|_| None, u64::MAX);
        assert!(done.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0), "no gap and no overlap: {done:?}");
        assert_eq!((total(&done), swept.bytes, swept.reached), (10 * MIB + 262_144, swept.reached, 10 * MIB + 262_144));
        assert!(swept.failures.is_empty() && swept.fatal.is_none() && swept.slowest.is_some());
    }

    #[test]
    fn an_error_affects_only_its_block() {
        // Two adjacent blocks across the border of a chunk, and a single one.
        let bad = |block: u64| [3 * MIB - 4096, 3 * MIB, 7 * MIB + 8192].contains(&block).then_some(libc::EIO);
        let (swept, done) = swept(&bad, u64::MAX);
        let found: Vec<_> = swept.failures.iter().map(|f| (f.at, f.bytes)).collect();
        assert_eq!(found, [(3 * MIB - 4096, 8192), (7 * MIB + 8192, 4096)]);
        assert_eq!((swept.failed_bytes, total(&done)), (12_288, 10 * MIB + 262_144 - 12_288));
        assert_eq!(swept.reached, 10 * MIB + 262_144);
    }

    #[test]
    fn a_full_device_ends_the_sweep() {
        let (swept, done) = swept(&|block| (block >= 6 * MIB).then_some(libc::ENOSPC), u64::MAX);
        assert_eq!(swept.fatal.unwrap().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!((swept.reached, total(&done)), (6 * MIB, 6 * MIB));
    }

    #[test]
    fn a_stopped_sweep_has_no_gaps() {
        let (swept, done) = swept(&|_| None, 4 * MIB);
        assert!(swept.reached >= 4 * MIB && swept.reached < 10 * MIB, "{}", swept.reached);
        assert_eq!(total(&done), swept.reached);
        assert!(done.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0), "{done:?}");
    }
}
