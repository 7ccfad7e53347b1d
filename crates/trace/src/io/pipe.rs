//! Pipes. Their writer may never write; a program that must stop can end them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// How often a waiting reader checks whether pipes were ended.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

static ENDED: AtomicBool = AtomicBool::new(false);

/// Ends all pipes of this process: from now on, a reader without available data gets the end of the file.
pub fn end_pipes() {
    ENDED.store(true, Ordering::Relaxed);
}

/// Whether pipes were ended, so that the data read from them may be incomplete.
pub(crate) fn is_ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

/// The read end of a pipe, a named pipe, a terminal or a socket.
pub(crate) struct Pipe(File);

impl Pipe {
    /// Reads a file that is open already.
    pub(crate) fn of_file(file: File) -> Self {
        Self(file)
    }

    /// Opens a named pipe without waiting for its writer, which the kernel would do in `open`. `read` waits for it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(path).map(Self)
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // A named pipe that no writer has opened yet is neither readable nor at its end.
            let is_ready = match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&POLL_INTERVAL)) {
                Ok(ready) => ready > 0,
                Err(rustix::io::Errno::INTR) => false,
                Err(error) => return Err(error.into()),
            };
            if is_ready {
                match self.0.read(buffer) {
                    // Another process read the data first.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return result,
                }
            }
            if is_ended() {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_named_pipe_is_read_though_its_writer_opens_it_late() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut pipe = Pipe::open(&path).unwrap();
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(250));
            let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
            for piece in [&b"one "[..], b"two"] {
                file.write_all(piece).unwrap();
                thread::sleep(Duration::from_millis(150));
            }
        });
        let mut content = String::new();
        pipe.read_to_string(&mut content).unwrap();
        assert_eq!(content, "one two");
        writer.join().unwrap();
    }
}
