//! Frees the processes that strace traces if the recorder is killed.
//!
//! strace ends when the reader of its text has gone. But then it lets go of its processes one after the other, and waits for one
//! in `vfork` until the child goes on, which it may have stopped itself: both would wait forever. Only SIGKILL ends that
//! strace, and the kernel then lets go of all. A shell waits for the end of the recorder, and sends it.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Reads the number of strace, then `done`. At the end of its input without `done`, kills strace. `$1` is a process that
/// strace traces.
const SCRIPT: &str = r#"
tracer=
while read -r word; do
    [ "$word" = done ] && exit
    tracer=$word
done
sleep 1
[ -n "$tracer" ] || while read -r key value; do
    [ "$key" = TracerPid: ] && tracer=$value
done < "/proc/$1/status"
read -r name < "/proc/$tracer/comm" && [ "$name" = strace ] && kill -KILL "$tracer"
"#;

/// A shell that waits for the end of this process.
pub struct Guard {
    shell: Child,
    words: ChildStdin,
}

impl Guard {
    /// Starts the shell for a process that strace traces. `None` without a shell.
    pub fn start(traced: u32) -> Option<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "iosonar-guard"])
            .arg(traced.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals of the terminal are for the recorder.
            .process_group(0)
            .spawn()
            .ok()?;
        let words = shell.stdin.take().expect("piped");
        Some(Self { shell, words })
    }

    /// Takes the number of strace.
    pub fn note_tracer(&mut self, tracer: u32) {
        // Without its shell, nothing is guarded.
        let _ = writeln!(self.words, "{tracer}");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.words.write_all(b"done\n");
        let _ = self.shell.wait();
    }
}
