//! What the recorders of requests and of calls have in common: loading an eBPF program, and reading its events and counters.
//!
//! Their build scripts share `compile.rs`.

mod programs;
mod refusal;
mod ring;

pub use programs::{attach, attach_to_software_event, recursion_misses};
pub use refusal::{Refusal, last_part, permission_remedy};
pub use ring::{Drained, Ring};

/// The kernel's type information.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Whether the kernel has type information.
pub fn has_btf() -> bool {
    std::path::Path::new(BTF).exists()
}
