//! Options of the threads of an instance.

use std::sync::Arc;

use iosonar_pacing::Stop;
use iosonar_pacing::buffers::Arena;
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::progress::Progress;
use iosonar_pacing::wait::Wait;

use crate::replay::devices::Devices;
use crate::replay::engine::stalls::Heartbeat;
use crate::replay::root::Root;

/// How the threads of an instance work.
#[derive(Clone)]
pub struct WorkerOptions {
    /// Ends the replay.
    pub stop: Arc<Stop>,
    pub clock: Monotonic,
    /// Where calls are issued.
    pub root: Root,
    /// The data of writes.
    pub arena: Arc<Arena>,
    /// How the leader waits.
    pub wait: Wait,
    pub workers: usize,
    /// Decides which devices are opened; without it, no device node, socket or FIFO is.
    pub devices: Option<Arc<Devices>>,
    /// Whether pages of a file are dropped when it is opened.
    pub no_cache: bool,
    /// Knows when the process stood still.
    pub heartbeat: Arc<Heartbeat>,
    /// Gives the threads priority.
    pub isolation: Option<Arc<Isolation>>,
    /// Shows how many calls are in flight.
    pub progress: Arc<Progress>,
    /// The number of the instance.
    pub number: usize,
}
