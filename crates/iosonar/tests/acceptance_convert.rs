//! Converts the natural loads to other formats and back without loss. Run by `make acceptance`.

use std::path::Path;

use iosonar_trace::{Metadata, Op, Reader, Request};
use tempfile::TempDir;

fn read(path: &Path) -> (Vec<Request>, Metadata) {
    let mut reader: Box<dyn Reader<Request>> = iosonar_trace::open_load(path).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

fn convert(directory: &TempDir, from: &Path, to: &str) -> std::path::PathBuf {
    let to = directory.path().join(to);
    assert_cmd::Command::new(env!("CARGO_BIN_EXE_iosonar")).arg("convert").arg(from).arg(&to).assert().success();
    to
}

fn check(name: &str, rows: u64, max_end_sector: u64) {
    let path = iosonar_testing::loads().join(name);
    let (original, metadata) = read(&path);
    assert_eq!(metadata.counts.requests, rows);
    assert_eq!(metadata.span.max_end_sector, max_end_sector);
    assert_eq!((metadata.counts.bad_lines, metadata.counts.time_jumps), (0, 0), "{:?}", metadata.warnings);
    assert!(metadata.complete, "{:?}", metadata.warnings);
    assert!(metadata.source.preamble.starts_with("Copyright Thomas Schoebel-Theuer"));

    let directory = tempfile::tempdir().unwrap();
    let parquet = convert(&directory, &path, "x.load.parquet");
    assert_eq!(read(&parquet), (original.clone(), metadata.clone()));
    let text = convert(&directory, &parquet, "x.load.gz");
    let (again, of_text) = read(&text);
    assert_eq!(again, original);
    assert_eq!(of_text.source.preamble, metadata.source.preamble);
}

#[test]
fn linux_mysql() {
    check("linux-mysql.load.gz", 80_794, 63_587_888);
}

#[test]
fn windows_mssql() {
    check("windows-mssql.load.gz", 42_976, 50_497_669);
}

#[test]
fn the_only_read_ahead_is_a_read() {
    let (rows, _) = read(&iosonar_testing::loads().join("linux-mysql.load.gz"));
    let at = rows.iter().find(|r| r.at.0 == 1_646_446_100_205).expect("the line with RA");
    assert_eq!((at.op, at.sector.0), (Op::Read, 37_836_712));
}
