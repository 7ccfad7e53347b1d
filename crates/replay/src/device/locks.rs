//! Locks on a file that is a target: one of our own, so that two replays exclude each other, and those of others, which are
//! honoured although no program has to.

#![allow(unsafe_code, reason = "fcntl is handed one structure of plain numbers")]

use std::fs::{self, File, Metadata};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use super::processes;

/// The kernel lets go of a killed program's files a moment after it has gone, if I/O of it was still under way.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// Takes an exclusive `flock`, which goes with the file. Who has it, or any part of the file locked otherwise, as a sentence.
pub fn take(file: &File) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    // File systems without locks can't be helped.
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

/// Who has a lease on the file (`F_SETLEASE`, as servers of files take it), as a sentence. To open it all the same would wait
/// until that is given back, up to `/proc/sys/fs/lease-break-time`.
pub fn lease(meta: &Metadata) -> Option<String> {
    let pid = holding_in_system(meta, "LEASE")?;
    Some(format!("leased to {} (process {pid}, F_SETLEASE)", processes::name_of(pid)))
}

/// The process that holds a lock (by `fcntl`) on any part of it; -1 if it holds an open file description.
fn range_lock(file: &File) -> Option<i32> {
    let mut asked = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the call reads and fills the one structure that it is given.
    let answered = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut asked) };
    (answered == 0 && asked.l_type != libc::F_UNLCK as libc::c_short).then_some(asked.l_pid)
}

/// Who has such a lock, as far as `/proc/locks` tells.
fn holder(file: &File, kind: &str) -> String {
    let pid = file.metadata().ok().and_then(|meta| holding_in_system(&meta, kind));
    pid.map_or("another program".to_owned(), |pid| format!("{} (process {pid})", processes::name_of(pid)))
}

fn holding_in_system(meta: &Metadata, kind: &str) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let place = format!("{:02x}:{:02x}:{}", major(meta.dev()), minor(meta.dev()), meta.ino());
    locks.lines().find_map(|line| holding(line, kind, &place))
}

/// `1: FLOCK  ADVISORY  WRITE 4711 00:1b:99 0 EOF`
fn holding(line: &str, kind: &str, place: &str) -> Option<u32> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[_, found, _, _, pid, at, ..] = fields.as_slice() else { return None };
    if found == kind && at == place { pid.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_in_the_kernels_table() {
        let line = "1: FLOCK  ADVISORY  WRITE 4711 00:1b:99 0 EOF";
        assert_eq!(holding(line, "FLOCK", "00:1b:99"), Some(4711));
        assert_eq!(holding(line, "FLOCK", "00:1b:98"), None);
        assert_eq!(holding("2: -> FLOCK  ADVISORY  WRITE 4712 00:1b:99 0 EOF", "FLOCK", "00:1b:99"), None, "it waits");
    }

    #[test]
    fn a_lock_of_our_own_lasts_as_long_as_the_file_is_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let one = file.reopen().unwrap();
        take(&one).unwrap();
        let other = file.reopen().unwrap();
        assert_eq!(flock(other.as_fd(), FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
        drop(one);
        take(&other).unwrap();
    }
}
