//! The descriptions that come with iosonar, on small files after their published definitions.

use super::*;
use crate::formats::described::bundled;
use crate::formats::of_content;
use crate::formats::support::check::{load, recognised_as};

/// Time, operation, sector, length and latency of each row.
fn facts(rows: &[Request]) -> Vec<(i64, Op, u64, u64, Option<i64>)> {
    rows.iter().map(|r| (r.at.0, r.op, r.sector.0, r.sectors.0, r.latency.map(|latency| latency.0))).collect()
}

#[test]
fn every_bundled_description_is_valid() {
    for (name, text) in bundled::TEXTS {
        let file = format!("{name}.toml");
        Description::parse(&file, text).unwrap();
        assert!(text.starts_with('#') && text.contains("Source"), "{file} does not name its source");
    }
    assert_eq!(bundled::FORMATS.len(), bundled::TEXTS.len());
}

#[test]
fn diskmon_has_durations_and_sectors() {
    let text = b"# Time Duration Disk Request Sector Length\r\n0\t0.000000\t0.00005245\t0\tRead\t4098088\t8\r\n\
                 1\t0.125000\t0.001\t1\tWrite\t64\t128\r\n";
    assert_eq!(recognised_as(text), "diskmon");
    let (rows, about) = load("diskmon", text);
    assert_eq!(
        facts(&rows),
        [(0, Op::Read, 4_098_088, 8, Some(52_450)), (125_000_000, Op::Write, 64, 128, Some(1_000_000))]
    );
    assert_eq!((about.counts.bad_lines, about.devices.len()), (0, 2));
}

#[test]
fn disksim_has_milliseconds_and_flags() {
    let (rows, about) = load("disksim", b"0.000000 0 20941264 16 1\n5.250000 1 8 8 0\n6.5 0 16 8 40000001\n");
    assert_eq!(facts(&rows)[..2], [(0, Op::Read, 20_941_264, 16, None), (5_250_000, Op::Write, 8, 8, None)]);
    assert_eq!((rows[2].op, about.counts.bad_lines, about.devices.len()), (Op::Read, 0, 2));
    assert!(of_content(&input(b"0.000000 0 20941264 16 1\n5.250000 1 8 8 0\n")).is_err());
}

#[test]
fn mqsim_has_nanoseconds_and_one_for_reads() {
    let (rows, about) = load("mqsim", b"1000 0 64 8 1\n2500 0 72 16 0\n");
    assert_eq!(facts(&rows), [(1000, Op::Read, 64, 8, None), (2500, Op::Write, 72, 16, None)]);
    assert_eq!(about.counts.bad_lines, 0);
}

#[test]
fn ioda_has_bytes_with_blanks_or_commas() {
    for text in [&b"0.5 0 4096 8192 1\n1.25 0 0 512 0\n"[..], b"0.5,0,4096,8192,1\n1.25,0,0,512,0\n"] {
        let (rows, _) = load("ioda", text);
        assert_eq!(facts(&rows), [(500_000, Op::Read, 8, 16, None), (1_250_000, Op::Write, 0, 1, None)]);
    }
}

#[test]
fn k5cloud_is_recognised_by_its_rows() {
    let text = b"1063,0.000012,R,4096,8192\n1063,1.5,W,0,512\n7,2,W,0,1024\n";
    assert_eq!(recognised_as(text), "k5cloud");
    let (rows, about) = load("k5cloud", text);
    assert_eq!(facts(&rows)[..2], [(12_000, Op::Read, 8, 16, None), (1_500_000_000, Op::Write, 0, 1, None)]);
    assert_eq!((about.devices[1].name.as_str(), about.counts.bad_lines), ("7", 0));
}

#[test]
fn hfplayer_names_its_columns_in_a_comment() {
    let text =
        b"#DUMP_OFFSET.I,ELAPSED_USECS.D,ELAPSED_TICKS.I,CMD.S,INFLIGHT_IOS.I,TS.I,SEQID.I,LUN_SSID.I,OP.I,PHASE.I,\
                 LBA.I,NBLKS.I,LATENCY_TICKS.I,HOST_ID.I,HOST_LUN.I,LATENCY_USECS.D\n\
                 32,50.5,9000,RD,1,9000,11,6,0,0,128,8,77,7,6,180.25\n\
                 60,75,9100,WR_IN,2,9100,12,6,1,0,256,16,78,7,6,90\n\
                 88,95,9200,RD_OUT,1,9200,11,6,2,1,128,8,77,7,6,180.25\n";
    assert_eq!(recognised_as(text), "hfplayer");
    let (rows, about) = load("hfplayer", text);
    assert_eq!(facts(&rows), [(50_500, Op::Read, 128, 8, Some(180_250)), (75_000, Op::Write, 256, 16, Some(90_000))]);
    assert_eq!((about.counts.bad_lines, about.devices[0].name.as_str()), (0, "6"));
}

#[test]
fn iotrace_has_nanoseconds_and_flags() {
    let text =
        b"device.id,device.name,file.id,file.offset,file.size,header.sid,header.timestamp,io.error,io.flush,io.fua,\
                 io.ioClass,io.latency,io.lba,io.len,io.operation,io.qd\n\
                 271581185,nvme0n1,,,,1,9000000100,false,false,false,1,1500,64,8,Read,1\n\
                 271581185,nvme0n1,5,0,3,2,9000000900,false,false,true,11,2500,128,16,Write,1\n\
                 271581185,nvme0n1,,,,3,9000001900,false,true,false,0,500,0,0,Write,1\n";
    assert_eq!(recognised_as(text), "iotrace");
    let (rows, about) = load("iotrace", text);
    assert_eq!(
        facts(&rows),
        [(0, Op::Read, 64, 8, Some(1500)), (800, Op::Write, 128, 16, Some(2500)), (1800, Op::Flush, 0, 0, Some(500))]
    );
    assert_eq!((rows[1].flags, about.devices[0].name.as_str(), about.counts.bad_lines), (Flags::FUA, "nvme0n1", 0));
}

#[test]
fn wpa_takes_units_from_its_heading() {
    let text = "\u{feff}Line #,Disk,IO Type,Process,PID,Priority,Init Time (s),Complete Time (s),IO Time (µs),Min Offset,Size (B)\r\n\
                1,0,Read,System (4),4,Normal,0.250000000,0.250500000,500.000,\"1,048,576\",\"4,096\"\r\n\
                2,1,Write,\"a, b.exe (7)\",7,Low,\"1,000.5\",\"1,000.75\",1,0x200,512\r\n3,1,Flush,x,7,Low,1000.6,1000.7,1,0,0\r\n";
    assert_eq!(recognised_as(text.as_bytes()), "wpa");
    let (rows, about) = load("wpa", text.as_bytes());
    assert_eq!(
        facts(&rows),
        [
            (250_000_000, Op::Read, 2048, 8, Some(500_000)),
            (1_000_500_000_000, Op::Write, 1, 1, Some(250_000_000)),
            (1_000_600_000_000, Op::Flush, 0, 0, Some(100_000_000)),
        ]
    );
    assert_eq!((rows[1].pid, rows[1].comm.as_str(), about.counts.bad_lines), (Some(7), "a, b.exe (7)", 0));
    let in_ms = text.replace("Init Time (s)", "Init Time (ms)").replace("Complete Time (s)", "Complete Time (ms)");
    assert_eq!(
        facts(&load("wpa", in_ms.replace("Size (B)", "Size (KB)").as_bytes()).0)[0],
        (250_000, Op::Read, 2048, 8192, Some(500))
    );
}

#[test]
fn libcachesim_csv_has_no_operations() {
    let (rows, about) =
        load("libcachesim-csv", b"v,time,op,size,lbn\n3,5633898,28,512,42932745\n3,5633899,28,1024,8\n");
    assert_eq!(facts(&rows)[0], (5_633_898_000_000_000, Op::Read, 42_932_745, 1, None));
    assert_eq!((rows.len(), about.counts.bad_lines), (2, 0), "{:?}", about.warnings);
}

#[test]
fn oracle_general_has_records_also_compressed() {
    let record = |at: u32, object: u64, bytes: u32, next: i64| {
        [&at.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &next.to_le_bytes()].concat()
    };
    let all = [record(0, 42_932_745, 512, 3), record(7, 8, 4096, -1)].concat();
    for content in [all.clone(), zstd::encode_all(&all[..], 3).unwrap()] {
        let (rows, about) = load("oracle-general", &content);
        assert_eq!(facts(&rows), [(0, Op::Read, 42_932_745, 1, None), (7_000_000_000, Op::Read, 8, 8, None)]);
        assert!(about.complete);
    }
}

#[test]
fn iosnoop_has_the_start_the_end_or_both() {
    let both = "Tracing block I/O. Ctrl-C to end.\n\
                STARTs         ENDs           COMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                5982800.302061 5982800.302679 supervise        1809   W    202,1    17039600     4096       0.62\n";
    assert_eq!(recognised_as(both.as_bytes()), "iosnoop");
    let (rows, about) = load("iosnoop", both.as_bytes());
    assert_eq!(facts(&rows), [(0, Op::Write, 17_039_600, 8, Some(620_000))]);
    assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(1809), "supervise"));
    assert_eq!((about.devices[0].name.as_str(), about.request_time), ("202,1", RequestTime::Issued));
    let end = both.replace("STARTs         ", "").replace("5982800.302061 ", "");
    let (rows, about) = load("iosnoop", end.as_bytes());
    assert_eq!(
        (rows.len(), rows[0].latency, about.counts.bad_lines),
        (1, Some(Nanos(620_000)), 0),
        "{:?}",
        about.warnings
    );
}
