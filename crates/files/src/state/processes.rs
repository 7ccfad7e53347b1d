//! Threads, their tables of descriptors, and their working directories.

use std::collections::BTreeSet;

use crate::ids::IdMap;
use crate::{DescriptionId, ObjectId};

/// A table of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TableId(u64);

/// Root, working directory and mask of permissions: what `CLONE_FS` shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DirectoriesId(u64);

/// A thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub process: u32,
    pub table: TableId,
    pub directories: DirectoriesId,
}

/// A descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub description: DescriptionId,
    pub closes_on_exec: bool,
}

/// Descriptors of one or several threads.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub slots: IdMap<i32, Slot>,
    /// The table that it was copied from.
    pub origin: Option<TableId>,
    /// Descriptors that it had when it was copied.
    copied: usize,
    threads: u32,
}

/// Root, working directory and mask of permissions of one or several threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directories {
    pub root: ObjectId,
    pub cwd: ObjectId,
    /// The mask of permissions, if the trace has shown it.
    pub umask: Option<u32>,
    threads: u32,
}

/// All threads that have not ended.
#[derive(Debug)]
pub(super) struct Processes {
    threads: IdMap<u32, Thread>,
    tables: IdMap<u64, Table>,
    directories: IdMap<u64, Directories>,
    /// The threads of each process, the oldest first.
    groups: IdMap<u32, BTreeSet<(u64, u32)>>,
    /// The place of a thread in its group.
    ages: IdMap<u32, u64>,
    next: u64,
    /// Tables that may still be searched for a descriptor.
    searches_left: u64,
    /// Descriptors that running processes inherited.
    copied: usize,
}

/// Descriptors that processes inherit, of all that run at once: half a gigabyte.
const MAX_COPIED: usize = 1 << 23;

/// Tables that are searched for descriptors in a trace. 2000 threads with 15 descriptors each need 6 × 10^7.
const SEARCHES: u64 = 1 << 26;

impl Default for Processes {
    fn default() -> Self {
        Self {
            threads: IdMap::default(),
            tables: IdMap::default(),
            directories: IdMap::default(),
            groups: IdMap::default(),
            ages: IdMap::default(),
            next: 0,
            searches_left: SEARCHES,
            copied: 0,
        }
    }
}

/// Too many tables of descriptors to search.
pub(super) struct TooMany;

/// What ended with a thread.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The table that no thread has any more.
    pub table: Option<Table>,
    /// Root and working directory that no thread has any more.
    pub directories: Option<Directories>,
}

impl Processes {
    pub fn thread(&self, thread: u32) -> Option<Thread> {
        self.threads.get(&thread).copied()
    }

    /// A thread of the process.
    pub fn any_thread_of(&self, process: u32) -> Option<Thread> {
        self.groups.get(&process).and_then(BTreeSet::first).and_then(|(_, thread)| self.thread(*thread))
    }

    /// All processes, each with its threads, the oldest first.
    pub fn groups(&self) -> impl Iterator<Item = (u32, Vec<u32>)> {
        self.groups.iter().map(|(process, group)| (*process, group.iter().map(|(_, thread)| *thread).collect()))
    }

    pub fn table(&self, id: TableId) -> Option<&Table> {
        self.tables.get(&id.0)
    }

    pub fn table_mut(&mut self, id: TableId) -> Option<&mut Table> {
        self.tables.get_mut(&id.0)
    }

    pub fn directories(&self, id: DirectoriesId) -> Directories {
        self.directories[&id.0]
    }

    pub fn directories_mut(&mut self, id: DirectoriesId) -> &mut Directories {
        self.directories.get_mut(&id.0).expect("of a thread")
    }

    /// A new table.
    pub fn new_table(&mut self, slots: IdMap<i32, Slot>, origin: Option<TableId>) -> TableId {
        self.next += 1;
        let copied = if origin.is_some() { slots.len() } else { 0 };
        self.copied += copied;
        self.tables.insert(self.next, Table { slots, origin, copied, threads: 0 });
        TableId(self.next)
    }

    /// Whether memory is left for a copy of the table.
    pub fn can_copy(&self, table: TableId) -> bool {
        let slots = self.table(table).map_or(0, |table| table.slots.len());
        self.copied + slots <= MAX_COPIED
    }

    /// A new root and working directory. The caller holds both.
    pub fn new_directories(&mut self, root: ObjectId, cwd: ObjectId, umask: Option<u32>) -> DirectoriesId {
        self.next += 1;
        self.directories.insert(self.next, Directories { root, cwd, umask, threads: 0 });
        DirectoriesId(self.next)
    }

    /// Starts a thread with the table and directories given.
    pub fn start(&mut self, number: u32, thread: Thread) {
        if let Some(table) = self.tables.get_mut(&thread.table.0) {
            table.threads += 1;
        }
        self.directories_mut(thread.directories).threads += 1;
        self.join_group(number, thread.process);
        self.threads.insert(number, thread);
    }

    fn join_group(&mut self, number: u32, process: u32) {
        self.next += 1;
        self.ages.insert(number, self.next);
        self.groups.entry(process).or_default().insert((self.next, number));
    }

    /// Ends a thread.
    pub fn end(&mut self, number: u32) -> Ended {
        let Some(thread) = self.threads.remove(&number) else { return Ended::default() };
        if let Some(group) = self.groups.get_mut(&thread.process)
            && let Some(age) = self.ages.remove(&number)
        {
            group.remove(&(age, number));
            if group.is_empty() {
                self.groups.remove(&thread.process);
            }
        }
        Ended { table: self.leave_table(thread.table), directories: self.leave_directories(thread.directories) }
    }

    fn leave_table(&mut self, id: TableId) -> Option<Table> {
        let table = self.tables.get_mut(&id.0)?;
        table.threads -= 1;
        if table.threads > 0 {
            return None;
        }
        let ended = self.tables.remove(&id.0)?;
        self.copied -= ended.copied;
        Some(ended)
    }

    fn leave_directories(&mut self, id: DirectoriesId) -> Option<Directories> {
        let directories = self.directories.get_mut(&id.0)?;
        directories.threads -= 1;
        if directories.threads == 0 { self.directories.remove(&id.0) } else { None }
    }

    /// The other threads of the same process.
    pub fn siblings(&self, number: u32) -> Vec<u32> {
        let Some(thread) = self.threads.get(&number) else { return Vec::new() };
        let group = self.groups.get(&thread.process).into_iter().flatten();
        group.map(|(_, other)| *other).filter(|&other| other != number).collect()
    }

    /// Whether other threads use the table.
    pub fn is_shared(&self, table: TableId) -> bool {
        self.tables.get(&table.0).is_some_and(|table| table.threads > 1)
    }

    /// Whether other threads use the directories.
    pub fn shares_directories(&self, directories: DirectoriesId) -> bool {
        self.directories.get(&directories.0).is_some_and(|directories| directories.threads > 1)
    }

    /// Gives a thread a table of its own. It shared the old one.
    pub fn change_table(&mut self, number: u32, table: TableId) {
        if let Some(thread) = self.threads.get_mut(&number) {
            let old = std::mem::replace(&mut thread.table, table);
            self.tables.get_mut(&table.0).expect("new").threads += 1;
            self.leave_table(old);
        }
    }

    /// Gives a thread directories of its own. It shared the old ones.
    pub fn change_directories(&mut self, number: u32, directories: DirectoriesId) {
        if let Some(thread) = self.threads.get_mut(&number) {
            let old = std::mem::replace(&mut thread.directories, directories);
            self.directories_mut(directories).threads += 1;
            self.leave_directories(old);
        }
    }

    /// After `execve` the thread has the number of its process.
    pub fn renumber(&mut self, old: u32, new: u32) {
        if let Some(thread) = self.threads.remove(&old) {
            self.threads.insert(new, thread);
            self.ages.remove(&old);
            self.groups.remove(&thread.process);
            self.join_group(new, thread.process);
        }
    }

    /// The one table of threads whose start the trace does not show, other than `table`, that has the descriptor.
    ///
    /// # Errors
    /// If too many tables were searched: a trace of a million unknown threads would take hours.
    pub fn only_table_with(&mut self, fd: i32, table: TableId) -> Result<Option<TableId>, TooMany> {
        self.searches_left = self.searches_left.checked_sub(self.tables.len() as u64).ok_or(TooMany)?;
        let others = self.tables.iter().filter(|(id, other)| **id != table.0 && other.origin.is_none());
        let mut having = others.filter(|(_, other)| other.slots.contains_key(&fd)).map(|(id, _)| TableId(*id));
        Ok(having.next().filter(|_| having.next().is_none()))
    }

    #[cfg(test)]
    pub fn len(&self) -> (usize, usize, usize) {
        (self.threads.len(), self.tables.len(), self.directories.len())
    }
}
