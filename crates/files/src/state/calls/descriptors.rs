//! Calls that close and duplicate descriptors.

use super::super::State;
use super::super::processes::Slot;
use super::super::step::Step;
use crate::{CallKind, Resource, Skip};

const CLOSE_RANGE_UNSHARE: i32 = 2;
const CLOSE_RANGE_CLOEXEC: i32 = 4;

impl State {
    pub(super) fn close(&mut self, step: &mut Step) {
        let Some(fd) = step.call.fd else {
            step.skip(Skip::NotReplayable);
            return;
        };
        if self.slot(step, fd).is_none() {
            // Open before the trace, and never used.
            step.skip(Skip::Bookkeeping);
            return;
        }
        let slot = self.processes.table_mut(step.thread.table).and_then(|table| table.slots.remove(&fd));
        let Some(slot) = slot else { return };
        let description = self.descriptions.get(slot.description);
        step.resolved.path = description.mapped.clone();
        let (skip, object, id) = (description.skip, description.object, slot.description);
        if let Some(skip) = skip {
            self.drop_slot(slot);
            step.skip(skip);
            return;
        }
        match self.drop_slot(slot) {
            Some(id) => {
                step.resolved.description = Some(id);
                if let Some(object) = object {
                    step.uses(Resource::Object(object));
                }
                self.ends(step, id);
            }
            None => {
                step.skip(Skip::Bookkeeping);
                let is_announced = self.descriptions.find(id).is_some_and(|description| !description.is_unannounced);
                if is_announced {
                    step.resolved.description = Some(id);
                    step.uses(Resource::Description(id));
                }
            }
        }
    }

    pub(super) fn close_range(&mut self, step: &mut Step) {
        step.skip(Skip::Bookkeeping);
        if !step.call.succeeded() {
            return;
        }
        let first = step.call.fd.unwrap_or(0) as u32;
        let last = step.call.fd2.map_or(u32::MAX, |last| last as u32);
        if step.has_flag(CLOSE_RANGE_UNSHARE) {
            self.unshare_table(step);
        }
        let is_flag_only = step.has_flag(CLOSE_RANGE_CLOEXEC);
        let Some(table) = self.processes.table_mut(step.thread.table) else { return };
        let mut closed = Vec::new();
        table.slots.retain(|&fd, slot| {
            let is_inside = (first..=last).contains(&(fd as u32));
            if is_inside && is_flag_only {
                slot.closes_on_exec = true;
            } else if is_inside {
                closed.push((fd, *slot));
            }
            !is_inside || is_flag_only
        });
        self.close_all(step, closed);
    }

    /// Closes the descriptors, in ascending order.
    pub(super) fn close_all(&mut self, step: &mut Step, mut closed: Vec<(i32, Slot)>) {
        closed.sort_by_key(|(fd, _)| *fd);
        for (_, slot) in closed {
            if let Some(id) = self.drop_slot(slot) {
                self.ends(step, id);
            }
        }
    }

    pub(super) fn duplicate(&mut self, step: &mut Step) {
        let (old, new) = (step.call.fd, step.result().map(|fd| fd as i32));
        let closes_on_exec = step.call.kind == CallKind::Dup3 && step.has_flag(libc::O_CLOEXEC);
        self.duplicate_to(step, old, new, closes_on_exec);
    }

    fn duplicate_to(&mut self, step: &mut Step, old: Option<i32>, new: Option<i32>, closes_on_exec: bool) {
        let id = self.descriptor(step, old, None);
        step.resolved.description = id;
        step.skip(Skip::Bookkeeping);
        let (Some(id), Some(new)) = (id, new) else { return };
        if old == Some(new) {
            return;
        }
        self.descriptions.add_reference(id);
        // The others return a free descriptor. Another thread may close its last use while they are in flight.
        let replaces = matches!(step.call.kind, CallKind::Dup2 | CallKind::Dup3);
        let table = self.processes.table_mut(step.thread.table).filter(|_| replaces);
        if let Some(replaced) = table.and_then(|table| table.slots.remove(&new))
            && let Some(ended) = self.drop_slot(replaced)
        {
            self.ends(step, ended);
        }
        self.bind(step, vec![(new, Slot { description: id, closes_on_exec })]);
    }

    /// Whether `execve` closes the descriptor.
    pub(super) fn set_closes_on_exec(&mut self, step: &mut Step, fd: i32, closes_on_exec: bool) {
        if self.slot(step, fd).is_some()
            && let Some(table) = self.processes.table_mut(step.thread.table)
            && let Some(slot) = table.slots.get_mut(&fd)
        {
            slot.closes_on_exec = closes_on_exec;
        }
    }

    pub(super) fn fcntl(&mut self, step: &mut Step) {
        let call = step.call;
        let argument = call.fd2.map(|argument| argument as u32 as u64);
        match call.flags as i32 {
            command @ (libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
                let new = step.result().map(|fd| fd as i32);
                self.duplicate_to(step, call.fd, new, command == libc::F_DUPFD_CLOEXEC);
            }
            libc::F_SETFD => {
                step.skip(Skip::Bookkeeping);
                let closes_on_exec = argument.is_none_or(|argument| argument & libc::FD_CLOEXEC as u64 != 0);
                if let Some(fd) = call.fd.filter(|_| call.succeeded()) {
                    self.set_closes_on_exec(step, fd, closes_on_exec);
                }
            }
            libc::F_SETFL => self.change_flags(step, argument),
            _ => {
                step.resolved.description = self.descriptor(step, call.fd, None);
                step.skip(Skip::Bookkeeping);
            }
        }
    }
}
