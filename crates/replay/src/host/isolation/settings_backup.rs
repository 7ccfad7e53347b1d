//! Settings of the machine that were changed, and what they were before: on disk before the change, so that whatever
//! happens to this program, somebody can put them back.
//!
//! One file for each running program, in a folder that does not outlive the machine's own settings; its owner holds a lock
//! on it, so one without a lock was left by a program that was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Cleared when the machine starts, as the settings are.
const FOLDER: &str = "/run/iosonar";

/// One changed setting.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    file: String,
    before: String,
}

/// The changes of this program.
#[derive(Debug)]
pub struct SettingsBackup {
    path: PathBuf,
    file: File,
    changes: Vec<Change>,
}

impl SettingsBackup {
    /// An empty one.
    pub fn create() -> io::Result<Self> {
        Self::create_in(Path::new(FOLDER))
    }

    fn create_in(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        // Of two that overlap, the one that ends last would put back what the other had made.
        if let Some(other) = held(folder)? {
            return Err(io::Error::other(format!(
                "{other} has arranged this machine and still runs; let it end first"
            )));
        }
        let name = format!("isolate-{}", std::process::id());
        let path = folder.join(&name);
        // It gets its name when it is locked: without the lock others would take it for what a killed program left.
        let nameless = folder.join(format!(".{name}"));
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&nameless)?;
        flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(nameless, &path)?;
        Ok(Self { path, file, changes: Vec::new() })
    }

    /// Changes a setting, after noting down what it was.
    pub fn set(&mut self, file: &str, value: &str) -> io::Result<()> {
        let before = fs::read_to_string(file)?.trim().to_owned();
        self.replace(file, before, value)
    }

    /// The same where what is read from the file is not what is written to it.
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

    /// Puts everything back, last change first.
    pub fn undo(&mut self) {
        put_back(std::mem::take(&mut self.changes));
        let _ = fs::remove_file(&self.path);
    }
}

/// A ledger whose owner runs.
fn held(folder: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.trim_start_matches('.').strip_prefix("isolate-") else { continue };
        let Ok(file) = File::open(entry.path()) else { continue };
        if flock(file.as_fd(), FlockOperation::NonBlockingLockShared).is_err() {
            return Ok(Some(format!("process {process}")));
        }
    }
    Ok(None)
}

/// What cannot be put back has changed its nature meanwhile (an interrupt that has gone): there is nothing to be done.
fn put_back(changes: Vec<Change>) {
    for change in changes.into_iter().rev() {
        let _ = fs::write(&change.file, &change.before);
    }
}

/// Undoes what killed programs left. Returns the settings that were put back. Quiet where nothing is to be done or allowed.
pub fn undo_what_was_left() -> Vec<String> {
    undo_in(Path::new(FOLDER))
}

/// Undoes what a process changed that cannot do it any more, but has not gone yet: a killed one that hangs in the kernel.
pub fn undo_of(process: u32) -> Vec<String> {
    let path = Path::new(FOLDER).join(format!("isolate-{process}"));
    File::open(&path).map_or_else(|_| Vec::new(), |file| undo_file(file, &path))
}

fn undo_in(folder: &Path) -> Vec<String> {
    let mut undone = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().first() != Some(&b'.')) {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path()) else { continue };
        if flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        undone.extend(undo_file(file, &entry.path()));
    }
    undone
}

fn undo_file(mut file: File, path: &Path) -> Vec<String> {
    let mut text = String::new();
    if file.read_to_string(&mut text).is_err() {
        return Vec::new();
    }
    // A last line without its end was never followed by its change.
    let changes: Vec<Change> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let undone = changes.iter().map(|change| change.file.clone()).collect();
    put_back(changes);
    let _ = fs::remove_file(path);
    undone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_undone_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let setting = folder.path().join("setting");
        fs::write(&setting, "3\n").unwrap();
        let mut ledger = SettingsBackup::create_in(&folder.path().join("run")).unwrap();
        ledger.set(setting.to_str().unwrap(), "2").unwrap();
        ledger.set(setting.to_str().unwrap(), "1").unwrap();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        assert!(undo_in(&folder.path().join("run")).is_empty(), "its owner still runs");
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        ledger.undo();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "3");
        assert_eq!(fs::read_dir(folder.path().join("run")).unwrap().count(), 0);
    }

    #[test]
    fn only_one_at_a_time_arranges_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SettingsBackup::create_in(folder.path()).unwrap();
        let refused = SettingsBackup::create_in(folder.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(ledger);
        // What a killed one left is no owner.
        SettingsBackup::create_in(folder.path()).unwrap();
    }

    #[test]
    fn what_a_killed_program_left_is_undone_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let setting = folder.path().join("setting");
        fs::write(&setting, "3\n").unwrap();
        let mut ledger = SettingsBackup::create_in(&folder.path().join("run")).unwrap();
        ledger.set(setting.to_str().unwrap(), "2").unwrap();
        // As a kill would: the lock goes with the file, the ledger stays.
        drop(ledger);
        assert_eq!(undo_in(&folder.path().join("run")), [setting.to_str().unwrap()]);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "3");
        assert!(undo_in(&folder.path().join("run")).is_empty());
    }
}
