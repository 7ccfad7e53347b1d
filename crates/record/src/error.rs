//! Errors of recording, each with its remedy.

use std::io;
use std::path::PathBuf;

use iosonar_ebpf::{BTF, permission_remedy};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a device that can be recorded.
    #[error("{}: {problem}", path.display())]
    Device {
        /// The path as typed.
        path: PathBuf,
        /// What it is instead, and what to do.
        problem: String,
    },
    /// The recording would record itself.
    #[error(
        "{} is on {disk}, which is to be recorded: the recording would record its own writes; name a file on another \
         device with --output (such as /dev/shm)", output.display()
    )]
    OutputOnRecorded {
        /// The file that was to be written.
        output: PathBuf,
        /// The name of the disk that holds the file.
        disk: String,
    },
    /// Writing the recording would disturb the recorded device.
    #[error(
        "{} is on {disk}, whose partition {partition} is to be recorded: writing the recording would disturb it; name a \
         file on another device with --output (such as /dev/shm)", output.display()
    )]
    OutputBesideRecorded {
        /// The file that was to be written.
        output: PathBuf,
        /// The name of the disk that holds the file.
        disk: String,
        /// The recorded partition of that disk.
        partition: String,
    },
    /// Built without clang.
    #[error(
        "this iosonar cannot record: it was built without clang, which compiles its eBPF programs. Install clang (`apt \
         install clang`, `dnf install clang`) and rebuild, or record with blktrace, perf or bpftrace, whose output `iosonar \
         convert` reads (see docs/recording.md; a locked-down kernel refuses blktrace)"
    )]
    NotBuilt,
    /// No permission to load eBPF programs.
    #[error("no permission to load eBPF programs ({refusal}): {}", permission_remedy("iosonar record"))]
    Permission {
        /// Why the kernel refused.
        refusal: io::Error,
    },
    /// The kernel has no type information.
    #[error(
        "this kernel has no BTF type information ({} is missing): it was built without CONFIG_DEBUG_INFO_BTF. Boot a \
         kernel that has it, as distributions' kernels do since about 2021, or record with blktrace or perf, whose output \
         `iosonar convert` reads (see docs/recording.md)",
        BTF
    )]
    NoBtf,
    /// The kernel lacks a feature that the recorder needs.
    #[error(
        "this kernel ({release}) cannot run the recorder: {problem}. It needs Linux 5.15 or newer with CONFIG_BPF_SYSCALL \
         and CONFIG_BLK_DEV_IO_TRACE"
    )]
    Kernel {
        /// `uname -r`.
        release: String,
        /// The error of the kernel or the loader.
        problem: String,
    },
    /// A system call failed.
    #[error("{context}")]
    System {
        /// What failed.
        context: String,
        /// The system's error.
        source: io::Error,
    },
    /// A trace cannot be read or written.
    #[error(transparent)]
    Trace(#[from] iosonar_trace::Error),
    /// The kernel delivers no more events.
    #[error("the recording stopped early; its file has everything until then: {0}")]
    StoppedEarly(Box<Error>),
    /// The writer thread panicked.
    #[error("the thread that writes the recording ended unexpectedly")]
    WriterGone,
}

impl Error {
    pub(crate) fn device(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Device { path: path.into(), problem: problem.into() }
    }

    pub(crate) fn system(context: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { context: context.into(), source: source.into() }
    }
}
