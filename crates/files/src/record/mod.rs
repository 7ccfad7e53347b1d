//! Records the calls of a program, with strace or with programs in the kernel.
//!
//! ```text
//!  COMMAND ─▶ strace ─▶ a pipe ─▶ the reader of strace text ─▶ table
//! ```
//!
//! `docs/files.md` describes to users what is recorded and what it costs.

pub mod ebpf;
mod error;
mod processes;
mod recover;
pub mod strace;

pub use error::{Error, Result};
pub use processes::{inherited_by_children, process_with_threads, umask_in};
pub use recover::recover;

/// What records calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// strace.
    Strace,
    /// Programs in the kernel.
    Ebpf,
}

/// The method that disturbs the program least, of those that can work here: as root and with BTF, programs in the kernel.
pub fn default_method() -> Method {
    let is_possible = rustix::process::geteuid().is_root() && iosonar_ebpf::has_btf();
    if cfg!(has_bpf) && is_possible { Method::Ebpf } else { Method::Strace }
}
