//! What a test may need of the machine, and who may leave such tests out: the caller, by name, never the test itself.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Names the needs that the caller has not got, for example `root,loop`.
const WITHOUT: &str = "IOSONAR_WITHOUT";

/// The folder of the natural loads, for tests behind the feature `acceptance`.
const LOADS: &str = "IOSONAR_LOADS";

/// What a test may need beyond a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The rights of the superuser.
    Root,
    /// Loop devices, and the right to set them up.
    Loop,
    /// The kernel's tracing: eBPF programs and the block layer's tracepoints.
    Bpf,
    /// Compressed block devices in memory, and the right to add one.
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

/// Whether the caller wants tests with this need left out, which is then said on standard error.
///
/// # Panics
/// If the need is neither met nor named in `IOSONAR_WITHOUT`: no test is skipped in silence.
#[must_use = "a test that is left out returns at once"]
pub fn left_out(need: Need) -> bool {
    let without = env::var(WITHOUT).unwrap_or_default();
    let excused = without.split(',').any(|name| name.trim() == need.name());
    if excused {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Not `eprintln!`: the test harness would swallow it, and a skip must be seen.
        writeln!(std::io::stderr(), "left out, as {WITHOUT} says: {test} needs {}", need.name()).ok();
    }
    assert!(
        excused || need.is_met(),
        "this test needs {name}, which this machine or user has not got; leave such tests out with {WITHOUT}={name}",
        name = need.name()
    );
    excused
}

/// The folder of the natural loads.
///
/// # Panics
/// If `IOSONAR_LOADS` does not name it.
#[must_use]
pub fn loads() -> PathBuf {
    match env::var_os(LOADS) {
        Some(folder) => PathBuf::from(folder),
        None => panic!("{LOADS} must name the folder of the natural loads: run `make acceptance LOADS=DIR`"),
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of /proc/self is the effective user.
    std::fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0)
}
