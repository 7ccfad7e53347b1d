//! Generates the calls of a pattern.

use std::collections::VecDeque;

use iosonar_trace::{Nanos, Result, Source};
use iosonar_workload::Rng;
use iosonar_workload::distributions::exponential;
use rand::{RngExt, SeedableRng};

use super::pattern::{Extent, Pattern, Walk};
use crate::model::call::{Call, Name};
use crate::model::kind::CallKind;
use crate::model::metadata::{InitialProcess, Metadata, Recorder};
use crate::model::stream::CallReader;

/// The thread and process of the program.
const THREAD: u32 = 1;
const FD: i32 = 3;
/// The duration of each call in the trace.
const DURATION: Nanos = Nanos(5_000);
/// The smallest size of a file.
const MIN_FILE_BYTES: u64 = 1 << 20;

/// How a trace of a pattern is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Files and amounts are multiplied by this.
    pub scale: f64,
    /// Mean number of reads per second.
    pub rate: f64,
    /// Mean length of a read in bytes; lengths are uniform from half to one and a half of it.
    pub block: u64,
    /// The same seed makes the same trace.
    pub seed: u64,
}

/// The calls of a program with a pattern: it opens each file, seeks and reads, and closes it.
pub struct Generated {
    pattern: &'static Pattern,
    settings: Settings,
    extent: Extent,
    rng: Rng,
    metadata: Metadata,
    now: Nanos,
    /// The current file, from 0, and its positions; `None` before it is opened.
    file: u32,
    walk: Option<Box<dyn Walk>>,
    read: u64,
    /// Where the descriptor is.
    position: u64,
    ready: VecDeque<Call>,
}

impl Generated {
    /// A trace of the pattern.
    pub fn new(pattern: &'static Pattern, settings: Settings) -> Self {
        let scaled = |bytes: u64| (bytes as f64 * settings.scale) as u64;
        let file_bytes = scaled(pattern.file_bytes).max(MIN_FILE_BYTES);
        let read_bytes = scaled(pattern.read_bytes).clamp(1, file_bytes);
        let block = settings.block.clamp(1, read_bytes);
        let metadata = Metadata {
            source: Source { format: "generated".into(), preamble: pattern.title.into(), ..Source::default() },
            recorder: Recorder::Generated,
            processes: vec![InitialProcess {
                process: THREAD,
                threads: vec![THREAD],
                cwd: "/".into(),
                umask: None,
                descriptors: Vec::new(),
            }],
            complete: true,
            ..Metadata::default()
        };
        Self {
            pattern,
            settings,
            extent: Extent { file_bytes, read_bytes, block },
            rng: Rng::seed_from_u64(settings.seed),
            metadata,
            now: Nanos::ZERO,
            file: 0,
            walk: None,
            read: 0,
            position: 0,
            ready: VecDeque::new(),
        }
    }

    /// The size of each file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.extent.file_bytes
    }

    fn push(&mut self, kind: CallKind, with: impl FnOnce(&mut Call)) {
        let mut call = Call { process: THREAD, duration: Some(DURATION), ..Call::new(self.now, THREAD, kind) };
        with(&mut call);
        self.now = self.now + DURATION;
        self.ready.push_back(call);
    }

    /// Exponentially distributed time until the next read.
    fn think(&mut self) {
        let mean = 1e9 / self.settings.rate;
        self.now = self.now + Nanos((exponential(&mut self.rng) * mean).min(1e12) as i64);
    }

    fn open(&mut self) {
        let name = format!("/data/{}/{:02}.root", self.pattern.name, self.file + 1);
        self.push(CallKind::Openat, |call| {
            call.fd = Some(crate::AT_FDCWD);
            call.path = Some(Name::from(name.as_str()));
            call.result = Some(FD.into());
        });
        // It asks for the size of the file, so that the trace has it.
        let end = self.extent.file_bytes;
        self.seek(0, libc::SEEK_END, end);
        self.walk = Some((self.pattern.walk)(&self.extent));
        (self.read, self.position) = (0, end);
    }

    fn seek(&mut self, to: i64, whence: i32, result: u64) {
        self.push(CallKind::Lseek, |call| {
            call.fd = Some(FD);
            call.offset = Some(to);
            call.flags = whence as u64;
            call.result = Some(result as i64);
        });
    }

    fn read(&mut self, at: u64, length: u64) {
        if at != self.position {
            self.seek(at as i64, libc::SEEK_SET, at);
        }
        self.push(CallKind::Read, |call| {
            call.fd = Some(FD);
            call.length = Some(length);
            call.result = Some(length as i64);
        });
        self.position = at + length;
        self.read += length;
    }

    /// Appends the next calls.
    fn advance(&mut self) {
        let Some(mut walk) = self.walk.take() else {
            if self.file < self.pattern.files {
                self.open();
            }
            return;
        };
        let left = self.extent.read_bytes - self.read;
        if left == 0 {
            self.push(CallKind::Close, |call| call.fd = Some(FD));
            self.file += 1;
            return;
        }
        self.think();
        let block = self.extent.block;
        let length = self.rng.random_range(block.div_ceil(2)..=block + block / 2).min(left);
        let at = walk.next(length, &mut self.rng).min(self.extent.file_bytes - length);
        self.read(at, length);
        self.walk = Some(walk);
    }
}

impl CallReader for Generated {
    fn next(&mut self) -> Result<Option<Call>> {
        if self.ready.is_empty() {
            self.advance();
        }
        let next = self.ready.pop_front();
        self.metadata.counts.calls += u64::from(next.is_some());
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        Some(f64::from(self.file) / f64::from(self.pattern.files))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PATTERNS;
    use super::*;

    const SMALL: Settings = Settings { scale: 0.02, rate: 1000.0, block: 65_536, seed: 1 };

    fn calls(pattern: &'static Pattern, settings: Settings) -> (Vec<Call>, u64) {
        let mut generated = Generated::new(pattern, settings);
        let calls = std::iter::from_fn(|| generated.next().unwrap()).collect();
        (calls, generated.file_bytes())
    }

    #[test]
    fn each_pattern_reads_its_share_of_each_file_and_nothing_beyond_its_end() {
        for pattern in PATTERNS {
            let (calls, file_bytes) = calls(pattern, SMALL);
            let count = |kind| calls.iter().filter(|call| call.kind == kind).count() as u32;
            assert_eq!((count(CallKind::Openat), count(CallKind::Close)), (pattern.files, pattern.files));
            let (mut position, mut read) = (0, 0);
            for call in &calls {
                match call.kind {
                    CallKind::Lseek => position = call.result.unwrap() as u64,
                    CallKind::Read => {
                        position += call.length.unwrap();
                        read += call.length.unwrap();
                    }
                    _ => {}
                }
                assert!(position <= file_bytes, "{}: {call:?}", pattern.name);
            }
            let expected = (pattern.read_bytes as f64 * SMALL.scale) as u64 * u64::from(pattern.files);
            assert_eq!(read, expected, "{}", pattern.name);
            assert!(calls.windows(2).all(|pair| pair[0].end().unwrap() <= pair[1].begin));
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_trace() {
        let of = |seed| calls(PATTERNS[0], Settings { seed, ..SMALL }).0;
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }

    /// The times come from `libm`, not from the platform's functions.
    #[test]
    fn a_seed_makes_the_same_times_on_every_machine() {
        let calls = calls(PATTERNS[0], Settings { seed: 3, ..SMALL }).0;
        let sum = calls.iter().fold(0_i64, |sum, call| sum.wrapping_mul(31).wrapping_add(call.begin.0));
        assert_eq!((calls.len(), sum), (1401, 2_959_560_617_194_374_438));
    }

    #[test]
    fn patterns_differ_in_the_direction_of_their_seeks() {
        let backward = |name: &str| {
            let (mut position, mut end, mut backward) = (0, 0, 0);
            for call in calls(super::super::named(name).unwrap(), SMALL).0 {
                match call.kind {
                    CallKind::Openat => (position, end) = (0, 0),
                    CallKind::Lseek => position = call.result.unwrap(),
                    CallKind::Read => {
                        backward += u32::from(position < end);
                        position += call.result.unwrap();
                        end = position;
                    }
                    _ => {}
                }
            }
            backward
        };
        assert!(backward("atlas-old") > 100);
        assert_eq!((backward("atlas-new"), backward("cms-analysis")), (0, 0));
        assert!((3..10).contains(&backward("cms-reconstruction")), "{}", backward("cms-reconstruction"));
    }
}
