//! Why a program cannot be loaded, for users.

use std::error::Error;
use std::io;

/// Why the kernel or the loader refused an eBPF program.
#[derive(Debug)]
pub enum Refusal {
    /// No permission to load eBPF programs.
    Permission(io::Error),
    /// The kernel lacks a feature.
    Kernel {
        /// `uname -r`.
        release: String,
        /// The error of the kernel or the loader.
        problem: String,
    },
}

impl Refusal {
    /// Finds the reason in an error of the kernel or the loader.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(inner) = cause {
            if let Some(io) = inner.downcast_ref::<io::Error>()
                && io.kind() == io::ErrorKind::PermissionDenied
            {
                return Self::Permission(io.kind().into());
            }
            cause = inner.source();
        }
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Self::Kernel { release, problem: last_part(&error.to_string()) }
    }
}

/// The end of a message: the verifier's log has thousands of lines, and the last ones state the reason.
pub fn last_part(message: &str) -> String {
    match message.char_indices().rev().nth(500) {
        Some((start, _)) => format!("… {}", &message[start..]),
        None => message.to_owned(),
    }
}

/// What to do without permission to load eBPF programs. `command` is what needs it.
pub fn permission_remedy(command: &str) -> String {
    if rustix::process::geteuid().is_root() {
        "root lacks capabilities here: in a container, add BPF and PERFMON (docker run --privileged); a locked-down kernel \
         allows it to no one (see /sys/kernel/security/lockdown)"
            .to_owned()
    } else {
        format!("run it as root (`sudo {command} …`)")
    }
}
