//! Records the calls of a program, with strace or with programs in the kernel.
//!
//! ```text
//!  COMMAND ─▶ strace ─▶ a pipe ─▶ the reader of strace text ─▶ table
//! ```
//!
//! `docs/files-record.md` describes to users what is recorded and what it costs.

#[cfg_attr(not(has_bpf), allow(dead_code, reason = "strace does not tell the control group"))]
mod containers;
pub mod ebpf;
mod error;
mod guard;
mod parts;
mod processes;
mod recover;
pub mod strace;

pub use error::{Error, Result};
pub use guard::Guard;
pub use parts::{PartWriter, Parts, Rotation};
pub use processes::{all_processes, inherited_by_children, process_with_threads, umask_in};
pub use recover::recover;

/// What records calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// strace.
    Strace,
    /// Programs in the kernel.
    Ebpf,
}

/// The method that disturbs the program least, of those that can work here: as root and with BTF, programs in the kernel. With
/// strace, why it is not that.
pub fn default_method() -> (Method, Option<&'static str>) {
    default_method_of(cfg!(has_bpf), rustix::process::geteuid().is_root(), iosonar_ebpf::has_btf)
}

fn default_method_of(has_bpf: bool, is_root: bool, has_btf: impl Fn() -> bool) -> (Method, Option<&'static str>) {
    let lacks = match (has_bpf, is_root) {
        (false, _) => "this iosonar was built without clang",
        (true, false) => "eBPF needs root",
        (true, true) if !has_btf() => "the kernel has no BTF",
        (true, true) => return (Method::Ebpf, None),
    };
    (Method::Strace, Some(lacks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strace_in_place_of_ebpf_has_a_reason() {
        assert_eq!(default_method_of(true, true, || true), (Method::Ebpf, None));
        for (has_bpf, is_root, has_btf) in [(false, true, true), (true, false, true), (true, true, false)] {
            let (method, why) = default_method_of(has_bpf, is_root, || has_btf);
            assert!(method == Method::Strace && why.is_some());
        }
    }
}
