//! Checkpoints of a growing file: it can be read even if its program is killed.
//!
//! ```text
//!  .NAME.XXXXXX.partial      the data so far, and a footer that makes it a readable file
//!  .NAME.XXXXXX.partial.end  undo file, only while the first is extended: offset and length of the footer, and the footer
//! ```
//!
//! The next piece overwrites the footer and appends another one. A program that is killed while it does so leaves the undo
//! file, with which [`recover`] restores the previous footer. Text needs no footer: a part of it is readable.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};

/// A killed program loses at most the rows since the last checkpoint. The interval between checkpoints is a fraction of the
/// elapsed time, within these limits.
///
/// Each checkpoint ends a row group, and the file's footer grows with their number: 600 in a day.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(300);
const ELAPSED_PARTS: u32 = 50;

/// When checkpoints are written.
#[derive(Debug, Default)]
pub struct CheckpointSchedule {
    next: Duration,
}

impl CheckpointSchedule {
    /// Whether a checkpoint is due, this long after the start; if so, schedules the next one.
    pub fn is_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.next;
        if is_due {
            self.next = elapsed + (elapsed / ELAPSED_PARTS).clamp(MIN_INTERVAL, MAX_INTERVAL);
        }
        is_due
    }
}

/// The state of a file's last checkpoint.
pub struct Checkpoint {
    /// Bytes of data in the file: the offset of the footer.
    bytes: u64,
    footer: Vec<u8>,
    /// Data for the next checkpoint.
    pending: Vec<u8>,
    undo_path: PathBuf,
}

impl Checkpoint {
    /// Starts checkpoints of a file that has `bytes` bytes of data. Locks the file, so that [`recover`] refuses it while it
    /// is open.
    pub fn new(file: &File, path: &Path, bytes: u64) -> Self {
        // Some file systems have no locks.
        let _ = file.try_lock();
        Self { bytes, footer: Vec::new(), pending: Vec::new(), undo_path: undo_path(path) }
    }

    /// Whether the data is followed by a footer, so that further data must be kept in memory until the next checkpoint.
    pub fn has_footer(&self) -> bool {
        !self.footer.is_empty()
    }

    /// Keeps data for the next checkpoint.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Writes the pending data and a new footer, which may be empty.
    pub fn extend(&mut self, file: &File, footer: Vec<u8>) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.pending);
        let bytes = self.bytes + all.len() as u64;
        all.extend_from_slice(&footer);
        if self.has_footer() {
            let length = self.footer.len() as u64;
            fs::write(&self.undo_path, [&self.bytes.to_le_bytes(), &length.to_le_bytes(), &self.footer[..]].concat())?;
        }
        file.write_all_at(&all, self.bytes)?;
        file.set_len(bytes + footer.len() as u64)?;
        self.remove_undo_file();
        (self.bytes, self.footer) = (bytes, footer);
        Ok(())
    }

    /// Restores the footer, and removes everything written after it.
    pub fn restore(&self, file: &File) -> io::Result<()> {
        put_footer(file, self.bytes, &self.footer)?;
        self.remove_undo_file();
        Ok(())
    }

    fn remove_undo_file(&self) {
        if self.has_footer() {
            // If this fails, `recover` restores this footer, which is only a little older.
            let _ = fs::remove_file(&self.undo_path);
        }
    }
}

fn put_footer(file: &File, bytes: u64, footer: &[u8]) -> io::Result<()> {
    // If the file system needs new space to overwrite, truncating the file first may free it.
    file.write_all_at(footer, bytes)
        .or_else(|_| file.set_len(bytes).and_then(|()| file.write_all_at(footer, bytes)))?;
    file.set_len(bytes + footer.len() as u64)
}

fn undo_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".end");
    name.into()
}

/// Whether the program was killed while it extended the file, which cannot be read before it is recovered.
pub fn needs_recovery(path: &Path) -> bool {
    undo_path(path).exists()
}

/// The final name of a file with this hidden name.
pub fn final_name(hidden: &Path) -> Option<PathBuf> {
    let name = hidden.file_name()?.as_bytes().strip_prefix(b".")?.strip_suffix(b".partial")?;
    let name = &name[..name.iter().rposition(|&byte| byte == b'.')?];
    (!name.is_empty()).then(|| hidden.with_file_name(OsStr::from_bytes(name)))
}

/// Offset and content of the footer in an undo file. `None` if it is incomplete: then the program was killed before it
/// changed the data file.
fn parse_undo(content: &[u8]) -> Option<(u64, &[u8])> {
    let (bytes, rest) = content.split_first_chunk()?;
    let (length, footer) = rest.split_first_chunk()?;
    (u64::from_le_bytes(*length) == footer.len() as u64).then_some((u64::from_le_bytes(*bytes), footer))
}

/// Whether a file can be locked. Tries for a second, because a killed process needs a moment to end.
pub fn becomes_free(try_lock: impl Fn() -> bool) -> bool {
    const TRIES: u32 = 20;
    (0..TRIES).any(|number| {
        if number > 0 {
            thread::sleep(Duration::from_millis(50));
        }
        try_lock()
    })
}

/// Makes the file of a killed program readable. It keeps its hidden name.
///
/// # Errors
/// If the program is still writing the file, or the file cannot be written.
pub fn recover(hidden: &Path) -> Result<()> {
    let wrap = |e| Error::io(hidden, e);
    let file = File::options().read(true).write(true).open(hidden).map_err(wrap)?;
    if !becomes_free(|| !matches!(file.try_lock(), Err(TryLockError::WouldBlock))) {
        return Err(Error::format(
            hidden,
            "it is still being written; wait for the end of its program, or end it with Ctrl-C",
        ));
    }
    let undo_path = undo_path(hidden);
    let undo = match fs::read(&undo_path) {
        Ok(undo) => undo,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(undo_path, e)),
    };
    if let Some((bytes, footer)) = parse_undo(&undo) {
        put_footer(&file, bytes, footer).and_then(|()| file.sync_all()).map_err(wrap)?;
    }
    fs::remove_file(&undo_path).map_err(|e| Error::io(undo_path, e))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    /// A file in memory, and a hidden name for it.
    fn file(directory: &Path) -> (File, PathBuf) {
        let file = memfd_create("checkpoint", MemfdFlags::ALLOW_SEALING).unwrap();
        (file.into(), directory.join(".a.load.parquet.abcdef.partial"))
    }

    fn content(file: &File) -> Vec<u8> {
        let mut content = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut content, 0).unwrap();
        content
    }

    #[test]
    fn checkpoints_are_frequent_at_first_and_few_in_a_day() {
        let mut schedule = CheckpointSchedule::default();
        let due: Vec<u64> = (0..24 * 3600).filter(|&second| schedule.is_due(Duration::from_secs(second))).collect();
        assert_eq!(due[..4], [0, 1, 2, 3]);
        assert!(due.windows(2).all(|pair| pair[1] - pair[0] <= (pair[0] / 50 + 1).min(301)));
        assert!((400..700).contains(&due.len()), "{}", due.len());
    }

    #[test]
    fn a_footer_is_replaced_by_further_data_and_a_new_footer() {
        let directory = tempfile::tempdir().unwrap();
        let (mut file, path) = file(directory.path());
        file.write_all(b"one ").unwrap();
        let mut checkpoint = Checkpoint::new(&file, &path, 4);
        for (data, footer, whole) in
            [("", "END", "one END"), ("two ", "A LONGER END", "one two A LONGER END"), ("3 ", "E", "one two 3 E")]
        {
            checkpoint.push(data.as_bytes());
            checkpoint.extend(&file, footer.into()).unwrap();
            assert_eq!(content(&file), whole.as_bytes());
            assert!(!needs_recovery(&path));
        }
        checkpoint.push(b"4");
        checkpoint.extend(&file, Vec::new()).unwrap();
        assert_eq!(content(&file), b"one two 3 4");
    }

    #[test]
    fn a_checkpoint_that_fails_on_a_full_disk_is_undone() {
        let directory = tempfile::tempdir().unwrap();
        let (mut file, path) = file(directory.path());
        file.write_all(&[1; 5000]).unwrap();
        let mut checkpoint = Checkpoint::new(&file, &path, 5000);
        checkpoint.extend(&file, vec![2; 100]).unwrap();
        let before = content(&file);
        // A sealed file cannot grow, but takes data up to the end of its last page, which overwrites the footer.
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        checkpoint.push(&[3; 100_000]);
        checkpoint.extend(&file, vec![4; 200]).unwrap_err();
        assert!(needs_recovery(&path));
        checkpoint.restore(&file).unwrap();
        assert_eq!(content(&file), before);
        assert!(!needs_recovery(&path));
    }

    #[test]
    fn the_footer_of_a_killed_program_is_recovered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".a.load.parquet.abcdef.partial");
        let undo = |footer: &[u8]| [&4_u64.to_le_bytes(), &3_u64.to_le_bytes(), footer].concat();
        for (left, undo, recovered) in [
            ("one two A LONG", Some(undo(b"END")), "one END"),
            ("on", Some(undo(b"END")), "on\0\0END"),
            ("one END", Some(undo(b"EN")), "one END"),
            ("one END", Some(Vec::new()), "one END"),
            ("one END", None, "one END"),
        ] {
            fs::write(&path, left).unwrap();
            if let Some(undo) = undo {
                fs::write(undo_path(&path), undo).unwrap();
            }
            recover(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), recovered.as_bytes());
            assert!(!needs_recovery(&path));
        }
    }

    #[test]
    fn a_file_that_is_still_being_written_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".a.load.abcdef.partial");
        let file = File::create(&path).unwrap();
        let checkpoint = Checkpoint::new(&file, &path, 0);
        assert!(recover(&path).unwrap_err().to_string().contains("still being written"));
        drop((checkpoint, file));
        recover(&path).unwrap();
    }

    #[test]
    fn a_hidden_name_contains_the_final_name() {
        let name = |hidden: &str| final_name(Path::new(hidden));
        assert_eq!(name("there/.a.load.gz.Ab3xYz.partial"), Some("there/a.load.gz".into()));
        for other in ["a.load.gz", ".a.load", ".partial", "..Ab3xYz.partial", "/"] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
