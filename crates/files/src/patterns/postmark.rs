//! A mail server's small files, after J. Katcher, "PostMark: a new file system benchmark" (Network Appliance, TR-3022, 1997), as
//! the paper about Buttress (FAST 2004) scaled it: 30 sets of 10,000 files.
//!
//! It creates all files, carries out as many transactions as there are files, and removes what is left. A transaction creates
//! or removes a file, and reads one or appends to one, in random order.

use iosonar_trace::human;
use rand::RngExt;

use super::calls::Calls;
use super::pattern::{Pattern, Program, Settings};
use crate::model::kind::CallKind;

/// PostMark with the sets of the paper.
pub const POSTMARK: Pattern = Pattern {
    name: "postmark",
    title: "30 sets of 10,000 files of 512 B to 200 KiB: create, remove, read, append",
    start: |settings| Box::new(PostMark::new(settings)),
};

const SETS: u32 = 30;
const FILES_OF_SET: f64 = 10_000.0;
const MIN_BYTES: u64 = 512;
const MAX_BYTES: u64 = 200 * 1024;
const DIRECTORY: &str = "/data/postmark";

/// A file that exists.
#[derive(Clone, Copy)]
struct File {
    set: u32,
    number: u32,
    bytes: u64,
}

impl File {
    fn path(self) -> String {
        format!("{DIRECTORY}/{:02}/{}", self.set, self.number)
    }
}

/// What comes next.
enum Phase {
    Directories,
    Create,
    /// So many transactions are left.
    Transactions(u32),
    Remove,
}

struct PostMark {
    phase: Phase,
    /// How many files there are at first, and how many transactions.
    count: u32,
    files: Vec<File>,
    /// Files that were created.
    created: u32,
    block: u64,
}

impl PostMark {
    fn new(settings: &Settings) -> Self {
        let count = SETS * (FILES_OF_SET * settings.scale).ceil().max(1.0) as u32;
        Self { phase: Phase::Directories, count, files: Vec::new(), created: 0, block: settings.block }
    }

    /// Reads or writes so many bytes, in blocks.
    fn transfer(&self, kind: CallKind, mut bytes: u64, calls: &mut Calls) {
        while bytes > 0 {
            let length = bytes.min(self.block);
            calls.transfer(kind, length);
            bytes -= length;
        }
    }

    fn create(&mut self, set: u32, calls: &mut Calls) {
        let bytes = calls.rng.random_range(MIN_BYTES..=MAX_BYTES);
        let file = File { set, number: self.created, bytes };
        calls.open(&file.path(), libc::O_RDWR | libc::O_CREAT | libc::O_EXCL);
        self.transfer(CallKind::Write, bytes, calls);
        calls.close();
        self.files.push(file);
        self.created += 1;
    }

    fn remove(&mut self, calls: &mut Calls) {
        let index = calls.rng.random_range(0..self.files.len());
        let file = self.files.swap_remove(index);
        calls.on_path(CallKind::Unlink, &file.path(), None);
    }

    fn read(&mut self, calls: &mut Calls) {
        let file = self.files[calls.rng.random_range(0..self.files.len())];
        calls.open(&file.path(), libc::O_RDONLY);
        self.transfer(CallKind::Read, file.bytes, calls);
        calls.close();
    }

    /// Appends up to what a file of the largest size has.
    fn append(&mut self, calls: &mut Calls) {
        let index = calls.rng.random_range(0..self.files.len());
        let file = self.files[index];
        let bytes = calls.rng.random_range(0..=MAX_BYTES - file.bytes);
        calls.open(&file.path(), libc::O_RDWR | libc::O_APPEND);
        self.transfer(CallKind::Write, bytes, calls);
        calls.close();
        self.files[index].bytes += bytes;
    }

    fn transaction(&mut self, calls: &mut Calls) {
        calls.think();
        let data_first = calls.rng.random::<bool>();
        for is_data in [data_first, !data_first] {
            match (is_data, calls.rng.random::<bool>()) {
                (true, true) => self.read(calls),
                (true, false) => self.append(calls),
                // The last file stays, so that there is one to read.
                (false, true) if self.files.len() > 1 => self.remove(calls),
                (false, _) => {
                    let set = calls.rng.random_range(0..SETS);
                    self.create(set, calls);
                }
            }
        }
    }
}

impl Program for PostMark {
    fn advance(&mut self, calls: &mut Calls) {
        match self.phase {
            Phase::Directories => {
                (0..SETS).for_each(|set| calls.on_path(CallKind::Mkdir, &format!("{DIRECTORY}/{set:02}"), Some(0o755)));
                self.phase = Phase::Create;
            }
            Phase::Create => {
                calls.think();
                self.create(self.created % SETS, calls);
                if self.created == self.count {
                    self.phase = Phase::Transactions(self.count);
                }
            }
            Phase::Transactions(left) => {
                self.transaction(calls);
                self.phase = if left > 1 { Phase::Transactions(left - 1) } else { Phase::Remove };
            }
            Phase::Remove if self.files.is_empty() => {}
            Phase::Remove => {
                calls.think();
                self.remove(calls);
                if self.files.is_empty() {
                    (0..SETS).for_each(|set| calls.on_path(CallKind::Rmdir, &format!("{DIRECTORY}/{set:02}"), None));
                }
            }
        }
    }

    fn progress(&self) -> f64 {
        let count = f64::from(self.count);
        match self.phase {
            Phase::Directories => 0.0,
            Phase::Create => f64::from(self.created) / count / 3.0,
            Phase::Transactions(left) => (2.0 - f64::from(left) / count) / 3.0,
            Phase::Remove => (1.0 - self.files.len() as f64 / count / 3.0).max(2.0 / 3.0),
        }
    }

    fn files(&self) -> String {
        format!("{} of 512 B to 200 KiB at first", human::counted(self.count.into(), "file"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::generated::tests::{SMALL, calls};
    use super::*;

    /// Each call is possible: directories and files exist, and reads end within their file.
    #[test]
    fn all_calls_fit_the_files_there_are_and_nothing_is_left() {
        let (mut files, mut directories, mut open) = (HashMap::<String, u64>::new(), 0_i32, None);
        let (mut reads, mut appends, mut created, mut removed) = (0, 0, 0, 0);
        for call in calls("postmark", Settings { scale: 0.01, block: 4096, ..SMALL }) {
            let path = call.path.as_ref().map(ToString::to_string).unwrap_or_default();
            match call.kind {
                CallKind::Mkdir => directories += 1,
                CallKind::Rmdir => directories -= 1,
                CallKind::Openat => {
                    let flags = call.flags as i32;
                    if flags & libc::O_CREAT != 0 {
                        assert_eq!(files.insert(path.clone(), 0), None);
                        created += 1;
                    } else if flags & libc::O_APPEND != 0 {
                        appends += 1;
                    } else {
                        reads += 1;
                    }
                    assert!(open.replace((path, 0, flags)).is_none());
                }
                CallKind::Write => {
                    let (path, ..) = open.as_ref().unwrap();
                    *files.get_mut(path).unwrap() += call.length.unwrap();
                    assert!((1..=4096).contains(&call.length.unwrap()));
                }
                CallKind::Read => open.as_mut().unwrap().1 += call.length.unwrap(),
                CallKind::Close => {
                    let (path, read, flags) = open.take().unwrap();
                    let size = files[&path];
                    assert!((MIN_BYTES..=MAX_BYTES).contains(&size));
                    assert_eq!(read, if flags == libc::O_RDONLY { size } else { 0 });
                }
                CallKind::Unlink => {
                    assert!(files.remove(&path).is_some());
                    removed += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(files.is_empty() && directories == 0 && open.is_none());
        let transactions = 3_000;
        assert_eq!(reads + appends, transactions);
        assert_eq!(created, removed);
        // Half of the transactions create a file and half of them append: within four standard deviations.
        assert!((created - transactions - transactions / 2_i32).abs() < 110, "{created}");
        assert!((appends - transactions / 2).abs() < 110, "{appends}");
    }

    #[test]
    fn the_paper_has_300_000_files() {
        let program = PostMark::new(&Settings { scale: 1.0, ..SMALL });
        assert_eq!(program.count, 300_000);
        assert_eq!(PostMark::new(&Settings { scale: 1e-9, ..SMALL }).count, 30);
    }
}
