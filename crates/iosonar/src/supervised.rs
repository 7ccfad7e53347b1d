//! Commands that do I/O on a target run in a process of their own, the *worker*, and the one that was started, its
//! *supervisor*, waits for it and hands orders on.
//!
//! A thread that waits in the kernel for a frozen file system or for a device that does not answer can't be killed, and no
//! process ends before its last thread. So whoever pressed Ctrl-C twice would never get the prompt back, whatever the worker
//! does. The supervisor touches neither target nor result: it says what hangs where, kills the worker, puts back what that had
//! changed on the machine, and ends.
//!
//! ```text
//!  terminal, kill ──signals──▶ supervisor ──a byte for each, by a pipe──▶ worker's thread for signals
//!                                  └─ waits for its end, and passes its exit code on
//! ```

#![allow(unsafe_code, reason = "a descriptor that was inherited is taken by its number")]

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

use iosonar_replay::host::isolation as isolate;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use signal_hook::iterator::Signals;

use crate::console::status;
use crate::{exit, signals};

/// Tells the worker its supervisor and the pipe: `PROCESS:DESCRIPTOR`.
const VARIABLE: &str = "IOSONAR_SUPERVISOR";
/// How often is looked at what the worker waits for, after the second order.
const LOOK: Duration = Duration::from_millis(100);
/// A thread that has waited so long for one and the same thing hangs. Most devices answer earlier, or with an error.
const HANGS: Duration = Duration::from_secs(2);

/// In a worker, called before anything else is done: from now on it dies with its supervisor, and orders come from there
/// alone. Returns whether this is one.
pub fn enter() -> bool {
    let told = env::var(VARIABLE).unwrap_or_default();
    let Some((supervisor, descriptor)) = told.split_once(':') else { return false };
    let (Ok(supervisor), Ok(descriptor)) = (supervisor.parse::<i32>(), descriptor.parse()) else { return false };
    // What a worker starts inherits the variable, but is not the supervisor's own child.
    let is_child = || getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == supervisor);
    if !is_child() {
        return false;
    }
    // SAFETY: the supervisor left this descriptor open for us and named it to nobody else, and this is done once.
    let orders = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // What can't be had here costs only tidiness after the supervisor was killed.
    let _ = fcntl_setfd(&orders, FdFlags::CLOEXEC);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if !is_child() {
        process::exit(exit::FAILED.into());
    }
    for signal in signals::heeded() {
        // The terminal's own signals come to both: they count once. A handler, as a command that is started shall not
        // inherit that they are ignored.
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    signals::come_through(orders.into());
    true
}

enum Event {
    Order(i32),
    Ended(io::Result<ExitStatus>),
}

/// Runs this very command line in a worker, and comes back when that has ended, or never will.
///
/// # Errors
/// If there can't be a worker: then nothing was done.
pub fn supervise() -> io::Result<ExitCode> {
    signals::see_children_end()?;
    let mut signals = Signals::new(signals::heeded())?;
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
    let orders = events.clone();
    thread::Builder::new().spawn(move || {
        signals.forever().for_each(|signal| drop(orders.send(Event::Order(signal))));
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
            Ok(Event::Order(signal)) => {
                count += 1;
                // A worker that has gone wants no orders.
                let _ = to_worker.write_all(&[signal as u8]);
            }
            Ok(Event::Ended(status)) => {
                // Only what was killed could not do it itself.
                put_back(worker);
                return like(status);
            }
            Err(RecvTimeoutError::Timeout) => {
                let patience = if count == 2 { HANGS } else { Duration::ZERO };
                if let Some(hang) = waits.look(worker, patience) {
                    return leave(worker, &hang);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return ExitCode::from(exit::FAILED),
        }
    }
}

/// Ends as the worker did.
fn like(status: io::Result<ExitStatus>) -> ExitCode {
    let Ok(status) = status else { return ExitCode::from(exit::FAILED) };
    if let Some(signal) = status.signal() {
        // There is a core file of it already, if one was wanted.
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

/// Puts back what the worker had changed on the machine and can't put back any more.
fn put_back(worker: Pid) {
    for setting in isolate::undo_of(worker.as_raw_nonzero().get() as u32) {
        status!("note: restored {setting}");
    }
}

/// Ends without the worker.
fn leave(worker: Pid, hang: &Hang) -> ExitCode {
    let id = worker.as_raw_nonzero();
    let has_ended = state(&format!("/proc/{id}/stat")) == Some('Z');
    let _ = kill_process(worker, Signal::KILL);
    put_back(worker);
    let Hang { threads, name, place } = hang;
    let others = if *threads > 1 { format!(" and {} more", threads - 1) } else { String::new() };
    status!(
        "exiting without process {id}: its thread {name}{others} hangs in the kernel ({place}) and cannot be killed: \
         look for a frozen file system (`fsfreeze --unfreeze` thaws it), or a hung device or server"
    );
    if !has_ended {
        status!(
            "when process {id} has ended, `iosonar recover RESULT.journal` recovers the result, if there is a journal"
        );
    }
    ExitCode::from(exit::CUT_SHORT)
}

/// What the worker's threads wait for in the kernel, and since when.
#[derive(Default)]
struct Waits(HashMap<String, (String, Instant)>);

/// Threads that wait in the kernel and can't be interrupted.
struct Hang {
    threads: usize,
    name: String,
    place: String,
}

impl Waits {
    /// Those that have waited for one thing since the last look, and longer than that.
    fn look(&mut self, worker: Pid, patience: Duration) -> Option<Hang> {
        let now = Instant::now();
        let folders = fs::read_dir(format!("/proc/{}/task", worker.as_raw_nonzero())).into_iter().flatten().flatten();
        let mut waits = HashMap::new();
        let mut long = Vec::new();
        for folder in folders.filter_map(|entry| entry.path().into_os_string().into_string().ok()) {
            if state(&format!("{folder}/stat")) != Some('D') {
                continue;
            }
            let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
            // As long as these stay the same, it has not run.
            let switches: String = status.lines().filter(|line| line.contains("ctxt_switches")).collect();
            let before = self.0.get(&folder).filter(|(then, _)| *then == switches);
            if before.is_some_and(|(_, since)| now - *since >= patience) {
                long.push(folder.clone());
            }
            let since = before.map_or(now, |(_, since)| *since);
            waits.insert(folder, (switches, since));
        }
        self.0 = waits;
        let first = long.iter().min()?;
        let of = |what| fs::read_to_string(format!("{first}/{what}")).unwrap_or_default().trim().to_owned();
        let place = Some(of("wchan")).filter(|place| !matches!(place.as_str(), "" | "0"));
        Some(Hang { threads: long.len(), name: of("comm"), place: place.unwrap_or_else(|| "state D".into()) })
    }
}

/// The state of a process or a thread, by its `stat`: behind its name, which may hold anything.
fn state(stat: &str) -> Option<char> {
    fs::read_to_string(stat).ok()?.rsplit_once(')')?.1.trim_start().chars().next()
}
