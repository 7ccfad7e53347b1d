//! Threads of a run.

use std::sync::mpsc;
use std::thread;

/// Starts a room.
pub fn in_room<'scope, T: Send + 'scope>(
    rooms: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, T> {
    thread::Builder::new().name(name.into()).spawn_scoped(rooms, work).expect("threads can be made")
}

/// Like [`in_room`], but what it returns is heard of without waiting for the thread's end: the kernel does not let a thread
/// go that has requests which hang in the device, and the result must not wait for those.
pub fn heard_from<'scope, T: Send + 'scope>(
    rooms: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> mpsc::Receiver<T> {
    let (tell, heard) = mpsc::channel();
    in_room(rooms, name, move || {
        // Nobody listens any more only if another room panicked.
        let _ = tell.send(work());
    });
    heard
}
