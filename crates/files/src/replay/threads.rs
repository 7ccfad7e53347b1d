//! Threads of a replay.

use std::thread::{self, JoinHandle};

use super::error::{Error, Result};

/// Starts a thread.
///
/// # Errors
/// If there are too many.
pub fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    thread::Builder::new().name(name.into()).spawn(work).map_err(|source| {
        Error::system("cannot create a thread; lower --depth, or raise the process limit (ulimit -u)", source)
    })
}
