//! Threads of a run.

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long a thread may be refused: those that have just ended count against the limit until the kernel has released them.
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts a stage in a thread of its own.
pub fn spawn_stage<'scope, T: Send + 'scope>(
    stages: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>> {
    // A spawn that fails drops what it was given.
    let work = Arc::new(Mutex::new(Some(work)));
    let until = Instant::now() + PATIENCE;
    loop {
        let work = Arc::clone(&work);
        let run = move || {
            let work = work.lock().expect("no holder panics").take();
            work.expect("one thread is made")()
        };
        match thread::Builder::new().name(name.into()).spawn_scoped(stages, run) {
            Ok(thread) => return Ok(thread),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => {
                return Err(Error::system(
                    "cannot start a thread: raise_extent the limit on processes (ulimit -u)",
                    error,
                ));
            }
        }
    }
}

/// Like [`spawn_stage`], but returns a receiver of the result, which arrives before the thread ends: the kernel keeps a thread
/// with requests that hang in the device, and the result must not wait for those.
pub fn spawn_with_result<'scope, T: Send + 'scope>(
    stages: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<mpsc::Receiver<T>> {
    let (sender, receiver) = mpsc::channel();
    spawn_stage(stages, name, move || {
        // The receiver is gone only if another stage panicked.
        let _ = sender.send(work());
    })?;
    Ok(receiver)
}
