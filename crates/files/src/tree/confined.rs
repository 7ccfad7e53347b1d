//! A directory out of which no path leads: neither `..` nor a symbolic link.

use std::cell::RefCell;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat, statat};
use rustix::io::Errno;

use crate::snapshot::Kind;

/// What a path is.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Whether it is a file, a directory, a symbolic link, …
    pub kind: Kind,
    /// Size in bytes.
    pub bytes: u64,
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When the content changed last, in nanoseconds since 1970 UTC.
    pub modified_ns: i64,
    /// Device and number of its inode.
    pub inode: (u64, u64),
    /// How many names it has: hard links.
    pub links: u64,
}

impl Status {
    // The type of the number of links differs between architectures.
    #[allow(clippy::useless_conversion)]
    fn new(stat: &Stat) -> Self {
        Self {
            kind: Kind::from_mode(stat.st_mode).unwrap_or(Kind::File),
            bytes: stat.st_size as u64,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            modified_ns: stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64),
            inode: (stat.st_dev, stat.st_ino),
            links: u64::from(stat.st_nlink),
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The path of a directory, and the directory.
type Opened = (Box<[u8]>, Rc<OwnedFd>);

/// A directory, and what is below it. The kernel resolves each path within it (`RESOLVE_IN_ROOT`).
#[derive(Debug)]
pub struct Confined {
    directory: OwnedFd,
    path: PathBuf,
    /// The directory that was used last.
    parent: RefCell<Option<Opened>>,
}

impl Confined {
    /// Opens the directory.
    ///
    /// # Errors
    /// If it does not exist, or is no directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(rustix::fs::open(path, DIRECTORY, Mode::empty())?, path))
    }

    /// Opens a directory in this one, which must not be a symbolic link.
    ///
    /// # Errors
    /// If it does not exist, or is no directory.
    pub fn open_below(&self, name: &str) -> io::Result<Self> {
        let directory = openat(&self.directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self::new(directory, &self.path.join(name)))
    }

    /// An open directory, with the path that messages show.
    pub fn new(directory: OwnedFd, path: &Path) -> Self {
        Self { directory, path: path.to_owned(), parent: RefCell::new(None) }
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// What the directory itself is.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn own_status(&self) -> io::Result<Status> {
        Ok(Status::new(&fstat(&self.directory)?))
    }

    /// Opens a path. Symbolic links stay within the directory.
    ///
    /// # Errors
    /// Those of `openat2`.
    pub fn open_path(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.directory, c_string(path)?, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // Something on the way was renamed meanwhile.
                Err(Errno::AGAIN) => {}
                other => return Ok(other?),
            }
        }
    }

    /// The directory that holds a path, and the last component.
    ///
    /// # Errors
    /// If a directory on the way does not exist.
    pub fn parent_of<'a>(&self, path: &'a [u8]) -> io::Result<(Rc<OwnedFd>, &'a OsStr)> {
        let at = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let (parent, component) = (&path[..at], OsStr::from_bytes(&path[at + 1..]));
        if let Some((known, directory)) = &*self.parent.borrow()
            && **known == *parent
        {
            return Ok((Rc::clone(directory), component));
        }
        let path = if parent.is_empty() { b"/" } else { parent };
        let directory = Rc::new(self.open_path(path, OFlags::PATH | OFlags::DIRECTORY)?);
        *self.parent.borrow_mut() = Some((parent.into(), Rc::clone(&directory)));
        Ok((directory, component))
    }

    /// Forgets the directory that was used last: names may have changed.
    pub fn forget_parent(&self) {
        *self.parent.borrow_mut() = None;
    }

    /// What a path is, without following a symbolic link in its last component; `None` if it does not exist.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn status(&self, path: &[u8]) -> io::Result<Option<Status>> {
        let found = self
            .parent_of(path)
            .and_then(|(directory, component)| Ok(statat(&*directory, component, AtFlags::SYMLINK_NOFOLLOW)?));
        missing_as_none(found.map(|stat| Status::new(&stat)))
    }

    /// What a path is, after symbolic links.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn followed_status(&self, path: &[u8]) -> io::Result<Option<Status>> {
        let found = self.open_path(path, OFlags::PATH).and_then(|file| Ok(fstat(&file)?));
        missing_as_none(found.map(|stat| Status::new(&stat)))
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn target(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (directory, component) = self.parent_of(path)?;
        Ok(readlinkat(&*directory, component, Vec::new())?.into_bytes())
    }
}

fn missing_as_none<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn c_string(path: &[u8]) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
