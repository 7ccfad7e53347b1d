//! Errors of recording calls, each with its remedy.

use std::io;

use iosonar_ebpf::{BTF, permission_remedy};

/// The result of the functions of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of recording calls.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// strace is not installed.
    #[error(
        "cannot find strace, which records the calls: install it (`apt install strace`, `dnf install strace`), or record \
         as root with `--with ebpf`"
    )]
    NoStrace,
    /// strace is too old.
    #[error("strace {version} is too old: recording needs 5.6 or newer")]
    OldStrace {
        /// What `strace -V` printed.
        version: String,
    },
    /// Built without clang.
    #[error(
        "this iosonar cannot record calls by eBPF: it was built without clang, which compiles its eBPF programs. Install \
         clang (`apt install clang`, `dnf install clang`) and rebuild, or record with `--with strace`"
    )]
    NotBuilt,
    /// No permission to load eBPF programs.
    #[error(
        "no permission to load eBPF programs ({refusal}): {}, or record with `--with strace`",
        permission_remedy("iosonar files record")
    )]
    Permission {
        /// Why the kernel refused.
        refusal: io::Error,
    },
    /// The kernel has no type information.
    #[error(
        "this kernel has no BTF type information ({BTF} is missing): it was built without CONFIG_DEBUG_INFO_BTF. Boot a \
         kernel that has it, as distributions' kernels do since about 2021, or record with `--with strace`"
    )]
    NoBtf,
    /// The kernel lacks a feature that the recorder needs.
    #[error(
        "this kernel ({release}) cannot run the recorder: {problem}. It needs Linux 5.15 or newer with CONFIG_BPF_SYSCALL \
         and CONFIG_FTRACE_SYSCALLS; record with `--with strace`"
    )]
    Kernel {
        /// `uname -r`.
        release: String,
        /// The error of the kernel or the loader.
        problem: String,
    },
    /// Page faults cannot be recorded.
    #[error(
        "cannot record page faults: {problem}. --faults needs x86-64 and Linux 5.17 or newer with CONFIG_PERF_EVENTS; leave it \
         out"
    )]
    PageFaults {
        /// Why.
        problem: String,
    },
    /// The process cannot be inspected.
    #[error(
        "cannot read /proc/{process}/{what}: {}; run as root or as the owner of the process",
        iosonar_trace::system_text(source)
    )]
    Process {
        /// The process ID.
        process: u32,
        /// The file below `/proc/PID`.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The process does not exist.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// A system call failed.
    #[error("{context}: {}", iosonar_trace::system_text(source))]
    System {
        /// What failed.
        context: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel's numbers of processes are unknown.
    #[error(
        "--pid and --all need the numbers that the host gives to processes, which this container does not see: run iosonar on the \
         host, or record with `--with strace`"
    )]
    PidNamespace,
    /// A trace cannot be read or written.
    #[error(transparent)]
    Trace(#[from] iosonar_trace::Error),
}

impl Error {
    pub(crate) fn system(context: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { context: context.into(), source: source.into() }
    }
}
