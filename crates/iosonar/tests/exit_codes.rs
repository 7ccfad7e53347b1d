//! Exit codes: 2 for a wrong command line, whatever the files are; 1 for a failure during the work.

use std::path::Path;
use std::process::Command;

/// The exit code and standard error.
fn iosonar(directory: &Path, line: &str) -> (Option<i32>, String) {
    let words = line.split(' ').map(|word| word.replace('~', " "));
    let output =
        Command::new(env!("CARGO_BIN_EXE_iosonar")).current_dir(directory).args(words).output().expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A directory with a load, a fake run of it, and a target.
fn bench() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, message) = iosonar(directory.path(), "generate poisson a.load.gz --rate 50 --duration 2s");
    assert_eq!(code, Some(0), "{message}");
    let (code, message) = iosonar(directory.path(), "replay a.load.gz --fake-io --asap --output a.replay.gz");
    assert_eq!(code, Some(0), "{message}");
    directory
}

#[test]
fn a_wrong_command_line_exits_with_2_and_a_remedy() {
    let bench = bench();
    let wrong = [
        ("nonsense", "no subcommand"),
        ("complete", "did you mean"),
        ("generate nonsense x.load", "nonsense"),
        ("device nonsense", "nonsense"),
        ("convert a.load.gz", "<OUT>"),
        ("edit a.load.gz", "<OUT>"),
        ("edit a.load.gz b.load.gz", "<PIPELINE>"),
        ("edit a.load.gz b.load.gz nonsense", "nonsense"),
        ("edit a.load.gz b.load.gz select~from=soon", "20ms 10m"),
        ("edit a.load.gz b.load.gz repeat", "never ends"),
        ("edit a.load.gz b.replay.gz reverse", "NAME.load"),
        ("edit a.load.gz a.load.gz reverse", "same file"),
        ("edit --help-transform nonsense", "nonsense"),
        ("convert a.load.gz b.nonsense", "--to"),
        ("convert a.load.gz b.parquet.gz", "compressed inside"),
        ("convert a.load.gz b.load --to nonsense", "nonsense"),
        ("convert a.load.gz b.load --from nonsense", "nonsense"),
        ("generate poisson b.load.gz --rate 50 --duration 0", "10m"),
        ("generate poisson b.load.gz --rate 50 --duration soon", "20ms 10m"),
        ("generate poisson b.load.gz --rate 50 --size 4G --span 1G", "span"),
        ("limit --late 0 a.replay.gz", "1ms"),
        ("limit --late soon a.replay.gz", "20ms 10m"),
        ("check - a.load.gz", "name a file"),
        ("recover a.load.gz", ".journal"),
        ("recover a.replay.gz.journal --output b", ".replay.parquet"),
        ("record --device /dev/nope --duration soon", "20ms 10m"),
        ("demo --seconds 1", "30s"),
    ];
    for (line, words) in wrong {
        let (code, message) = iosonar(bench.path(), line);
        assert!(code == Some(2) && message.contains(words), "{line}: {code:?} {message}");
    }
    for (options, words) in [
        ("--depth 0", "64"),
        ("--depth 65537", "65536"),
        ("--depth each=0", "64"),
        ("--speedup 0", "2.5"),
        ("--speedup -1", "2.5"),
        ("--speedup nan", "2.5"),
        ("--start soon", "20ms 10m"),
        ("--start -1", "10m"),
        ("--start 10m --end 5m", "--start 5m --end 10m"),
        ("--for 0", "10m"),
        ("--grace soon", "20ms 10m"),
        ("--ahead-time -1s", "10m"),
        ("--output-offset soon", "20ms 10m"),
        ("--output-offset 100000d", "36500d"),
        ("--perturb quantize=soon", "20ms 10m"),
        ("--simulate constant=soon", "20ms 10m"),
        ("--simulate constant=1ms --engine threads -t x", "omit --engine"),
        ("--compressible 10 --data zero", "omit one"),
        ("--asap --closed", "--closed"),
        ("--workers 0", "--workers"),
        ("--depth 0 --verbose", "64"),
    ] {
        let nothing_real = if options.contains("--simulate") { "" } else { " --fake-io" };
        let line = format!("replay a.load.gz -o b.replay.gz{nothing_real} {options}");
        let (code, message) = iosonar(bench.path(), &line);
        assert!(code == Some(2) && message.contains(words), "{options}: {code:?} {message}");
    }
    let (code, message) = iosonar(bench.path(), "replay --calibrate --depth 0");
    assert!(code == Some(2) && message.contains("64"), "{message}");
    let (code, message) = iosonar(bench.path(), "replay a.load.gz -o b.nonsense --fake-io");
    assert!(code == Some(2) && message.contains(".replay.parquet"), "{message}");
}

#[test]
fn a_failure_during_the_work_exits_with_1() {
    let bench = bench();
    for (line, words) in [
        ("info nowhere.load.gz", "nowhere"),
        ("limit a.load.gz", "is a load"),
        ("check a.load.gz a.load.gz", "is a load"),
        ("replay a.load.gz --fake-io -o a.replay.gz", "exists"),
        ("replay a.load.gz --fake-io -o no/directory/b.replay.gz", "no/directory does not exist"),
        ("replay a.load.gz --fake-io -o b.replay.gz --start 1h", "no request"),
        ("convert a.load.gz a.replay.gz", "exists"),
        ("device scheduler a.load.gz", "not a block device"),
    ] {
        let (code, message) = iosonar(bench.path(), line);
        assert!(code == Some(1) && message.contains(words), "{line}: {code:?} {message}");
    }
}

/// A number without unit is in seconds; every option for a time accepts every unit.
#[test]
fn times_are_accepted_in_any_unit() {
    let bench = bench();
    for (number, options) in [
        "--start 500ms --end 1500ms",
        "--start 0.5 --duration 1s",
        "--start 500000us --end 0.025m",
        "--start 5e-1 --end 1500000000ns",
        "--for 1s --grace 20ms --ahead-time 2s --output-offset 1h",
    ]
    .iter()
    .enumerate()
    {
        let line = format!("replay a.load.gz -o {number}.replay.gz --simulate constant=1us {options}");
        let (code, message) = iosonar(bench.path(), &line);
        assert_eq!(code, Some(0), "{line}: {message}");
    }
}

#[test]
fn help_on_a_full_disk_fails() {
    for words in [&["--help"][..], &["info", "--help"], &["--version"], &["help", "replay"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(words).stdout(full).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("No space left"), "{words:?}: {said}");
    }
}
