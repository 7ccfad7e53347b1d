//! What ends a recording: its duration, its command, or an order.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use iosonar_record::Progress;
use rustix::process::{Pid, Signal, kill_process};

use crate::console::status;
use crate::signals::{Orders, see_children_end};

/// How often is looked whether a command that outlives its recording has ended.
const TICK: Duration = Duration::from_millis(20);

/// What ends the recording.
pub struct Until {
    child: Option<Child>,
    ended: Option<ExitStatus>,
    duration: Option<Duration>,
    orders: Orders,
    interrupts: u32,
}

impl Until {
    /// Starts the command, if there is one.
    pub fn start(command: &[String], duration: Option<Duration>, orders: Orders) -> Result<Self> {
        see_children_end().context("can't handle signals")?;
        let child = match command.split_first() {
            Some((program, arguments)) => {
                Some(Command::new(program).args(arguments).spawn().with_context(|| format!("can't run {program}"))?)
            }
            None => None,
        };
        Ok(Self { child, ended: None, duration, orders, interrupts: 0 })
    }

    /// Ctrl-C reaches a command as well, and it is the command that decides what to do about it; a second one ends the
    /// recording, whatever the command does. An order to terminate reaches this program alone, and is passed on.
    pub fn goes_on(&mut self, progress: &Progress) -> bool {
        let is_told = self.heed_orders();
        if self.child.is_none() {
            return !is_told && self.interrupts == 0 && !self.is_over(progress);
        }
        if !self.command_goes_on() || is_told || self.interrupts > 1 {
            return false;
        }
        if self.is_over(progress) {
            status!("--duration is over: recording ended; waiting for the command");
            return false;
        }
        true
    }

    fn is_over(&self, progress: &Progress) -> bool {
        self.duration.is_some_and(|duration| progress.elapsed >= duration)
    }

    /// Whether it was told to terminate; the command is told as well.
    fn heed_orders(&mut self) -> bool {
        self.interrupts += u32::from(self.orders.interrupted());
        let is_told = self.orders.terminated();
        if let Some(child) = &self.child
            && is_told
            && self.ended.is_none()
        {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        is_told
    }

    /// Whether there is a command that has not ended.
    pub fn command_goes_on(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        if self.ended.is_none() {
            self.ended = child.try_wait().ok().flatten();
        }
        self.ended.is_none()
    }

    /// The command's, once it has ended: it may go on for longer than the recording.
    pub fn exit_code(mut self) -> Result<ExitCode> {
        while self.command_goes_on() {
            self.heed_orders();
            thread::sleep(TICK);
        }
        let Some(status) = self.ended else { return Ok(ExitCode::SUCCESS) };
        // As shells have it.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}
