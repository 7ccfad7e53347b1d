//! Reading of written files, and of foreign, truncated and wrong files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

use crate::formats::format::Opened;
use crate::model::metadata::{Counts, Device, Metadata};
use crate::model::request::{DeviceId, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::{Kind, Reader, Row};

use crate::formats::support::arbitrary::{any_record, any_request};

use super::write::GROUP_ROWS;

fn rows<R: Row>(reader: &mut dyn Reader<R>) -> Vec<R> {
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    rows
}

pub(super) fn open_load(path: &Path) -> (Vec<Request>, Metadata) {
    let Opened::Load(mut reader) = crate::open(path).unwrap() else { panic!("not a load") };
    assert!(reader.has_totals());
    let rows = rows(reader.as_mut());
    (rows, reader.metadata().clone())
}

#[test]
fn a_kept_table_is_a_complete_file_at_any_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.load.parquet");
    let hidden = || fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let about = Metadata { complete: false, ..Metadata::new(Kind::Load, "test") };
    let rows: Vec<Request> =
        (0..10).map(|number| Request::new(Nanos(number), Op::Read, Sector(8), Sectors(8))).collect();
    let mut writer = crate::create_load(&path, &about).unwrap();
    let mut written = 0;
    for length in [0, 1, 1, 5, 10] {
        for row in &rows[written..length] {
            writer.write(row).unwrap();
        }
        // Before the first checkpoint there is nothing to read.
        assert!(length == 0 || open_load(&hidden()).0 == rows[..written], "later rows are not kept yet");
        written = length;
        writer.checkpoint(&about).unwrap();
        let (kept, metadata) = open_load(&hidden());
        assert_eq!(kept, rows[..length]);
        assert_eq!((metadata.counts.requests, metadata.complete), (length as u64, false));
    }
    writer.finish(&Metadata { complete: true, ..about.clone() }).unwrap();
    assert_eq!(hidden(), path);
    let (all, metadata) = open_load(&path);
    assert_eq!((all, metadata.complete), (rows.clone(), true));
}

#[test]
fn rows_after_a_checkpoint_do_not_fill_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let hidden = || fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let about = Metadata { complete: false, ..Metadata::new(Kind::Load, "test") };
    let mut writer = crate::create_load(&directory.path().join("a.load.parquet"), &about).unwrap();
    writer.checkpoint(&about).unwrap();
    // Numbers that do not compress, in more row groups than are held in memory.
    let random = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    for number in 0..5 * GROUP_ROWS as u64 {
        let request = Request::new(Nanos(number as i64), Op::Read, Sector(random(number)), Sectors(8));
        writer.write(&Request { latency: Some(Nanos(random(!number) as i64)), ..request }).unwrap();
    }
    let kept = || open_load(&hidden()).1.counts.requests;
    let before = kept();
    assert!(before > 0 && before.is_multiple_of(GROUP_ROWS as u64), "{before}");
    drop(writer);
    assert_eq!(kept(), before, "it remains without finish");
}

pub(super) fn error(path: &Path) -> String {
    match crate::open(path) {
        Ok(_) => panic!("opened"),
        Err(e) => e.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn loads_are_read_as_written(written in prop::collection::vec(any_request(), 0..50)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.load.parquet");
        let mut metadata = Metadata::new(Kind::Load, "classic");
        metadata.counts = Counts { bad_lines: 3, lost_events: 4, ..Counts::default() };
        metadata.devices.push(Device { name: "sdb".into(), sectors: Some(7) });
        metadata.complete = false;
        metadata.warning("oh");
        let mut writer = crate::create_load(&path, &metadata).unwrap();
        for row in &written {
            writer.write(row).unwrap();
            metadata.count_request(row);
        }
        prop_assert!(writer.finish(&metadata).unwrap().warnings.is_empty());
        let (read, footer) = open_load(&path);
        let named = written.iter().map(|row| usize::from(row.device.0) + 1).max().unwrap_or(0);
        let mut footer = footer;
        let told = footer.warnings.pop_if(|said| said.contains("but the footer lists only 2"));
        prop_assert_eq!(told.is_some(), named > 2);
        for number in metadata.devices.len()..named {
            metadata.devices.push(Device { name: format!("device {number}"), sectors: None });
        }
        prop_assert_eq!(read, written);
        prop_assert_eq!(footer, metadata);
    }

    #[test]
    fn runs_are_read_as_written(written in prop::collection::vec(any_record(), 0..50)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.replay.parquet");
        let mut metadata = Metadata::new(Kind::Replay, "classic");
        metadata.run = serde_json::from_str(r#"{"statistics": {"iops": 1.5}}"#).unwrap();
        let mut writer = crate::create_run(&path, &metadata).unwrap();
        for row in &written {
            writer.write(row).unwrap();
            metadata.count_record(row);
        }
        writer.finish(&metadata).unwrap();
        let Opened::Run(mut reader) = crate::open(&path).unwrap() else { panic!("not a run") };
        prop_assert_eq!(rows(reader.as_mut()), written);
        prop_assert_eq!(reader.metadata(), &metadata);
    }
}

#[test]
fn row_groups_are_bounded_and_read_in_sequence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.load.parquet");
    let metadata = Metadata::new(Kind::Load, "classic");
    let mut writer = crate::create_load(&path, &metadata).unwrap();
    let request = |i: i64| Request::new(Nanos(i * 1000), Op::Read, Sector(i as u64 * 8 % 9999), Sectors(8));
    let count = 600_000;
    for i in 0..count {
        writer.write(&request(i)).unwrap();
    }
    writer.finish(&metadata).unwrap();
    let Opened::Load(mut reader) = crate::open(&path).unwrap() else { panic!("not a load") };
    assert_eq!(reader.metadata().counts.reads, count as u64);
    for i in 0..count {
        assert_eq!(reader.next().unwrap(), Some(request(i)));
    }
    assert_eq!(reader.next().unwrap(), None);
    let file = ::parquet::file::serialized_reader::SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(::parquet::file::reader::FileReader::num_row_groups(&file), 3);
}

#[test]
fn a_row_whose_time_is_an_end_of_the_range_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[1, 2, i64::MAX], None);
    let mut reader = crate::open_load(&path).unwrap();
    let mut times = Vec::new();
    while let Some(request) = reader.next().unwrap() {
        times.push(request.at.0);
    }
    assert_eq!((times, reader.metadata().counts.bad_lines), (vec![1, 2], 1));
}

/// A load as another program may write it: other types, another order, nulls, no metadata.
pub(super) fn foreign(path: &Path, times: &[i64], footer: Option<&str>) {
    let schema = parse_message_type(
        "message m { optional binary op (UTF8); optional int32 sectors; optional double sector; optional int64 at_ns;
                     optional int32 extra; optional int64 device; }",
    );
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer =
        SerializedFileWriter::new(fs::File::create(path).unwrap(), Arc::new(schema.unwrap()), properties).unwrap();
    for group in times.chunks(2) {
        let mut groups = writer.next_row_group().unwrap();
        let all = vec![1; group.len()];
        let mut column = groups.next_column().unwrap().unwrap();
        let ops = vec![ByteArray::from("write"); group.len()];
        column.typed::<ByteArrayType>().write_batch(&ops, Some(&all), None).unwrap();
        column.close().unwrap();
        let mut column = groups.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&vec![8; group.len()], Some(&all), None).unwrap();
        column.close().unwrap();
        let mut column = groups.next_column().unwrap().unwrap();
        let mut levels = all.clone();
        let mut sectors = vec![64.0; group.len()];
        if group[0] == 13 {
            (levels[0], sectors[0]) = (0, 72.0);
            sectors.pop();
        }
        column.typed::<DoubleType>().write_batch(&sectors, Some(&levels), None).unwrap();
        column.close().unwrap();
        let mut column = groups.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(group, Some(&all), None).unwrap();
        column.close().unwrap();
        let mut column = groups.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[], Some(&vec![0; group.len()]), None).unwrap();
        column.close().unwrap();
        let mut column = groups.next_column().unwrap().unwrap();
        let devices: Vec<i64> = group.iter().map(|at| at % 3).collect();
        column.typed::<Int64Type>().write_batch(&devices, Some(&all), None).unwrap();
        column.close().unwrap();
        groups.close().unwrap();
    }
    if let Some(json) = footer {
        let pair = ::parquet::file::metadata::KeyValue::new("iosonar".to_owned(), json.to_owned());
        writer.append_key_value_metadata(pair);
    }
    writer.close().unwrap();
}

#[test]
fn rows_of_foreign_tables_are_counted_at_opening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[3, 4, 13, 14, 20], None);
    let (rows, metadata) = open_load(&path);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[2].at, Nanos(14));
    assert_eq!((rows[2].sector.0, rows[2].sectors.0, rows[2].op), (72, 8, Op::Write));
    assert_eq!((metadata.counts.requests, metadata.counts.bad_lines), (4, 1));
    assert_eq!((metadata.span.first_ns, metadata.span.last_ns), (3, 20));
    assert_eq!(metadata.devices.len(), 3);
    assert!(metadata.warnings[0].contains("row 2"), "{:?}", metadata.warnings);
}

#[test]
fn foreign_tables_are_sorted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[30, 4, 15, 14, 20], None);
    let (rows, metadata) = open_load(&path);
    assert_eq!(rows.iter().map(|r| r.at.0).collect::<Vec<_>>(), [4, 14, 15, 20, 30]);
    assert!(metadata.warnings.iter().any(|n| n.contains("sorted")), "{:?}", metadata.warnings);
}

#[test]
fn a_stale_footer_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    let mut metadata = Metadata::new(Kind::Load, "classic");
    metadata.counts.requests = 99;
    metadata.source.preamble = "kept".into();
    foreign(&path, &[1, 2, 3], Some(&serde_json::to_string(&metadata).unwrap()));
    let (_, metadata) = open_load(&path);
    assert_eq!(metadata.counts.requests, 3);
    assert_eq!(metadata.source.preamble, "kept");
    assert!(metadata.warnings[0].contains("99"), "{:?}", metadata.warnings);
}

/// Other programs change rows, sort them or not, and copy the footer unchanged.
#[test]
fn the_footer_is_not_trusted_in_a_file_of_another_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    let mut metadata = Metadata::new(Kind::Load, "classic");
    metadata.counts = Counts { requests: 3, reads: 3, bad_lines: 7, ..Counts::default() };
    metadata.span.max_end_sector = 8;
    metadata.devices = ["a", "b", "c"].map(|name| Device { name: name.into(), sectors: None }).to_vec();
    foreign(&path, &[3, 1, 2], Some(&serde_json::to_string(&metadata).unwrap()));
    let (rows, read) = open_load(&path);
    assert_eq!(rows.iter().map(|r| r.at.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((read.counts.requests, read.counts.writes, read.counts.bad_lines), (3, 3, 7));
    assert_eq!((read.span.last_ns, read.span.max_end_sector), (3, 72));
    assert_eq!(read.devices, metadata.devices);
    assert!(read.warnings.iter().any(|n| n.contains("does not describe the rows")), "{:?}", read.warnings);
    assert!(read.warnings.iter().any(|n| n.contains("were sorted")), "{:?}", read.warnings);
    // Without changed rows there is no warning.
    metadata.counts = read.counts;
    metadata.span = read.span;
    foreign(&path, &[1, 2, 3], Some(&serde_json::to_string(&metadata).unwrap()));
    assert_eq!(open_load(&path).1, metadata);
}

#[test]
fn devices_that_the_footer_does_not_list_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.load.parquet");
    let metadata = Metadata::new(Kind::Load, "classic");
    let mut writer = crate::create_load(&path, &metadata).unwrap();
    let request = Request::new(Nanos(1), Op::Read, Sector(8), Sectors(8));
    writer.write(&Request { device: DeviceId(2), ..request }).unwrap();
    writer.finish(&metadata).unwrap();
    let about = open_load(&path).1;
    let names: Vec<&str> = about.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["", "device 1", "device 2"]);
    assert!(about.warnings[0].starts_with("there are requests for device 2, but the footer lists only 1"));
}

#[test]
fn a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[1, 2, 3], Some(r#"{"schema_version": 99, "wholly": "different"}"#));
    assert!(error(&path).contains("version 99"), "{}", error(&path));
}

#[test]
fn a_table_of_an_unlisted_kind_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[1, 2, 3], Some(r#"{"schema_version": 3, "kind": "network"}"#));
    let expected = "a table of the kind `network`, not a load of requests or a run of requests; `iosonar info`";
    assert!(error(&path).contains(expected), "{}", error(&path));
}

#[test]
fn a_truncated_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[1, 2, 3], None);
    let whole = fs::read(&path).unwrap();
    for length in [4, 11, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(error(&path).contains("cut short"), "{}", error(&path));
    }
    fs::write(&path, "0 ; 8 ; 8 ; R\n".repeat(9)).unwrap();
    let error = crate::open_file(&path, crate::formats::by_name("parquet"), &crate::Options::default()).err().unwrap();
    assert!(error.to_string().ends_with("not a Parquet file, which begins with PAR1"), "{error}");
}

/// The library would loop over such lists for hours.
#[test]
fn lists_of_too_many_elements_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    foreign(&path, &[1, 2, 3], None);
    let whole = fs::read(&path).unwrap();
    // An unknown field, 100: a list that claims 2^31 - 1 doubles but has none; and such a list of booleans.
    let list = |element: u8| [9, 200, 1, 0xf0 | element, 0xff, 0xff, 0xff, 0xff, 7];
    let mut page = whole.clone();
    page[4..13].copy_from_slice(&list(7));
    let footer = [&whole[..], &list(1), &[0, 10, 0, 0, 0], b"PAR1"].concat();
    for damaged in [page, footer] {
        fs::write(&path, damaged).unwrap();
        assert!(error(&path).contains("damaged Parquet: its "), "{}", error(&path));
    }
}

#[test]
fn the_error_for_another_table_names_the_missing_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    for (schema, what) in [
        ("message m { required int64 x; }", "neither a load"),
        ("message m { required int64 at_ns; required int64 sector; required binary op (UTF8); }", "sectors is missing"),
        (
            "message m { required binary at_ns; required int64 sector; required int64 sectors; required binary op; }",
            "at_ns",
        ),
    ] {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        SerializedFileWriter::new(fs::File::create(&path).unwrap(), schema, properties).unwrap().close().unwrap();
        assert!(error(&path).contains(what), "{}", error(&path));
    }
}

/// Words of libraries about their own structures.
const FOREIGN: [&str; 8] =
    ["Required field", "EOF", "frame", "Unexpected", " at line ", "utf", "Parquet error", "decompressed"];

#[test]
fn damage_is_said_in_own_words_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    for name in ["v3.load.parquet", "v3.replay.parquet"] {
        let whole = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap();
        let cut = (4..whole.len()).step_by(97).map(|length| whole[..length].to_vec());
        let flipped = (4..whole.len()).step_by(3).map(|place| {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            bytes
        });
        for bytes in cut.chain(flipped) {
            fs::write(&path, bytes).unwrap();
            let read = crate::open(&path).and_then(|opened| match opened {
                Opened::Load(mut rows) => {
                    std::iter::from_fn(|| rows.next().transpose()).try_for_each(|row| row.map(drop))
                }
                Opened::Run(mut rows) => {
                    std::iter::from_fn(|| rows.next().transpose()).try_for_each(|row| row.map(drop))
                }
            });
            let Err(error) = read else { continue };
            let text = error.to_string();
            assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
            assert!(!FOREIGN.iter().any(|words| text.contains(words)), "{text}");
        }
    }
}
