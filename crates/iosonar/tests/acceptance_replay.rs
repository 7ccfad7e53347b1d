//! Replays the natural loads on a loop device over a file in memory, and converts the results to text and back. Run by
//! `make acceptance`.

use std::path::Path;

use iosonar_testing::{LoopDevice, Need, left_out};
use iosonar_trace::{IoResult, Op, Outcome};

use crate::replaying::{Bench, Finished, MIB};

/// Replays a load with that many rows, whose highest request ends at `max_end_sector`.
fn check(name: &str, requests: u64, max_end_sector: u64) {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(2048 * MIB));
    let path = iosonar_testing::loads().join(name);
    let ran = bench.replay(&path, device.path(), &["--speedup", "100"]).with_code(0);

    let mut load = iosonar_trace::open_load(&path).unwrap();
    let rows = ran.by_request();
    assert_eq!(rows.len() as u64, requests);
    let device_sectors = 2048 * MIB / 512;
    let mut beyond_end = 0;
    for (number, row) in rows.iter().enumerate() {
        let request = load.next().unwrap().expect("as many as rows");
        assert_eq!(row.request, number as u64);
        assert_eq!((row.source_sector, row.op), (request.sector, request.op));
        assert_eq!(row.sectors, request.sectors);
        let wrapped = request.sector.0 % device_sectors;
        if wrapped + request.sectors.0 > device_sectors {
            assert_eq!((row.outcome, row.issued), (Outcome::BeyondEnd, None), "{row:?}");
            beyond_end += 1;
        } else {
            assert_eq!((row.outcome, row.sector.0), (Outcome::Ok, wrapped), "{row:?}");
            assert_eq!(row.bytes_done, row.sectors.bytes());
            assert!(row.scheduled <= row.issued.unwrap(), "never early: {row:?}");
        }
    }
    assert!(load.next().unwrap().is_none());
    let statistics = ran.statistics();
    assert_eq!(statistics["requests"], requests);
    assert_eq!(statistics["completed"], requests - beyond_end);
    assert_eq!(statistics["skipped"]["beyond_end"], beyond_end);
    assert_eq!(
        [&statistics["errors"], &statistics["short"], &statistics["unfinished"], &statistics["bad_lines"]],
        [0; 4]
    );
    assert_eq!(statistics["wrap_factor"], max_end_sector as f64 / device_sectors as f64);
    assert_eq!(statistics["complete"], true);
    assert_no_overlap_in_flight(&rows);

    // The text has all rows; the conversion back is lossless.
    let text = convert(&bench, &ran.result, "r.replay.gz");
    let parquet = convert(&bench, &text.result, "again.replay.parquet");
    for back in [text, parquet] {
        assert!(back.rows() == ran.rows(), "{}", back.result.display());
        assert_eq!(back.footer(), ran.footer());
    }
}

/// Asserts that no two overlapping requests were in flight at the same time, unless both are reads.
fn assert_no_overlap_in_flight(rows: &[IoResult]) {
    let mut issued: Vec<&IoResult> = rows.iter().filter(|row| row.issued.is_some()).collect();
    issued.sort_by_key(|row| row.issued);
    let mut in_flight: Vec<&IoResult> = Vec::new();
    for row in issued {
        in_flight.retain(|earlier| earlier.completed > row.issued);
        for other in &in_flight {
            let overlap = row.sector < other.sector + other.sectors && other.sector < row.sector + row.sectors;
            assert!(!overlap || (row.op == Op::Read && other.op == Op::Read), "{row:?}\n{other:?}");
        }
        in_flight.push(row);
    }
}

fn convert(bench: &Bench, from: &Path, to: &str) -> Finished {
    let to = bench.path(to);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("convert").arg(from).arg(&to).output();
    Finished::of(output.unwrap(), to).with_code(0)
}

#[test]
fn linux_mysql() {
    check("linux-mysql.load.gz", 80_794, 63_587_888);
}

#[test]
fn windows_mssql() {
    check("windows-mssql.load.gz", 42_976, 50_497_669);
}
