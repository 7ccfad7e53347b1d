//! Records the requests of block devices from a running kernel, and compares a recording with a replay.
//!
//! ```text
//!  tracepoints ─▶ bpf/record.bpf.c ─▶ ring ─▶ kernel.rs ─▶ pairing.rs ─▶ reorder.rs ─▶ writer thread
//!    (kernel)      one event each              events       completions    rows in       a load, with
//!                                                           to requests    time order    checkpoints
//! ```
//!
//! `docs/recording.md` describes to users what is recorded and what it costs.

mod backing_disks;
pub mod check;
mod device;
mod error;
#[cfg_attr(not(has_bpf), allow(dead_code, reason = "without the eBPF program there are no events"))]
mod event;
#[cfg(has_bpf)]
mod kernel;
#[cfg(not(has_bpf))]
#[path = "kernel_absent.rs"]
mod kernel;
mod number;
mod options;
mod output;
mod pairing;
mod recorder;
mod reorder;

/// Whether this build has the eBPF program: not without clang.
pub const fn is_built() -> bool {
    cfg!(has_bpf)
}

pub use device::{BlockDevice, Layer, Partition, refuse_overlaps};
pub use error::{Error, Result};
pub use number::DeviceNumber;
pub use options::{Level, Options};
pub use output::refuse_output_on;
pub use recorder::{Progress, Recorder, initial_metadata};
