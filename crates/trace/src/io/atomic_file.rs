//! A file that is written under a hidden name, `.NAME.XXXXXX.partial`, in the directory of its final name. In the end it is
//! renamed: to its final name, or to another one if that is taken. An unfinished file is removed, unless it has a
//! checkpoint.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{NamedTempFile, TempPath};

use crate::io::checkpoint::Checkpoint;

/// Whether a regular file that has the final name is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Replace a file that existed when the output was created; the caller has checked that this is allowed. A file that
    /// appeared since then stays, and the output gets another name.
    #[default]
    ReplaceKnown,
    /// Replace any file that has the name when the output is finished.
    ReplaceAny,
}

/// The hidden files that this process is writing and that have no checkpoint, for [`remove_unfinished`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the hidden files without a checkpoint, for a program that is about to end because of a signal. Afterwards no
/// output can be renamed to its final name.
pub fn remove_unfinished() {
    let paths = unfinished();
    for path in paths.iter() {
        let _ = fs::remove_file(path);
    }
    // The lock is never released: another thread would fail to rename a file that was just removed.
    std::mem::forget(paths);
}

/// A file that gets its final name when it is complete.
pub struct AtomicFile {
    /// `None` after the rename.
    file: Option<NamedTempFile>,
    /// The final name, with links resolved.
    path: PathBuf,
    replaces: bool,
    /// The state of the last [`AtomicFile::checkpoint`].
    checkpoint: Option<Checkpoint>,
    /// After an error nothing more is written: it could damage the checkpoint.
    has_failed: bool,
}

impl AtomicFile {
    /// Creates the hidden file in the directory of `path`.
    pub fn create(path: &Path, existing: Existing) -> io::Result<Self> {
        let path = resolve_link(path)?;
        let name = path.file_name().unwrap_or_default();
        // 0o666, as other programs, less the umask.
        let mut paths = unfinished();
        let file = tempfile::Builder::new()
            .prefix(&[OsStr::new("."), name, OsStr::new(".")].join(OsStr::new("")))
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory_of(&path))?;
        paths.push(file.path().to_owned());
        drop(paths);
        let replaces = existing == Existing::ReplaceAny || fs::metadata(&path).is_ok();
        Ok(Self { file: Some(file), path, replaces, checkpoint: None, has_failed: false })
    }

    /// From now on the file is not removed: it stays under its hidden name, even if this program is killed or writing
    /// fails later. `footer` is appended to make the part a readable file. If it is not empty, further writes stay in memory
    /// until the next checkpoint. Returns the hidden name.
    pub fn checkpoint(&mut self, footer: Vec<u8>) -> io::Result<PathBuf> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let hidden = file.path().to_owned();
        let bytes = file.as_file_mut().stream_position()?;
        let checkpoint = match self.checkpoint.take() {
            Some(checkpoint) if checkpoint.has_footer() => checkpoint,
            _ => Checkpoint::new(file.as_file(), &hidden, bytes),
        };
        if let Err(error) = self.checkpoint.insert(checkpoint).extend(file.as_file(), footer) {
            self.roll_back();
            return Err(error);
        }
        file.disable_cleanup(true);
        unfinished().retain(|path| *path != hidden);
        Ok(hidden)
    }

    /// The hidden name, until [`AtomicFile::finish`].
    pub fn hidden(&self) -> Option<&Path> {
        self.file.as_ref().map(NamedTempFile::path)
    }

    /// Restores the last checkpoint. Without a footer there is nothing to restore: a file cut anywhere is readable.
    fn roll_back(&mut self) {
        self.has_failed = true;
        if let (Some(file), Some(checkpoint)) =
            (&self.file, self.checkpoint.as_ref().filter(|checkpoint| checkpoint.has_footer()))
        {
            // The space was allocated before. If the file system cannot provide it again, there is no other remedy.
            let _ = checkpoint.restore(file.as_file());
        }
    }

    /// Makes the content durable and renames the file to its final name.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let hidden = file.path().to_owned();
        let result = self.persist(file);
        unfinished().retain(|path| *path != hidden);
        result
    }

    fn persist(&mut self, file: NamedTempFile) -> io::Result<()> {
        if let Some(checkpoint) = self.checkpoint.as_mut().filter(|checkpoint| checkpoint.has_footer())
            && let Err(error) = checkpoint.extend(file.as_file(), Vec::new())
        {
            let _ = checkpoint.restore(file.as_file());
            return Err(error);
        }
        file.as_file().sync_all()?;
        // The lock excludes `remove_unfinished` during the rename.
        let paths = unfinished();
        let persisted = match self.replaces {
            true => file.persist(&self.path).map(|_| ()).map_err(|e| (e.file, e.error)),
            false => persist_as_new(file, &self.path),
        };
        drop(paths);
        match persisted {
            Ok(()) => make_name_durable(&self.path),
            Err((file, error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                let other = persist_under_free_name(file, &self.path).map_err(|(_, error)| error)?;
                Err(io::Error::new(
                    error.kind(),
                    format!(
                        "a file of this name appeared meanwhile and was not replaced; the complete output is {}",
                        other.display()
                    ),
                ))
            }
            Err((_, error)) => Err(error),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = self.file.as_mut().filter(|_| !self.has_failed) else {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "an earlier write failed"));
        };
        if let Some(checkpoint) = self.checkpoint.as_mut().filter(|checkpoint| checkpoint.has_footer()) {
            checkpoint.push(bytes);
            return Ok(bytes.len());
        }
        let written = file.write(bytes);
        if written.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted) {
            self.roll_back();
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let hidden = file.path().to_owned();
            drop(file);
            unfinished().retain(|path| *path != hidden);
        }
    }
}

/// Renames a hidden file to `name`. Fails if a file of this name exists.
pub fn give_name(hidden: &Path, name: &Path) -> io::Result<()> {
    let mut file = NamedTempFile::from_parts(File::open(hidden)?, TempPath::try_from_path(hidden)?);
    file.disable_cleanup(true);
    file.as_file().sync_all()?;
    persist_as_new(file, name).map_err(|(_, error)| error)?;
    make_name_durable(name)
}

/// The target of a symbolic link: that file is replaced, not the link. A dangling link is refused, because the caller
/// cannot have checked whether its target may be replaced.
fn resolve_link(path: &Path) -> io::Result<PathBuf> {
    if !fs::symlink_metadata(path).is_ok_and(|status| status.is_symlink()) {
        return Ok(path.to_owned());
    }
    fs::canonicalize(path).map_err(|error| {
        let target = fs::read_link(path).unwrap_or_default();
        io::Error::new(
            error.kind(),
            format!(
                "it is a symbolic link to {}, which does not exist; remove the link, or name the file itself",
                target.display()
            ),
        )
    })
}

/// A file that could not be renamed, and the error.
type Failed = (NamedTempFile, io::Error);

/// Renames the file, unless a file of this name exists.
fn persist_as_new(file: NamedTempFile, path: &Path) -> Result<(), Failed> {
    let failed = match file.persist_noclobber(path) {
        Ok(_) => return Ok(()),
        Err(failed) => failed,
    };
    // Some file systems, such as FAT, support neither RENAME_NOREPLACE nor hard links. There, check before the rename.
    let is_unsupported = matches!(
        failed.error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    );
    if is_unsupported && fs::symlink_metadata(path).is_err() {
        return failed.file.persist(path).map(|_| ()).map_err(|e| (e.file, e.error));
    }
    Err((failed.file, failed.error))
}

/// Renames the file to the first free numbered name: `a-2.load.parquet` for `a.load.parquet`.
fn persist_under_free_name(mut file: NamedTempFile, path: &Path) -> Result<PathBuf, Failed> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let dot = name.iter().skip(1).position(|&byte| byte == b'.').map_or(name.len(), |place| place + 1);
    let (stem, ending) = name.split_at(dot);
    for number in 2..1000 {
        let name = [stem, format!("-{number}").as_bytes(), ending].concat();
        let other = path.with_file_name(OsStr::from_bytes(&name));
        match persist_as_new(file, &other) {
            Ok(()) => return Ok(other),
            Err((back, error)) if error.kind() == io::ErrorKind::AlreadyExists => file = back,
            Err(failed) => return Err(failed),
        }
    }
    file.keep().map(|(_, hidden)| hidden).map_err(|e| (e.file, e.error))
}

/// Syncs the directory, so that a rename survives a crash of the system. Does nothing if the directory cannot be opened (write
/// permission only) or the file system does not support it: the file is complete and has its name.
fn make_name_durable(path: &Path) -> io::Result<()> {
    let Ok(directory) = File::open(directory_of(path)) else { return Ok(()) };
    directory.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
