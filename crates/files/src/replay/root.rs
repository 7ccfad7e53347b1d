//! The root of a replay, and how calls are confined below it.
//!
//! With the privilege to call chroot(2), each thread that issues calls has a root directory of its own: it stops sharing the
//! file system context with the other threads (`unshare(CLONE_FS)`), then changes its root. The kernel then resolves every
//! path below the root: neither `..` nor an absolute or planted symbolic link leaves it, and a call stays a single system
//! call. Without the privilege, the kernel resolves paths by `openat2` with `RESOLVE_IN_ROOT`, a system call more.
//!
//! Links in `proc` ("magic links") lead out of any root. No root has a `proc` below it when the replay begins; what is mounted
//! there later does not appear in the replay's own view of the root, a copy of its mounts that receives no others. To make one
//! takes the privilege to mount (`CAP_SYS_ADMIN`); `openat2` follows no magic link in any case.
#![allow(
    unsafe_code,
    reason = "system calls about this thread alone, and openat2, which rustix does not confine enough"
)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use super::error::{Error, Result};
use crate::tree::{PrepareError, RootPath};

/// How paths are kept below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// Each thread has changed its root directory.
    Chroot,
    /// The kernel resolves each path with `RESOLVE_IN_ROOT`.
    Openat2,
}

/// A directory below which all calls are issued.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    directory: Arc<File>,
    confinement: Confinement,
}

impl Root {
    /// Opens the directory, and finds out how this process can confine itself. Without `special_files`, the kernel opens no
    /// device by a node below the root, if it can be told so.
    ///
    /// # Errors
    /// If the directory cannot be opened, or must not be a root.
    pub fn open(place: &RootPath, special_files: bool) -> Result<Self> {
        let path = place.path();
        let root = place.open().map_err(|error| {
            let root = format!("--root {}", path.display());
            Error::Options(match error {
                PrepareError::System { source, .. } => match source.raw_os_error() {
                    Some(libc::ENOENT) => {
                        format!("{root} does not exist; `iosonar files prepare` creates it and its files")
                    }
                    Some(libc::ENOTDIR) => format!("{root} is not a directory; name one"),
                    Some(libc::ELOOP) => format!("{root} is a symbolic link; the directory of an instance is none"),
                    _ => return Error::system(root, source),
                },
                other => format!("--root {other}"),
            })
        })?;
        let directory = root.directory().try_clone_to_owned().map_err(|source| Error::system("--root", source))?;
        let directory = Arc::new(own_view(&directory, special_files).unwrap_or(directory).into());
        let tried = Arc::clone(&directory);
        let can_chroot = thread::spawn(move || change_root(&tried).is_ok()).join().unwrap_or(false);
        let confinement = if can_chroot { Confinement::Chroot } else { Confinement::Openat2 };
        Ok(Self { path, directory, confinement })
    }

    /// The same root without the privilege to change the root directory, for tests.
    #[cfg(test)]
    pub fn with(self, confinement: Confinement) -> Self {
        Self { confinement, ..self }
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory, open for calls relative to it.
    pub fn directory(&self) -> &File {
        &self.directory
    }

    /// How paths are confined.
    pub fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// Confines the calling thread, and takes its mask of permissions from it. Must be called first by each thread that issues calls.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn enter(&self) -> io::Result<()> {
        match self.confinement {
            Confinement::Chroot => change_root(&self.directory)?,
            Confinement::Openat2 => leave_file_system_context()?,
        }
        // SAFETY: changes the mask of the calling thread alone, which no longer shares it.
        unsafe { libc::umask(0) };
        Ok(())
    }

    /// Where the calls of a thread that has entered find this path.
    ///
    /// # Errors
    /// The error that the call itself would have: the path, or a directory on its way, does not exist …
    pub fn place<'a>(&self, path: &'a CStr, last: Last) -> io::Result<Place<'a>> {
        if self.confinement == Confinement::Chroot {
            return Ok(Place { directory: None, name: Name::Borrowed(path) });
        }
        self.resolved(path.to_bytes(), last)
    }

    /// Opens a path as `openat2` does, confined in any case.
    ///
    /// # Errors
    /// Those of `openat2`.
    pub fn open_beneath(&self, path: &CStr, flags: u64, mode: u32) -> io::Result<OwnedFd> {
        // `openat2` refuses what `open` ignores.
        let makes = flags & (libc::O_CREAT as u64) != 0 || flags & (libc::O_TMPFILE as u64) == libc::O_TMPFILE as u64;
        let known = if flags & libc::O_PATH as u64 != 0 { PATH_FLAGS } else { OPEN_FLAGS };
        let mode = if makes { u64::from(mode & 0o7777) } else { 0 };
        openat2(self.directory.as_raw_fd(), path, flags & known as u64, mode)
    }

    /// Whether a path leads to a device node.
    pub fn leads_to_node(&self, path: &CStr) -> bool {
        let node = self.open_beneath(path, (libc::O_PATH | libc::O_CLOEXEC) as u64, 0).map(File::from);
        let kind = node.and_then(|node| node.metadata()).map(|found| found.file_type());
        kind.is_ok_and(|kind| kind.is_block_device() || kind.is_char_device())
    }

    fn resolved<'a>(&self, path: &[u8], last: Last) -> io::Result<Place<'a>> {
        if last == Last::Followed {
            let target = self.open_beneath(&c_string(path)?, (libc::O_PATH | libc::O_CLOEXEC) as u64, 0)?;
            let link = CString::new(format!("/proc/self/fd/{}", target.as_raw_fd())).expect("no NUL");
            return Ok(Place { directory: Some((target, libc::AT_FDCWD)), name: Name::Owned(link) });
        }
        let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let begin = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let parent = if begin == 0 { b"/" } else { &path[..begin] };
        // Without slashes at its end, which would make the call follow a link.
        let name = if begin == end { b".".as_slice() } else { &path[begin..end] };
        let parent =
            self.open_beneath(&c_string(parent)?, (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64, 0)?;
        // State has removed `..`; a trace that has it all the same must not leave the root by it.
        if name == b".." {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        let number = parent.as_raw_fd();
        Ok(Place { directory: Some((parent, number)), name: Name::Owned(c_string(name)?) })
    }
}

const OPEN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_DSYNC
    | libc::O_SYNC
    | libc::O_ASYNC
    | libc::O_DIRECT
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_TMPFILE;
const PATH_FLAGS: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;

/// What a call does with a symbolic link as the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It acts on what the link points to.
    Followed,
    /// It acts on the link, or the name.
    Kept,
}

/// A directory and a name for the `*at` calls.
#[derive(Debug)]
pub struct Place<'a> {
    directory: Option<(OwnedFd, i32)>,
    name: Name<'a>,
}

#[derive(Debug)]
enum Name<'a> {
    Borrowed(&'a CStr),
    Owned(CString),
}

impl Place<'_> {
    /// The descriptor of the directory, or `AT_FDCWD`.
    pub fn directory(&self) -> i32 {
        self.directory.as_ref().map_or(libc::AT_FDCWD, |(_, number)| *number)
    }

    /// A path for calls that have no descriptor of a directory and do not follow the last component.
    pub fn path_by_descriptor(&self) -> Option<CString> {
        let (_, number) = self.directory.as_ref().filter(|(_, number)| *number != libc::AT_FDCWD)?;
        let Name::Owned(name) = &self.name else { return None };
        CString::new([format!("/proc/self/fd/{number}/").as_bytes(), name.as_bytes()].concat()).ok()
    }

    /// The name in that directory, for the `*at` calls; ends with NUL.
    pub fn name(&self) -> *const libc::c_char {
        match &self.name {
            Name::Borrowed(name) => name.as_ptr(),
            Name::Owned(name) => name.as_ptr(),
        }
    }
}

fn c_string(path: &[u8]) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))
}

/// Afterwards root, working directory and mask of permissions of this thread are its own.
fn leave_file_system_context() -> io::Result<()> {
    // SAFETY: changes the calling thread alone.
    if unsafe { libc::unshare(libc::CLONE_FS) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn change_root(directory: &File) -> io::Result<()> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    leave_file_system_context()?;
    // SAFETY: these change the file system context of the calling thread alone, which it no longer shares.
    unsafe {
        check(libc::fchdir(directory.as_raw_fd()))?;
        check(libc::chroot(c".".as_ptr()))?;
        check(libc::chdir(c"/".as_ptr()))
    }
}

/// The directory in a copy of its mount, and of those below it, that shows no later ones. Without `special_files`, device nodes
/// in it cannot be opened. `None` without the privilege, or before Linux 5.12.
fn own_view(directory: &OwnedFd, special_files: bool) -> Option<OwnedFd> {
    let flags =
        libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as u32 | libc::AT_EMPTY_PATH as u32;
    // SAFETY: the path ends in NUL; the result is a new descriptor, which nothing else owns.
    let view = unsafe {
        let view = libc::syscall(libc::SYS_open_tree, directory.as_raw_fd(), c"".as_ptr(), flags);
        if view < 0 {
            return None;
        }
        OwnedFd::from_raw_fd(view as i32)
    };
    let attributes = libc::mount_attr {
        attr_set: if special_files { 0 } else { libc::MOUNT_ATTR_NODEV },
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let (flags, bytes) = (libc::AT_RECURSIVE | libc::AT_EMPTY_PATH, size_of::<libc::mount_attr>());
    // SAFETY: changes the copy alone; the structure has the size that is passed.
    let changed = unsafe {
        libc::syscall(libc::SYS_mount_setattr, view.as_raw_fd(), c"".as_ptr(), flags, &raw const attributes, bytes)
    };
    (changed == 0).then_some(view)
}

fn openat2(directory: i32, path: &CStr, flags: u64, mode: u64) -> io::Result<OwnedFd> {
    // SAFETY: all zeros is a valid `open_how`.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = flags;
    how.mode = mode;
    how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        // SAFETY: the path ends in NUL, and `how` has the size that is passed.
        let result = unsafe {
            libc::syscall(libc::SYS_openat2, directory, path.as_ptr(), &raw const how, size_of::<libc::open_how>())
        };
        if result >= 0 {
            // SAFETY: a new descriptor, which nothing else owns.
            return Ok(unsafe { OwnedFd::from_raw_fd(result as i32) });
        }
        let error = io::Error::last_os_error();
        // The kernel could not rule out that a rename meanwhile led out of the root.
        tries += 1;
        if error.raw_os_error() != Some(libc::EAGAIN) || tries == 1000 {
            return Err(error);
        }
    }
}
