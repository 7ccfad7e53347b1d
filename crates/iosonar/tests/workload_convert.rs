//! `iosonar workload convert`, and job files wherever a program is taken.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

const JOB: &str =
    "[global]\nioengine=null\ndirect=1\n[reads]\nrw=randread\nsize=1m\nrate_iops=100\nruntime=2\ntime_based\n";

fn iosonar(directory: &Path, words: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.current_dir(directory).args(words.split(' ')).output().expect("it runs");
    let both = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(both).expect("UTF-8"))
}

#[test]
fn a_job_file_is_converted_shown_loaded_and_run() {
    let directory = TempDir::new().unwrap();
    let directory = directory.path();
    fs::write(directory.join("a.fio"), JOB).unwrap();
    let (code, said) = iosonar(directory, "workload convert a.fio a.toml");
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(directory.join("a.toml")).unwrap();
    assert_eq!(iosonar(directory, "workload show a.fio"), (Some(0), text));
    let (code, said) = iosonar(directory, "workload load a.fio a.load.parquet");
    assert!(code == Some(0) && said.contains("200 requests") && said.contains("ignored: a.fio:2"), "{said}");
    let (code, said) = iosonar(directory, "workload run a.fio --simulate nvme --virtual-time -o a.replay.parquet");
    assert!(code == Some(0) && said.contains("ignored: a.fio:2"), "{said}");
}
