//! What ends a recording: its duration, its command, or a signal.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::console::status;
use crate::signals::{Orders, enable_sigchld};

/// Interval of checks whether a command that outlives its recording has ended.
const TICK: Duration = Duration::from_millis(20);

/// The conditions that end a recording.
pub struct EndConditions {
    child: Option<Child>,
    ended: Option<ExitStatus>,
    duration: Option<Duration>,
    orders: Orders,
    interrupts: u32,
    termination: Termination,
}

/// When SIGTERM is passed on to the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Termination {
    /// When it arrives.
    AtOnce,
    /// When the command is no longer traced.
    Later,
    /// It has arrived, and the command is still traced.
    Owed,
}

impl EndConditions {
    /// The error of a recording that stopped early. Waits for the command.
    pub fn stopped(mut self, error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
        if !self.command_runs() {
            return anyhow::Error::new(error);
        }
        status!("iosonar: recording failed: {error}; the command continues");
        match self.exit_code() {
            Ok(_) => anyhow::Error::new(error).context("the recording ended before the command"),
            Err(error) => error,
        }
    }

    /// Starts the command, if any.
    pub fn start(command: &[String], duration: Option<Duration>, orders: Orders) -> Result<Self> {
        enable_sigchld().context("cannot handle signals")?;
        let child = match command.split_first() {
            Some((program, arguments)) => {
                Some(Command::new(program).args(arguments).spawn().with_context(|| format!("cannot run {program}"))?)
            }
            None => None,
        };
        Ok(Self { child, ended: None, duration, orders, interrupts: 0, termination: Termination::AtOnce })
    }

    /// Keeps SIGTERM from the command until [`Self::is_untraced`]: a tracer that lets go of a process just when a signal is
    /// delivered to it loses the signal.
    pub fn is_traced(&mut self) {
        self.termination = Termination::Later;
    }

    /// The command is no longer traced: passes on what it is owed.
    pub fn is_untraced(&mut self) {
        if std::mem::replace(&mut self.termination, Termination::AtOnce) == Termination::Owed {
            self.terminate_command();
        }
    }

    /// Whether the recording continues. The terminal sends Ctrl-C to the command as well, which decides whether to end; a
    /// second Ctrl-C ends the recording. SIGTERM and SIGHUP end it, and are forwarded to the command.
    pub fn continues(&mut self, elapsed: Duration) -> bool {
        let is_terminated = self.take_signals();
        if self.child.is_none() {
            return !is_terminated && self.interrupts == 0 && !self.is_over(elapsed);
        }
        if !self.command_runs() || is_terminated || self.interrupts > 1 {
            return false;
        }
        if self.is_over(elapsed) {
            status!("recording ended after --duration; waiting for the command");
            return false;
        }
        true
    }

    fn is_over(&self, elapsed: Duration) -> bool {
        self.duration.is_some_and(|duration| elapsed >= duration)
    }

    /// Whether SIGTERM or SIGHUP arrived; forwards it to the command.
    fn take_signals(&mut self) -> bool {
        self.interrupts += u32::from(self.orders.interrupted());
        let is_terminated = self.orders.terminated();
        match self.termination {
            Termination::AtOnce if is_terminated => self.terminate_command(),
            Termination::Later if is_terminated => self.termination = Termination::Owed,
            _ => {}
        }
        is_terminated
    }

    /// The number of the command's process.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Asks the command to end.
    pub fn terminate_command(&mut self) {
        if self.termination == Termination::Owed {
            self.termination = Termination::AtOnce;
        }
        if let Some(child) = &self.child
            && self.ended.is_none()
        {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
    }

    /// Whether the command is running.
    pub fn command_runs(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        if self.ended.is_none() {
            self.ended = child.try_wait().ok().flatten();
        }
        self.ended.is_none()
    }

    /// Waits for the command, which may outlive the recording, and returns its exit code.
    pub fn exit_code(mut self) -> Result<ExitCode> {
        while self.command_runs() {
            self.take_signals();
            thread::sleep(TICK);
        }
        let Some(status) = self.ended else { return Ok(ExitCode::SUCCESS) };
        // Like a shell.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}
