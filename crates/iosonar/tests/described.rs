//! Traces of a format that the user describes, as a user reads them.

use std::fs;

use assert_cmd::Command;
use tempfile::TempDir;

use super::replaying::directory_with as directory;

const CSV: &str = "start;vol;kind;pos;len;x;took\n1000;sda;R;4096;8192;x;250\n1500;sdb;W;512;512;x;\noops\n";
const COLUMNS: &str = "at=1:us op=3(R=read,W=write) offset=4:bytes size=5:bytes latency=7:us device=2";

fn iosonar(directory: &TempDir, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.current_dir(directory).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn columns_on_the_command_line_describe_a_trace() {
    let directory = directory(&[("trace.csv", CSV)]);
    let arguments = ["convert", "trace.csv", "x.load.parquet", "--columns", COLUMNS, "--separator", ";", "--skip", "1"];
    let (is_good, _, words) = iosonar(&directory, &arguments);
    assert!(is_good && words.contains("read by your description"), "{words}");
    assert!(
        words.contains("x.load.parquet: 2 requests (1 read, 1 write") && words.contains("1 line left out as bad"),
        "{words}"
    );
    let (_, found, _) = iosonar(&directory, &["info", "trace.csv", "--columns", COLUMNS, "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!((&found["counts"]["requests"], &found["counts"]["bad_lines"]), (&2.into(), &1.into()), "{found}");
    assert_eq!(found["devices"][1]["name"], "sdb", "{found}");
}

#[test]
fn a_description_is_printed_changed_and_read() {
    let directory = directory(&[("k5", "7;0.5;R;4096;8192\n")]);
    let (_, text, _) = iosonar(&directory, &["formats", "k5cloud"]);
    fs::write(directory.path().join("mine.toml"), text.replace("\",\"", "\";\"")).unwrap();
    let (is_good, _, words) = iosonar(&directory, &["convert", "k5", "x.load", "--description", "mine.toml"]);
    assert!(is_good && words.contains("x.load: 1 request"), "{words}");
    let (_, text, _) = iosonar(&directory, &["formats", "--columns", COLUMNS]);
    assert!(text.contains("latency = { column = 7, unit = \"us\" }\n"), "{text}");
}

#[test]
fn formats_lists_all_formats_and_keys() {
    let directory = directory(&[]);
    let (_, list, _) = iosonar(&directory, &["formats"]);
    for line in [
        "parquet",
        "blkparse",
        "k5cloud          FUJITSU K5 cloud trace (SNIA IOTTA, CSV) (by description, unverified)",
    ] {
        assert!(list.lines().any(|found| found.starts_with(line)), "{line}: {list}");
    }
    let (_, keys, _) = iosonar(&directory, &["formats", "--keys"]);
    assert!(keys.contains("Further keys of op:") && keys.lines().all(|line| line.len() <= 100), "{keys}");
}
