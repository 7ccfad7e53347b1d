//! Calls that make, change and end processes and threads.

use super::super::State;
use super::super::evidence::Role;
use super::super::names::{ROOT, UNKNOWN};
use super::super::processes::{Ended, Thread};
use super::super::step::Step;
use crate::ids::IdMap;
use crate::snapshot::Kind;
use crate::{CallKind, Skip};

impl State {
    pub(super) fn fork(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        let Some(child) = step.result().map(|child| child as u32).filter(|child| *child > 0) else { return };
        let flags = match step.call.kind {
            CallKind::Clone | CallKind::Clone3 => step.call.flags as i32,
            _ => 0,
        };
        if child == step.call.thread {
            self.counts.contradictions += 1;
            return;
        }
        if self.processes.thread(child).is_some() {
            // The end of an older thread with this number was not recorded.
            self.end_thread(step, child);
        }
        let parent = step.thread;
        let table = if flags & libc::CLONE_FILES != 0 { parent.table } else { self.copy_table(parent) };
        let directories = if flags & libc::CLONE_FS != 0 { parent.directories } else { self.copy_directories(parent) };
        let process = if flags & libc::CLONE_THREAD != 0 { parent.process } else { child };
        self.processes.start(child, Thread { process, table, directories });
    }

    fn copy_table(&mut self, thread: Thread) -> super::super::processes::TableId {
        if !self.processes.can_copy(thread.table) {
            self.counts.uninherited += 1;
            return self.processes.new_table(IdMap::default(), Some(thread.table));
        }
        let slots = self.processes.table(thread.table).map(|table| table.slots.clone()).unwrap_or_default();
        for slot in slots.values() {
            self.descriptions.add_reference(slot.description);
        }
        self.processes.new_table(slots, Some(thread.table))
    }

    fn copy_directories(&mut self, thread: Thread) -> super::super::processes::DirectoriesId {
        let directories = self.processes.directories(thread.directories);
        self.names.hold(directories.root);
        self.names.hold(directories.cwd);
        self.processes.new_directories(directories.root, directories.cwd, directories.umask)
    }

    /// Gives the thread a table of its own.
    pub(super) fn unshare_table(&mut self, step: &mut Step) {
        if self.processes.is_shared(step.thread.table) {
            let table = self.copy_table(step.thread);
            self.processes.change_table(step.call.thread, table);
            step.thread.table = table;
        }
    }

    pub(super) fn unshare(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        if !step.call.succeeded() {
            return;
        }
        if step.has_flag(libc::CLONE_FILES) {
            self.unshare_table(step);
        }
        let unshares_directories = step.has_flag(libc::CLONE_FS) || step.has_flag(libc::CLONE_NEWNS);
        if unshares_directories && self.processes.shares_directories(step.thread.directories) {
            let directories = self.copy_directories(step.thread);
            self.processes.change_directories(step.call.thread, directories);
        }
    }

    pub(super) fn exec(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        step.resolved.path = step.call.path.clone();
        if !step.call.succeeded() {
            return;
        }
        let thread = step.call.thread;
        for sibling in self.processes.siblings(thread) {
            self.end_thread(step, sibling);
        }
        if thread != step.thread.process {
            self.processes.renumber(thread, step.thread.process);
        }
        if self.processes.is_shared(step.thread.table) {
            let table = self.copy_table(step.thread);
            self.processes.change_table(step.thread.process, table);
            step.thread.table = table;
        }
        let Some(table) = self.processes.table_mut(step.thread.table) else { return };
        let mut closed = Vec::new();
        table.slots.retain(|&fd, slot| {
            if slot.closes_on_exec {
                closed.push((fd, *slot));
            }
            !slot.closes_on_exec
        });
        self.close_all(step, closed);
    }

    pub(super) fn exit(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        let thread = step.call.thread;
        if step.call.kind == CallKind::ExitGroup {
            for sibling in self.processes.siblings(thread) {
                self.end_thread(step, sibling);
            }
        }
        self.end_thread(step, thread);
    }

    fn end_thread(&mut self, step: &mut Step, thread: u32) {
        let Ended { table, directories } = self.processes.end(thread);
        if let Some(table) = table {
            self.close_all(step, table.slots.into_iter().collect());
        }
        if let Some(directories) = directories {
            self.names.release(directories.root);
            self.names.release(directories.cwd);
        }
    }

    pub(super) fn change_directory(&mut self, step: &mut Step) {
        let call = step.call;
        let object = if call.kind == CallKind::Fchdir {
            self.file(step, Some(Kind::Directory)).map(|(_, object)| object)
        } else {
            let path = (None, call.path.as_ref());
            let walk = self.walk_as(step, path, Role::Find, true, Some(Kind::Directory));
            if let Some(walk) = &walk {
                self.place_first(step, walk);
            }
            walk.and_then(|walk| walk.object)
        };
        step.resolved.skip = Some(Skip::Bookkeeping);
        if !call.succeeded() {
            return;
        }
        let object = object.unwrap_or(UNKNOWN);
        self.names.hold(object);
        let directories = self.processes.directories_mut(step.thread.directories);
        let place = if call.kind == CallKind::Chroot { &mut directories.root } else { &mut directories.cwd };
        let old = std::mem::replace(place, object);
        self.names.release(old);
    }

    /// Its mode is the new mask of permissions.
    pub(super) fn change_mask(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        if let Some(mode) = step.call.mode {
            self.processes.directories_mut(step.thread.directories).umask = Some(mode & 0o777);
        }
    }

    /// `getcwd` tells a working directory that may be unknown.
    pub(super) fn show_directory(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        let path = step.call.path.as_ref().filter(|path| step.call.succeeded() && path.is_absolute());
        let directories = self.processes.directories(step.thread.directories);
        let Some(path) = path.filter(|_| directories.root == ROOT) else { return };
        let cwd = self.names.directory(path);
        if cwd != directories.cwd {
            self.names.hold(cwd);
            self.processes.directories_mut(step.thread.directories).cwd = cwd;
            self.names.release(directories.cwd);
        }
    }
}
