//! Calls that open files.

use super::super::State;
use super::super::descriptions::Description;
use super::super::evidence::Role;
use super::super::needs::First;
use super::super::paths::resolving;
use super::super::processes::Slot;
use super::super::step::Step;
use super::super::walk::Walk;
use crate::snapshot::Kind;
use crate::{Call, CallKind, ObjectId, Resource, Skip};

#[derive(Clone, Copy)]
struct Flags(u64);

impl Flags {
    fn of(step: &Step) -> Self {
        match step.call.kind {
            CallKind::Creat => Self((libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64),
            _ => Self(step.call.flags),
        }
    }

    fn has(self, flag: i32) -> bool {
        self.0 & flag as u64 == flag as u64
    }

    fn writes(self) -> bool {
        self.0 & libc::O_ACCMODE as u64 != libc::O_RDONLY as u64 && !self.has(libc::O_PATH)
    }

    fn creates(self) -> bool {
        self.has(libc::O_CREAT) && !self.has(libc::O_TMPFILE) && !self.has(libc::O_PATH)
    }

    fn is_exclusive(self) -> bool {
        self.creates() && self.has(libc::O_EXCL)
    }
}

/// Whether `openat2` failed because of how it was to resolve the path. The replay opens other paths, without these flags: it
/// would succeed, and might make or empty the file.
fn is_refused(call: &Call) -> bool {
    match call.errno {
        libc::EXDEV => call.kind == CallKind::Openat2,
        libc::ELOOP | libc::EAGAIN => resolving(call) != 0,
        _ => false,
    }
}

impl State {
    pub(super) fn open(&mut self, step: &mut Step) {
        let call = step.call;
        if is_refused(call) {
            step.skip(Skip::NotReplayable);
            return;
        }
        let flags = Flags::of(step);
        let is_temporary = flags.has(libc::O_TMPFILE);
        let follow = !flags.has(libc::O_NOFOLLOW) && !flags.is_exclusive();
        let role = match (flags.creates(), flags.is_exclusive()) {
            (false, _) => Role::Find,
            (true, false) => Role::FindOrMake,
            (true, true) => Role::Make,
        };
        let kind = if is_temporary || flags.has(libc::O_DIRECTORY) {
            Some(Kind::Directory)
        } else {
            (flags.writes() || flags.creates()).then_some(Kind::File)
        };
        let walk = self.walk_as(step, (call.fd, call.path.as_ref()), role, follow, kind);
        let mut object = None;
        if let Some(walk) = &walk {
            self.place_first(step, walk);
            if let Some(name) = walk.name {
                step.uses(Resource::Name(name));
            }
            if call.succeeded() {
                object = self.opened(step, walk, flags);
            } else if let Some(found) = walk.object {
                step.uses(Resource::Object(found));
                step.uses(Resource::Attributes(found));
            }
        }
        let Some(fd) = step.result() else { return };
        let mut description = Description::new(object, step.resolved.skip);
        (description.path, description.mapped) =
            (walk.map(|walk| walk.path.as_slice().into()), step.resolved.path.clone());
        description.flags = flags.0;
        if description.skip.is_none() && object.is_none() {
            description.skip = Some(Skip::NotReplayable);
            step.skip(Skip::NotReplayable);
        }
        if let Some(object) = object {
            self.names.hold(object);
        }
        let id = self.descriptions.insert(description);
        step.modifies(Resource::Description(id));
        step.resolved.makes = Some(id);
        self.bind(step, vec![(fd as i32, Slot { description: id, closes_on_exec: flags.has(libc::O_CLOEXEC) })]);
    }

    /// The object that was opened, or made.
    fn opened(&mut self, step: &mut Step, walk: &Walk, flags: Flags) -> Option<ObjectId> {
        if flags.has(libc::O_TMPFILE) {
            step.uses(Resource::Object(walk.object?));
            return Some(self.names.make_unnamed(Kind::File));
        }
        let found = walk.object.filter(|_| !flags.is_exclusive());
        let Some(object) = found else { return self.created(step, walk, flags) };
        step.uses(Resource::Object(object));
        step.uses(Resource::Attributes(object));
        if flags.has(libc::O_TRUNC) && flags.writes() {
            step.modifies(Resource::Size(object));
            step.modifies(Resource::Object(object));
            self.set_size(object, 0);
        }
        Some(object)
    }

    fn created(&mut self, step: &mut Step, walk: &Walk, flags: Flags) -> Option<ObjectId> {
        let name = walk.name?;
        if walk.object.is_some() {
            self.counts.contradictions += 1;
        }
        // Without O_EXCL nothing shows whether the file existed; unless a name is known to be absent.
        let may_have_existed = !flags.is_exclusive() && !walk.is_absent;
        if may_have_existed {
            walk.note(&mut self.names, First::Either);
        } else if flags.is_exclusive() {
            walk.note(&mut self.names, First::Absent);
        }
        let need = if may_have_existed { walk.need(&mut self.names) } else { None };
        let object = self.names.make(walk.parent, &walk.component, Kind::File);
        if may_have_existed && let Some(made) = self.names.object_mut(object) {
            let is_emptied = flags.has(libc::O_TRUNC);
            made.size.is_exact = is_emptied;
            made.size.is_changed = is_emptied;
            made.need = need;
        }
        if let (Some(need), Some(needs)) = (need, &mut self.names.needs) {
            needs.learn_kind(need, Kind::File);
        }
        step.modifies(Resource::Name(name));
        step.modifies(Resource::Entries(walk.parent));
        step.modifies(Resource::Object(walk.parent));
        step.modifies(Resource::Object(object));
        Some(object)
    }

    /// What the trace shows although the call did not return.
    pub(super) fn unfinished(&mut self, step: &mut Step) {
        if step.call.kind == CallKind::Close
            && let Some(fd) = step.call.fd
            && let Some(slot) = self.processes.table_mut(step.thread.table).and_then(|table| table.slots.remove(&fd))
        {
            let ended = self.drop_slot(slot);
            self.orphans.extend(ended);
        }
    }
}
