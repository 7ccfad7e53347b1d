//! Starts the threads of a run.

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use iosonar_pacing::{Error, Result};

/// How long to retry when the system refuses a thread: threads that have just ended count against the limit until the kernel
/// has released them.
const RETRY_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a stage in a new thread.
pub fn spawn_stage<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>> {
    // A failed spawn drops its closure, so `work` is shared to survive retries.
    let work = Arc::new(Mutex::new(Some(work)));
    let deadline = Instant::now() + RETRY_TIMEOUT;
    loop {
        let work = Arc::clone(&work);
        let run = move || {
            let work = work.lock().expect("no holder panics").take();
            work.expect("only one spawn succeeds")()
        };
        match thread::Builder::new().name(name.into()).spawn_scoped(scope, run) {
            Ok(thread) => return Ok(thread),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => {
                return Err(Error::system("cannot start a thread: raise the limit on processes (ulimit -u)", error));
            }
        }
    }
}

/// Like [`spawn_stage`], but returns a channel for the stage's result, which arrives before the thread has ended. The kernel
/// does not end a thread whose requests hang in the device, and the run's result must not wait for those.
pub fn spawn_with_result<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<mpsc::Receiver<T>> {
    let (sender, receiver) = mpsc::channel();
    spawn_stage(scope, name, move || {
        // The receiver is gone only if another stage panicked.
        let _ = sender.send(work());
    })?;
    Ok(receiver)
}
