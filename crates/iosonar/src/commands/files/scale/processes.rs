//! Processes that run at the same time, each in a process group of its own. When they are dropped, all groups end: also those
//! whose first process has ended.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid};

use crate::signals::Orders;

/// How often a waiting command looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// How long processes may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// A signal ended the command.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ended by a signal")
    }
}

impl std::error::Error for Interrupted {}

pub struct Processes {
    /// Not waited for before all have ended well, so that nothing else has their numbers.
    children: Vec<Child>,
    ended: Receiver<(usize, f64)>,
}

impl Processes {
    pub fn start(commands: Vec<Command>) -> Result<Self> {
        let begin = Instant::now();
        let (end, ended) = channel();
        let mut processes = Self { children: Vec::new(), ended };
        for (mut command, number) in commands.into_iter().zip(0..) {
            let child = match command.stdin(Stdio::null()).process_group(0).spawn() {
                Ok(child) => child,
                Err(error) => bail!("cannot start {}: {error}", command.get_program().display()),
            };
            let (pid, end) = (Pid::from_child(&child), end.clone());
            processes.children.push(child);
            thread::spawn(move || {
                while let Err(rustix::io::Errno::INTR) =
                    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
                {}
                let _ = end.send((number, begin.elapsed().as_secs_f64()));
            });
        }
        Ok(processes)
    }

    pub fn first(&mut self) -> &mut Child {
        &mut self.children[0]
    }

    /// Waits for all: how each ended, and after how many seconds. An error of one, as `fails` says, ends the others.
    pub fn wait(mut self, orders: &Orders, fails: impl Fn(usize, ExitStatus) -> Option<String>) -> Result<Vec<f64>> {
        let mut seconds = vec![0.0; self.children.len()];
        let mut left = self.children.len();
        while left > 0 {
            if orders.any().is_some() {
                return Err(Interrupted.into());
            }
            match self.ended.recv_timeout(LOOK) {
                Ok((number, took)) => {
                    let status = self.status(number)?;
                    if orders.any().is_some() {
                        return Err(Interrupted.into());
                    }
                    if let Some(why) = fails(number, status) {
                        bail!(why);
                    }
                    (seconds[number], left) = (took, left - 1);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("cannot wait for a process"),
            }
        }
        for mut child in self.children.drain(..) {
            child.wait()?;
        }
        Ok(seconds)
    }

    /// How a process ended. It keeps its number, so that what it left in its group can be ended.
    fn status(&self, number: usize) -> Result<ExitStatus> {
        let pid = Pid::from_child(&self.children[number]);
        let status = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let code = status.as_ref().and_then(WaitIdStatus::exit_status).map(|code| code << 8);
        let signal = || status.as_ref().and_then(WaitIdStatus::terminating_signal);
        let Some(raw) = code.or_else(signal) else { bail!("cannot wait for a process") };
        Ok(ExitStatus::from_raw(raw))
    }

    fn signal(&mut self, signal: Signal) {
        for child in &self.children {
            let _ = kill_process_group(Pid::from_child(child), signal);
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let begin = Instant::now();
        let has_ended = |child: &Child| {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            waitid(WaitId::Pid(Pid::from_child(child)), options).map_or(true, |status| status.is_some())
        };
        while begin.elapsed() < GRACE && !self.children.iter().all(has_ended) {
            thread::sleep(LOOK);
        }
        // What ignores SIGTERM, and what a leader that ended leaves behind.
        self.signal(Signal::KILL);
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}
