//! `iosonar generate`, as a user runs it.

use std::fs;

use assert_cmd::Command;
use iosonar_trace::{Op, open_load};
use tempfile::TempDir;

fn iosonar(directory: &TempDir, arguments: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_iosonar")).current_dir(directory).args(arguments).output().expect("it runs");
    (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
}

fn made(directory: &TempDir, arguments: &[&str]) -> String {
    let (success, message) = iosonar(directory, arguments);
    assert!(success, "iosonar {arguments:?}: {message}");
    message
}

#[test]
fn bursts_have_the_requested_shape() {
    let directory = TempDir::new().unwrap();
    let arguments = ["generate", "bursts", "x.load.parquet", "--first", "1", "--growth", "2", "--duration", "3s"];
    let message = made(&directory, &arguments);
    assert!(message.contains("9 requests"), "{message}");
    let mut load = open_load(&directory.path().join("x.load.parquet")).unwrap();
    let mut of_second = [0; 3];
    while let Some(request) = load.next().unwrap() {
        of_second[request.at.as_secs() as usize] += 1;
        assert!(request.end().0 <= 2 << 20 && matches!(request.op, Op::Read | Op::Write));
    }
    assert_eq!(of_second, [1, 3, 5]);
    assert_eq!(load.metadata().devices[0].sectors, Some(2 << 20));
}

#[test]
fn the_command_in_the_preamble_reproduces_the_load() {
    let directory = TempDir::new().unwrap();
    let positions = "hotspots spots=2 share=80%";
    let arguments =
        ["generate", "on-off", "x.load", "--rate", "2k", "--positions", positions, "--size", "4k:70,64k:30"];
    made(
        &directory,
        &[&arguments[..], &["--duration", "5s", "--span", "100M", "--seed", "99", "--reads", "0.25"]].concat(),
    );
    let first = fs::read_to_string(directory.path().join("x.load")).unwrap();
    let line = first
        .lines()
        .find_map(|line| line.split_once("Artificial load: iosonar "))
        .expect("the command in the preamble")
        .1;
    let again = line.replace("OUT", "again.load");
    let (before, rest) = again.split_once('\'').unwrap();
    let (quoted, after) = rest.split_once('\'').unwrap();
    let words: Vec<&str> = before.split_whitespace().chain([quoted]).chain(after.split_whitespace()).collect();
    made(&directory, &words);
    assert_eq!(first, fs::read_to_string(directory.path().join("again.load")).unwrap());
}
