//! Going over all of a device once, with many threads: what `wipe` and `slurp` have in common.
//!
//! Threads take chunks in order, so that the device sees one stream that is nearly sequential, and everything before the
//! chunks in flight is done when a sweep is stopped. A chunk that fails is done again in smaller and smaller pieces, so that
//! an error is known by its place and costs no more than its surroundings.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::zeroes::Aligned;

/// What a thread takes at a time.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Into what a chunk that failed is divided, then each of these.
const SMALLER: [u64; 2] = [64 << 10, 4 << 10];
/// Failures that are kept by their place; more are only counted.
const MOST_FAILURES: usize = 10_000;

/// What is done with each chunk. Each thread has its own.
pub trait Pass: Send {
    /// Makes the memory ready, once for each chunk, which begins at this position.
    fn prepare(&mut self, at: u64, memory: &mut [u8]);
    /// Moves data between the memory and this position. May be called again for a part of the chunk.
    fn transfer(&mut self, at: u64, memory: &mut [u8]) -> io::Result<()>;
    /// Looks at what was transferred in full.
    fn done(&mut self, at: u64, memory: &[u8]);
}

/// How far a sweep is, to be looked at while it goes on; and whether it shall end.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that are done.
    pub bytes: AtomicU64,
    /// Bytes that failed.
    pub failed: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Ends the sweep after the chunks that are being done.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A stretch that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    /// Where it begins, in bytes.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What the system said.
    pub error: String,
}

/// What a sweep did.
#[derive(Debug)]
pub struct Swept<P> {
    /// Each thread's own pass, with what it saw.
    pub passes: Vec<P>,
    /// Bytes that are done, since the progress began.
    pub bytes: u64,
    /// Bytes that failed.
    pub failed_bytes: u64,
    /// Where; neighbours with the same error are one. Not all, if there are very many.
    pub failures: Vec<Failure>,
    /// What made it end early, if it was not a stop: the device is full or gone.
    pub fatal: Option<io::Error>,
    /// Everything before this was tried; all, if the sweep came to its end.
    pub reached: u64,
    /// How long it took.
    pub took: Duration,
    /// The chunk that took longest: where, and how long.
    pub slowest: Option<(u64, Duration)>,
}

/// Threads that suit this machine: enough to keep every processor and a device's own parallelism busy.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(8, |n| (2 * n.get()).clamp(8, 64))
}

impl<P> Swept<P> {
    /// The same with something else made of each pass.
    pub fn map<Q>(self, make: impl FnMut(P) -> Q) -> Swept<Q> {
        let Self { passes, bytes, failed_bytes, failures, fatal, reached, took, slowest } = self;
        let passes = passes.into_iter().map(make).collect();
        Swept { passes, bytes, failed_bytes, failures, fatal, reached, took, slowest }
    }

    /// With a sweep that went on where this one ended, and has the same progress.
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

/// Goes over these bytes, whose ends are multiples of `block_bytes`.
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

/// What the threads share.
struct Common<'a> {
    end: u64,
    block_bytes: u64,
    progress: &'a Progress,
    next: AtomicU64,
    log: Mutex<Log>,
}

/// What is rare enough for a lock.
#[derive(Default)]
struct Log {
    failures: Vec<Failure>,
    fatal: Option<io::Error>,
    /// The first place that a thread took and gave up.
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

    /// Does a piece, or the parts of it that can be done.
    fn transfer(&self, pass: &mut impl Pass, at: u64, memory: &mut [u8], smaller: &[u64]) {
        let error = match pass.transfer(at, memory) {
            Ok(()) => {
                pass.done(at, memory);
                self.progress.bytes.fetch_add(memory.len() as u64, Ordering::Relaxed);
                return;
            }
            Err(error) => error,
        };
        if ends_all(&error) {
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
        if log.failures.len() < MOST_FAILURES {
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

/// After these nothing else can be done: no room, no device.
fn ends_all(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSPC | libc::EDQUOT | libc::ENODEV | libc::ENXIO | libc::EROFS | libc::EFBIG | libc::EBADF)
    )
}

/// Neighbours with the same error, joined.
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

    /// A device with bad blocks; it remembers what was done.
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

    /// Sweeps 10.25 MiB; returns what it did and every stretch that was done, in order.
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
    fn everything_is_done_once() {
        let (swept, done) = swept(&|_| None, u64::MAX);
        assert!(done.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0), "no gap and no overlap: {done:?}");
        assert_eq!((total(&done), swept.bytes, swept.reached), (10 * MIB + 262_144, swept.reached, 10 * MIB + 262_144));
        assert!(swept.failures.is_empty() && swept.fatal.is_none() && swept.slowest.is_some());
    }

    #[test]
    fn a_bad_place_costs_only_itself() {
        // Two neighbours across the border of a chunk, and one alone.
        let bad = |block: u64| [3 * MIB - 4096, 3 * MIB, 7 * MIB + 8192].contains(&block).then_some(libc::EIO);
        let (swept, done) = swept(&bad, u64::MAX);
        let found: Vec<_> = swept.failures.iter().map(|f| (f.at, f.bytes)).collect();
        assert_eq!(found, [(3 * MIB - 4096, 8192), (7 * MIB + 8192, 4096)]);
        assert_eq!((swept.failed_bytes, total(&done)), (12_288, 10 * MIB + 262_144 - 12_288));
        assert_eq!(swept.reached, 10 * MIB + 262_144);
    }

    #[test]
    fn no_room_ends_it_where_it_was() {
        let (swept, done) = swept(&|block| (block >= 6 * MIB).then_some(libc::ENOSPC), u64::MAX);
        assert_eq!(swept.fatal.unwrap().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!((swept.reached, total(&done)), (6 * MIB, 6 * MIB));
    }

    #[test]
    fn a_stop_leaves_no_gap_behind_it() {
        let (swept, done) = swept(&|_| None, 4 * MIB);
        assert!(swept.reached >= 4 * MIB && swept.reached < 10 * MIB, "{}", swept.reached);
        assert_eq!(total(&done), swept.reached);
        assert!(done.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0), "{done:?}");
    }
}
