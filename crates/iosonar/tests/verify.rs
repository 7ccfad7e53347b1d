//! `iosonar replay --verify`: on correct targets there are no mismatches, and data changed by another process is
//! detected and located.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{Op, Outcome, human};
use serde_json::Value;

use crate::replaying::{Bench, Finished, MIB, Row, request, wait_until};

const MODES: [&str; 3] = ["reads", "final", "paranoia"];

/// Writes and reads that often overlap, several at once.
fn overlapping(requests: u64) -> Vec<Row> {
    let place = |i: u64| i * 7919 % 97 * 4;
    (0..requests).map(|i| (i as f64 / 1e6, place(i), 4 + i % 3 * 4, if i % 5 < 2 { 'R' } else { 'W' })).collect()
}

fn verify_of(ran: &Finished) -> Value {
    ran.statistics()["verify"].clone()
}

fn assert_no_mismatch(ran: &Finished, mode: &str) {
    let verify = verify_of(ran);
    assert_eq!((&verify["mode"], &verify["mismatches"], &verify["errors"]), (&mode.into(), &0.into(), &0.into()));
    assert!(verify["read_sectors"].as_u64().unwrap() > 0, "{verify}");
    assert_eq!(verify["reread_sectors"].as_u64().unwrap() > 0, mode == "paranoia", "{verify}");
    assert!(!ran.stderr.contains("VERIFY ERROR"), "{}", ran.stderr);
    let last = &verify["final"];
    assert_eq!(last.is_null(), mode == "reads");
    if !last.is_null() {
        assert_eq!((&last["checked"], &last["complete"]), (&last["sectors"], &true.into()), "{last}");
        let sectors = last["sectors"].as_u64().unwrap();
        let sectors = human::count(sectors);
        let message = format!("checked {sectors} of {sectors} blocks (100 %), found 0 errors, 0 mismatches");
        assert!(sectors != "0" && ran.stdout.contains(&message), "{}", ran.stdout);
    }
}

#[test]
fn a_correct_device_has_no_mismatch_in_any_mode() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    let load = bench.load(&overlapping(1500));
    for mode in MODES {
        for overlaps in [&["--conflicts", "partial"][..], &["--conflicts", "allow"], &["--strong", "0"]] {
            let options = [&["--verify", mode, "--overwrite"], overlaps].concat();
            let ran = bench.replay(&load, device.path(), &options).with_code(0);
            let verify = verify_of(&ran);
            assert_eq!(ran.rows().len(), 1500);
            if overlaps == ["--conflicts", "partial"] {
                assert_no_mismatch(&ran, mode);
                assert_eq!(verify["undecided_sectors"], 0);
            }
            assert_eq!(verify["mismatches"], 0, "{mode} {overlaps:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_correct_device_has_no_mismatch_in_any_run_mode() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    // The load is larger than the target: requests wrap around, and overlap that did not in the load.
    let device = LoopDevice::new(MIB / 8);
    let load = bench.load(&overlapping(1500));
    for mode in MODES {
        for way in [
            &["--engine", "threads"][..],
            &["--engine", "threads", "--asap", "--depth", "16"],
            &["--asap", "--wait", "inline"],
            &["--wait", "inline"],
            &["--closed=no-think", "--depth", "8"],
            &["--loop", "--for", "20ms", "--speedup", "0.5"],
            &["--perturb", "delay=1ms"],
            &["--sqpoll"],
        ] {
            let ran =
                bench.replay(&load, device.path(), &[&["--verify", mode, "--overwrite"], way].concat()).with_code(0);
            assert_no_mismatch(&ran, mode);
            assert!(ran.rows().len() >= 1500, "{way:?}");
            assert!(ran.statistics()["wrap_factor"].as_f64().unwrap() > 1.0);
        }
    }
}

#[test]
fn each_of_several_targets_is_verified_separately() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let (first, second) = (LoopDevice::new(MIB), LoopDevice::new(MIB));
    // The same sectors on both devices of the load, with different data.
    let requests = overlapping(800).into_iter().zip(0..).map(|((at, sector, sectors, op), i)| {
        (i % 2, request(at, if op == 'R' { Op::Read } else { Op::Write }, sector, sectors))
    });
    let load = bench.host(&requests.collect::<Vec<_>>());
    let other = format!("sdb={}", second.path().display());
    for mode in MODES {
        let target = format!("sda={}", first.path().display());
        let options = ["--verify", mode, "--overwrite", "--target", &other];
        assert_no_mismatch(&bench.replay(&load, target.as_ref(), &options).with_code(0), mode);
    }
}

#[test]
fn a_correct_file_and_a_device_with_4k_blocks_have_no_mismatch() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::with_block_size(MIB, 4096);
    let load = bench.load(&overlapping(600));
    let file = bench.target(MIB);
    for mode in MODES {
        // Widened writes overwrite their neighbours' sectors, which then belong to them.
        let ran = bench.replay(&load, device.path(), &["--verify", mode, "--overwrite"]).with_code(0);
        assert_no_mismatch(&ran, mode);
        assert!(ran.statistics()["widened"].as_u64().unwrap() > 0);
        assert_no_mismatch(&bench.replay(&load, &file, &["--verify", mode, "--overwrite"]).with_code(0), mode);
    }
}

#[test]
fn discarded_and_zeroed_sectors_are_expected_to_be_zero() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(MIB);
    let load = bench.parquet(&[
        request(0.0, Op::Write, 0, 64),
        request(0.01, Op::Discard, 0, 16),
        request(0.02, Op::WriteZeroes, 16, 16),
        request(0.03, Op::Flush, 0, 0),
        request(0.04, Op::Read, 0, 64),
        request(0.05, Op::Write, 8, 4),
        request(0.06, Op::Read, 0, 64),
    ]);
    let ran = bench.replay(&load, device.path(), &["--verify", "final"]).with_code(0);
    assert_no_mismatch(&ran, "final");
    // All are checked: a loop device returns zeros for discarded sectors.
    assert_eq!((&verify_of(&ran)["read_sectors"], &verify_of(&ran)["final"]["checked"]), (&128.into(), &64.into()));
}

#[test]
fn data_changed_by_another_process_is_found_and_located() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(4 * MIB);
    // Everything is written early; the reads come seconds later.
    let mut load: Vec<Row> = (0..200).map(|i| (i as f64 / 1e3, i * 8, 8, 'W')).collect();
    load.extend((0..50).map(|i| (12.0 + i as f64 / 1e3, i * 8, 8, 'R')));
    let running = bench.start(&bench.load(&load), device.path(), &["--verify", "final"]);
    wait_until("all is written", || bench.journaled("r.replay.parquet") == 200);
    let file = OpenOptions::new().read(true).write(true).open(device.backing_file()).unwrap();
    let mut sector = [0; 512];
    file.read_exact_at(&mut sector, 80 * 512).unwrap();
    sector[100] ^= 1;
    file.write_all_at(&sector, 80 * 512).unwrap();
    // A read sees the first change; only the final pass sees the second.
    file.write_all_at(&[0; 4096], 1000 * 512).unwrap();
    let ran = running.end().with_code(4);
    let corrupt: Vec<_> = ran.rows().into_iter().filter(|row| row.outcome == Outcome::Corrupt).collect();
    assert_eq!(corrupt.iter().map(|row| row.sector.0).collect::<Vec<_>>(), [80]);
    let verify = verify_of(&ran);
    assert_eq!((&verify["mismatches"], &verify["final"]["mismatches"]), (&10.into(), &9.into()), "{verify}");
    assert_eq!(ran.statistics()["verify_errors"], 1);
    let findings = ran.run()["findings"].clone();
    let named: Vec<_> = findings
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["kind"].clone(), f["sector"].clone(), f["sectors"].clone()))
        .collect();
    let expected =
        [("damaged", 80, 1), ("damaged", 80, 1), ("lost", 1000, 8)].map(|(k, s, n)| (k.into(), s.into(), n.into()));
    assert_eq!(named, expected);
    assert_eq!((&findings[0]["expected_sequence_number"], &findings[0]["request"]), (&11.into(), &210.into()));
    assert!(
        ran.stderr.contains("VERIFY ERROR: sectors 1000 to 1007: lost; expected sequence number 126"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("found 0 errors, 9 mismatches"), "{}", ran.stdout);
}

/// Loop devices and files return zeros after a discard, so old data is detected.
#[test]
fn old_data_after_a_successful_discard_is_found() {
    if left_out(Need::Loop) {
        return;
    }
    let bench = Bench::new();
    let device = LoopDevice::new(4 * MIB);
    let mut load: Vec<_> = (0..200).map(|i| request(i as f64 / 1e3, Op::Write, i * 8, 8)).collect();
    load.extend((0..200).step_by(2).map(|i| request(0.3 + i as f64 / 1e3, Op::Discard, i * 8, 8)));
    load.push(request(12.0, Op::Flush, 0, 0));
    let running = bench.start(&bench.parquet(&load), device.path(), &["--verify", "final"]);
    wait_until("all is written and discarded", || bench.journaled("r.replay.parquet") == 300);
    let file = OpenOptions::new().read(true).write(true).open(device.backing_file()).unwrap();
    // The first reads as if never discarded, the second has other data.
    let mut old = [0; 4096];
    file.read_exact_at(&mut old, 8 * 512).unwrap();
    file.write_all_at(&old, 16 * 512).unwrap();
    file.write_all_at(&[7; 512], 160 * 512).unwrap();
    let ran = running.end().with_code(4);
    let verify = verify_of(&ran);
    assert_eq!((&verify["final"]["checked"], &verify["final"]["mismatches"]), (&1600.into(), &9.into()), "{verify}");
    for message in
        ["sectors 16 to 23: misdirected; expected zeros", "sector 160: lost; expected zeros, found nothing of this run"]
    {
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

#[test]
fn with_little_memory_a_sample_is_verified_and_reported() {
    let bench = Bench::new();
    let load: Vec<Row> = (0..200).map(|i| (i as f64 / 1e4, i * 1024, 1024, 'W')).collect();
    let target = bench.target(100 * MIB);
    let ran = bench.replay(&bench.load(&load), &target, &["--verify", "final", "--verify-memory", "1M"]).with_code(0);
    let verify = verify_of(&ran);
    let known = verify["known_pct"].as_f64().unwrap();
    assert!(known < 100.0 && known > 1.0, "{verify}");
    let last = &verify["final"];
    let (checked, sectors) = (last["checked"].as_f64().unwrap(), last["sectors"].as_f64().unwrap());
    assert!((100.0 * checked / sectors - known).abs() < 0.1, "{last}");
    assert!((sectors / 204_800.0 - 1.0).abs() < 0.1, "an estimate of the written sectors: {last}");
}
