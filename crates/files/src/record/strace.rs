//! Recording with strace: its command line, and the pipe that carries its text.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use iosonar_trace::input::Input;
use iosonar_trace::{Reader as _, Writer as _};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};

use super::ebpf::is_recorded;
use super::error::{Error, Result};
use crate::checkpoints::Checkpoints;
use crate::model::kind::CallKind;
use crate::model::metadata::Metadata;
use crate::strace::{LISTS, Options, Reader, Step};
use crate::table::LocatedWriter;

/// The oldest version of strace with nanoseconds, and tracers that are not parents.
const OLDEST: (u32, u32) = (5, 6);

/// How long a read waits for text: what was recorded is then due to be kept.
const IDLE: Duration = Duration::from_millis(500);

/// What strace follows.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A command, word by word.
    Command(&'a [String]),
    /// A process with all its threads, from now on.
    Process(u32),
}

/// The pipe from strace, and how strace is started.
#[derive(Debug)]
pub struct Tracer {
    /// The strace text. It ends when strace ends.
    pub text: File,
    /// The end that strace opens again by its path. Must be dropped after strace has opened it.
    pub keep_open: File,
    /// The command line that starts strace, its options first.
    pub words: Vec<String>,
}

impl Tracer {
    /// Prepares strace for a target.
    ///
    /// # Errors
    /// If strace is not installed or too old.
    pub fn new(target: Target) -> Result<Self> {
        check_version(&version()?)?;
        let no_pipe = |e: io::Error| Error::system("cannot create a pipe", e);
        let (text, keep_open) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| no_pipe(e.into()))?;
        // A larger pipe lets the command run on while its calls are converted. Without it strace is only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&keep_open, 1 << 20);
        let path = format!("/proc/{}/fd/{}", std::process::id(), keep_open.as_raw_fd());
        Ok(Self { text: text.into(), keep_open: keep_open.into(), words: words(&path, target) })
    }
}

/// The command line of strace that writes to `output`.
fn words(output: &str, target: Target) -> Vec<String> {
    let names: Vec<String> =
        CallKind::ALL.iter().filter(|&&kind| is_recorded(kind)).map(|kind| format!("?{}", kind.name())).collect();
    // Process numbers (-f), the time of day and durations in nanoseconds, no data of reads and writes (-s0).
    let mut words = ["strace", "-q", "-a1", "-s0", "-f", "--absolute-timestamps=format:unix,precision:ns"]
        .map(String::from)
        .to_vec();
    words.extend([
        "--syscall-times=ns".into(),
        "-e".into(),
        format!("trace={}", names.join(",")),
        "-o".into(),
        output.into(),
        // Lists of descriptors and buffers are data for -s0.
        "-e".into(),
        format!("abbrev=!{LISTS}"),
    ]);
    match target {
        Target::Command(command) => {
            // The command is a child of this process, not of strace, and Ctrl-C does not reach strace (-DD): it ends when its last
            // process ends, or by SIGTERM (-I2). No --seccomp-bpf: its filter stays in the processes, and once strace is gone, the
            // kernel answers ENOSYS to the calls that the filter selects.
            words.extend(["-DD", "-I2", "--"].map(String::from));
            words.extend(command.iter().cloned());
        }
        Target::Process(process) => words.extend(["-p".into(), process.to_string()]),
    }
    words
}

/// The first line of `strace -V`.
fn version() -> Result<String> {
    match Command::new("strace").arg("-V").output() {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(Error::NoStrace),
        Err(e) => Err(Error::system("cannot run strace", e)),
    }
}

/// `strace -- version 6.1`.
fn check_version(line: &str) -> Result<()> {
    let version = line.rsplit(' ').next().unwrap_or_default();
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), minor) if (major, minor.unwrap_or(0)) < OLDEST => {
            Err(Error::OldStrace { version: version.to_owned() })
        }
        // An unknown version may be a newer one.
        _ => Ok(()),
    }
}

/// The process that traces `process`, if one does.
pub fn tracer_of(process: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    line.trim().parse().ok().filter(|&tracer| tracer != 0)
}

/// Asks a tracer to let go of its processes and to end.
pub fn terminate(tracer: u32) {
    if let Some(pid) = i32::try_from(tracer).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// Copies the calls of strace to `writer` until its text ends; returns what its reader knows. `known` is the metadata of the
/// recording if it ends early.
///
/// # Errors
/// If the text cannot be read, or the calls cannot be written.
pub fn copy(text: File, writer: &mut LocatedWriter, known: &Metadata) -> Result<Metadata> {
    let input = Input::live(Path::new("strace"), Box::new(TracePipe(text)));
    let mut reader = Reader::open(input, &Options::default())?;
    writer.learn(known);
    if let Some(held) = writer.create_held()? {
        reader.save_in(held);
    }
    let mut checkpoints = Checkpoints::start();
    let mut so_far = Metadata { complete: false, ..known.clone() };
    loop {
        match reader.advance()? {
            Step::Call(call) => writer.write(&call)?,
            Step::Nothing => {}
            Step::End => return Ok(reader.metadata().clone()),
        }
        // A line without a call may have begun or ended one that is held back.
        if !reader.is_waiting() {
            checkpoints.note_row();
        }
        // Each line reads the clock: the next one may be late.
        if checkpoints.is_due() || reader.is_full() {
            // First, so that no call is missing in both files.
            reader.save().map_err(|e| writer.error(e))?;
            so_far.epoch_unix_ns = reader.metadata().epoch_unix_ns;
            writer.checkpoint(&so_far)?;
        }
    }
}

/// The pipe from strace. A read that finds no text for a while is an error of the kind `TimedOut`.
struct TracePipe(File);

impl io::Read for TracePipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let timeout = Timespec::try_from(IDLE).expect("a second");
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.0.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_5_6_are_refused() {
        assert!(check_version("strace -- version 6.1").is_ok());
        assert!(check_version("strace -- version 5.6").is_ok());
        assert!(check_version("strace -- version UNKNOWN").is_ok());
        assert!(
            matches!(check_version("strace -- version 4.26"), Err(Error::OldStrace { version }) if version == "4.26")
        );
    }

    #[test]
    fn a_command_follows_the_options_word_by_word() {
        let words = words("/tmp/out", Target::Command(&["echo".into(), "-n".into()]));
        assert_eq!(words[words.len() - 3..], ["--", "echo", "-n"]);
        assert!(words.iter().all(|word| word != "--seccomp-bpf"), "a filter outlives strace");
        assert!(words.iter().any(|word| word.starts_with("trace=?open,?openat,")));
    }
}
