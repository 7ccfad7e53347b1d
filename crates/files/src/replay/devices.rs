//! Devices that a replay reaches by nodes below its root, with `--special-files`.
//!
//! Whatever made a node, the block device behind it obeys the rules for targets: to write it, it must not be mounted or in use,
//! nor hold data unless that is forced; it is then claimed until the end of the replay. Of character devices, only those without
//! effect are opened. Threads that issue calls have another root directory, without `/proc` and `/sys`, so that a thread of its
//! own applies the rules.
#![allow(unsafe_code, reason = "fstat fills a local structure")]

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use iosonar_device::{Access, Device};
use rustix::fs::makedev;

use super::error::Result;
use super::root::Root;
use super::threads::spawn;

/// Character devices without effect: `null`, `zero`, `full`, `random` and `urandom`.
const HARMLESS: [u32; 5] = [3, 5, 7, 8, 9];

/// Decides which devices are opened.
#[derive(Debug)]
pub struct Devices {
    questions: Mutex<Sender<Question>>,
    refusals: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Question {
    /// Opened with `O_PATH`.
    node: OwnedFd,
    rdev: u64,
    writes: bool,
    answer: Sender<std::result::Result<(), String>>,
}

/// A device that may be opened, or what is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed(Option<u64>);

impl Devices {
    /// `force`: block devices may be overwritten although they hold data.
    ///
    /// # Errors
    /// If the thread cannot be made.
    pub fn new(force: bool) -> Result<Self> {
        let (questions, asked) = channel();
        spawn("devices", move || judge(&asked, force))?;
        Ok(Self { questions: Mutex::new(questions), refusals: Mutex::default() })
    }

    /// Looks at a path before it is opened with these flags.
    ///
    /// # Errors
    /// The error number that the open then has.
    pub fn look(&self, root: &Root, path: &CStr, flags: i32) -> std::result::Result<Allowed, i32> {
        let look = libc::O_PATH | libc::O_CLOEXEC | flags & libc::O_NOFOLLOW;
        // What cannot be looked at cannot be opened; or it is made by the open, as a file.
        let Ok(node) = root.open_beneath(path, look as u64, 0) else { return Ok(Allowed(None)) };
        let Some((kind, rdev)) = device_of(node.as_raw_fd()) else { return Ok(Allowed(None)) };
        if flags & libc::O_PATH != 0 {
            return Ok(Allowed(Some(rdev)));
        }
        let (errno, refused) = match kind {
            libc::S_IFCHR if HARMLESS.iter().any(|&minor| makedev(1, minor) == rdev) => return Ok(Allowed(Some(rdev))),
            libc::S_IFCHR => {
                (libc::ENXIO, "of character devices, only null, zero, full, random and urandom are".into())
            }
            _ => match self.ask(node, rdev, flags & libc::O_ACCMODE != libc::O_RDONLY) {
                Ok(()) => return Ok(Allowed(Some(rdev))),
                Err(why) => (libc::EBUSY, why),
            },
        };
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, major, minor) = (path.to_string_lossy(), libc::major(rdev), libc::minor(rdev));
        let text = format!("{path}, a node of device {major}:{minor}, was not opened: {refused}");
        if !refusals.contains(&text) {
            refusals.push(text);
        }
        Err(errno)
    }

    /// Whether what was opened is what was looked at.
    pub fn is_as_seen(fd: i32, allowed: Allowed) -> bool {
        device_of(fd).is_none_or(|(_, rdev)| allowed == Allowed(Some(rdev)))
    }

    /// The devices that were not opened, with reasons.
    pub fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask(&self, node: OwnedFd, rdev: u64, writes: bool) -> std::result::Result<(), String> {
        let (answer, answered) = channel();
        let question = Question { node, rdev, writes, answer };
        let sent = self.questions.lock().unwrap_or_else(PoisonError::into_inner).send(question);
        sent.ok().and_then(|()| answered.recv().ok()).unwrap_or_else(|| Err("the replay has ended".into()))
    }
}

/// Answers until nobody asks any more. Keeps what is written claimed.
fn judge(asked: &Receiver<Question>, force: bool) {
    let mut known: HashMap<(u64, bool), std::result::Result<Device, String>> = HashMap::new();
    let access = if force { Access::Force } else { Access::Overwrite };
    while let Ok(Question { node, rdev, writes, answer }) = asked.recv() {
        let found = known.entry((rdev, writes)).or_insert_with(|| {
            let path = format!("/proc/self/fd/{}", node.as_raw_fd());
            Device::open(Path::new(&path), if writes { access } else { Access::Read }).map_err(|error| match error {
                iosonar_pacing::Error::Unsafe { reason, .. } => reason,
                other => other.to_string(),
            })
        });
        // A thread that was stopped does not wait for the answer.
        let _ = answer.send(found.as_ref().map(|_| ()).map_err(Clone::clone));
    }
}

/// Kind and number, of a block or character device.
fn device_of(fd: i32) -> Option<(u32, u64)> {
    // SAFETY: all zeros is a valid `stat`, which the kernel fills in.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &raw mut status) != 0 {
            return None;
        }
        status
    };
    let kind = status.st_mode & libc::S_IFMT;
    matches!(kind, libc::S_IFCHR | libc::S_IFBLK).then_some((kind, status.st_rdev))
}
