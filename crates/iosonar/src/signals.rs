//! Orders to end: Ctrl-C, SIGTERM, and SIGHUP of a terminal that goes. What is ignored from the start stays ignored: that is
//! what `nohup` is for, and how shells begin what runs in the background.
//!
//! One thread takes all of them, for all commands, and does what the last [`heed`] says. They come from the kernel, or, once
//! [`come_through`] says so, from another process.

#![allow(unsafe_code, reason = "two system calls about this process alone; each use says why it is sound")]

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use iosonar_trace::output::remove_unfinished;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Those that are not ignored. A handler of our own makes no difference, so this holds at any time.
pub fn heeded() -> Vec<i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect()
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros is a valid `sigaction`; without a new action, the kernel only fills in the present one.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut present) == 0 && present.sa_sigaction == libc::SIG_IGN
    }
}

/// What an order does, called with the signal and with how many came before it since the call to [`heed`].
type Action = Box<dyn FnMut(i32, u64) + Send>;

struct Heed {
    number: u64,
    seen: u64,
    action: Action,
}

/// The last one counts.
static HEEDS: Mutex<Vec<Heed>> = Mutex::new(Vec::new());

/// While it lives, its action is what an order does, unless there is a later one.
#[must_use = "orders do what they did before when it is dropped"]
pub struct Heeding(u64);

impl Drop for Heeding {
    fn drop(&mut self) {
        HEEDS.lock().unwrap_or_else(PoisonError::into_inner).retain(|heed| heed.number != self.0);
    }
}

/// From now on orders do that, in a thread of its own.
pub fn heed(action: impl FnMut(i32, u64) + Send + 'static) -> io::Result<Heeding> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    HEEDS.lock().unwrap_or_else(PoisonError::into_inner).push(Heed { number, seen: 0, action: Box::new(action) });
    let heeding = Heeding(number);
    listen().map(|()| heeding)
}

/// Where a byte comes for each order, the number of its signal, until somebody listens.
static THROUGH: Mutex<Option<File>> = Mutex::new(None);

/// Orders come through this pipe, and not from the kernel. To be called before anybody heeds one.
pub fn come_through(pipe: File) {
    *THROUGH.lock().unwrap_or_else(PoisonError::into_inner) = Some(pipe);
}

/// From now on there is a thread that takes orders.
fn listen() -> io::Result<()> {
    static LISTENS: OnceLock<Result<(), String>> = OnceLock::new();
    LISTENS.get_or_init(|| listen_first().map_err(|error| error.to_string())).clone().map_err(io::Error::other)
}

fn listen_first() -> io::Result<()> {
    let no_thread = |e| io::Error::other(format!("can't create a thread: {e}; raise the process limit (ulimit -u)"));
    let named = || thread::Builder::new().name("signals".into());
    let through = THROUGH.lock().unwrap_or_else(PoisonError::into_inner).take();
    let spawned = if let Some(mut orders) = through {
        named().spawn(move || {
            let mut signal = [0];
            while orders.read_exact(&mut signal).is_ok() {
                order(i32::from(signal[0]));
            }
        })
    } else {
        let mut signals = Signals::new(heeded())?;
        named().spawn(move || signals.forever().for_each(order))
    };
    spawned.map(drop).map_err(no_thread)
}

fn order(signal: i32) {
    match HEEDS.lock().unwrap_or_else(PoisonError::into_inner).last_mut() {
        Some(heed) => {
            (heed.action)(signal, heed.seen);
            heed.seen += 1;
        }
        None => end(signal),
    }
}

/// Ends the program at once, but not before the hidden file that it writes is removed.
fn end(signal: i32) {
    remove_unfinished();
    std::process::exit(128 + signal);
}

/// From now on such an order ends the program, and leaves no hidden file behind.
pub fn remove_unfinished_files() {
    // Where there can't be a thread, files stay behind as after SIGKILL; that is no reason not to work.
    let _ = listen();
}

/// From now on children that end are seen to: where SIGCHLD is ignored from the start, the kernel tells nobody of their end.
pub fn see_children_end() -> io::Result<()> {
    // Whoever handles it does not ignore it; there is nothing to do.
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// Orders that were noted and not taken yet.
pub struct Orders {
    noted: Arc<Noted>,
    _heeding: Heeding,
}

#[derive(Default)]
struct Noted {
    interrupt: AtomicUsize,
    termination: AtomicUsize,
}

impl Orders {
    /// From now on they are noted, and do nothing else.
    pub fn note() -> io::Result<Self> {
        let noted = Arc::new(Noted::default());
        let to = Arc::clone(&noted);
        let _heeding = heed(move |signal, _| {
            let place = if signal == SIGINT { &to.interrupt } else { &to.termination };
            place.store(signal as usize, Ordering::Relaxed);
        })?;
        Ok(Self { noted, _heeding })
    }

    /// Takes a Ctrl-C, if there was one.
    pub fn interrupted(&self) -> bool {
        self.noted.interrupt.swap(0, Ordering::Relaxed) != 0
    }

    /// Takes an order to terminate, if there was one.
    pub fn terminated(&self) -> bool {
        self.noted.termination.swap(0, Ordering::Relaxed) != 0
    }

    /// The number of a signal that came, which is not taken.
    pub fn any(&self) -> Option<u8> {
        let signals = [&self.noted.termination, &self.noted.interrupt].map(|place| place.load(Ordering::Relaxed));
        signals.into_iter().find(|signal| *signal != 0).and_then(|signal| u8::try_from(signal).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_does_what_the_last_says_that_is_still_there() {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let noting = |name: &'static str| {
            let to = Arc::clone(&noted);
            heed(move |signal, before| to.lock().unwrap().push((name, signal, before))).unwrap()
        };
        let _outer = noting("outer");
        order(SIGTERM);
        let inner = noting("inner");
        order(SIGINT);
        order(SIGINT);
        drop(inner);
        order(SIGHUP);
        let expected = [("outer", SIGTERM, 0), ("inner", SIGINT, 0), ("inner", SIGINT, 1), ("outer", SIGHUP, 1)];
        assert_eq!(*noted.lock().unwrap(), expected);
    }
}
