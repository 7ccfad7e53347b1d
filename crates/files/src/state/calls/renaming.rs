//! Calls that rename.

use super::super::State;
use super::super::needs::First;
use super::super::step::Step;
use super::super::walk::{How, Shows, Walk};
use crate::{Lost, ObjectId, Resource, Skip};

const RENAME_NOREPLACE: i32 = 1;
const RENAME_EXCHANGE: i32 = 2;
const RENAME_WHITEOUT: i32 = 4;

impl State {
    pub(super) fn rename(&mut self, step: &mut Step) {
        let call = step.call;
        // Errors are mostly about the new name.
        let old_shows = if call.succeeded() { Shows::Exists } else { Shows::Nothing };
        let is_exchange = step.has_flag(RENAME_EXCHANGE);
        let new_shows = match call.errno {
            0 if is_exchange => Shows::Exists,
            0 => Shows::Directory,
            libc::EEXIST | libc::ENOTEMPTY | libc::EISDIR => Shows::Exists,
            _ => Shows::Nothing,
        };
        let how = |shows| How { follow: false, is_entry: true, shows, kind: None };
        let Some(old) = self.walk(step, call.fd, call.path.as_ref(), how(old_shows)) else { return };
        self.place_first(step, &old);
        let Some(new) = self.walk(step, call.fd2, call.path2.as_ref(), how(new_shows)) else { return };
        self.place_second(step, &new);
        self.touch_found(step, &old);
        self.touch_found(step, &new);
        if let (libc::ENOTEMPTY | libc::EEXIST, Some(full)) = (call.errno, new.object) {
            step.uses(Resource::Entries(full));
        }
        if let (Some(object), Some(_)) = (old.object.filter(|_| call.succeeded()), old.name.and(new.name)) {
            self.renamed(step, &old, &new, object);
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
            step.loses(Lost::Call(step.call.kind));
        }
    }
}
