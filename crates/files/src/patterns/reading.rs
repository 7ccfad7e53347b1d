//! Programs that read large files, one after the other.

use iosonar_trace::human;
use iosonar_workload::Rng;
use rand::RngExt;

use super::calls::Calls;
use super::pattern::{Program, Settings};
use crate::model::kind::CallKind;

/// The smallest size of a file.
const MIN_FILE_BYTES: u64 = 1 << 20;

/// Which part of which files a program reads, and in which order.
pub struct Shape {
    /// Its directory below `/data`.
    pub directory: &'static str,
    /// How many files the program reads, one after the other.
    pub files: u32,
    /// The size of each file in bytes.
    pub file_bytes: u64,
    /// Bytes read from each file.
    pub read_bytes: u64,
    /// Creates the positions for one file.
    pub walk: fn(&Extent) -> Box<dyn Walk>,
}

/// The part of a file that is read, after scaling.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub file_bytes: u64,
    /// Bytes that are read.
    pub read_bytes: u64,
    /// Mean length of a read.
    pub block: u64,
}

/// The positions of the reads of one file.
pub trait Walk: Send {
    /// Where the next read of this length begins.
    fn next(&mut self, length: u64, rng: &mut Rng) -> u64;
}

/// Opens each file, seeks and reads, and closes it. Lengths of reads are uniform from half to one and a half of their mean.
struct Reading {
    shape: &'static Shape,
    extent: Extent,
    /// The current file, from 0, and its positions; `None` before it is opened.
    file: u32,
    walk: Option<Box<dyn Walk>>,
    read: u64,
    /// Where the descriptor is.
    position: u64,
}

impl Shape {
    /// Starts a program that reads in this way.
    pub fn start(&'static self, settings: &Settings) -> Box<dyn Program> {
        let scaled = |bytes: u64| (bytes as f64 * settings.scale) as u64;
        let file_bytes = scaled(self.file_bytes).max(MIN_FILE_BYTES);
        let read_bytes = scaled(self.read_bytes).clamp(1, file_bytes);
        let extent = Extent { file_bytes, read_bytes, block: settings.block.clamp(1, read_bytes) };
        Box::new(Reading { shape: self, extent, file: 0, walk: None, read: 0, position: 0 })
    }
}

impl Program for Reading {
    fn advance(&mut self, calls: &mut Calls) {
        let Some(walk) = &mut self.walk else {
            if self.file < self.shape.files {
                calls.open(&format!("/data/{}/{:02}.root", self.shape.directory, self.file + 1), 0);
                // It asks for the size of the file, so that the trace has it.
                let end = self.extent.file_bytes;
                calls.seek(0, libc::SEEK_END, end);
                self.walk = Some((self.shape.walk)(&self.extent));
                (self.read, self.position) = (0, end);
            }
            return;
        };
        let left = self.extent.read_bytes - self.read;
        if left == 0 {
            calls.close();
            (self.file, self.walk) = (self.file + 1, None);
            return;
        }
        calls.think();
        let block = self.extent.block;
        let length = calls.rng.random_range(block.div_ceil(2)..=block + block / 2).min(left);
        let at = walk.next(length, &mut calls.rng).min(self.extent.file_bytes - length);
        if at != self.position {
            calls.seek(at as i64, libc::SEEK_SET, at);
        }
        calls.transfer(CallKind::Read, length);
        self.position = at + length;
        self.read += length;
    }

    fn progress(&self) -> f64 {
        f64::from(self.file) / f64::from(self.shape.files)
    }

    fn files(&self) -> String {
        let files = human::counted(self.shape.files.into(), "file");
        format!("{files} of {}", human::bytes(self.extent.file_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::generated::tests::{SMALL, calls};
    use super::super::high_energy_physics::SHAPES;
    use super::super::pattern::Settings;
    use super::*;

    #[test]
    fn each_shape_reads_its_share_and_nothing_beyond_the_end() {
        for shape in SHAPES {
            let calls = calls(shape.directory, SMALL);
            let count = |kind| calls.iter().filter(|call| call.kind == kind).count() as u32;
            assert_eq!((count(CallKind::Openat), count(CallKind::Close)), (shape.files, shape.files));
            let file_bytes = (shape.file_bytes as f64 * SMALL.scale) as u64;
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
                assert!(position <= file_bytes, "{}: {call:?}", shape.directory);
            }
            let expected = (shape.read_bytes as f64 * SMALL.scale) as u64 * u64::from(shape.files);
            assert_eq!(read, expected, "{}", shape.directory);
        }
    }

    /// The times come from `libm`, not from the platform's functions.
    #[test]
    fn a_seed_makes_the_same_times_on_every_machine() {
        let calls = calls("atlas-old", Settings { seed: 3, ..SMALL });
        let sum = calls.iter().fold(0_i64, |sum, call| sum.wrapping_mul(31).wrapping_add(call.begin.0));
        assert_eq!((calls.len(), sum), (1401, 2_959_560_617_194_374_438));
    }

    #[test]
    fn patterns_differ_in_the_direction_of_their_seeks() {
        let backward = |name: &str| {
            let (mut position, mut end, mut backward) = (0, 0, 0);
            for call in calls(name, SMALL) {
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
