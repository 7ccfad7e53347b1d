//! Locks on a target file: takes a lock, so that two replays exclude each other, and respects the advisory locks of other
//! programs.

#![allow(unsafe_code, reason = "fcntl takes one structure of plain numbers")]

use std::fs::{self, File, Metadata};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use super::processes;

/// After a program is killed, the kernel closes its files only when their I/O in flight has completed.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// Takes an exclusive `flock` until the file is closed. The error names the holder of this or a range lock.
pub fn take(file: &File) -> Result<(), String> {
    let until = Instant::now() + LOCK_TIMEOUT;
    // Errors of file systems without locks are ignored.
    while flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        if Instant::now() > until {
            return Err(format!("locked by {} (flock)", holder(file, "FLOCK")));
        }
        thread::sleep(PAUSE);
    }
    match range_lock(file) {
        None => Ok(()),
        Some(pid) if pid > 0 => {
            Err(format!("locked by {} (process {pid}, fcntl)", processes::name_of(pid.unsigned_abs())))
        }
        Some(_) => Err("locked by another program (fcntl, an open file description lock)".to_owned()),
    }
}

/// The holder of a lease on the file (`F_SETLEASE`, used by file servers). Opening the file would wait for its release, up to
/// `/proc/sys/fs/lease-break-time`.
pub fn lease(meta: &Metadata) -> Option<String> {
    let pid = holding_in_system(meta, "LEASE")?;
    Some(format!("leased to {} (process {pid}, F_SETLEASE)", processes::name_of(pid)))
}

/// The process with an `fcntl` lock on any part of the file; -1 for an open file description lock.
fn range_lock(file: &File) -> Option<i32> {
    let mut asked = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the call reads and fills one valid structure.
    let answered = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut asked) };
    (answered == 0 && asked.l_type != libc::F_UNLCK as libc::c_short).then_some(asked.l_pid)
}

/// The holder of a lock, from `/proc/locks`.
fn holder(file: &File, kind: &str) -> String {
    let pid = file.metadata().ok().and_then(|meta| holding_in_system(&meta, kind));
    pid.map_or("another program".to_owned(), |pid| format!("{} (process {pid})", processes::name_of(pid)))
}

fn holding_in_system(meta: &Metadata, kind: &str) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let id = format!("{:02x}:{:02x}:{}", major(meta.dev()), minor(meta.dev()), meta.ino());
    locks.lines().find_map(|line| holding(line, kind, &id))
}

/// `1: FLOCK  ADVISORY  WRITE 4711 00:1b:99 0 EOF`
fn holding(line: &str, kind: &str, id: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[_, found, _, _, pid, at, ..] = fields.as_slice() else { return None };
    if found == kind && at == id { pid.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_parsed_from_proc_locks() {
        let line = "1: FLOCK  ADVISORY  WRITE 4711 00:1b:99 0 EOF";
        assert_eq!(holding(line, "FLOCK", "00:1b:99"), Some(4711));
        assert_eq!(holding(line, "FLOCK", "00:1b:98"), None);
        assert_eq!(holding("2: -> FLOCK  ADVISORY  WRITE 4712 00:1b:99 0 EOF", "FLOCK", "00:1b:99"), None, "it waits");
    }

    #[test]
    fn a_lock_lasts_until_the_file_is_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let one = file.reopen().unwrap();
        take(&one).unwrap();
        let other = file.reopen().unwrap();
        assert_eq!(flock(other.as_fd(), FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
        drop(one);
        take(&other).unwrap();
    }
}
