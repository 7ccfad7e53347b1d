//! Signals that end a command: SIGINT, SIGTERM and SIGHUP. A signal that the parent process ignores stays ignored, as under
//! `nohup` or in the background of a shell.
//!
//! One thread receives them for all commands, and calls the handler that [`on_signal`] installed last. They come from the
//! kernel or, after [`receive_from`], from another process.

#![allow(unsafe_code, reason = "two system calls about this process alone; each use says why it is sound")]

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use iosonar_trace::output::remove_unfinished;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signals that are not ignored, whether or not they have a handler.
pub fn handled_signals() -> Vec<i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect()
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid `sigaction`; without a new action, the kernel only fills in the current one.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut current) == 0 && current.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes a write beyond the limit of file sizes fail with EFBIG: by default, SIGXFSZ ends the program without a message. A
/// command that this program starts does not inherit the handler, as it would an ignored signal.
pub fn survive_file_size_limit() {
    if !is_ignored(libc::SIGXFSZ) {
        // SAFETY: the handler does nothing. Without it, the program behaves as before.
        let _ = unsafe { signal_hook::low_level::register(libc::SIGXFSZ, || {}) };
    }
}

/// Called with the signal and the number of signals that this handler received before.
type Action = Box<dyn FnMut(i32, u64) + Send>;

struct Handler {
    number: u64,
    seen: u64,
    action: Action,
}

/// The last handler is active.
static HANDLERS: Mutex<Vec<Handler>> = Mutex::new(Vec::new());

/// Removes its handler when it is dropped.
#[must_use = "orders do what they did before when it is dropped"]
pub struct SignalHandler(u64);

impl Drop for SignalHandler {
    fn drop(&mut self) {
        HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|handler| handler.number != self.0);
    }
}

/// Installs a handler, which a separate thread calls. It is active until its guard is dropped or another is installed.
pub fn on_signal(action: impl FnMut(i32, u64) + Send + 'static) -> io::Result<SignalHandler> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).push(Handler { number, seen: 0, action: Box::new(action) });
    let handler = SignalHandler(number);
    listen().map(|()| handler)
}

/// The pipe that carries a byte for each signal, its number. Taken by the listening thread.
static PIPE: Mutex<Option<File>> = Mutex::new(None);

/// Receives signals from this pipe instead of the kernel. Must precede the first handler.
pub fn receive_from(pipe: File) {
    *PIPE.lock().unwrap_or_else(PoisonError::into_inner) = Some(pipe);
}

/// Starts the thread that receives signals, once.
fn listen() -> io::Result<()> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    STARTED.get_or_init(|| listen_first().map_err(|error| error.to_string())).clone().map_err(io::Error::other)
}

fn listen_first() -> io::Result<()> {
    let no_thread = |e| io::Error::other(format!("cannot create a thread: {e}; raise the process limit (ulimit -u)"));
    let named = || thread::Builder::new().name("signals".into());
    let pipe = PIPE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let spawned = if let Some(mut pipe) = pipe {
        named().spawn(move || {
            let mut signal = [0];
            while pipe.read_exact(&mut signal).is_ok() {
                deliver(i32::from(signal[0]));
            }
        })
    } else {
        let mut signals = Signals::new(handled_signals())?;
        named().spawn(move || signals.forever().for_each(deliver))
    };
    spawned.map(drop).map_err(no_thread)
}

fn deliver(signal: i32) {
    match HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).last_mut() {
        Some(handler) => {
            (handler.action)(signal, handler.seen);
            handler.seen += 1;
        }
        None => end(signal),
    }
}

/// Removes the hidden file that the program writes, then exits.
fn end(signal: i32) {
    remove_unfinished();
    std::process::exit(128 + signal);
}

/// Makes signals end the program, after they removed the hidden file that it writes.
pub fn remove_unfinished_files() {
    // Without a thread, hidden files remain, as after SIGKILL.
    let _ = listen();
}

/// Makes children waitable: if SIGCHLD is ignored, the kernel drops their exit status.
pub fn enable_sigchld() -> io::Result<()> {
    // A handler, even an empty one, ends ignoring it.
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// Signals that arrived and were not taken yet.
pub struct Orders {
    pending: Arc<PendingOrders>,
    _handler: SignalHandler,
}

#[derive(Default)]
struct PendingOrders {
    interrupt: AtomicUsize,
    termination: AtomicUsize,
}

impl Orders {
    /// Starts to collect signals, which have no other effect.
    pub fn note() -> io::Result<Self> {
        let pending = Arc::new(PendingOrders::default());
        let to = Arc::clone(&pending);
        let _handler = on_signal(move |signal, _| {
            let slot = if signal == SIGINT { &to.interrupt } else { &to.termination };
            slot.store(signal as usize, Ordering::Relaxed);
        })?;
        Ok(Self { pending, _handler })
    }

    /// Takes a pending SIGINT.
    pub fn interrupted(&self) -> bool {
        self.pending.interrupt.swap(0, Ordering::Relaxed) != 0
    }

    /// Takes a pending SIGTERM or SIGHUP.
    pub fn terminated(&self) -> bool {
        self.pending.termination.swap(0, Ordering::Relaxed) != 0
    }

    /// The number of a pending signal, without taking it.
    pub fn any(&self) -> Option<u8> {
        let signals = [&self.pending.termination, &self.pending.interrupt].map(|slot| slot.load(Ordering::Relaxed));
        signals.into_iter().find(|signal| *signal != 0).and_then(|signal| u8::try_from(signal).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_installed_handler_receives_the_signal() {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let noting = |name: &'static str| {
            let to = Arc::clone(&noted);
            on_signal(move |signal, before| to.lock().unwrap().push((name, signal, before))).unwrap()
        };
        let _outer = noting("outer");
        deliver(SIGTERM);
        let inner = noting("inner");
        deliver(SIGINT);
        deliver(SIGINT);
        drop(inner);
        deliver(SIGHUP);
        let expected = [("outer", SIGTERM, 0), ("inner", SIGINT, 0), ("inner", SIGINT, 1), ("outer", SIGHUP, 1)];
        assert_eq!(*noted.lock().unwrap(), expected);
    }
}
