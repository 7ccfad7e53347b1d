//! The mark of a root that this program made: only such a root may be reset.
//!
//! Copies of a directory (`cp -a`, `rsync -X`, an archive) have its attributes and files. The mark holds the identity of the
//! directory that got it, so that it marks no other.

use std::io;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, StatxFlags, XattrFlags, fgetxattr, fsetxattr, fstatvfs, openat, statx};
use rustix::io::{Errno, read, write};

use super::super::confined::Confined;
use super::super::outcome::{Error, system};
use super::super::place::RootPath;

/// An extended attribute of the directory.
const ATTRIBUTE: &str = "user.iosonar.root";
/// A file in it, where the file system has no extended attributes.
pub(super) const FILE: &str = ".iosonar-root";

/// Opens the root, or makes it. Marks it if it is new or empty.
pub(super) fn open(place: &RootPath, reset: bool) -> Result<Confined, Error> {
    let (root, is_new) = place.make()?;
    let dir = place.path();
    let is_unused = is_new || is_empty(&root).map_err(system(format!("cannot read {}", dir.display())))?;
    if is_unused {
        mark(&root).map_err(system(format!("cannot write to {}", dir.display())))?;
    } else if reset && !is_marked(&root).map_err(system(format!("cannot read {}", dir.display())))? {
        return Err(Error::BadRoot(format!(
            "{} is neither empty nor made by `files prepare` (a copy of what it made is not either): --reset would remove its \
             content. Name another directory",
            dir.display()
        )));
    }
    Ok(root)
}

/// Whether nothing is in it but what `mkfs` makes.
fn is_empty(root: &Confined) -> io::Result<bool> {
    for entry in Dir::read_from(root.directory())? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b".." | b"lost+found") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What no other directory has: its file system, inode and time of birth.
fn identity(root: &Confined) -> io::Result<Vec<u8>> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = statx(root.directory(), c"", AtFlags::EMPTY_PATH, wanted)?;
    let system = fstatvfs(root.directory())?.f_fsid;
    // The number of a file system without a block device of its own is another one after each mount.
    let (major, minor) = match (found.stx_dev_major, found.stx_dev_minor) {
        (0, _) if system != 0 => (0, 0),
        numbers => numbers,
    };
    let born = if found.stx_mask & StatxFlags::BTIME.bits() != 0 {
        format!("{}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec)
    } else {
        "-".to_owned()
    };
    Ok(format!("{major}:{minor} {system:x} {} {born}", found.stx_ino).into_bytes())
}

fn mark(root: &Confined) -> io::Result<()> {
    let identity = identity(root)?;
    if fsetxattr(root.directory(), ATTRIBUTE, &identity, XattrFlags::empty()).is_err() {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(root.directory(), FILE, flags, Mode::from_raw_mode(0o644))?;
        write(&file, &identity)?;
    }
    Ok(())
}

fn is_marked(root: &Confined) -> io::Result<bool> {
    let identity = identity(root)?;
    let mut held = [0_u8; 256];
    if let Ok(length) = fgetxattr(root.directory(), ATTRIBUTE, &mut held) {
        return Ok(held[..length] == identity);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(root.directory(), FILE, flags, Mode::empty()) {
        Ok(file) => Ok(read(&file, &mut held).is_ok_and(|length| held[..length] == identity)),
        Err(Errno::NOENT | Errno::LOOP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
