//! Four programs of particle physics, as Horký measured them at FZU ("Evaluation of distributed file systems using trace and
//! replay mechanism"): how much of which file they read, and in which order. Sizes and times of single reads are ours.

use iosonar_workload::Rng;
use rand::RngExt;

use super::pattern::Pattern;
use super::reading::{Extent, Shape, Walk};

const MB: u64 = 1_000_000;

/// Unordered files: seeks of a few megabytes.
pub const ATLAS_OLD: Pattern = Pattern {
    name: "atlas-old",
    title: "nine files of 1 GB; 250 MB of each, unordered, with seeks of a few MB",
    start: |settings| ATLAS_OLD_SHAPE.start(settings),
};

static ATLAS_OLD_SHAPE: Shape = Shape {
    directory: "atlas-old",
    files: 9,
    file_bytes: 1000 * MB,
    read_bytes: 250 * MB,
    walk: |extent| Box::new(Unordered { read: 0, reach: (4 * MB).min(extent.file_bytes / 8), extent: *extent }),
};

/// The same files in order.
pub const ATLAS_NEW: Pattern = Pattern {
    name: "atlas-new",
    title: "nine files of 1 GB; 250 MB of each, sequential",
    start: |settings| ATLAS_NEW_SHAPE.start(settings),
};

static ATLAS_NEW_SHAPE: Shape = Shape {
    directory: "atlas-new",
    files: 9,
    file_bytes: 1000 * MB,
    read_bytes: 250 * MB,
    walk: |_| Box::new(Sequential { at: 0, mean_gap: 0 }),
};

/// Nearly half of a file, with small gaps.
pub const CMS_ANALYSIS: Pattern = Pattern {
    name: "cms-analysis",
    title: "one file of 4 GB; 1984 MB of it, sequential with small gaps",
    start: |settings| CMS_ANALYSIS_SHAPE.start(settings),
};

static CMS_ANALYSIS_SHAPE: Shape = Shape {
    directory: "cms-analysis",
    files: 1,
    file_bytes: 4000 * MB,
    read_bytes: 1984 * MB,
    walk: |extent| {
        let unread = extent.file_bytes - extent.read_bytes;
        let reads = (extent.read_bytes / extent.block).max(1);
        // A little less than what fits, so that the last reads do not exceed the file.
        Box::new(Sequential { at: 0, mean_gap: unread / reads * 9 / 10 })
    },
};

/// The beginning of a file, with jumps back.
pub const CMS_RECONSTRUCTION: Pattern = Pattern {
    name: "cms-reconstruction",
    title: "one file of 4 GB; 424 MB from its start, back by 30 MB every 30 MB",
    start: |settings| CMS_RECONSTRUCTION_SHAPE.start(settings),
};

static CMS_RECONSTRUCTION_SHAPE: Shape = Shape {
    directory: "cms-reconstruction",
    files: 1,
    file_bytes: 4000 * MB,
    read_bytes: 424 * MB,
    walk: |extent| Box::new(JumpingBack { front: 0, since: 0, step: (30 * MB).min(extent.read_bytes / 4) }),
};

/// Around a front that moves through the whole file.
struct Unordered {
    read: u64,
    reach: u64,
    extent: Extent,
}

impl Walk for Unordered {
    fn next(&mut self, length: u64, rng: &mut Rng) -> u64 {
        let last = self.extent.file_bytes.saturating_sub(length);
        let front = (self.read as f64 / self.extent.read_bytes as f64 * last as f64) as u64;
        self.read += length;
        (front + rng.random_range(0..=2 * self.reach)).saturating_sub(self.reach).min(last)
    }
}

/// Forward, with random gaps.
struct Sequential {
    at: u64,
    mean_gap: u64,
}

impl Walk for Sequential {
    fn next(&mut self, length: u64, rng: &mut Rng) -> u64 {
        let at = self.at;
        self.at += length + rng.random_range(0..=2 * self.mean_gap);
        at
    }
}

/// Forward; after each `step` bytes one read `step` bytes back.
struct JumpingBack {
    front: u64,
    since: u64,
    step: u64,
}

impl Walk for JumpingBack {
    fn next(&mut self, length: u64, rng: &mut Rng) -> u64 {
        if self.since >= self.step {
            self.since = 0;
            let jitter = rng.random_range(0..=self.step / 10);
            return self.front.saturating_sub(self.step + jitter);
        }
        let at = self.front;
        self.front += length;
        self.since += length;
        at
    }
}

/// All of them.
#[cfg(test)]
pub const SHAPES: [&Shape; 4] = [&ATLAS_OLD_SHAPE, &ATLAS_NEW_SHAPE, &CMS_ANALYSIS_SHAPE, &CMS_RECONSTRUCTION_SHAPE];
