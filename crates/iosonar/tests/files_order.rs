//! `iosonar files order` on strace text.

use std::fs;
use std::process::Command;

use serde_json::Value;

const TRACE: &str = "\
10 1700000000.000100 mkdir(\"/d\", 0755) = 0 <0.000010>
10 1700000000.000200 openat(AT_FDCWD, \"/d/f\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
11 1700000000.000300 stat(\"/e\", 0x7ffd) = -1 ENOENT (No such file or directory) <0.000500>
10 1700000000.000400 write(3, \"\"..., 10) = 10 <0.000010>
10 1700000000.000500 close(3) = 0 <0.000010>
11 1700000000.000900 mkdir(\"/e\", 0755) = 0 <0.000010>
";

/// Standard output and standard error.
fn order(arguments: &[&str]) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.strace");
    fs::write(&trace, TRACE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.args(["files", "order"]).arg(&trace).args(arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    assert!(output.status.success(), "{}", text(output.stderr));
    (text(output.stdout), text(output.stderr))
}

fn predecessors(policy: &str) -> Vec<String> {
    let (text, _) = order(&["--order", policy, "--format", "tsv"]);
    text.lines().skip(1).map(|line| line.rsplit('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn each_order_lists_its_predecessors() {
    assert_eq!(predecessors("conservative"), ["", "0", "1", "1", "3", "2 4"]);
    assert_eq!(predecessors("thread"), ["", "0", "", "1", "3", "2"]);
    assert_eq!(predecessors("resource"), ["", "0", "", "1", "3", "0 2"]);
}

#[test]
fn json_has_calls_and_summary() {
    let (text, _) = order(&["--format", "json"]);
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["order"], "conservative");
    assert_eq!(object["calls"][1]["path"], "/d/f");
    assert_eq!(object["summary"]["calls"], 6);
    assert_eq!(object["summary"]["longest_chain"], 5);
}

#[test]
fn the_summary_of_a_table_follows_the_calls() {
    let (text, _) = order(&["--end", "0.00025"]);
    assert_eq!(text.lines().count(), 1 + 3 + 4, "{text}");
    assert!(text.contains("longest chain: 3 of 3"), "{text}");
    let (text, errors) = order(&["--format", "dot"]);
    assert!(text.starts_with("digraph conservative {") && text.trim_end().ends_with('}'), "{text}");
    assert!(errors.contains("order conservative: 6 calls"), "{errors}");
}

#[test]
fn the_graph_does_not_replace_the_trace() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.strace");
    fs::write(&trace, TRACE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    let output = command.args(["files", "order"]).arg(&trace).arg("--dot").arg(&trace).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(&trace).unwrap(), TRACE);
}

#[test]
fn the_graph_replaces_an_existing_file_only_with_overwrite() {
    let directory = tempfile::tempdir().unwrap();
    let [trace, dot] = ["t.strace", "t.dot"].map(|name| directory.path().join(name));
    fs::write(&trace, TRACE).unwrap();
    fs::write(&dot, "precious").unwrap();
    let order = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(["files", "order"]).arg(&trace).arg("--dot").arg(&dot).args(more).output().expect("it runs")
    };
    let refused = order(&[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("exists; name another output"), "{said}");
    assert_eq!(fs::read_to_string(&dot).unwrap(), "precious");
    assert!(order(&["--overwrite"]).status.success());
    assert!(fs::read_to_string(&dot).unwrap().starts_with("digraph"));
    // A trace that cannot be read leaves the file as it was.
    fs::write(&trace, "no trace\n").unwrap();
    assert!(!order(&["--overwrite"]).status.success());
    assert!(fs::read_to_string(&dot).unwrap().starts_with("digraph"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}
