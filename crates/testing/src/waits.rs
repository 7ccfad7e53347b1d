//! Waits for other processes, with limits: a test fails instead of hanging.

use std::fs;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The limit for a condition, on machines under load.
const CONDITION: Duration = Duration::from_secs(60);
/// The limit for a process that does its work.
const PROCESS: Duration = Duration::from_secs(300);

/// Waits up to a minute.
///
/// # Panics
/// If the condition does not hold then.
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < CONDITION, "timed out waiting until {description}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a process.
///
/// # Panics
/// If it does not end: it is killed then.
pub fn ended(child: &mut Child) -> ExitStatus {
    let limit = Limit::new(child, PROCESS);
    let status = child.wait().expect("an exit status");
    limit.assert_kept();
    status
}

/// Reads all output of a process, and waits for its end.
///
/// # Panics
/// As [`ended`].
pub fn output_of(child: Child) -> Output {
    let limit = Limit::new(&child, PROCESS);
    let output = child.wait_with_output().expect("an exit status");
    limit.assert_kept();
    output
}

/// Kills a process with its descendants if it has not ended in time, so that what waits for it goes on.
pub struct Limit {
    time: Duration,
    ended: Sender<()>,
    /// Returns whether it was killed.
    thread: JoinHandle<bool>,
}

impl Limit {
    /// From now on.
    pub fn new(child: &Child, time: Duration) -> Self {
        let (ended, is_ended) = mpsc::channel();
        let process = child.id();
        let thread = thread::spawn(move || {
            let is_late = is_ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if is_late {
                kill_with_descendants(process);
            }
            is_late
        });
        Self { time, ended, thread }
    }

    /// Ends the limit.
    ///
    /// # Panics
    /// If the process was killed.
    pub fn assert_kept(self) {
        drop(self.ended);
        let is_late = self.thread.join().expect("it does not panic");
        assert!(!is_late, "killed, because it did not end within {} s", self.time.as_secs());
    }
}

/// The process and its descendants, such as a supervisor and its worker.
pub fn process_tree(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok()).flat_map(process_tree);
    std::iter::once(process).chain(children).collect()
}

/// Stops them first, so that they start no others meanwhile. They may end meanwhile.
fn kill_with_descendants(process: u32) {
    for signal in ["-STOP", "-STOP", "-KILL"] {
        let all = process_tree(process).into_iter().map(|id| id.to_string());
        std::process::Command::new("kill").arg(signal).args(all).status().ok();
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_hangs_is_killed_with_its_descendants() {
        let mut command = Command::new("sh");
        let child = command.args(["-c", "sleep 1000; :"]).stdout(Stdio::piped()).spawn().unwrap();
        let limit = Limit::new(&child, Duration::from_millis(100));
        // `sleep` has the pipe as well.
        assert!(!child.wait_with_output().unwrap().status.success());
        assert!(thread::spawn(|| limit.assert_kept()).join().is_err());
    }

    #[test]
    fn what_ends_by_itself_has_its_status_and_output() {
        let output = output_of(Command::new("echo").arg("x").stdout(Stdio::piped()).spawn().unwrap());
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"x\n"[..]));
        assert_eq!(ended(&mut Command::new("false").spawn().unwrap()).code(), Some(1));
    }
}
