//! Records the requests of block devices from a running kernel, and compares a recording with a replay.
//!
//! ```text
//!  tracepoints ─▶ bpf/record.bpf.c ─▶ ring ─▶ kernel.rs ─▶ pairing.rs ─▶ order.rs ─▶ saving.rs (a thread of its own)
//!    (kernel)      one event each              events       beginnings     rows in      a load, kept
//!                                                           find ends      time order   as it grows
//! ```
//!
//! `docs/recording.md` tells users what is recorded and what it costs.

pub mod check;
mod device;
mod error;
#[cfg_attr(not(has_bpf), allow(dead_code, reason = "without its other half nobody tells of events"))]
mod event;
#[cfg(has_bpf)]
mod kernel;
#[cfg(not(has_bpf))]
#[path = "kernel_absent.rs"]
mod kernel;
mod number;
mod options;
mod order;
mod output;
mod pairing;
mod place;
mod recorder;
mod saving;

pub use device::{BlockDevice, Layer, Partition, refuse_overlaps};
pub use error::{Error, Result};
pub use number::DeviceNumber;
pub use options::{Level, Options};
pub use output::refuse_output_on;
pub use recorder::{Progress, Recorder, known};
