//! What can go wrong with recording, each with what to do about it.

use std::io;
use std::path::PathBuf;

/// The result of anything here.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a device that can be recorded.
    #[error("{}: {problem}", path.display())]
    Device {
        /// As it was given.
        path: PathBuf,
        /// What it is instead, and what to do.
        problem: String,
    },
    /// The recording would record itself.
    #[error(
        "{} lies on {disk}, which is to be recorded: the recording would record its own writes; name a file on another \
         device with --output (such as /dev/shm)", output.display()
    )]
    OutputOnRecorded {
        /// The file that was to be written.
        output: PathBuf,
        /// The disk.
        disk: String,
    },
    /// The recording would be in the way of what it records.
    #[error(
        "{} lies on {disk}, whose partition {partition} is to be recorded: writing the recording would disturb it; name a \
         file on another device with --output (such as /dev/shm)", output.display()
    )]
    OutputBesideRecorded {
        /// The file that was to be written.
        output: PathBuf,
        /// The disk.
        disk: String,
        /// What is recorded of it.
        partition: String,
    },
    /// Built without clang.
    #[error(
        "this iosonar can't record: it was built without clang, which compiles its eBPF programs. Install clang (`apt \
         install clang`, `dnf install clang`) and rebuild, or record with blktrace, perf or bpftrace, whose output `iosonar \
         convert` reads (see docs/recording.md; a locked-down kernel refuses blktrace)"
    )]
    NotBuilt,
    /// Not allowed to load eBPF programs.
    #[error("no permission to load eBPF programs ({said}): {}", advice_on_rights())]
    Rights {
        /// What the kernel said.
        said: io::Error,
    },
    /// No type information in the kernel.
    #[error(
        "this kernel has no BTF type information ({} is missing): it was built without CONFIG_DEBUG_INFO_BTF. Boot a \
         kernel that has it, as distributions' kernels do since about 2021, or record with blktrace or perf, whose output \
         `iosonar convert` reads (see docs/recording.md)",
        BTF
    )]
    NoBtf,
    /// A kernel that has not what is needed.
    #[error(
        "this kernel ({release}) can't run the recorder: {problem}. It needs Linux 5.15 or newer with CONFIG_BPF_SYSCALL \
         and CONFIG_BLK_DEV_IO_TRACE"
    )]
    Kernel {
        /// `uname -r`.
        release: String,
        /// What the kernel or the loader said.
        problem: String,
    },
    /// The system refused.
    #[error("{what}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A trace can't be read or written.
    #[error(transparent)]
    Trace(#[from] iosonar_trace::Error),
    /// The kernel hands out no more events.
    #[error("the recording stopped early; its file has everything until then: {0}")]
    CutShort(Box<Error>),
    /// The thread that writes the file is gone.
    #[error("the thread that writes the recording ended unexpectedly")]
    WriterGone,
}

/// Where the kernel describes its types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

impl Error {
    pub(crate) fn device(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Device { path: path.into(), problem: problem.into() }
    }

    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }
}

fn advice_on_rights() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "root lacks capabilities here: in a container, add BPF and PERFMON (docker run --privileged); a locked-down kernel \
         allows it to no one (see /sys/kernel/security/lockdown)"
    } else {
        "run it as root, `sudo iosonar record …`"
    }
}
