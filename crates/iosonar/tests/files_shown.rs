//! What the results of calls show about the files before them: a real program, recorded with strace on a real tree, has the
//! same results below a root that `files prepare` made from the trace alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Each case has a directory of its own: what makes it, and the calls. The first call is the one that shows something.
const CASES: &[(&str, &str)] = &[
    // EISDIR.
    ("mkdir('d')", "truncate('d', 0); stat('d'); rmdir('d')"),
    ("mkdir('d')", "open('d', O_WRONLY); open('d', O_RDONLY|O_DIRECTORY)"),
    ("mkdir('d')", "open('d', O_WRONLY|O_TRUNC); rmdir('d')"),
    ("mkdir('d')", "open('d', O_RDWR|O_CREAT); rmdir('d')"),
    ("mkdir('d')", "open('d', O_RDONLY|O_CREAT|O_EXCL); open('d', O_WRONLY|O_CREAT); rmdir('d')"),
    ("mkdir('d')", "mkdir('d'); open('d', O_RDWR); rmdir('d')"),
    ("mkdir('d')", "unlink('d'); rmdir('d')"),
    ("mkdir('d'); make('f')", "rename('f', 'd'); rmdir('d'); unlink('f')"),
    ("mkdir('d')", "read(open('d', O_RDONLY), 10); rmdir('d')"),
    // ENOTEMPTY.
    ("mkdir('d'); make('d/x')", "rmdir('d'); rmdir('d')"),
    ("mkdir('d'); mkdir('e'); make('e/x')", "rename('d', 'e'); rmdir('d'); rmdir('e')"),
    ("mkdir('d'); make('d/x')", "rmdir('d'); unlink('d/x'); rmdir('d')"),
    // ENOTDIR.
    ("make('f')", "rmdir('f'); unlink('f')"),
    ("make('f')", "open('f', O_RDONLY|O_DIRECTORY); open('f', O_RDONLY)"),
    ("make('f')", "chdir('f'); stat('f')"),
    ("make('f')", "stat('f/x'); stat('f')"),
    ("make('f')", "stat('f/'); unlink('f/'); unlink('f')"),
    ("make('f')", "mkdir('f/x'); open('f/x', O_RDWR|O_CREAT); unlink('f')"),
    ("make('f')", "stat('f/..'); lstat('f/.'); open('f/..', O_RDWR|O_CREAT)"),
    ("mkdir('d'); make('f')", "rename('d', 'f'); rmdir('d'); unlink('f')"),
    ("mkdir('d'); symlink('d', 'l')", "stat('l'); rmdir('l'); unlink('l')"),
    // EEXIST.
    ("make('f')", "open('f', O_RDWR|O_CREAT|O_EXCL); open('f', O_RDONLY); unlink('f')"),
    ("symlink('none', 'l')", "open('l', O_RDWR|O_CREAT|O_EXCL); unlink('l')"),
    ("mkdir('d')", "symlink('x', 'd'); mkdir('d'); stat('d'); rmdir('d')"),
    ("make('f'); make('g')", "link('f', 'g'); unlink('f'); unlink('g')"),
    ("mkdir('d')", "link('d', 'x'); rmdir('d')"),
    // Symbolic links.
    ("symlink('none', 'l')", "stat('l'); lstat('l'); unlink('l')"),
    ("symlink('none', 'l')", "open('l', O_RDONLY); readlink('l'); stat('none'); unlink('l')"),
    ("symlink('none', 'l')", "stat('l'); rename('l', 'm'); unlink('m')"),
    ("symlink('none', 'l')", "stat('l'); symlink('x', 'l'); mkdir('l'); unlink('l')"),
    (
        "make('f', 100); symlink('f', 'l')",
        "read(open('l', O_RDONLY), 1000); readlink('l'); stat('f'); unlink('l'); unlink('f')",
    ),
    ("make('f'); symlink('f', 'l')", "readlink('l'); stat('l'); unlink('l'); stat('l')"),
    (
        "mkdir('d'); make('d/x', 10); symlink('d', 'l')",
        "read(open('l/x', O_RDONLY), 100); readlink('l'); unlink('d/x'); rmdir('d')",
    ),
    (
        "make('f'); symlink('f', 'm'); symlink('m', 'l')",
        "stat('l'); readlink('l'); readlink('m'); unlink('f'); unlink('l')",
    ),
    ("make('f'); symlink(os.getcwd() + '/f', 'l')", "readlink('l'); stat('l')"),
    ("symlink('none', 'l')", "lstat('l'); open('l', O_RDWR|O_CREAT|O_EXCL); unlink('l')"),
    ("make('f'); symlink('f', 'l')", "readlink('f'); readlink('l'); lstat('f')"),
    ("make('f'); symlink('f', 'l')", "open('l', O_RDONLY|O_NOFOLLOW); lstat('l'); unlink('l')"),
    ("symlink('l', 'l')", "stat('l'); open('l', O_RDONLY); lstat('l'); unlink('l')"),
    ("symlink('m', 'l'); symlink('l', 'm')", "stat('l'); readlink('l'); readlink('m')"),
    ("make('f'); symlink('f', 'l')", "readlink('', dir_fd=open('l', O_PATH|O_NOFOLLOW)); stat('l'); unlink('l')"),
    // Others.
    ("mkdir('d')", "rename('d', 'd/x'); rmdir('d')"),
    ("mkdir('d')", "rename('d/.', 'x'); rename('d', 'd/..'); mkdir('d/.'); rmdir('d/.'); rmdir('d')"),
    ("make('f')", "getxattr('f', 'user.none'); unlink('f')"),
    ("make('f')", "access('f', X_OK); unlink('f')"),
    ("make('f')", "rename('f', 'g/.'); rename('f', 'g/'); rename('f', 'g')"),
    ("mkdir('d'); symlink('d', 'l')", "lstat('l/'); readlink('l/'); unlink('l/'); unlink('l')"),
];

const PROGRAM: &str = r#"
import os, sys
from os import *
from os import open
def make(name, size=0):
    with os.fdopen(os.open(name, O_WRONLY|O_CREAT, 0o644), "wb") as file:
        file.write(bytes(size))
def attempt(call):
    try: eval("lambda: " + call)()
    except OSError: pass
top = os.getcwd()
for number, line in enumerate(sys.argv[2:]):
    chdir(top)
    if sys.argv[1] == "set up":
        mkdir(str(number)); chdir(str(number)); exec(line)
    else:
        chdir(str(number))
        for call in line.split("; "): attempt(call)
"#;

fn python(strace: &[&str], directory: &Path, what: &str, lines: &[&str]) {
    let words = ["python3", "-I", "-S", "-c", PROGRAM, what];
    let words: Vec<&str> = [strace, &words, lines].concat();
    let output = Command::new(words[0]).args(&words[1..]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn files(directory: &Path, words: &[&str]) -> Output {
    let trace = ["t.strace", "--root", "root", "--ignore", "ignore"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.arg("files").args(&words[..1]).args(trace).args(&words[1..]);
    command.current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Records a program that makes these trees, then the calls on them.
fn record(directory: &Path, cases: &[(&str, &str)], string_bytes: &str) {
    let (made, calls): (Vec<_>, Vec<_>) = cases.iter().copied().unzip();
    let tree = directory.join("tree");
    fs::create_dir(&tree).unwrap();
    python(&[], &tree, "set up", &made);
    let traced = "trace=%file,%desc,%process,umask,unshare";
    let strace = ["strace", "-f", "-ttt", "-T", "-y", "-X", "verbose", "-s", string_bytes, "-e", traced];
    python(&[&strace[..], &["-o", "../t.strace"]].concat(), &tree, "calls", &calls);
    // What Python needs for itself.
    let own = fs::read_dir("/").unwrap().map(|entry| entry.unwrap().path()).filter(|path| !directory.starts_with(path));
    let own: String = own.map(|path| format!("{}\n", path.display())).collect();
    fs::write(directory.join("ignore"), own).unwrap();
}

#[test]
fn a_root_prepared_from_calls_alone_has_their_results() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let directory = directory.path();
    record(directory, CASES, "4096");
    let prepared = files(directory, &["prepare"]);
    assert!(prepared.status.success(), "{}", text(&prepared));
    let checked = files(directory, &["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
    let replayed = files(directory, &["replay", "--asap", "--output", "r.calls-run.parquet", "--json"]);
    let json: serde_json::Value =
        serde_json::from_slice(&replayed.stdout).unwrap_or_else(|_| panic!("{}", text(&replayed)));
    assert_eq!(json["mismatches"], 0, "{:#}", json["mismatch_kinds"]);
    assert!(json["issued"].as_u64().unwrap() > 100, "{json:#}");
}

#[test]
fn what_is_unlinked_may_be_anything_but_a_directory() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let directory = directory.path();
    fs::write(directory.join("ignore"), "").unwrap();
    fs::write(directory.join("t.strace"), "1 1700000000.000000 unlink(\"/w/l\") = 0 <0.000001>\n").unwrap();
    let name = directory.join("root/w/l");
    fs::create_dir_all(directory.join("root/w/d")).unwrap();
    for target in ["nothing", "d"] {
        symlink(target, &name).unwrap();
        for command in ["check", "prepare"] {
            let output = files(directory, &[command]);
            assert_eq!(output.status.code(), Some(0), "{command} {target}: {}", text(&output));
        }
        fs::remove_file(&name).unwrap();
    }
    fs::create_dir(&name).unwrap();
    let checked = files(directory, &["check", "-v"]);
    assert_eq!(checked.status.code(), Some(3), "{}", text(&checked));
}

#[test]
fn links_with_unknown_targets_are_named_with_what_to_do() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let directory = directory.path();
    record(
        directory,
        &[("symlink('none', 'l'); make('file'); symlink('file', 'm')", "readlink('l'); stat('m'); readlink('m')")],
        "2",
    );
    fs::create_dir(directory.join("root")).unwrap();
    for command in ["check", "prepare"] {
        let output = text(&files(directory, &[command]));
        let names = ["0/l", "0/m"].map(|name| directory.join("tree").join(name).display().to_string());
        let named = format!("2 symbolic links are not in the trace: {}, {}", names[0], names[1]);
        assert!(output.contains(&named) && output.contains("strace -s 4096"), "{output}");
    }
    let made = directory.join("root").join(directory.strip_prefix("/").unwrap()).join("tree/0");
    assert_eq!(fs::read_link(made.join("l")).unwrap().as_os_str().len(), 4, "as long as the target");
    let target = fs::read_link(made.join("m")).unwrap();
    assert!(directory.join("root").join(target.strip_prefix("/").unwrap()).is_file(), "what the link led to");
    // What the user makes in their place is kept.
    for (target, name) in [("somewhere", "l"), ("file", "m")] {
        fs::remove_file(made.join(name)).unwrap();
        symlink(target, made.join(name)).unwrap();
    }
    fs::write(made.join("file"), "").unwrap();
    let checked = files(directory, &["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
}
