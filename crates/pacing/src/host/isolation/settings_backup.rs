//! Backup of changed machine settings: each old value is on disk before the change, so that it can be restored even if this
//! program is killed.
//!
//! Each process has its own file, in a directory that is cleared at boot as the settings are. The process holds a lock on its
//! file, so a file without a lock belongs to a process that was killed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Cleared at boot.
const DIRECTORY: &str = "/run/iosonar";

/// One changed setting.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    file: String,
    before: String,
}

/// The settings that this process has changed.
#[derive(Debug)]
pub struct SettingsBackup {
    path: PathBuf,
    file: File,
    changes: Vec<Change>,
}

impl SettingsBackup {
    /// Creates an empty backup. Fails if another process has changed settings and still runs.
    pub fn create() -> io::Result<Self> {
        Self::create_in(Path::new(DIRECTORY))
    }

    fn create_in(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        // One process at a time looks for others and creates its own file.
        let alone = File::open(directory)?;
        flock(alone.as_fd(), FlockOperation::LockExclusive)?;
        // If two processes overlapped, the last to end would restore the values set by the other.
        if let Some(process) = active_process(directory)? {
            return Err(io::Error::other(format!(
                "process {process} isolates its replay on this machine; wait for its end"
            )));
        }
        let name = format!("isolate-{}", std::process::id());
        let path = directory.join(&name);
        // Lock before renaming: an unlocked file under the final name would count as left by a killed process.
        let temporary = directory.join(format!(".{name}"));
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&temporary)?;
        flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(temporary, &path)?;
        Ok(Self { path, file, changes: Vec::new() })
    }

    /// Saves the value of a setting and changes it.
    pub fn set(&mut self, file: &str, value: &str) -> io::Result<()> {
        let before = fs::read_to_string(file)?.trim().to_owned();
        self.replace(file, before, value)
    }

    /// Like [`set`](Self::set), for a file that reads differently from what is written to it: `before` is what to write to
    /// restore it.
    pub fn replace(&mut self, file: &str, before: String, value: &str) -> io::Result<()> {
        let change = Change { file: file.to_owned(), before };
        let mut line = serde_json::to_vec(&change).expect("plain data");
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        fs::write(file, value)?;
        self.changes.push(change);
        Ok(())
    }

    /// Restores all settings, last change first.
    pub fn restore(&mut self) {
        undo(std::mem::take(&mut self.changes));
        let _ = fs::remove_file(&self.path);
    }
}

/// The process ID of a running process with a backup.
fn active_process(directory: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.trim_start_matches('.').strip_prefix("isolate-") else { continue };
        let Ok(file) = File::open(entry.path()) else { continue };
        if flock(file.as_fd(), FlockOperation::NonBlockingLockShared).is_err() {
            return Ok(Some(process.to_owned()));
        }
    }
    Ok(None)
}

fn undo(changes: Vec<Change>) {
    for change in changes.into_iter().rev() {
        // Fails only if the setting no longer exists, such as that of an interrupt that has been released.
        let _ = fs::write(&change.file, &change.before);
    }
}

/// Restores the settings of killed processes, and returns them. Ignores errors, such as a missing permission.
pub fn restore_leftovers() -> Vec<String> {
    restore_in(Path::new(DIRECTORY))
}

/// Restores the settings of a killed process that still hangs in the kernel and holds its lock.
pub fn restore_for(process: u32) -> Vec<String> {
    let path = Path::new(DIRECTORY).join(format!("isolate-{process}"));
    File::open(&path).map_or_else(|_| Vec::new(), |file| restore_file(file, &path))
}

fn restore_in(directory: &Path) -> Vec<String> {
    let mut restored = Vec::new();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().first() != Some(&b'.')) {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path()) else { continue };
        if lock_leftover(&file, &entry.path()) {
            restored.extend(restore_file(file, &entry.path()));
        }
    }
    restored
}

/// Locks the file of a killed process, unless another process has restored it meanwhile, and removed it.
fn lock_leftover(file: &File, path: &Path) -> bool {
    let inode = |metadata: io::Result<Metadata>| metadata.map(|of| of.ino()).ok();
    flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok()
        && inode(file.metadata()) == inode(fs::metadata(path))
}

fn restore_file(mut file: File, path: &Path) -> Vec<String> {
    let mut text = String::new();
    if file.read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    // If the last line is incomplete, its setting was not changed yet.
    let changes: Vec<Change> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let settings = changes.iter().map(|change| change.file.clone()).collect();
    undo(changes);
    let _ = fs::remove_file(path);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Like a kill: the lock is released, the file stays. A process that another test starts has the file, too, until it
    /// executes its program, so closing it is not enough.
    fn abandon(backup: SettingsBackup) {
        flock(backup.file.as_fd(), FlockOperation::Unlock).unwrap();
    }

    #[test]
    fn the_last_change_is_restored_first() {
        let directory = tempfile::tempdir().unwrap();
        let setting = directory.path().join("setting");
        fs::write(&setting, "3\n").unwrap();
        let mut backup = SettingsBackup::create_in(&directory.path().join("run")).unwrap();
        backup.set(setting.to_str().unwrap(), "2").unwrap();
        backup.set(setting.to_str().unwrap(), "1").unwrap();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        assert!(restore_in(&directory.path().join("run")).is_empty(), "its process still runs");
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        backup.restore();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "3");
        assert_eq!(fs::read_dir(directory.path().join("run")).unwrap().count(), 0);
    }

    #[test]
    fn only_one_process_at_a_time_changes_settings() {
        let directory = tempfile::tempdir().unwrap();
        let backup = SettingsBackup::create_in(directory.path()).unwrap();
        let refused = SettingsBackup::create_in(directory.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        abandon(backup);
        // The file of a killed process has no lock.
        SettingsBackup::create_in(directory.path()).unwrap();
    }

    #[test]
    fn of_processes_that_begin_at_once_one_changes_settings() {
        let directory = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(8);
        let created: Vec<io::Result<SettingsBackup>> = std::thread::scope(|scope| {
            let create = || {
                start.wait();
                SettingsBackup::create_in(directory.path())
            };
            let threads = [(); 8].map(|()| scope.spawn(create));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(created.iter().filter(|backup| backup.is_ok()).count(), 1, "{created:?}");
    }

    #[test]
    fn a_backup_that_another_process_restored_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        abandon(SettingsBackup::create_in(directory.path()).unwrap());
        let path = directory.path().join(format!("isolate-{}", std::process::id()));
        let [file, late] = [(); 2].map(|()| File::open(&path).unwrap());
        assert!(lock_leftover(&file, &path));
        assert!(restore_file(file, &path).is_empty() && !path.exists());
        assert!(!lock_leftover(&late, &path), "it was removed");
        abandon(SettingsBackup::create_in(directory.path()).unwrap());
        assert!(!lock_leftover(&late, &path), "another file has its name");
    }

    #[test]
    fn settings_of_a_killed_process_are_restored() {
        let directory = tempfile::tempdir().unwrap();
        let setting = directory.path().join("setting");
        fs::write(&setting, "3\n").unwrap();
        let mut backup = SettingsBackup::create_in(&directory.path().join("run")).unwrap();
        backup.set(setting.to_str().unwrap(), "2").unwrap();
        abandon(backup);
        assert_eq!(restore_in(&directory.path().join("run")), [setting.to_str().unwrap()]);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "3");
        assert!(restore_in(&directory.path().join("run")).is_empty());
    }
}
