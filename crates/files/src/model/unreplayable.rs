//! Changes of files that a replay does not repeat.

use std::fmt;

use super::ioctl;
use super::kind::CallKind;

/// A change of files, or of what later calls see of them, for which there is no replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unreplayable {
    /// By a call.
    Call(CallKind),
    /// By a request of `ioctl`; 0 if the trace does not show which.
    Ioctl(u32),
    /// By memory that is mapped shared and writable.
    Mapping,
    /// By requests that io_uring took from the call, which the recorder does not see.
    Uring,
}

impl fmt::Display for Unreplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(kind) => f.write_str(kind.name()),
            Self::Ioctl(0) => f.write_str("ioctl"),
            Self::Ioctl(request) => match ioctl::name(*request) {
                Some(name) => write!(f, "ioctl {name}"),
                None => write!(f, "ioctl {request:#x}"),
            },
            Self::Mapping => f.write_str("mmap (shared, writable)"),
            Self::Uring => f.write_str("io_uring_enter (its requests are not in the trace)"),
        }
    }
}

/// Changes by name, with their number: `ioctl FS_IOC_SETFLAGS 3, mount 1`.
pub fn list<'a>(counts: impl IntoIterator<Item = (&'a String, &'a u64)>) -> String {
    let each = counts.into_iter().map(|(name, count)| format!("{name} {}", iosonar_trace::human::count(*count)));
    each.collect::<Vec<_>>().join(", ")
}
