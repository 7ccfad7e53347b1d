//! Threads of a run.

use std::sync::mpsc;
use std::thread;

use crate::error::{Error, Result};

/// Starts a room.
pub fn in_room<'scope, T: Send + 'scope>(
    rooms: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>> {
    let room = thread::Builder::new().name(name.into()).spawn_scoped(rooms, work);
    room.map_err(|e| Error::system("no thread can be made: raise the limit on processes (ulimit -u)", e))
}

/// Like [`in_room`], but what it returns is heard of without waiting for the thread's end: the kernel does not let a thread
/// go that has requests which hang in the device, and the result must not wait for those.
pub fn heard_from<'scope, T: Send + 'scope>(
    rooms: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<mpsc::Receiver<T>> {
    let (tell, heard) = mpsc::channel();
    in_room(rooms, name, move || {
        // Nobody listens any more only if another room panicked.
        let _ = tell.send(work());
    })?;
    Ok(heard)
}
