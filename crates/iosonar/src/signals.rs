//! Orders to end: Ctrl-C, SIGTERM, and SIGHUP of a terminal that goes. What is ignored from the start stays ignored: that is
//! what `nohup` is for, and how shells begin what runs in the background.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use iosonar_trace::output::remove_unfinished;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Those that are not ignored.
fn heeded() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// From now on such an order ends the program at once, but not before the hidden file that it writes is removed.
pub fn remove_unfinished_files() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(mut signals) = Signals::new(heeded()) else { return };
        // Where there can't be a thread, files stay behind as after SIGKILL; that is no reason not to work.
        let _ = thread::Builder::new().spawn(move || {
            if let Some(signal) = signals.forever().next() {
                remove_unfinished();
                std::process::exit(128 + signal);
            }
        });
    });
}

/// From now on children that end are seen to: where SIGCHLD is ignored from the start, the kernel tells nobody of their end.
pub fn see_children_end() -> io::Result<()> {
    // Whoever handles it does not ignore it; there is nothing to do.
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// Orders that were noted and not taken yet.
#[derive(Clone, Default)]
pub struct Orders {
    interrupt: Arc<AtomicUsize>,
    termination: Arc<AtomicUsize>,
}

impl Orders {
    /// From now on they are noted, and do nothing else.
    pub fn note() -> io::Result<Self> {
        let orders = Self::default();
        for signal in heeded() {
            let place = if signal == SIGINT { &orders.interrupt } else { &orders.termination };
            signal_hook::flag::register_usize(signal, Arc::clone(place), signal as usize)?;
        }
        Ok(orders)
    }

    /// Takes a Ctrl-C, if there was one.
    pub fn interrupted(&self) -> bool {
        self.interrupt.swap(0, Ordering::Relaxed) != 0
    }

    /// Takes an order to terminate, if there was one.
    pub fn terminated(&self) -> bool {
        self.termination.swap(0, Ordering::Relaxed) != 0
    }

    /// The number of a signal that came, which is not taken.
    pub fn any(&self) -> Option<u8> {
        let signals = [&self.termination, &self.interrupt].map(|place| place.load(Ordering::Relaxed));
        signals.into_iter().find(|signal| *signal != 0).and_then(|signal| u8::try_from(signal).ok())
    }
}
