//! A snapshot of directories that exist.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use iosonar_trace::{Error, Result};
use rustix::fs::{SeekFrom, seek};

use super::mounts::{is_in_kernel, kernel_places};
use crate::snapshot::{Entry, EntryId, Kind, Tree};

/// More holes of a file are not kept.
const MAX_HOLES: usize = 100_000;

/// Kinds of file systems of the kernel, which are not captured: their directories stay without content.
const OF_KERNEL: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

impl Tree {
    /// Captures a directory and all that is below it. `under`: the absolute path that it has in the trace.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn capture(dir: &Path, under: &[u8]) -> Result<Self> {
        let mut tree = Self::default();
        tree.capture_into(dir, under)?;
        Ok(tree)
    }

    /// Captures several directories at their own paths.
    ///
    /// # Errors
    /// If a directory does not exist, or cannot be read.
    pub fn capture_all(dirs: &[PathBuf]) -> Result<Self> {
        let mut tree = Self::default();
        for dir in dirs {
            let path = dir.canonicalize().map_err(|error| Error::io(dir, error))?;
            tree.capture_into(&path, path.as_os_str().as_bytes())?;
        }
        Ok(tree)
    }

    fn capture_into(&mut self, dir: &Path, under: &[u8]) -> Result<()> {
        let metadata = dir.symlink_metadata().map_err(|error| Error::io(dir, error))?;
        if !metadata.is_dir() {
            return Err(Error::format(dir, "is not a directory; name the directory that holds it"));
        }
        if let Some(problem) = of_kernel(dir)? {
            return Err(Error::format(dir, problem));
        }
        let places = kernel_places();
        let top = self.directory(under);
        let mut groups = HashMap::new();
        self.take(top, &metadata);
        self.entry_mut(top).is_complete = true;
        let mut directories = vec![(top, dir.to_path_buf())];
        while let Some((id, path)) = directories.pop() {
            for name in names(&path)? {
                let path = path.join(&name);
                let metadata = match path.symlink_metadata() {
                    Ok(metadata) => metadata,
                    // It was removed meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(Error::io(path, error)),
                };
                let Some(kind) = Kind::from_mode(metadata.mode()) else { continue };
                let child = self.add(Entry::new(id, name.as_bytes(), kind));
                self.take(child, &metadata);
                if kind == Kind::Directory {
                    self.entry_mut(child).is_complete = true;
                    if OF_KERNEL.contains(&path.as_os_str().as_bytes()) || places.contains(&path) {
                        let entry = self.entry_mut(child);
                        (entry.is_captured, entry.is_complete) = (false, false);
                    } else {
                        directories.push((child, path));
                    }
                    continue;
                }
                let number = groups.len() as u64 + 1;
                let entry = self.entry_mut(child);
                if metadata.nlink() > 1 {
                    entry.group = Some(*groups.entry((metadata.dev(), metadata.ino())).or_insert(number));
                }
                if kind == Kind::Link {
                    let target = path.read_link().map_err(|error| Error::io(&path, error))?;
                    entry.target = Some(target.as_os_str().as_bytes().into());
                } else if kind == Kind::File && entry.allocated < entry.bytes {
                    entry.holes = holes(&path, entry.bytes).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// Takes over what `stat` says.
    pub(super) fn take(&mut self, id: EntryId, metadata: &Metadata) {
        let entry = self.entry_mut(id);
        entry.is_captured = true;
        entry.mode = metadata.mode() & 0o7777;
        (entry.uid, entry.gid) = (metadata.uid(), metadata.gid());
        entry.modified_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        entry.bytes = if entry.kind == Kind::File { metadata.len() } else { 0 };
        entry.allocated = metadata.blocks() * 512;
        entry.device = matches!(entry.kind, Kind::CharDevice | Kind::BlockDevice).then(|| metadata.rdev());
    }
}

/// Why a directory is not captured.
fn of_kernel(dir: &Path) -> Result<Option<&'static str>> {
    let directory = File::open(dir).map_err(|error| Error::io(dir, error))?;
    let is_kernel = is_in_kernel(directory.as_fd());
    Ok(is_kernel.then_some("is in a file system of the kernel; name an ordinary directory"))
}

/// The names in a directory, in ascending order.
fn names(dir: &Path) -> Result<Vec<std::ffi::OsString>> {
    let in_dir = |error| Error::io(dir, error);
    let mut names = Vec::new();
    for entry in dir.read_dir().map_err(in_dir)? {
        names.push(entry.map_err(in_dir)?.file_name());
    }
    names.sort();
    Ok(names)
}

/// Ranges without data. An empty list if the file cannot be opened or its file system does not tell.
fn holes(path: &Path, bytes: u64) -> io::Result<Box<[(u64, u64)]>> {
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut holes = Vec::new();
    let mut at = 0;
    while at < bytes && holes.len() < MAX_HOLES {
        let data = match seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data.min(bytes),
            Err(rustix::io::Errno::NXIO) => bytes,
            Err(error) => return Err(error.into()),
        };
        if data > at {
            holes.push((at, data - at));
        }
        if data >= bytes {
            break;
        }
        at = seek(&file, SeekFrom::Hole(data))?;
    }
    Ok(holes.into())
}
