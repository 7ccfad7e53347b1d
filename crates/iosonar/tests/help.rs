//! The output of `--help`, of the command and of each subcommand, as snapshots.
//!
//! After a change of the help, update the snapshots and review the change:
//! `INSTA_UPDATE=always cargo test --workspace --test commands help`, then `git diff`.

use assert_cmd::Command;

fn help(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    // Programs installed on this machine must not appear in the snapshots.
    let output = command.args(arguments).arg("--help").env("PATH", "/nonexistent").output().expect("it runs");
    assert!(output.status.success(), "iosonar {arguments:?} --help failed");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Programs that print their own help.
const PYTHON_HALF: [&str; 9] =
    ["report", "view", "diagnose", "compare", "ab", "sql", "sweep", "sensitivity", "campaign"];

/// The names in the list of commands, or in the groups of commands.
fn subcommands(help: &str) -> Vec<&str> {
    let is_start = |line: &&str| *line == "Start:" || *line == "Commands:";
    let list = help.lines().skip_while(|line| !is_start(line)).take_while(|line| *line != "Options:");
    // A name starts in the third column; deeper lines continue a description.
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[test]
fn help_of_every_subcommand() {
    let main = help(&[]);
    insta::assert_snapshot!("iosonar", main);
    let names = subcommands(&main);
    assert!(names.contains(&"completions"), "cannot parse the list of commands: {names:?}");
    for name in names.into_iter().filter(|name| !PYTHON_HALF.contains(name)) {
        let own = help(&[name]);
        insta::assert_snapshot!(format!("iosonar-{name}"), own);
        // Some have subcommands of their own.
        for verb in subcommands(&own) {
            insta::assert_snapshot!(format!("iosonar-{name}-{verb}"), help(&[name, verb]));
        }
    }
}

#[test]
fn the_exit_codes_are_in_the_help() {
    assert!(help(&[]).contains("Exit codes:"));
}

#[test]
fn names_in_lists_are_apart_from_their_descriptions() {
    let shown = help(&["generate"]);
    for (name, about) in [("self-similar", "Self-similar"), ("hotspots", ""), ("zipf", ""), ("lognormal", "")] {
        assert!(shown.contains(&format!("  {name}  {about}")), "{name}: {shown}");
    }
}

#[test]
fn help_of_help_is_the_list_of_commands() {
    let shown = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(words).output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let list = shown(&["help"]);
    assert!(
        list.0 == Some(0) && list.1.contains("  help         Print this message, the help of a command, or a tutorial")
    );
    assert_eq!(shown(&["help", "--help"]), list);
    assert_eq!(shown(&["help", "-h"]), list);
}

#[test]
fn a_wrong_name_leads_to_subcommands_and_tutorials() {
    let refused = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(words).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    for words in [&["help", "device", "fill"][..], &["device", "fill"]] {
        let message = refused(words);
        assert!(message.contains("  tip: subcommands: inspect, wipe, probe, slurp, scheduler\n"), "{message}");
    }
    assert!(refused(&["gate-in-ci"]).contains("`iosonar help gate-in-ci` prints the tutorial"));
}
