//! A file that grows under a hidden name beside its final one, `.NAME.XXXXXX.partial`, and what becomes of it: it gets its
//! name, gets another one because that was taken meanwhile, stays as it is because a part is better than nothing, or goes.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{NamedTempFile, TempPath};

use crate::io::checkpoint::Checkpoint;

/// What becomes of a regular file that stands under the final name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// One that was there from the start is replaced: whoever begins an output has asked about it before. One that
    /// appears meanwhile stays, and what was written gets another name.
    #[default]
    FromTheStart,
    /// Whatever is there in the end is replaced.
    Replaced,
}

/// The hidden files that this process is writing, for [`remove_unfinished`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is being written and has no name of its own yet, for a program that is about to end because of a signal.
/// No other output can get its final name afterwards.
pub fn remove_unfinished() {
    let paths = unfinished();
    for path in paths.iter() {
        let _ = fs::remove_file(path);
    }
    // Held for ever: a file that was just removed must not be missed by the thread that wants to rename it.
    std::mem::forget(paths);
}

/// The file.
pub struct AtomicFile {
    /// `None` once it has its name.
    file: Option<NamedTempFile>,
    /// The final name, links followed.
    path: PathBuf,
    replaces: bool,
    /// What [`AtomicFile::keep`] made of it.
    kept: Option<Checkpoint>,
    /// Nothing more is written after an error: it could only damage what is kept.
    is_over: bool,
}

impl AtomicFile {
    /// Begins it beside `path`.
    pub fn create(path: &Path, existing: Existing) -> io::Result<Self> {
        let path = follow(path)?;
        let name = path.file_name().unwrap_or_default();
        // 0o666 is what any program asks for; the umask takes its share.
        let mut paths = unfinished();
        let file = tempfile::Builder::new()
            .prefix(&[OsStr::new("."), name, OsStr::new(".")].join(OsStr::new("")))
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder_of(&path))?;
        paths.push(file.path().to_owned());
        drop(paths);
        let replaces = existing == Existing::Replaced || fs::metadata(&path).is_ok();
        Ok(Self { file: Some(file), path, replaces, kept: None, is_over: false })
    }

    /// From now on it stays under its hidden name, whatever becomes of this program and of what is still to come. `end`
    /// stands behind what was written: it makes a whole file of a part. With an end, what is written behind it waits in
    /// memory for the next one. Returns the hidden name.
    pub fn keep(&mut self, end: Vec<u8>) -> io::Result<PathBuf> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let hidden = file.path().to_owned();
        let bytes = file.as_file_mut().stream_position()?;
        let kept = match self.kept.take() {
            Some(kept) if kept.has_end() => kept,
            _ => Checkpoint::new(file.as_file(), &hidden, bytes),
        };
        if let Err(error) = self.kept.insert(kept).extend(file.as_file(), end) {
            self.go_back();
            return Err(error);
        }
        file.disable_cleanup(true);
        unfinished().retain(|path| *path != hidden);
        Ok(hidden)
    }

    /// Makes it again what could be read last. What has no end is read as far as it goes, and stays as it is.
    fn go_back(&mut self) {
        self.is_over = true;
        if let (Some(file), Some(kept)) = (&self.file, self.kept.as_ref().filter(|kept| kept.has_end())) {
            // The room for it was there before. If it can't be had any more, there is nothing else to try.
            let _ = kept.restore(file.as_file());
        }
    }

    /// Makes its content durable and gives it its name.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let hidden = file.path().to_owned();
        let result = self.name(file);
        unfinished().retain(|path| *path != hidden);
        result
    }

    fn name(&mut self, file: NamedTempFile) -> io::Result<()> {
        if let Some(kept) = self.kept.as_mut().filter(|kept| kept.has_end())
            && let Err(error) = kept.extend(file.as_file(), Vec::new())
        {
            let _ = kept.restore(file.as_file());
            return Err(error);
        }
        file.as_file().sync_all()?;
        // A signal's removal of hidden files comes before this or after it.
        let paths = unfinished();
        let persisted = match self.replaces {
            true => file.persist(&self.path).map(|_| ()).map_err(|e| (e.file, e.error)),
            false => persist_beside(file, &self.path),
        };
        drop(paths);
        match persisted {
            Ok(()) => make_name_durable(&self.path),
            Err((file, error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                let kept = keep_beside(file, &self.path).map_err(|(_, error)| error)?;
                Err(io::Error::new(
                    error.kind(),
                    format!(
                        "a file of this name appeared meanwhile, and was not replaced; what was written is whole, and is \
                         called {}",
                        kept.display()
                    ),
                ))
            }
            Err((_, error)) => Err(error),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = self.file.as_mut().filter(|_| !self.is_over) else {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "nothing is written after an error"));
        };
        if let Some(kept) = self.kept.as_mut().filter(|kept| kept.has_end()) {
            kept.push(bytes);
            return Ok(bytes.len());
        }
        let written = file.write(bytes);
        if written.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted) {
            self.go_back();
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

/// Gives a file that has only its hidden name another one, which there must not be.
pub fn give_name(hidden: &Path, name: &Path) -> io::Result<()> {
    let mut file = NamedTempFile::from_parts(File::open(hidden)?, TempPath::try_from_path(hidden)?);
    file.disable_cleanup(true);
    file.as_file().sync_all()?;
    persist_beside(file, name).map_err(|(_, error)| error)?;
    make_name_durable(name)
}

/// Where a link leads: the file there is replaced, not the link. One that leads nowhere is refused, as nobody can have been
/// asked about what it stands for.
fn follow(path: &Path) -> io::Result<PathBuf> {
    if !fs::symlink_metadata(path).is_ok_and(|status| status.is_symlink()) {
        return Ok(path.to_owned());
    }
    fs::canonicalize(path).map_err(|error| {
        let leads_to = fs::read_link(path).unwrap_or_default();
        io::Error::new(
            error.kind(),
            format!(
                "it is a symbolic link to {}, which is not there; remove the link, or name the file itself",
                leads_to.display()
            ),
        )
    })
}

/// A file that still has its hidden name, and why.
type Failed = (NamedTempFile, io::Error);

/// Gives it that name, unless there is one already.
fn persist_beside(file: NamedTempFile, path: &Path) -> Result<(), Failed> {
    let failed = match file.persist_noclobber(path) {
        Ok(_) => return Ok(()),
        Err(failed) => failed,
    };
    // Where a file system (FAT, for example) can neither refuse to replace nor link, looking before has to do.
    let can_neither = matches!(
        failed.error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    );
    if can_neither && fs::symlink_metadata(path).is_err() {
        return failed.file.persist(path).map(|_| ()).map_err(|e| (e.file, e.error));
    }
    Err((failed.file, failed.error))
}

/// Gives it the first free name like that one: `a-2.load.parquet` for `a.load.parquet`.
fn keep_beside(mut file: NamedTempFile, path: &Path) -> Result<PathBuf, Failed> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let dot = name.iter().skip(1).position(|&byte| byte == b'.').map_or(name.len(), |place| place + 1);
    let (stem, ending) = name.split_at(dot);
    for number in 2..1000 {
        let name = [stem, format!("-{number}").as_bytes(), ending].concat();
        let other = path.with_file_name(OsStr::from_bytes(&name));
        match persist_beside(file, &other) {
            Ok(()) => return Ok(other),
            Err((back, error)) if error.kind() == io::ErrorKind::AlreadyExists => file = back,
            Err(failed) => return Err(failed),
        }
    }
    file.keep().map(|(_, hidden)| hidden).map_err(|e| (e.file, e.error))
}

/// Makes the name that a file just got outlive the system, as far as this can be had: a folder that may be written, but
/// not be read, can't be opened for it, and not every file system does it. The file is whole and has its name.
fn make_name_durable(path: &Path) -> io::Result<()> {
    let Ok(folder) = File::open(folder_of(path)) else { return Ok(()) };
    folder.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
