//! Requirements of tests on the machine. Only the caller can skip such tests, by naming the requirement; a test never skips
//! itself.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Names the requirements that the machine does not meet, for example `root,loop`.
const WITHOUT: &str = "IOSONAR_WITHOUT";

/// The directory of the natural loads, for the tests of `make acceptance`.
const LOADS: &str = "IOSONAR_LOADS";

/// A requirement of a test beyond a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Superuser rights.
    Root,
    /// Loop devices, and the right to set them up.
    Loop,
    /// Kernel tracing: eBPF programs and the tracepoints of the block layer.
    Bpf,
    /// Compressed RAM disks (zram), and the right to add one.
    Zram,
}

impl Need {
    fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Loop => "loop",
            Self::Bpf => "bpf",
            Self::Zram => "zram",
        }
    }

    fn is_met(self) -> bool {
        match self {
            Self::Root => is_root(),
            Self::Loop => is_root() && Path::new("/dev/loop-control").exists(),
            Self::Bpf => is_root() && Path::new("/sys/kernel/btf/vmlinux").exists(),
            Self::Zram => is_root() && Path::new("/sys/class/zram-control").exists(),
        }
    }
}

/// Whether `IOSONAR_WITHOUT` names this requirement, so that the test must be skipped. Prints skipped tests on standard error.
///
/// # Panics
/// If the requirement is neither met nor named in `IOSONAR_WITHOUT`: no test is skipped silently.
#[must_use = "a test that is left out returns at once"]
pub fn left_out(need: Need) -> bool {
    let without = env::var(WITHOUT).unwrap_or_default();
    let excused = without.split(',').any(|name| name.trim() == need.name());
    if excused {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Not `eprintln!`, because the test harness captures its output.
        writeln!(std::io::stderr(), "skipped because of {WITHOUT}: {test} needs {}", need.name()).ok();
    }
    assert!(
        excused || need.is_met(),
        "this test needs {name}, which this machine or user does not have; skip such tests with {WITHOUT}={name}",
        name = need.name()
    );
    excused
}

/// The directory of the natural loads.
///
/// # Panics
/// If `IOSONAR_LOADS` does not name it.
#[must_use]
pub fn loads() -> PathBuf {
    match env::var_os(LOADS) {
        Some(directory) => PathBuf::from(directory),
        None => panic!("{LOADS} must name the directory of the natural loads: run `make acceptance LOADS=DIR`"),
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of /proc/self is the effective user.
    std::fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0)
}
