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
        "{} would lie on {disk}, which is being recorded: every write of the recording would be recorded as well; name \
         a file on another device with --output (/dev/shm is memory)", output.display()
    )]
    OutputOnRecorded {
        /// The file that was to be written.
        output: PathBuf,
        /// The disk.
        disk: String,
    },
    /// The recording would be in the way of what it records.
    #[error(
        "{} would lie on {disk}, and its partition {partition} is being recorded: the disk would be busy with the recording, \
         and what of that falls into {partition} would be recorded as well; name a file on another device with --output \
         (/dev/shm is memory)", output.display()
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
        "this iosonar can't record: it was built where there was no clang to compile the kernel's half. Install clang \
         (`apt install clang`, `dnf install clang`) and build it again; until then blktrace, perf or bpftrace record, and \
         `iosonar convert` reads what they write (docs/recording.md tells how; where the kernel is locked down, blktrace \
         can't)"
    )]
    NotBuilt,
    /// Not allowed to load eBPF programs.
    #[error("the kernel does not let this process load eBPF programs ({said}): {}", advice_on_rights())]
    Rights {
        /// What the kernel said.
        said: io::Error,
    },
    /// No type information in the kernel.
    #[error(
        "this kernel does not describe its own types (there is no {}): it was built without CONFIG_DEBUG_INFO_BTF. \
         Distributions' kernels have it since about 2021; until then blktrace or perf record, and `iosonar convert` reads \
         what they write (docs/recording.md tells how)",
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
    #[error("the recording stopped before its end, and its file has what there was until then: {0}")]
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
        "root's rights are cut here; in a container it needs the capabilities BPF and PERFMON (docker run \
         --privileged), and a kernel that is locked down allows it nobody (see /sys/kernel/security/lockdown)"
    } else {
        "run it as root, `sudo iosonar record …`"
    }
}
