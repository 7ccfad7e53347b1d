//! Calls that rename.

use super::super::State;
use super::super::evidence::Role;
use super::super::needs::First;
use super::super::step::Step;
use super::super::walk::{PathEvidence, Walk, WalkOptions};
use crate::snapshot::Kind;
use crate::{Name, ObjectId, Resource, Skip, Unreplayable};

const RENAME_NOREPLACE: i32 = 1;
const RENAME_EXCHANGE: i32 = 2;
const RENAME_WHITEOUT: i32 = 4;

fn ends_in_slash(path: &Name) -> bool {
    path.as_bytes().ends_with(b"/")
}

impl State {
    pub(super) fn rename(&mut self, step: &mut Step) {
        let call = step.call;
        let paths = [(call.fd, call.path.as_ref()), (call.fd2, call.path2.as_ref())];
        let Some(old) = self.walk_as(step, paths[0], Role::RenameFrom, false, None) else { return };
        self.place_first(step, &old);
        // The error may be that of the old name.
        let is_explained = call.errno == libc::ENOTDIR && old.is_absent;
        let role = if is_explained { Role::RenameFrom } else { Role::RenameTo };
        let Some(new) = self.walk_as(step, paths[1], role, false, None) else { return };
        self.place_second(step, &new);
        let is_of_kinds = call.errno == libc::ENOTDIR && !is_explained && !new.is_absent && old.object.is_none();
        if is_of_kinds && old.name.is_some() && !call.path2.as_ref().is_some_and(ends_in_slash) {
            // A directory was to replace something else.
            let how =
                WalkOptions { follow: false, is_entry: true, shows: PathEvidence::Exists, kind: Some(Kind::Directory) };
            self.walk(step, call.fd, call.path.as_ref(), how);
        }
        self.show_kinds(step, &old, &new);
        self.touch_found(step, &old);
        self.touch_found(step, &new);
        if let (libc::ENOTEMPTY | libc::EEXIST, Some(full)) = (call.errno, new.object) {
            step.uses(Resource::Entries(full));
        }
        if let (Some(object), Some(_)) = (old.object.filter(|_| call.succeeded()), old.name.and(new.name)) {
            self.renamed(step, &old, &new, object);
        }
    }

    /// A directory replaces only a directory, and what is none only what is none.
    fn show_kinds(&mut self, step: &Step, old: &Walk, new: &Walk) {
        if step.has_flag(RENAME_EXCHANGE) || old.name.is_none() || new.name.is_none() {
            return;
        }
        let (Some(old), Some(new)) = (old.object, new.object.filter(|new| Some(*new) != old.object)) else { return };
        let kind = |id| self.names.object(id).and_then(|object| object.kind);
        match (step.call.succeeded(), kind(old), kind(new)) {
            (true, Some(Kind::Directory), None) => self.names.learn_kind(new, Kind::Directory),
            (true, None, Some(Kind::Directory)) => self.names.learn_kind(old, Kind::Directory),
            (true, Some(_), None) => self.names.note_no_directory(new),
            (true, None, Some(_)) => self.names.note_no_directory(old),
            _ if step.call.errno == libc::ENOTDIR => self.names.learn_kind(old, Kind::Directory),
            _ => {}
        }
    }

    fn renamed(&mut self, step: &mut Step, old: &Walk, new: &Walk, object: ObjectId) {
        for walk in [old, new] {
            if let Some(name) = walk.name {
                step.modifies(Resource::Name(name));
            }
            step.modifies(Resource::Entries(walk.parent));
            step.modifies(Resource::Object(walk.parent));
        }
        step.modifies(Resource::Object(object));
        if new.object == Some(object) {
            // Both are names of the same file: the kernel does nothing.
            return;
        }
        let is_exchange = step.has_flag(RENAME_EXCHANGE);
        let moves_into_itself = self.names.is_below(new.parent, object) != Some(false)
            || (is_exchange && new.object.is_some_and(|other| self.names.is_below(old.parent, other) != Some(false)));
        if moves_into_itself {
            self.counts.contradictions += 1;
            step.skip(Skip::NotReplayable);
            return;
        }
        if step.has_flag(RENAME_NOREPLACE) {
            new.note(&mut self.names, First::Absent);
        }
        if let Some(replaced) = new.object {
            step.modifies(Resource::Object(replaced));
            step.modifies(Resource::Attributes(replaced));
            if self.names.object(replaced).is_some_and(|replaced| replaced.is_directory()) {
                // A directory that is removed cannot be listed any more.
                step.modifies(Resource::Entries(replaced));
            }
        } else if !step.has_flag(RENAME_NOREPLACE) {
            new.note(&mut self.names, First::Either);
        }
        // Held, so that taking the name away does not end the object.
        self.names.hold(object);
        if let Some(other) = new.object.filter(|_| is_exchange) {
            self.names.hold(other);
            self.names.unlink(new.parent, &new.component);
            self.names.unlink(old.parent, &old.component);
            self.names.link(new.parent, &new.component, object);
            self.names.link(old.parent, &old.component, other);
            self.names.release(other);
        } else {
            self.names.unlink(old.parent, &old.component);
            self.names.link(new.parent, &new.component, object);
        }
        self.names.release(object);
        if step.has_flag(RENAME_WHITEOUT) && !self.options.special_files {
            step.mark_unreplayable(Unreplayable::Call(step.call.kind));
        }
    }
}
