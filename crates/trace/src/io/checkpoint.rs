//! What has been written of a file that still grows, kept so that it can be read whatever becomes of the program.
//!
//! ```text
//!  .NAME.XXXXXX.partial      what is written for good, and an end that makes a whole file of it
//!  .NAME.XXXXXX.partial.end  only while that is being extended: where the end was, how long it was, and the end
//! ```
//!
//! The next piece overwrites the end, and has another one behind it. A program that is killed in the middle of that
//! leaves the second file, with which [`recover`] goes back. Text needs no end: it is read as far as it goes.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What is kept of a file.
pub struct Checkpoint {
    /// How much of it is written for good.
    bytes: u64,
    /// What stands behind that, until something else does.
    end: Vec<u8>,
    /// What comes there with the next end.
    next: Vec<u8>,
    /// The other file.
    end_path: PathBuf,
}

impl Checkpoint {
    /// Of that file, of which so many bytes are written. While it is open, [`recover`] leaves it alone.
    pub fn new(file: &File, path: &Path, bytes: u64) -> Self {
        // Where a file system has no locks, it is as good without.
        let _ = file.try_lock();
        Self { bytes, end: Vec::new(), next: Vec::new(), end_path: end_path(path) }
    }

    /// Whether an end stands behind it, so that what is written has to wait.
    pub fn has_end(&self) -> bool {
        !self.end.is_empty()
    }

    /// Takes what comes next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.next.extend_from_slice(bytes);
    }

    /// Adds what has come, and puts another end behind it, or none.
    pub fn extend(&mut self, file: &File, end: Vec<u8>) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.next);
        let bytes = self.bytes + all.len() as u64;
        all.extend_from_slice(&end);
        if self.has_end() {
            let length = self.end.len() as u64;
            fs::write(&self.end_path, [&self.bytes.to_le_bytes(), &length.to_le_bytes(), &self.end[..]].concat())?;
        }
        file.write_all_at(&all, self.bytes)?;
        file.set_len(bytes + end.len() as u64)?;
        self.forget_end_file();
        (self.bytes, self.end) = (bytes, end);
        Ok(())
    }

    /// Puts the end where it was, as if nothing had been written behind it since.
    pub fn restore(&self, file: &File) -> io::Result<()> {
        put_end(file, self.bytes, &self.end)?;
        self.forget_end_file();
        Ok(())
    }

    fn forget_end_file(&self) {
        if self.has_end() {
            // If it stays, what it would bring back is a little older.
            let _ = fs::remove_file(&self.end_path);
        }
    }
}

fn put_end(file: &File, bytes: u64, end: &[u8]) -> io::Result<()> {
    // Where a file system needs new room even for this, giving up what is behind may make it.
    file.write_all_at(end, bytes).or_else(|_| file.set_len(bytes).and_then(|()| file.write_all_at(end, bytes)))?;
    file.set_len(bytes + end.len() as u64)
}

/// The name of the other file.
fn end_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".end");
    name.into()
}

/// Whether a file was being extended when its program was killed, and can't be read before it is recovered.
pub fn was_being_extended(path: &Path) -> bool {
    end_path(path).exists()
}

/// The name that a file would have got, by its hidden one.
pub fn final_name(hidden: &Path) -> Option<PathBuf> {
    let name = hidden.file_name()?.as_bytes().strip_prefix(b".")?.strip_suffix(b".partial")?;
    let name = &name[..name.iter().rposition(|&byte| byte == b'.')?];
    (!name.is_empty()).then(|| hidden.with_file_name(OsStr::from_bytes(name)))
}

/// What the other file says. If that is not whole, the program was killed before it wrote anything else.
fn whole_end(told: &[u8]) -> Option<(u64, &[u8])> {
    let (bytes, rest) = told.split_first_chunk()?;
    let (length, end) = rest.split_first_chunk()?;
    (u64::from_le_bytes(*length) == end.len() as u64).then_some((u64::from_le_bytes(*bytes), end))
}

/// Makes what a killed program left one that can be read, under its hidden name.
///
/// # Errors
/// If that program is still writing it, or it can't be written here.
pub fn recover(hidden: &Path) -> Result<()> {
    let wrap = |e| Error::io(hidden, e);
    let file = File::options().read(true).write(true).open(hidden).map_err(wrap)?;
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Err(Error::format(
            hidden,
            "it is still being written; wait for the recording's end, or end it with Ctrl-C",
        ));
    }
    let end_path = end_path(hidden);
    let told = match fs::read(&end_path) {
        Ok(told) => told,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(end_path, e)),
    };
    if let Some((bytes, end)) = whole_end(&told) {
        put_end(&file, bytes, end).and_then(|()| file.sync_all()).map_err(wrap)?;
    }
    fs::remove_file(&end_path).map_err(|e| Error::io(end_path, e))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    /// A file in memory, and where its other file would be.
    fn file(folder: &Path) -> (File, PathBuf) {
        let file = memfd_create("kept", MemfdFlags::ALLOW_SEALING).unwrap();
        (file.into(), folder.join(".a.load.parquet.abcdef.partial"))
    }

    fn content(file: &File) -> Vec<u8> {
        let mut content = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut content, 0).unwrap();
        content
    }

    #[test]
    fn ends_are_replaced_by_what_comes_next() {
        let folder = tempfile::tempdir().unwrap();
        let (mut file, path) = file(folder.path());
        file.write_all(b"one ").unwrap();
        let mut kept = Checkpoint::new(&file, &path, 4);
        for (next, end, whole) in
            [("", "END", "one END"), ("two ", "A LONGER END", "one two A LONGER END"), ("3 ", "E", "one two 3 E")]
        {
            kept.push(next.as_bytes());
            kept.extend(&file, end.into()).unwrap();
            assert_eq!(content(&file), whole.as_bytes());
            assert!(!was_being_extended(&path));
        }
        kept.push(b"4");
        kept.extend(&file, Vec::new()).unwrap();
        assert_eq!(content(&file), b"one two 3 4");
    }

    #[test]
    fn what_finds_no_room_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (mut file, path) = file(folder.path());
        file.write_all(&[1; 5000]).unwrap();
        let mut kept = Checkpoint::new(&file, &path, 5000);
        kept.extend(&file, vec![2; 100]).unwrap();
        let before = content(&file);
        // A file that can't grow takes what fits into its last page, which is over the end.
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        kept.push(&[3; 100_000]);
        kept.extend(&file, vec![4; 200]).unwrap_err();
        assert!(was_being_extended(&path));
        kept.restore(&file).unwrap();
        assert_eq!(content(&file), before);
        assert!(!was_being_extended(&path));
    }

    #[test]
    fn a_file_whose_program_was_killed_gets_its_end_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".a.load.parquet.abcdef.partial");
        let told = |end: &[u8]| [&4_u64.to_le_bytes(), &3_u64.to_le_bytes(), end].concat();
        for (left, other, recovered) in [
            ("one two A LONG", Some(told(b"END")), "one END"),
            ("on", Some(told(b"END")), "on\0\0END"),
            ("one END", Some(told(b"EN")), "one END"),
            ("one END", Some(Vec::new()), "one END"),
            ("one END", None, "one END"),
        ] {
            fs::write(&path, left).unwrap();
            if let Some(other) = other {
                fs::write(end_path(&path), other).unwrap();
            }
            recover(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), recovered.as_bytes());
            assert!(!was_being_extended(&path));
        }
    }

    #[test]
    fn a_file_that_still_grows_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".a.load.abcdef.partial");
        let file = File::create(&path).unwrap();
        let kept = Checkpoint::new(&file, &path, 0);
        assert!(recover(&path).unwrap_err().to_string().contains("still being written"));
        drop((kept, file));
        recover(&path).unwrap();
    }

    #[test]
    fn hidden_names_tell_the_final_ones() {
        let name = |hidden: &str| final_name(Path::new(hidden));
        assert_eq!(name("there/.a.load.gz.Ab3xYz.partial"), Some("there/a.load.gz".into()));
        for other in ["a.load.gz", ".a.load", ".partial", "..Ab3xYz.partial", "/"] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
