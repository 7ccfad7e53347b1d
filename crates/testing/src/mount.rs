//! File systems mounted for a test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long a file system may be busy: the kernel releases an io_uring and its files a moment after the program ended.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A file system that is unmounted when dropped, even if the test fails.
#[derive(Debug)]
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts a file system with these arguments of mount(8), and creates the mount point if it is missing.
    ///
    /// # Panics
    /// If it cannot be mounted.
    #[must_use]
    pub fn new<A: AsRef<OsStr>>(place: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        let place = place.into();
        fs::create_dir_all(&place).expect("a directory to mount at");
        let output = Command::new("mount").args(arguments).arg(&place).output().expect("mount runs");
        assert!(output.status.success(), "mount: {}", String::from_utf8_lossy(&output.stderr));
        Self(place)
    }

    /// The directory on which it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let until = Instant::now() + TIMEOUT;
        let umount = |more: &[&str]| Command::new("umount").args(more).arg(&self.0).output();
        while umount(&[]).is_ok_and(|output| !output.status.success()) {
            if Instant::now() > until {
                // Unmounts when the last user closes its files.
                umount(&["--lazy"]).ok();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
