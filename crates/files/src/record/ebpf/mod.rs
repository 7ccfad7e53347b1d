//! Recording with programs in the kernel.
//!
//! ```text
//!  sys_enter ─▶ threads ─▶ sys_exit ─▶ ring ─▶ kernel.rs ─▶ join.rs ─▶ sequence.rs ─▶ writer thread
//!   arguments              result              events       paths to     in order       a table
//!   and paths                                               their calls  of begin
//! ```

#[cfg_attr(not(has_bpf), allow(dead_code, reason = "without the eBPF program there are no events"))]
mod event;
mod faults;
mod join;
#[cfg(has_bpf)]
mod kernel;
#[cfg(not(has_bpf))]
#[path = "kernel_absent.rs"]
mod kernel;
mod layout;
mod losses;
mod numbers;
mod options;
mod recorder;
mod sequence;
mod uring;

pub(super) use layout::is_recorded;
pub use options::Options;
pub use recorder::{Destination, Progress, Recorder};
