//! Descriptions by users, and bad input.

mod bundled;

use std::io::Write as _;
use std::sync::Arc;

use super::{ColumnOptions, Description, FORMAT, from_columns, keys};
use crate::formats::format::Options;
use crate::formats::support::check::{input, rows};
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Flags, Op, Request};
use crate::model::units::Nanos;
use crate::params::schema_of;

/// The rows of a file by a description.
fn by(description: &Arc<Description>, content: &[u8]) -> (Vec<Request>, Metadata) {
    let options = Options { description: Some(Arc::clone(description)), ..Options::default() };
    rows((FORMAT.open)(input(content), &options).unwrap())
}

fn by_toml(toml: &str, content: &[u8]) -> (Vec<Request>, Metadata) {
    by(&Description::parse("d.toml", toml).unwrap(), content)
}

fn by_columns(columns: &str, content: &[u8]) -> (Vec<Request>, Metadata) {
    by(&from_columns(&ColumnOptions { columns: columns.to_owned(), ..ColumnOptions::default() }).unwrap(), content)
}

const COLUMNS: &str = "at=1:us op=3(R=read,W=write) offset=4:bytes size=5:bytes latency=7:us device=2";

const CSV: &[u8] = b"1000,sda,R,4096,8192,x,250\n1500,sdb,W,512,512,x,\n";

#[test]
fn columns_have_numbers_units_and_words() {
    let (rows, about) = by_columns(COLUMNS, CSV);
    assert_eq!((rows.len(), about.counts.bad_lines, about.complete), (2, 0, true), "{:?}", about.warnings);
    let first = &rows[0];
    assert_eq!((first.at.0, first.op, first.sector.0, first.sectors.0), (1_000_000, Op::Read, 8, 16));
    assert_eq!((first.latency, rows[1].latency), (Some(Nanos(250_000)), None));
    assert_eq!(about.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>(), ["sda", "sdb"]);
    assert_eq!((about.source.format.as_str(), about.request_time), ("described", RequestTime::Queued));
}

#[test]
fn separators_are_found_and_line_ends_do_not_matter() {
    let text = String::from_utf8(CSV.to_vec()).unwrap();
    let expected = by_columns(COLUMNS, CSV).0;
    for (from, to) in [(",", ";"), (",", "\t"), (",", " | "), ("\n", "\r\n"), (",x,\n", ",x,-\n")] {
        assert_eq!(by_columns(COLUMNS, text.replace(from, to).as_bytes()).0, expected, "{to:?}");
    }
    let blanks = text.replace(",\n", ",-\n").replace(',', "   ");
    assert_eq!(by_columns(COLUMNS, blanks.as_bytes()).0, expected);
    let with_mark = [&b"\xef\xbb\xbf"[..], CSV].concat();
    assert_eq!(by_columns(COLUMNS, &with_mark).0, expected);
}

#[test]
fn a_first_line_of_words_is_a_heading() {
    let heading = [&b"time,dev,kind,pos,len,x,lat\n"[..], CSV].concat();
    let (rows, about) = by_columns(COLUMNS, &heading);
    assert_eq!((rows.len(), about.counts.bad_lines), (2, 0), "{:?}", about.warnings);
    let skipped = ColumnOptions { columns: COLUMNS.to_owned(), skip: Some(2), ..ColumnOptions::default() };
    let (rows, about) = by(&from_columns(&skipped).unwrap(), &[&b"1 trace\n"[..], &heading].concat());
    assert_eq!((rows.len(), about.counts.bad_lines), (2, 0));
}

#[test]
fn columns_may_have_names_in_a_heading() {
    let columns = "at=Time:ms op=Kind offset='Start (sectors)':sectors size=len comm=Name";
    let text = b"a trace, of something\n#Kind,\"Start (sectors)\",LEN,Time (ms),Name\n\
                 Read,16,4096,1.5,\"x, \"\"y\"\"\"\n#Kind,\"Start (sectors)\",LEN,Time (ms),Name\nWS,8,512,2,z\n";
    let (rows, about) = by_columns(columns, text);
    assert_eq!((rows.len(), about.counts.bad_lines), (2, 0), "{:?}", about.warnings);
    assert_eq!((rows[0].at.0, rows[0].sector.0, rows[0].comm.as_str()), (1_500_000, 16, "x, \"y\""));
    assert_eq!((rows[1].op, rows[1].flags), (Op::Write, Flags::SYNC));
    let (rows, about) = by_columns(columns, CSV);
    assert!(rows.is_empty());
    assert_eq!(about.warnings, ["no line names the columns Time, Kind, Start (sectors), len, Name"]);
    let (_, about) = by_columns(columns, b"Time,Kind,Begin (sectors),Len,Name\n1,R,2,3,x\n");
    assert_eq!(about.warnings, ["the heading `Time,Kind,Begin (sectors),Len,Name` lacks Start (sectors)"]);
    let many = b"a,b\n".repeat(100);
    assert_eq!(by_columns(columns, &many).1.counts.bad_lines, 50);
}

#[test]
fn times_count_from_what_the_description_says() {
    let of = |columns: &str, lines: &str| {
        let (rows, about) = by_columns(&format!("{columns} op=always:write offset=2 size=always:4k"), lines.as_bytes());
        assert_eq!(about.counts.bad_lines, 0, "{columns}: {:?}", about.warnings);
        (rows.iter().map(|row| row.at.0).collect::<Vec<_>>(), about.epoch_unix_ns)
    };
    assert_eq!(of("at=1:ns", "5,0\n7,0\n"), (vec![5, 7], None));
    assert_eq!(of("at=1:ns,boot", "5,0\n7,0\n"), (vec![0, 2], None));
    assert_eq!(of("at=1:ns,before", "5,0\n7,0\n"), (vec![5, 12], None));
    assert_eq!(of("at=1:ms,x0.5", "5,0\n7,0\n"), (vec![2_500_000, 3_500_000], None));
    assert_eq!(of("at=1:us", "1577808144360767,0\n"), (vec![0], Some(1_577_808_144_360_767_000)));
    let of_windows = "128166372003061629,0\n128166372003061630,0\n";
    assert_eq!(of("at=1:100ns,1601", of_windows), (vec![0, 100], Some(1_172_163_600_306_162_900)));
    let dates = "2024-01-01 00:00:01.5,0\n2024-01-01 00:00:02,0\n";
    assert_eq!(of("at=1:date", dates), (vec![0, 500_000_000], Some(1_704_067_201_500_000_000)));
    assert_eq!(of("at=1:clock", "23:59:59,0\n00:00:01.5,0\n"), (vec![0, 2_500_000_000], None));
}

#[test]
fn times_are_rounded_after_unit_and_factor() {
    for columns in ["at=1:h", "at=1:s,x3600", "at=1:min,x60", "at=1:ms,x3600000"] {
        let latency = columns.replace("at=1", "latency=3");
        let columns = format!("{columns} {latency} op=always:write offset=2 size=always:4k");
        let (rows, about) = by_columns(&columns, b"1.23456789012,0,0.00000000001\n1.23456789012e0,0,1e-11\n");
        assert_eq!(about.counts.bad_lines, 0, "{columns}: {:?}", about.warnings);
        for row in rows {
            assert_eq!((row.at.0, row.latency), (4_444_444_404_432, Some(Nanos(36))), "{columns}");
        }
    }
}

#[test]
fn times_too_far_from_the_line_before_are_bad() {
    let columns = "at=1:h,before op=always:write offset=2 size=always:4k";
    let (rows, about) = by_columns(columns, b"1,0\n2562000,0\n2562000,0\n1,0\n");
    assert_eq!((rows.len(), about.counts.bad_lines), (3, 1), "{:?}", about.warnings);
    assert_eq!(rows[2].at.0, 2_562_002 * 3_600_000_000_000);
}

#[test]
fn a_completion_and_a_time_give_the_latency() {
    let rest = "op=always:read offset=1 size=2:sectors";
    let (rows, _) = by_columns(&format!("at=3 completed=4 {rest}"), b"0,1,1.5,1.75\n");
    assert_eq!((rows[0].at.0, rows[0].latency), (1_500_000_000, Some(Nanos(250_000_000))));
    let (rows, about) = by_columns(&format!("completed=3 latency=4:ms {rest}"), b"0,1,1.5,500\n0,1,2,\n");
    assert_eq!((rows[0].at.0, rows[0].latency), (1_000_000_000, Some(Nanos(500_000_000))));
    assert!(about.warnings[0].starts_with("line 2 left out: no time: "), "{:?}", about.warnings);
}

#[test]
fn devices_are_spelled_in_several_ways() {
    let names = |device: &str, content: &str| {
        let (_, about) = by_columns(&format!("at=1 op=2 offset=3 size=4 {device}"), content.as_bytes());
        about.devices.iter().map(|device| device.name.clone()).chain(about.warnings).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(names("device=5", "0,R,0,512,sda\n"), "sda");
    assert_eq!(names("device=5:major:minor", "0,R,0,512,8:16\n"), "8,16");
    assert_eq!(names("device=5:dev_t", "0,R,0,512,271581185\n"), "259,1");
    assert_eq!(names("device=5 minor=6", "0,R,0,512,8,16\n0,R,0,512,hm,1\n"), "8,16; hm.1");
    assert_eq!(names("device=always:vol", "0,R,0,512\n"), "vol");
    assert!(names("device=5:number", "0,R,0,512,sda\n").contains("the device is not a whole number"));
    assert!(names("device=5:major:minor", "0,R,0,512,sda\n").contains("the device is not MAJOR:MINOR"));
}

#[test]
fn rows_of_other_kinds_are_counted() {
    let (rows, about) = by_columns(
        "at=1 op=3(R=read,*=skip) offset=4:sectors size=5:sectors only=2(D)",
        b"0,D,R,0,8\n0,C,R,0,8\n0,d,X,0,8\n0,Q,R,0,8\n",
    );
    assert_eq!((rows.len(), about.counts.bad_lines), (1, 0));
    assert_eq!(
        about.warnings,
        ["rows left out that match no word of `only`: 2", "rows left out that are not requests: 1"]
    );
}

#[test]
fn columns_count_from_the_end_too() {
    let (rows, about) = by_columns(
        "at=1 op=-3 offset=-2:sectors size=-1 comm=2",
        b"1.5 fio R 8 4096\n1.6 my long name W 16 512\n1.7 R 8\n",
    );
    assert_eq!((rows[0].op, rows[1].op, rows[1].sector.0), (Op::Read, Op::Write, 16));
    assert_eq!(about.counts.bad_lines, 1);
}

#[test]
fn a_pattern_has_groups_with_names_of_fields() {
    let toml = r#"
pattern = '(?<at>[0-9.]+): (?<comm>.+)\((?<pid>[0-9]+)\): (?<op>READ|WRITE) block (?<offset>[0-9]+) on (?<device>[a-z0-9]+) \((?<size>[0-9]+) sectors\)'
others = "ignore"
at = { unit = "s", origin = "boot" }
offset = { unit = "sectors" }
size = { unit = "sectors" }
"#;
    let text = b"[  100.5] other message\n100.25: dd (x)(17): WRITE block 64 on sda1 (8 sectors)\n";
    let (rows, about) = by_toml(toml, text);
    assert_eq!((rows.len(), about.counts.bad_lines), (1, 0), "{:?}", about.warnings);
    let row = &rows[0];
    assert_eq!(
        (row.op, row.sector.0, row.sectors.0, row.pid, row.comm.as_str()),
        (Op::Write, 64, 8, Some(17), "dd (x)")
    );
    let (_, about) = by_toml(&toml.replace("others = \"ignore\"\n", ""), text);
    assert_eq!(about.counts.bad_lines, 1);
    assert!(about.warnings[0].contains("the pattern does not match"), "{:?}", about.warnings);
}

const RECORDS: &str = "record = 16\nbyte_order = \"big\"\nat = { byte = 0, width = 4, unit = \"ms\" }\n\
    offset = { byte = 4, width = 6, unit = \"sectors\" }\nsize = { byte = 10, width = 2, unit = \"sectors\" }\n\
    op = { byte = 12, width = 1, map = { 0x28 = \"read\", 0x2a = \"write\", \"*\" = \"skip\" } }\n\
    latency = { byte = 13, width = 3, unit = \"us\", signed = true }\n";

#[test]
fn records_have_numbers_of_any_width() {
    let record = |at: u32, sector: u64, op: u8, latency: i32| {
        let mut record = at.to_be_bytes().to_vec();
        record.extend(&sector.to_be_bytes()[2..]);
        record.extend([0, 8, op]);
        record.extend(&latency.to_be_bytes()[1..]);
        record
    };
    let all = [record(1, 1 << 40, 0x28, 300), record(2, 7, 0x12, 5), record(3, 8, 0x2a, -1)].concat();
    let (rows, about) = by_toml(RECORDS, &all);
    assert_eq!((rows.len(), about.counts.bad_lines, about.complete), (2, 0, true), "{:?}", about.warnings);
    assert_eq!((rows[0].at.0, rows[0].sector.0, rows[0].latency), (1_000_000, 1 << 40, Some(Nanos(300_000))));
    assert_eq!((rows[1].op, rows[1].latency, about.counts.impossible_times), (Op::Write, None, 1));
    let (rows, about) = by_toml(RECORDS, &all[..40]);
    assert_eq!((rows.len(), about.complete), (1, false));
    assert!(about.warnings.iter().any(|text| text.starts_with("record 3 has only 8 bytes")), "{:?}", about.warnings);
    let far = record(1, 1 << 47, 0x28, 0);
    let (rows, about) = by_toml(&RECORDS.replace("\"sectors\" }\nsize", "\"1G\" }\nsize"), &far);
    assert_eq!((rows.len(), about.counts.bad_lines), (0, 1));
    assert!(
        about.warnings[0].starts_with("record 1 left out: the request is beyond any device"),
        "{:?}",
        about.warnings
    );
}

#[test]
fn bad_lines_are_counted_with_their_reason() {
    for (line, reason) in [
        ("1000,sda,R,4096,8192,x", "fewer columns than the description has"),
        ("1000,sda,T,4096,8192,x,1", "the operation is none of the words"),
        ("1000,sda,R,-1,8192,x,1", "the offset is not a whole number"),
        ("1000,sda,R,4096,1.5,x,1", "the size is not a whole number"),
        ("1000,sda,R,99999999999999999999,8192,x,1", "the request is beyond any device"),
        ("1000,sda,R,18446744073709551615,8192,x,1", "the request is beyond any device"),
        ("x,sda,R,4096,8192,x,1", "the time is not a number"),
        ("99999999999999999999,sda,R,4096,8192,x,1", "the time is too large"),
        ("1000,sda,R,4096,8192,x,soon", "the latency is not a number"),
        ("\"", "fewer columns than the description has"),
    ] {
        let text = [CSV, line.as_bytes(), b"\n"].concat();
        let (rows, about) = by_columns(COLUMNS, &text);
        assert_eq!((rows.len(), about.counts.bad_lines), (2, 1), "{line}");
        assert!(about.warnings[0].starts_with(&format!("line 3 left out: {reason}")), "{line}: {:?}", about.warnings);
    }
}

#[test]
fn empty_cut_and_huge_files_are_read_as_far_as_possible() {
    assert!(by_columns(COLUMNS, b"").0.is_empty());
    let (rows, about) = by_columns(COLUMNS, &CSV[..CSV.len() - 2]);
    assert_eq!((rows.len(), about.complete), (1, false));
    let huge = [CSV, &b"9,".repeat(300_000), b"\n", CSV].concat();
    let (rows, about) = by_columns(COLUMNS, &huge);
    assert_eq!((rows.len(), about.counts.bad_lines), (4, 1));
    let binary: Vec<u8> = (0..100_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    assert!(by_columns(COLUMNS, &binary).0.is_empty());
}

#[test]
fn compressed_files_are_unpacked() {
    let expected = by_columns(COLUMNS, CSV).0;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CSV).unwrap();
    assert_eq!(by_columns(COLUMNS, &gzip.finish().unwrap()).0, expected);
    assert_eq!(by_columns(COLUMNS, &zstd::encode_all(CSV, 1).unwrap()).0, expected);
}

#[test]
fn numbers_may_have_groups_and_another_decimal_sign() {
    let toml = "separator = \";\"\nthousands = \".\"\ndecimal = \",\"\nat = { column = 1 }\nop = { column = 2 }\n\
                offset = { column = 3 }\nsize = { column = 4, unit = \"KiB\" }\n";
    let (rows, about) = by_toml(toml, b"1.234,5;R;4.096;0,5\n");
    assert_eq!((rows.len(), rows[0].at.0, rows[0].sector.0, rows[0].sectors.0), (1, 1_234_500_000_000, 8, 1));
    assert_eq!(about.counts.bad_lines, 0);
}

#[test]
fn errors_name_file_line_and_column() {
    let good = "at = { column = 1 }\nop = { column = 2 }\noffset = { column = 3 }\nsize = { column = 4 }\n";
    Description::parse("d.toml", good).unwrap();
    for (toml, said) in [
        (
            format!("{good}latency = {{ column = 5, unit = \"parsec\" }}\n"),
            "d.toml:5:32: latency, unit: `parsec` is not a unit of time",
        ),
        (format!("{good}color = 1\n"), "d.toml:5:1: color: unknown key; "),
        (format!("{good}pid = {{ colum = 5 }}\n"), "d.toml:5:9: pid, colum: unknown key; did you mean column?"),
        (format!("{good}pid = {{ column = 0 }}\n"), "d.toml:5:18: pid, column: columns count from 1"),
        (format!("{good}pid = {{ byte = 0 }}\n"), "d.toml:5:16: pid, byte: only records"),
        (
            format!("{good}pid = {{ column = 5, optional = true }}\n"),
            "d.toml:5:32: pid, optional: only a column with a name",
        ),
        (format!("{good}pid = {{}}\n"), "d.toml:5:7: pid, column: missing; say its number"),
        (
            format!("{good}latency = {{ column = 5, unit = \"heading\" }}\n"),
            "d.toml:5:11: latency: only a column with a name",
        ),
        (format!("{good}separator = \"ab\"\n"), "d.toml:5:13: separator: `ab` is not one character"),
        (format!("{good}others = \"ignore\"\n"), "d.toml:5:10: others: only lines with a pattern"),
        (format!("{good}recognise = \"heading\"\n"), "d.toml:5:13: recognise: no column has a name"),
        (format!("{good}only = {{ column = 3 }}\n"), "d.toml:5:8: only, words: missing"),
        (
            good.replace("op = { column = 2 }", "op = { column = 2, map = { R = \"red\" } }"),
            "d.toml:2:32: op.map, R: `red` is no operation",
        ),
        (
            good.replace("op = { column = 2 }", "op = { column = 2, mask = 1 }"),
            "d.toml:2:27: op, mask: only numbers of a map",
        ),
        (good.replace("size = { column = 4 }", ""), "d.toml:1:1: size: missing: the length"),
        (
            good.replace("at = { column = 1 }", "at = { column = 1, origin = \"birth\" }"),
            "d.toml:1:29: at, origin: `birth` is unknown",
        ),
        (
            good.replace("at = { column = 1 }", "at = { column = 1, origin = \"before\" }")
                + "completed = { column = 9 }\n",
            "d.toml:5:13: completed: times that count from the line before",
        ),
        ("at = {".to_owned(), "d.toml:1:7: "),
        ("pattern = '('\n".to_owned(), "d.toml:1:11: pattern: not a regular expression: unclosed group"),
        ("pattern = '(?<time>x)'\n".to_owned(), "d.toml:1:11: pattern: no field for the group time"),
        (
            "pattern = '(?<at>x)'\nsize = { unit = \"k\" }\n".to_owned(),
            "d.toml:2:8: size: the pattern has no group of this name",
        ),
        ("record = 0\n".to_owned(), "d.toml:1:10: record: `0` is not a number of bytes"),
        (RECORDS.replace("record = 16", "record = 15"), "d.toml:7:20: latency, byte: byte 13 and the 3 from there"),
        (RECORDS.replace("width = 3", "width = 9"), "d.toml:7:32: latency, width: a number has 1 to 8 bytes"),
    ] {
        let error = Description::parse("d.toml", &toml).unwrap_err();
        assert!(error.starts_with(said), "{toml}: {error}");
    }
}

/// After a change of the keys: `IOSONAR_UPDATE_SCHEMA=1 cargo test --workspace the_schema`.
#[test]
fn the_schema_in_the_documentation_has_all_keys() {
    let mut schema = schema_of(keys::DESCRIPTION);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "A format of traces for `iosonar convert --description`, in TOML".into();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/format.json");
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("IOSONAR_UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap_or_default() == text, "docs/schemas/format.json is out of date");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_description_and_any_bytes_are_read_or_refused(
            columns in "[a-z]{2,6}=[0-9]:[a-z,]{0,6}( [a-z]{2,6}=-?[0-9]){0,4}", toml in "[a-z0-9 =\n\"{}]{0,80}",
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let options = ColumnOptions { columns, ..ColumnOptions::default() };
            for description in [from_columns(&options), Description::parse("d.toml", &toml)].into_iter().flatten() {
                by(&description, &bytes);
            }
            for description in [COLUMNS, "at=1 op=-1 offset=2 size=3"] {
                by_columns(description, &bytes);
            }
            by_toml(RECORDS, &bytes);
        }
    }
}
