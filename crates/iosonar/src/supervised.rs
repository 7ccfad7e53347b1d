//! Commands that do I/O on a target run in a child process, the *worker*; the parent, its *supervisor*, forwards signals and
//! waits for it.
//!
//! A thread that waits in the kernel for a frozen file system or a hung device cannot be killed, and a process ends only with
//! its last thread: in a single process, Ctrl-C would never return to the prompt. The supervisor uses neither target nor
//! result. It reports the hung thread, kills the worker, restores the machine's settings that the worker changed, and exits.
//!
//! ```text
//!  terminal, kill ──signals──▶ supervisor ──a byte for each, in a pipe──▶ worker's signal thread
//!                                  └─ waits for it, and returns its exit code
//! ```

#![allow(unsafe_code, reason = "takes an inherited descriptor by its number")]

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, thread};

use iosonar_pacing::host::isolation as isolate;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use signal_hook::iterator::Signals;

use crate::console::status;
use crate::{exit, signals};

/// Passes the supervisor's process and the pipe to the worker: `PROCESS:DESCRIPTOR`.
const VARIABLE: &str = "IOSONAR_SUPERVISOR";
/// Interval of checks for a hung worker, after the second signal.
const LOOK: Duration = Duration::from_millis(100);
/// A thread in uninterruptible sleep for this long hangs: most devices complete or fail earlier.
const HANGS: Duration = Duration::from_secs(2);
/// The factor while another thread runs, or is stopped: it may be writing the result.
const OTHER_RUNS: u32 = 10;

/// Returns whether this process is a worker. If so, it now dies with its supervisor and receives signals only from there. Must
/// be called first.
pub fn enter() -> bool {
    let value = env::var(VARIABLE).unwrap_or_default();
    let Some((supervisor, descriptor)) = value.split_once(':') else { return false };
    let (Ok(supervisor), Ok(descriptor)) = (supervisor.parse::<i32>(), descriptor.parse()) else { return false };
    // A child of the worker inherits the variable, but is not the supervisor's child.
    let is_child = || getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == supervisor);
    if !is_child() {
        return false;
    }
    // SAFETY: the supervisor left this descriptor open for this process alone, and it is taken once.
    let pipe = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // Failures here matter only after the supervisor was killed.
    let _ = fcntl_setfd(&pipe, FdFlags::CLOEXEC);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if !is_child() {
        process::exit(exit::FAILED.into());
    }
    for signal in signals::handled_signals() {
        // The terminal sends its signals to both processes; they count once. A handler rather than SIG_IGN, which child
        // processes would inherit.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    signals::receive_from(pipe.into());
    true
}

enum Event {
    Signal(i32),
    Ended(io::Result<ExitStatus>),
}

/// Runs this command line in a worker, and returns when it has ended or hangs.
///
/// # Errors
/// If the worker cannot start; nothing was done.
pub fn supervise() -> io::Result<ExitCode> {
    signals::enable_sigchld()?;
    let mut signals = Signals::new(signals::handled_signals())?;
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfd(&theirs, FdFlags::empty())?;
    let mut words = env::args_os();
    let mut command = Command::new(env::current_exe()?);
    command.arg0(words.next().unwrap_or_default()).args(words);
    command.env(VARIABLE, format!("{}:{}", process::id(), theirs.as_raw_fd()));
    let mut worker = command.spawn()?;
    drop(theirs);
    let id = Pid::from_child(&worker);
    let (events, happens) = mpsc::channel();
    let received = events.clone();
    thread::Builder::new().spawn(move || {
        signals.forever().for_each(|signal| drop(received.send(Event::Signal(signal))));
    })?;
    thread::Builder::new().spawn(move || events.send(Event::Ended(worker.wait())))?;
    Ok(wait(id, File::from(ours), &happens))
}

fn wait(worker: Pid, mut to_worker: File, happens: &mpsc::Receiver<Event>) -> ExitCode {
    let (mut count, mut waits) = (0, Waits::default());
    loop {
        let event = if count < 2 {
            happens.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            happens.recv_timeout(LOOK)
        };
        match event {
            Ok(Event::Signal(signal)) => {
                count += 1;
                // Fails if the worker has ended.
                let _ = to_worker.write_all(&[signal as u8]);
            }
            Ok(Event::Ended(status)) => {
                // A killed worker could not restore them itself.
                restore_settings(worker);
                return like(status);
            }
            Err(RecvTimeoutError::Timeout) => {
                let least = if count == 2 { HANGS } else { Duration::ZERO };
                if let Some(hang) = waits.look(worker, least) {
                    return leave(worker, &hang);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return ExitCode::from(exit::FAILED),
        }
    }
}

/// Ends with the worker's exit code or signal.
fn like(status: io::Result<ExitStatus>) -> ExitCode {
    let Ok(status) = status else { return ExitCode::from(exit::FAILED) };
    if let Some(signal) = status.signal() {
        // The worker has dumped core already, if enabled.
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        if signal == Signal::KILL.as_raw() {
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(exit::FAILED))
}

/// Restores the machine's settings that a killed worker had changed.
fn restore_settings(worker: Pid) {
    for setting in isolate::restore_for(worker.as_raw_nonzero().get() as u32) {
        status!("note: restored {setting}");
    }
}

/// Exits without waiting for the worker.
fn leave(worker: Pid, hang: &Hang) -> ExitCode {
    let id = worker.as_raw_nonzero();
    let has_ended = state(&format!("/proc/{id}/stat")) == Some('Z');
    let _ = kill_process(worker, Signal::KILL);
    restore_settings(worker);
    let Hang { threads, name, symbol } = hang;
    let others = if *threads > 1 { format!(" and {} more", threads - 1) } else { String::new() };
    status!(
        "exiting without process {id}: its thread {name}{others} hangs in the kernel ({symbol}) and cannot be killed: \
         look for a frozen file system (`fsfreeze --unfreeze` thaws it), or a hung device or server"
    );
    if !has_ended {
        status!(
            "if a journal exists, `iosonar recover RESULT.journal` recovers the result once process {id} has ended"
        );
    }
    ExitCode::from(exit::CUT_SHORT)
}

/// The worker's threads in uninterruptible sleep: their context switches, and since when they have not changed.
#[derive(Default)]
struct Waits(HashMap<String, (String, Instant)>);

/// Threads in uninterruptible sleep.
struct Hang {
    threads: usize,
    name: String,
    symbol: String,
}

impl Waits {
    /// Threads that have slept without a context switch for at least `least`, or longer if another thread runs.
    fn look(&mut self, worker: Pid, least: Duration) -> Option<Hang> {
        let now = Instant::now();
        let directories =
            fs::read_dir(format!("/proc/{}/task", worker.as_raw_nonzero())).into_iter().flatten().flatten();
        let mut waits = HashMap::new();
        let mut long = Vec::new();
        let threads: Vec<(String, Option<char>)> = directories
            .filter_map(|entry| entry.path().into_os_string().into_string().ok())
            .map(|directory| (directory.clone(), state(&format!("{directory}/stat"))))
            .collect();
        let other_runs = threads.iter().any(|(_, state)| matches!(state, Some('R' | 'T' | 't')));
        let least = if other_runs { least * OTHER_RUNS } else { least };
        for (directory, _) in threads.into_iter().filter(|(_, state)| *state == Some('D')) {
            let status = fs::read_to_string(format!("{directory}/status")).unwrap_or_default();
            // Unchanged as long as the thread has not run.
            let switches: String = status.lines().filter(|line| line.contains("ctxt_switches")).collect();
            let before = self.0.get(&directory).filter(|(then, _)| *then == switches);
            if before.is_some_and(|(_, since)| now - *since >= least) {
                long.push(directory.clone());
            }
            let since = before.map_or(now, |(_, since)| *since);
            waits.insert(directory, (switches, since));
        }
        self.0 = waits;
        let first = long.iter().min()?;
        let of = |what| fs::read_to_string(format!("{first}/{what}")).unwrap_or_default().trim().to_owned();
        let symbol = Some(of("wchan")).filter(|symbol| !matches!(symbol.as_str(), "" | "0"));
        Some(Hang { threads: long.len(), name: of("comm"), symbol: symbol.unwrap_or_else(|| "state D".into()) })
    }
}

/// The state of a process or thread in its `stat`: it follows the name, which may contain parentheses.
fn state(stat: &str) -> Option<char> {
    fs::read_to_string(stat).ok()?.rsplit_once(')')?.1.trim_start().chars().next()
}
