//! Measures the data with compressors and a deduplicator.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const MIB: usize = 1 << 20;

fn percent(of: u8) -> Percent {
    Percent::new(of).unwrap()
}

fn compressible(share: u8, dedupe: u8) -> DataSpec {
    in_blocks(share, dedupe, BLOCK_BYTES)
}

fn in_blocks(share: u8, dedupe: u8, bytes: usize) -> DataSpec {
    DataSpec::Random {
        random_pct: percent(share).rest(),
        filler: Filler::Deadbeef,
        dedupe_pct: percent(dedupe),
        block_bytes: bytes as u64,
    }
}

/// The content of a target that was written from its beginning by requests of this size.
fn written_data(spec: &DataSpec, bytes: usize, request: usize) -> Vec<u8> {
    let (mut payload, mut all) = (Payload::new(spec, 1), vec![0x55; bytes]);
    for (i, piece) in all.chunks_mut(request).enumerate() {
        payload.fill(Sector((i * request / 512) as u64), piece);
    }
    all
}

type Compressor<'a> = &'a dyn Fn(&[u8]) -> usize;

/// Savings in percent if each unit of this size is compressed separately.
fn saved(data: &[u8], unit: usize, compressor: Compressor<'_>) -> f64 {
    let compressed: usize = data.chunks(unit).map(|u| compressor(u).min(u.len())).sum();
    100.0 - compressed as f64 / data.len() as f64 * 100.0
}

fn zstd(level: i32) -> impl Fn(&[u8]) -> usize {
    move |data| zstd::bulk::compress(data, level).unwrap().len()
}

fn lz4(data: &[u8]) -> usize {
    lz4_flex::block::compress(data).len()
}

/// Share of blocks, in percent, that a deduplicator does not store.
fn duplicates(data: &[u8]) -> f64 {
    let distinct: HashSet<&[u8]> = data.chunks(BLOCK_BYTES).collect();
    100.0 - distinct.len() as f64 * 100.0 / (data.len() / BLOCK_BYTES) as f64
}

fn assert_near(actual: f64, requested: f64, what: &str) {
    assert!((actual - requested).abs() <= 2.0, "{what}: {requested} % requested, {actual:.2} % actual");
}

#[test]
fn compression_of_each_unit_saves_the_requested_share() {
    let (zstd_1, zstd_3) = (zstd(1), zstd(3));
    let compressors: [(&str, Compressor<'_>); 3] = [("zstd -1", &zstd_1), ("zstd -3", &zstd_3), ("lz4", &lz4)];
    for share in [0, 1, 2, 3, 5, 10, 25, 33, 50, 66, 75, 90, 97, 99, 100] {
        let data = written_data(&compressible(share, 0), 8 * MIB, 64 << 10);
        for (name, compressor) in compressors {
            for (unit, size) in [("4 KiB", 4096), ("64 KiB", 65536), ("the stream", data.len())] {
                assert_near(saved(&data, size, compressor), f64::from(share), &format!("{name} of {unit}"));
            }
        }
    }
}

#[test]
fn partial_blocks_have_the_requested_share() {
    for (request, unit) in [(512, 4096), (1024, 4096), (2560, 4096), (20480, 20480), (70656, 4096)] {
        for share in [2, 10, 33, 50, 75, 90, 97] {
            let data = written_data(&compressible(share, 0), 138 * request * 8, request);
            let what = format!("requests of {request} bytes, units of {unit}");
            assert_near(saved(&data, unit, &zstd(3)), f64::from(share), &what);
        }
    }
}

#[test]
fn deduplication_finds_the_requested_share() {
    for share in [0, 1, 10, 50, 90, 99] {
        assert_near(duplicates(&written_data(&compressible(0, share), 16 * MIB, MIB)), f64::from(share), "duplicates");
    }
}

#[test]
fn the_shares_hold_in_blocks_of_any_size() {
    for (bytes, blocks) in [(512, 2000), (12_288, 1000), (64 << 10, 200), (256 << 10, 100)] {
        let data = written_data(&in_blocks(60, 40, bytes), blocks * bytes, 8 * bytes);
        let mut distinct = HashSet::new();
        let run = |block: &[u8]| block.iter().rev().zip(block.iter().rev().skip(4)).take_while(|(a, b)| a == b).count();
        let filler: usize = data.chunks(bytes).filter(|block| distinct.insert(*block)).map(run).sum();
        assert_near(filler as f64 / (distinct.len() * bytes) as f64 * 100.0, 60.0, "filler");
        assert_near(100.0 - distinct.len() as f64 * 100.0 / blocks as f64, 40.0, "duplicates");
    }
}

#[test]
fn compressors_do_not_find_duplicates() {
    for (share, dedupe) in [(0, 50), (50, 50), (25, 80)] {
        let all = written_data(&compressible(share, dedupe), 128 * MIB, MIB);
        assert_near(duplicates(&all), f64::from(dedupe), "duplicates");
        // At the beginning, copies are near their originals; after 64 MiB they are far enough.
        let data = &all[64 * MIB..];
        for (unit, size) in [("4 KiB", 4096), ("64 KiB", 65536), ("the stream", data.len())] {
            for level in [1, 3] {
                assert_near(saved(data, size, &zstd(level)), f64::from(share), &format!("zstd -{level} of {unit}"));
            }
        }
        // Storage that compresses and deduplicates keeps the product of both shares.
        let mut seen = HashSet::new();
        let kept: Vec<&[u8]> = all.chunks(BLOCK_BYTES).filter(|b| seen.insert(*b)).collect();
        let stored: usize = kept.iter().map(|block| zstd(3)(block)).sum();
        let product = (1.0 - f64::from(share) / 100.0) * (1.0 - f64::from(dedupe) / 100.0);
        assert_near(stored as f64 / all.len() as f64 * 100.0, product * 100.0, "the product of both");
    }
}

#[test]
fn overwriting_keeps_the_share_of_duplicates() {
    let blocks = 1 << 17;
    let (mut payload, mut block, mut device) =
        (Payload::new(&compressible(0, 40), 3), [0; BLOCK_BYTES], vec![0; blocks]);
    // The whole device in order, then some blocks repeatedly. The first bytes of a block identify it.
    for i in 0..3 * blocks {
        let at = if i < blocks { i } else { i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47 };
        payload.fill(Sector(at as u64 * 8), &mut block);
        device[at] = u64::from_le_bytes(block[..8].try_into().unwrap());
    }
    let distinct: HashSet<u64> = device.iter().copied().collect();
    assert_near(100.0 - distinct.len() as f64 * 100.0 / blocks as f64, 40.0, "duplicates on the device");
}

#[test]
fn zero_filled_blocks_have_the_requested_share_of_random_bytes() {
    for share in [1, 25, 50, 99] {
        let spec = DataSpec::Random {
            random_pct: percent(share),
            filler: Filler::Zero,
            dedupe_pct: Percent::NONE,
            block_bytes: BLOCK_BYTES as u64,
        };
        let data = written_data(&spec, MIB, 64 << 10);
        for block in data.chunks(BLOCK_BYTES) {
            let random = BLOCK_BYTES - block.iter().rev().take_while(|byte| **byte == 0).count();
            assert!((random as f64 / BLOCK_BYTES as f64 * 100.0 - f64::from(share)).abs() < 0.5, "{random} bytes");
        }
        assert_eq!(duplicates(&data), 0.0);
    }
}

#[test]
fn zero_and_pattern_data_have_the_specified_bytes() {
    assert!(written_data(&DataSpec::Zero, MIB, 4096).iter().all(|byte| *byte == 0));
    let pattern = DataSpec::Pattern { hex: "c0ffee".parse().unwrap() };
    let by_request_size = [512, 4096, 10240].map(|request| written_data(&pattern, 300 * 1024, request));
    assert!(by_request_size.iter().all(|data| data[..6] == [0xc0, 0xff, 0xee, 0xc0, 0xff, 0xee]));
    assert!(by_request_size.iter().all(|data| *data == by_request_size[0]));
}

#[test]
fn random_data_is_incompressible_and_half_of_its_bits_are_set() {
    let data = written_data(&compressible(0, 0), 8 * MIB, 64 << 10);
    assert_near(saved(&data, data.len(), &zstd(19)), 0.0, "zstd -19");
    let ones: u64 = data.iter().map(|b| u64::from(b.count_ones())).sum();
    let expected = data.len() as u64 * 4;
    assert!(ones.abs_diff(expected) < expected / 1000, "{ones} of {expected} bits are set");
}

proptest! {
    /// For any requests: every byte is counted once, whole blocks are those of the target, buffers are overwritten
    /// completely, and the same seed generates the same data.
    #[test]
    fn every_request_is_filled_and_counted(
        requests in prop::collection::vec((0u64..10_000, 1usize..40), 1..40), share in 0u8..=100, dedupe in 0u8..=99,
        seed: u64
    ) {
        let spec = compressible(share, dedupe);
        let (mut one, mut other) = (Payload::new(&spec, seed), Payload::new(&spec, seed));
        let mut expected = Written::default();
        for (sector, sectors) in requests {
            let (mut a, mut b) = (vec![0; sectors * 512], vec![0xff; sectors * 512]);
            one.fill(Sector(sector), &mut a);
            other.fill(Sector(sector), &mut b);
            prop_assert_eq!(a, b);
            let (begin, end) = (sector, sector + sectors as u64);
            let covered = (begin / 8)..end.div_ceil(8);
            let whole = covered.clone().filter(|block| begin <= block * 8 && block * 8 + 8 <= end).count() as u64;
            expected.bytes += sectors as u64 * 512;
            expected.blocks += whole;
            expected.partial_blocks += covered.count() as u64 - whole;
        }
        let written = one.written();
        prop_assert_eq!(Written { duplicates: written.duplicates, ..expected }, written);
        let most = written.blocks.div_ceil(100) * u64::from(dedupe);
        prop_assert!(written.duplicates <= most.min(written.blocks.saturating_sub(1)));
    }
}
