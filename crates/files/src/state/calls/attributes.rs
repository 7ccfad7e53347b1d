//! Calls that ask for attributes, or change them.

use super::super::State;
use super::super::evidence::Role;
use super::super::step::Step;
use super::making::own_descriptor;
use crate::snapshot::Kind;
use crate::{AT_FDCWD, Call, CallKind, ObjectId, Resource};

/// `AT_SYMLINK_FOLLOW`, for calls that do not follow by default.
fn follows(step: &Step) -> bool {
    use CallKind::*;
    match step.call.kind {
        Lstat | Readlink | Readlinkat | Lgetxattr | Llistxattr | Lchown | Lsetxattr | Lremovexattr => false,
        NameToHandleAt => step.has_flag(libc::AT_SYMLINK_FOLLOW),
        Newfstatat | Statx | Faccessat2 | Fchmodat2 | Fchownat | Utimensat | Getxattrat | Setxattrat | Listxattrat
        | Removexattrat | FileGetattr | FileSetattr => !step.has_flag(libc::AT_SYMLINK_NOFOLLOW),
        _ => true,
    }
}

fn is_readlink(call: &Call) -> bool {
    matches!(call.kind, CallKind::Readlink | CallKind::Readlinkat)
}

/// A call that succeeded shows that its path is that of a symbolic link.
fn is_of_link(call: &Call, follows: bool) -> bool {
    use CallKind::*;
    let is_stat = matches!(call.kind, Stat | Lstat | Fstat | Newfstatat | Statx);
    let is_link = || call.mode.and_then(Kind::from_mode) == Some(Kind::Link);
    is_readlink(call) || (is_stat && !follows && is_link())
}

impl State {
    pub(super) fn query(&mut self, step: &mut Step) {
        if self.is_on_descriptor(step) {
            self.query_descriptor(step);
            return;
        }
        let call = step.call;
        let follow = follows(step);
        let Some(mut walk) = self.walk_as(step, (call.fd, call.path.as_ref()), Role::Find, follow, None) else {
            return;
        };
        if call.succeeded() && is_of_link(call, follow) {
            let target = call.path2.as_ref().filter(|_| is_readlink(call));
            walk.object = self.show_link(&walk, target).or(walk.object);
        }
        self.place_first(step, &walk);
        self.touch_found(step, &walk);
        let Some(object) = walk.object else { return };
        step.uses(Resource::Attributes(object));
        if call.succeeded() {
            self.show_attributes(step, object);
        }
    }

    fn show_attributes(&mut self, step: &Step, object: ObjectId) {
        use CallKind::*;
        let call = step.call;
        let mode = call.mode.filter(|_| matches!(call.kind, Stat | Lstat | Fstat | Newfstatat | Statx));
        let kind = mode.and_then(Kind::from_mode);
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Link) {
            self.names.learn_kind(object, kind);
        }
        let need = self.names.object(object).and_then(|object| object.need);
        let (Some(need), Some(needs)) = (need, &mut self.names.needs) else { return };
        match call.kind {
            Readlink | Readlinkat => needs.note_link(need).target_bytes = step.result(),
            Access | Faccessat | Faccessat2 if call.flags & libc::X_OK as u64 != 0 => {
                needs.need_mut(need).is_executable = true;
            }
            _ => {}
        }
    }

    /// `AT_EMPTY_PATH`, or no path: the call is on the descriptor itself.
    fn is_on_descriptor(&self, step: &Step) -> bool {
        let call = step.call;
        let is_empty = call.path.as_ref().is_none_or(|path| path.as_bytes().is_empty());
        is_empty && call.fd.is_some_and(|fd| fd != AT_FDCWD) && !step.call.is_uring
    }

    pub(super) fn query_descriptor(&mut self, step: &mut Step) {
        let Some((_, object)) = self.file(step, None) else { return };
        step.uses(Resource::Object(object));
        step.uses(Resource::Attributes(object));
        if step.call.succeeded() {
            if is_of_link(step.call, false) {
                // Opened with O_PATH and O_NOFOLLOW.
                self.names.learn_kind(object, Kind::Link);
                if let Some(target) = step.call.path2.as_ref().filter(|_| is_readlink(step.call)) {
                    self.names.learn_target(object, target);
                }
            }
            self.show_attributes(step, object);
        }
    }

    pub(super) fn change_attributes(&mut self, step: &mut Step) {
        if let Some(fd) = step.call.path.as_ref().and_then(own_descriptor).filter(|_| follows(step)) {
            self.change_attributes_through(step, fd);
            return;
        }
        if self.is_on_descriptor(step) {
            self.change_attributes_of_descriptor(step);
            return;
        }
        let call = step.call;
        let follow = follows(step);
        let Some(walk) = self.walk_as(step, (call.fd, call.path.as_ref()), Role::Find, follow, None) else { return };
        self.place_first(step, &walk);
        self.touch_found(step, &walk);
        if let Some(object) = walk.object {
            self.changes(step, object);
        }
    }

    pub(super) fn change_attributes_of_descriptor(&mut self, step: &mut Step) {
        let Some((_, object)) = self.file(step, None) else { return };
        self.changes(step, object);
    }

    /// On `/proc/self/fd/N`: the C library changes the permissions of descriptors that are only paths in this way.
    fn change_attributes_through(&mut self, step: &mut Step, fd: i32) {
        let Some(id) = self.descriptor(step, Some(fd), None) else { return };
        step.resolved.description = Some(id);
        if let Some(object) = self.descriptions.get(id).object {
            self.changes(step, object);
        }
    }

    fn changes(&mut self, step: &mut Step, object: ObjectId) {
        if step.call.succeeded() {
            step.modifies(Resource::Object(object));
            step.modifies(Resource::Attributes(object));
        } else {
            step.uses(Resource::Object(object));
            step.uses(Resource::Attributes(object));
        }
    }
}
