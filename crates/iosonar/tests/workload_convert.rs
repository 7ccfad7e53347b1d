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
    for part in [
        "reads: asks for 100 reads per second",
        "note: reads: requests come at their times",
        "ignored: a.fio:2: ioengine=null",
        "wrote a.toml",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = iosonar(directory, "workload convert a.fio a.toml");
    assert!(code == Some(1) && said.contains("a.toml exists"), "{said}");
    let text = fs::read_to_string(directory.join("a.toml")).unwrap();
    assert_eq!(iosonar(directory, "workload show a.fio"), (Some(0), text));
    let (code, said) = iosonar(directory, "workload load a.fio a.load.parquet");
    assert!(code == Some(0) && said.contains("200 requests") && said.contains("ignored: a.fio:2"), "{said}");
    let (code, said) = iosonar(directory, "workload run a.fio --simulate nvme --virtual-time -o a.replay.parquet");
    assert!(code == Some(0) && said.contains("ignored: a.fio:2"), "{said}");
}

#[test]
fn a_parameter_file_of_vdbench_is_converted() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("a.vdb"), "sd=s,lun=/dev/sdb\nwd=w,sd=s,xf=8k\nrd=r,wd=w,iorate=100,elapsed=5\n")
        .unwrap();
    let (code, said) = iosonar(directory.path(), "workload convert a.vdb");
    assert!(code == Some(0) && said.starts_with("r: asks for 100 requests per second as a Poisson process"), "{said}");
}

#[test]
fn a_file_smaller_than_a_block_is_refused_with_flushes() {
    let directory = TempDir::new().unwrap();
    for options in ["bs=128k size=64k fsync=1", "bs=8k size=4k fdatasync=3", "bs=8k size=4k"] {
        let job = format!("[a]\nrw=write\n{}\n", options.replace(' ', "\n"));
        fs::write(directory.path().join("a.fio"), job).unwrap();
        for command in ["workload convert a.fio", "workload run a.fio --simulate nvme -o a.replay.parquet"] {
            let (code, said) = iosonar(directory.path(), command);
            assert!(code == Some(2) && said.contains("are larger than the span of"), "{options}: {said}");
        }
    }
}

#[test]
fn what_cannot_be_converted_is_a_wrong_command_line() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("a.fio"), format!("{JOB}zonemode=zbd\nflow=1\n")).unwrap();
    for command in ["workload convert a.fio", "workload show a.fio", "workload load a.fio x.load.parquet"] {
        let (code, said) = iosonar(directory.path(), command);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("a.fio:11: flow=1: cannot be converted") && said.contains("a.fio:10: zonemode=zbd"),
            "{said}"
        );
    }
    let (code, said) = iosonar(directory.path(), "workload convert a.txt");
    assert!(code == Some(2) && said.contains("name it NAME.fio or NAME.vdb"), "{said}");
}
