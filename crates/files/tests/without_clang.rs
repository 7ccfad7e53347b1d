//! Without clang the build has no eBPF program, and `Recorder::start` returns what to install.
//! `make test-without-clang` runs this test.

use iosonar_files::record::Error;
use iosonar_files::record::ebpf::{Options, Recorder};

#[test]
#[cfg_attr(has_bpf, ignore = "this build has clang")]
fn without_clang_ebpf_recording_names_what_to_install() {
    let error = Recorder::start(&Options { ring_bytes: 1 << 20, all: false, faults: false })
        .err()
        .expect("there is no eBPF program to load");
    assert!(matches!(error, Error::NotBuilt), "{error}");
    let message = error.to_string();
    assert!(["clang", "--with strace"].iter().all(|name| message.contains(name)), "{message}");
}
