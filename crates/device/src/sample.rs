//! Estimates the share of zeros on a device from random samples.
//!
//! Stratified sampling: the device is divided into as many equal parts as samples, and one random block is read in each. Parts
//! are visited in random order, so that samples cover the whole device even if time runs out. The result is at least as exact
//! as independent samples, so Wilson's interval for those is conservative.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::zeroes::{Aligned, all_zero};

/// Bytes of a sample, unless the device's blocks are larger.
pub const SAMPLE_BYTES: u64 = 4096;
/// Parts of the map.
pub const MAP_PARTS: usize = 60;
/// Samples in flight at once: enough to keep a disk busy.
const READERS: usize = 8;

/// Limits of sampling.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most samples to read.
    pub samples: u64,
    /// Most time; samples read until then count.
    pub time: Duration,
}

/// How much of a device is all zero, from samples of its blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZeroSample {
    /// Bytes of each sample.
    pub block_bytes: u64,
    /// Samples read.
    pub samples: u64,
    /// Samples that are all zero.
    pub zero: u64,
    /// Samples that could not be read.
    pub errors: u64,
    /// Whether all blocks were read, so that the share is exact.
    pub exact: bool,
    /// Estimated share of the device that is all zero, 0 to 1.
    pub zero_share: f64,
    /// 95 % confidence interval of the share.
    pub zero_share_95: [f64; 2],
    /// The device in equal parts: `.` all samples zero, `#` none, `+` some, blank: no sample.
    pub map: String,
    /// Median time of reading a sample that was all zero, in µs.
    pub zero_us: Option<f64>,
    /// Median time of reading a sample with data, in µs.
    pub data_us: Option<f64>,
}

/// One sample.
struct Sample {
    part: usize,
    zero: io::Result<bool>,
    took: Duration,
}

/// Samples the first `bytes` of a file at multiples of `block_bytes`. The seed determines the positions.
pub fn sample(file: &File, bytes: u64, block_bytes: u64, bounds: Bounds, seed: u64) -> ZeroSample {
    let block = SAMPLE_BYTES.max(block_bytes);
    sample_blocks(bytes / block, block, bounds, seed, |at, buffer| file.read_exact_at(buffer, at))
}

fn sample_blocks(
    blocks: u64,
    block_bytes: u64,
    bounds: Bounds,
    seed: u64,
    read: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync,
) -> ZeroSample {
    let places = places(blocks, bounds.samples.min(blocks), seed);
    let (next, seen) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(places.len())));
    let begun = Instant::now();
    let reader = || {
        let mut buffer = Aligned::new(block_bytes as usize);
        while begun.elapsed() < bounds.time
            && let Some(&place) = places.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let buffer = buffer.bytes_mut();
            let start = Instant::now();
            let outcome = read(place * block_bytes, buffer);
            let took = start.elapsed();
            let part = (u128::from(place) * MAP_PARTS as u128 / u128::from(blocks)) as usize;
            let zero = outcome.map(|()| all_zero(buffer));
            seen.lock().expect("no reader panics").push(Sample { part, zero, took });
        }
    };
    thread::scope(|readers| {
        for _ in 1..READERS.min(places.len()) {
            // If a thread cannot start, fewer threads read.
            let _ = thread::Builder::new().spawn_scoped(readers, reader);
        }
        reader();
    });
    summarize(&seen.into_inner().expect("no reader panics"), blocks, block_bytes)
}

/// A random block of each part, in random order.
fn places(blocks: u64, samples: u64, seed: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let border = |part: u64| (u128::from(part) * u128::from(blocks) / u128::from(samples)) as u64;
    let mut below = |limit: u64| random.next_u64() % limit;
    let mut places: Vec<u64> = (0..samples).map(|part| border(part) + below(border(part + 1) - border(part))).collect();
    for last in (1..places.len()).rev() {
        places.swap(last, below(last as u64 + 1) as usize);
    }
    places
}

fn summarize(seen: &[Sample], blocks: u64, block_bytes: u64) -> ZeroSample {
    let is = |wanted: bool| seen.iter().filter(move |s| matches!(s.zero, Ok(zero) if zero == wanted));
    let (zero, data) = (is(true).count() as u64, is(false).count() as u64);
    let samples = zero + data;
    let zero_share = if samples > 0 { zero as f64 / samples as f64 } else { 0.0 };
    let exact = samples == blocks;
    ZeroSample {
        block_bytes,
        samples,
        zero,
        errors: seen.len() as u64 - samples,
        exact,
        zero_share,
        zero_share_95: if exact { [zero_share; 2] } else { wilson(zero, samples) },
        map: (0..MAP_PARTS)
            .map(|part| {
                let among = |wanted| is(wanted).any(|s| s.part == part);
                match (among(true), among(false)) {
                    (true, true) => '+',
                    (true, false) => '.',
                    (false, true) => '#',
                    (false, false) => ' ',
                }
            })
            .collect(),
        zero_us: median_us(is(true).map(|s| s.took).collect()),
        data_us: median_us(is(false).map(|s| s.took).collect()),
    }
}

fn median_us(mut times: Vec<Duration>) -> Option<f64> {
    times.sort_unstable();
    times.get(times.len() / 2).map(|time| time.as_nanos() as f64 / 1e3)
}

/// The 95 % confidence interval of a share (Wilson 1927), valid also near 0 and 1.
fn wilson(hits: u64, samples: u64) -> [f64; 2] {
    const Z: f64 = 1.959_963_984_540_054;
    if samples == 0 {
        return [0.0, 1.0];
    }
    let (n, share) = (samples as f64, hits as f64 / samples as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    // Exactly 0 and 1, despite rounding.
    let low = if hits == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if hits == samples { 1.0 } else { (middle + half).min(1.0) };
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(samples: u64) -> Bounds {
        Bounds { samples, time: Duration::from_secs(60) }
    }

    /// A device whose blocks from `from` on are zero.
    fn zero_from(from: u64) -> impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync {
        move |at, buffer| {
            buffer.fill(u8::from(at / 4096 < from));
            Ok(())
        }
    }

    #[test]
    fn wilson_agrees_with_published_values() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29; four digits.
        let cases =
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)];
        for (hits, samples, low, high) in cases {
            let [l, h] = wilson(hits, samples);
            assert!((l - low).abs() < 6e-5 && (h - high).abs() < 6e-5, "{hits} of {samples}: {l} {h}");
        }
        assert_eq!(wilson(0, 0), [0.0, 1.0], "unknown without samples");
    }

    #[test]
    fn a_small_device_is_read_in_full() {
        let seen = sample_blocks(10, 4096, bounds(100), 1, zero_from(7));
        assert_eq!((seen.samples, seen.zero, seen.exact), (10, 3, true));
        assert_eq!((seen.zero_share, seen.zero_share_95), (0.3, [0.3, 0.3]));
    }

    #[test]
    fn the_interval_contains_the_true_share_in_95_percent() {
        let blocks = 1_000_000;
        for share in [0.0, 0.01, 0.3, 0.97, 1.0] {
            let from = blocks - (blocks as f64 * share) as u64;
            let held = (0..200).filter(|&seed| {
                let [low, high] = sample_blocks(blocks, 4096, bounds(100), seed, zero_from(from)).zero_share_95;
                (low..=high).contains(&share)
            });
            let held = held.count();
            assert!(held >= 190, "{share}: held {held} times of 200");
        }
    }

    #[test]
    fn the_map_shows_zeros_and_data() {
        let seen = sample_blocks(600_000, 4096, bounds(6000), 1, zero_from(300_000));
        assert_eq!(seen.map, format!("{}{}", "#".repeat(30), ".".repeat(30)));
    }

    #[test]
    fn unreadable_samples_count_as_errors() {
        let broken = |at: u64, buffer: &mut [u8]| {
            buffer.fill(1);
            if at < 4096 * 5 { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        };
        let seen = sample_blocks(10, 4096, bounds(10), 1, broken);
        assert_eq!((seen.samples, seen.zero, seen.errors, seen.exact), (5, 0, 5, false));
    }

    #[test]
    fn sampling_ends_after_the_time_limit() {
        let none = Bounds { time: Duration::ZERO, ..bounds(100) };
        let seen = sample_blocks(1000, 4096, none, 1, zero_from(0));
        assert_eq!((seen.samples, seen.zero_share_95), (0, [0.0, 1.0]));
    }

    #[test]
    fn every_part_is_visited_once() {
        let mut all = places(1000, 100, 5);
        assert!(all.windows(2).any(|w| w[0] > w[1]), "in a random order");
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(part, &place)| place / 10 == part as u64), "{all:?}");
    }
}
