//! Programs recorded by eBPF and by strace at once: `iosonar files record --with ebpf -- strace … PROGRAM`. Both recordings
//! must agree call by call. Run as root: `make acceptance`.
//!
//! strace shows itself in the recording of eBPF: the tracer is a process of its own, and the tracee makes a few calls before
//! it executes the program. What else may differ is in `differences`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

use iosonar_files::{Call, CallKind, Metadata, strace, table};
use iosonar_testing::{Need, left_out};
use iosonar_trace::Reader;
use iosonar_trace::input::Input;

/// All calls of a trace.
fn all(mut reader: impl AsMut<dyn Reader<Call>>) -> (Vec<Call>, Metadata) {
    let reader = reader.as_mut();
    let mut calls = Vec::new();
    while let Some(call) = reader.next().unwrap() {
        calls.push(call);
    }
    (calls, reader.metadata().clone())
}

/// The recordings of a shell script by eBPF and by strace.
fn record(script: &str) -> (Vec<Call>, Vec<Call>, Metadata) {
    let directory = tempfile::tempdir().unwrap();
    let [trace, text] = ["both.calls.parquet", "both.strace"].map(|name| directory.path().join(name));
    let output = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["files", "record", "--with", "ebpf", "--buffer", "64M", "--output"])
        .arg(&trace)
        .args(["--", "strace", "-q", "-a1", "-s0", "-f", "--absolute-timestamps=format:unix,precision:ns"])
        .args(["--syscall-times=ns", "-e", "trace=all", "-e", "abbrev=!pipe,pipe2,socketpair", "-o"])
        .arg(&text)
        .args(["sh", "-e", "-c", script])
        .env("TRANSACTIONS", "50")
        .current_dir(directory.path())
        .env("HOME", directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (ebpf, metadata) = all(table::open(Input::open(&trace).unwrap()).unwrap());
    let reader = strace::Reader::open(Input::open(&text).unwrap(), &strace::Options::default()).unwrap();
    let (strace, read) = all(Box::new(reader) as Box<dyn Reader<Call>>);
    assert_eq!(read.counts.bad_lines, 0, "{:?}", read.warnings);
    if let Some(place) = std::env::var_os("IOSONAR_KEEP") {
        fs::copy(&text, Path::new(&place).join("both.strace")).unwrap();
    }
    (ebpf, strace, metadata)
}

/// The calls of each thread, in order.
fn by_thread(calls: Vec<Call>) -> HashMap<u32, Vec<Call>> {
    let mut threads: HashMap<u32, Vec<Call>> = HashMap::new();
    for call in calls {
        threads.entry(call.thread).or_default().push(call);
    }
    threads
}

/// What is compared of a call, as text; descriptors and numbers included, times not.
fn shape(call: &Call) -> String {
    let mut call = call.clone();
    match call.kind {
        // strace prints addresses and structures where these have numbers, or the other way round.
        CallKind::Mmap => call.result = call.result.map(|_| 0),
        CallKind::Ioctl => call.flags = 0,
        _ => {}
    }
    format!(
        "{} fd {:?} {:?} path {:?} {:?} at {:?} length {:?} flags {:#x} mode {:?} = {:?} errno {}",
        call.kind.name(),
        call.fd,
        call.fd2,
        call.path,
        call.path2,
        call.offset,
        call.length,
        call.flags,
        call.mode,
        call.result,
        call.errno,
    )
}

/// Whether both recorders can see such a call: eBPF leaves out mappings without a file.
fn is_compared(call: &Call) -> bool {
    match call.kind {
        CallKind::Munmap | CallKind::Mremap => false,
        CallKind::Mmap => call.flags & libc::MAP_ANONYMOUS as u64 == 0 && call.fd.is_some_and(|fd| fd >= 0),
        _ => true,
    }
}

/// The differences, as `eBPF | strace`, and the number of calls compared.
fn differences(ebpf: Vec<Call>, strace: Vec<Call>) -> (Vec<String>, usize) {
    let mut ebpf = by_thread(ebpf);
    let (mut found, mut compared) = (Vec::new(), 0);
    for (thread, strace) in by_thread(strace.into_iter().filter(is_compared).collect()) {
        let mut own = ebpf.remove(&thread).unwrap_or_default();
        let first = own.iter().position(|call| shape(call) == shape(&strace[0])).unwrap_or(0);
        // The tracee before its first program.
        own.drain(..first);
        compared += strace.len();
        for index in 0..own.len().max(strace.len()) {
            let [left, right] = [&own, &strace].map(|calls| calls.get(index).map_or("nothing".into(), shape));
            if left != right {
                found.push(format!("thread {thread} call {index}:\n  ebpf   {left}\n  strace {right}"));
                if own.get(index).map(|call| call.kind) != strace.get(index).map(|call| call.kind) {
                    break;
                }
            }
        }
    }
    (found, compared)
}

fn assert_agreement(script: &str, at_least: usize) {
    if left_out(Need::Bpf) {
        return;
    }
    let (ebpf, strace, metadata) = record(script);
    assert_eq!(metadata.counts.lost_events, 0, "{:?}", metadata.warnings);
    assert!(ebpf.is_sorted_by_key(|call| call.begin));
    let (found, compared) = differences(ebpf, strace);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for difference in &found {
        let kind = difference.lines().nth(1).and_then(|line| line.split_whitespace().nth(1)).unwrap_or_default();
        *kinds.entry(kind).or_default() += 1;
    }
    println!("{compared} calls compared, {} differ: {kinds:?}", found.len());
    assert!(found.is_empty(), "{} of {compared} differ:\n{}", found.len(), found[..found.len().min(40)].join("\n"));
    assert!(compared >= at_least, "{compared}");
}

#[test]
fn shells_with_pipes_and_redirections_agree() {
    assert_agreement(
        "mkdir d; cd d; for i in 1 2 3; do echo $i > f$i; cat f$i | sort | uniq >> all; done; ln -s all l; cat l; ls -l; \
         (exec 5<all; cat <&5); mv f1 f4; rm f2; cd ..; rm -r d; sleep 0.05 & wait; true",
        500,
    );
}

/// A program of `python/tests/file_programs`.
fn assert_program_agrees(name: &str, at_least: usize) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../python/tests/file_programs/{name}.sh"));
    let directory = tempfile::tempdir().unwrap();
    let words = |verb: &str| format!("bash {} {verb} {}", script.display(), directory.path().display());
    let setup = Command::new("sh").args(["-c", &words("setup")]).output().unwrap();
    assert!(setup.status.success(), "{}", String::from_utf8_lossy(&setup.stderr));
    assert_agreement(&words("run"), at_least);
}

#[test]
fn tar_agrees() {
    assert_program_agrees("tar", 500);
}

#[test]
fn sqlite_agrees() {
    assert_program_agrees("sqlite", 500);
}

#[test]
fn git_agrees() {
    assert_program_agrees("git", 2000);
}

#[test]
fn make_agrees() {
    assert_program_agrees("make", 2000);
}

#[test]
fn postgres_agrees() {
    assert_program_agrees("postgres", 5000);
}
