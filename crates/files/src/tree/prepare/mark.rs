//! The mark of a root that this program made: only such a root may be reset.

use std::io;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, XattrFlags, fgetxattr, fsetxattr, openat};

use super::super::confined::Confined;
use super::super::mounts::leads_out;
use super::outcome::{Error, system};

/// An extended attribute of the directory.
const ATTRIBUTE: &str = "user.iosonar.root";
/// A file in it, where the file system has no extended attributes.
pub(super) const FILE: &str = ".iosonar-root";

/// Opens the root, or makes it. Marks it if it is new or empty.
pub(super) fn open(dir: &Path, reset: bool) -> Result<Confined, Error> {
    let is_new = match std::fs::create_dir(dir) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(system(format!("cannot make the root {}", dir.display()))(error)),
    };
    let open = |path: &Path| Confined::open(path).map_err(system(format!("cannot open the root {}", path.display())));
    let root = open(dir)?;
    let inode = |root: &Confined| root.own_status().map(|status| status.inode);
    if inode(&root).ok() == inode(&open(Path::new("/"))?).ok() {
        return Err(Error::BadRoot(format!(
            "{} is the root directory of this system; name a directory below it",
            dir.display()
        )));
    }
    if let Some(problem) = leads_out(dir) {
        return Err(Error::BadRoot(problem));
    }
    let is_free = is_new || is_empty(&root).map_err(system(format!("cannot read {}", dir.display())))?;
    if is_free {
        mark(&root).map_err(system(format!("cannot write to {}", dir.display())))?;
    } else if reset && !is_marked(&root) {
        return Err(Error::BadRoot(format!(
            "{} is neither empty nor made by `files prepare`: --reset would remove its content. Name another directory",
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

fn mark(root: &Confined) -> io::Result<()> {
    match fsetxattr(root.directory(), ATTRIBUTE, b"1", XattrFlags::empty()) {
        Ok(()) => Ok(()),
        Err(_) => {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(root.directory(), FILE, flags, Mode::from_raw_mode(0o644))?;
            Ok(())
        }
    }
}

fn is_marked(root: &Confined) -> bool {
    fgetxattr(root.directory(), ATTRIBUTE, &mut [0_u8; 8]).is_ok()
        || root.status(format!("/{FILE}").as_bytes()).is_ok_and(|status| status.is_some())
}
