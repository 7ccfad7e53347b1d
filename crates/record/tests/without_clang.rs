//! Without clang the build has no eBPF program, and `Recorder::start` returns what to install.
//! `make test-without-clang` runs this test.

use iosonar_record::{Error, Level, Options, Recorder};

#[test]
#[cfg_attr(has_bpf, ignore = "this build has clang")]
fn without_clang_recording_fails_and_names_what_to_install() {
    let options = Options { level: Level::Queue, ring_bytes: 1 << 20, note: String::new() };
    let error = Recorder::start(Vec::new(), &options).err().expect("there is no eBPF program to load");
    assert!(matches!(error, Error::NotBuilt), "{error}");
    let message = error.to_string();
    assert!(["clang", "blktrace", "perf", "bpftrace"].iter().all(|name| message.contains(name)), "{message}");
}
