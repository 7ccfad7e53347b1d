//! File systems that are mounted for a test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long it may stay busy: the kernel lets go of a ring, and of its files, a moment after the program that had it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file system that is mounted until it is dropped, whatever becomes of the test.
#[derive(Debug)]
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts what the arguments of mount(8) say at that folder, which is made if it is missing.
    ///
    /// # Panics
    /// If it cannot be mounted.
    #[must_use]
    pub fn new<A: AsRef<OsStr>>(place: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        let place = place.into();
        fs::create_dir_all(&place).expect("a folder to mount at");
        let output = Command::new("mount").args(arguments).arg(&place).output().expect("mount runs");
        assert!(output.status.success(), "mount: {}", String::from_utf8_lossy(&output.stderr));
        Self(place)
    }

    /// Where.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        let umount = |more: &[&str]| Command::new("umount").args(more).arg(&self.0).output();
        while umount(&[]).is_ok_and(|output| !output.status.success()) {
            if Instant::now() > until {
                // It goes when nobody uses it any longer; left mounted, it would stay for ever.
                umount(&["--lazy"]).ok();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
