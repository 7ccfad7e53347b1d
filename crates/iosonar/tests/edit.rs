//! `iosonar edit`, as a user runs it.

use std::fs;

use assert_cmd::Command;
use tempfile::TempDir;

const LOAD: &str = "\
Free for all

start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0
0.5 ; 8 ; 16 ; R ; 0.0 ; 0.0
1.0 ; 800 ; 8 ; W ; 0.0 ; 0.0
2.0 ; 4000 ; 8 ; R ; 0.0 ; 0.0
";

fn directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("x.load"), LOAD).unwrap();
    directory
}

fn edit(directory: &TempDir, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.current_dir(directory).arg("edit").args(arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// The rows of a classic load: second, sector, length, operation.
fn rows(directory: &TempDir, name: &str) -> Vec<String> {
    let text = fs::read_to_string(directory.path().join(name)).unwrap();
    let rows = text.lines().filter(|line| line.matches(';').count() >= 3 && !line.contains("start"));
    rows.map(|line| line.split(';').take(4).map(str::trim).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_pipeline_edits_a_load() {
    let directory = directory();
    let (success, _, message) =
        edit(&directory, &["x.load", "y.load", "select to=2 | subst | slip every=1 increase=4k"]);
    assert!(success && message.contains("2 requests"), "{message}");
    assert_eq!(rows(&directory, "y.load"), ["0.500000000 16 16 W", "1.000000000 816 8 W"]);
    let text = fs::read_to_string(directory.path().join("y.load")).unwrap();
    assert!(text.contains("Free for all") && text.contains("Edited by iosonar: select to=2 | subst | slip"), "{text}");
}

#[test]
fn adjacent_and_dense_place_several_loads() {
    let directory = directory();
    let (success, _, message) = edit(&directory, &["x.load", "y.load", "adjacent with=x.load | dense"]);
    assert!(success && message.contains("load 2 is at sectors 4008 to 8016"), "{message}");
    let sectors: Vec<String> =
        rows(&directory, "y.load").iter().map(|row| row.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(sectors, ["0", "32", "16", "48", "24", "56"]);
}

#[test]
fn each_transform_explains_itself() {
    let directory = directory();
    let (success, text, _) = edit(&directory, &["--help-transform", "slip"]);
    assert!(success && text.contains("every=COUNT") && text.contains("Example: slip"), "{text}");
    let (_, all, _) = edit(&directory, &["--help-transform", "all"]);
    assert!(all.contains(text.trim()) && all.contains("anonymise: "));
}

/// The load of half a second is repeated without end; the window ends it.
#[test]
fn a_replay_edits_its_load() {
    let directory = directory();
    fs::write(directory.path().join("target"), vec![0; 8 << 20]).unwrap();
    let iosonar = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        let output = command.current_dir(&directory).args(arguments).output().expect("it runs");
        (
            output.status.success(),
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let edit = "clip to=1000s | scale time=0.1 | repeat | subst from=W to=R";
    let replay = ["replay", "x.load", "--target", "target", "--output", "y.replay.parquet", "--edit", edit];
    let (success, message) = iosonar(&[&replay[..], &["--duration", "0.5", "--asap"]].concat());
    assert!(success, "{message}");
    // 0.05 and 0.1 s, then again every 0.1 s: 5 iterations begin before 0.5 s, the last has one request inside.
    let (success, message) = iosonar(&["edit", "y.replay.parquet", "z.load", "select"]);
    assert!(success && message.contains("9 requests (9 reads, 0 writes"), "{message}");
}
