//! Calls that make directories, nodes and links, and that remove names.

use super::super::State;
use super::super::evidence::Role;
use super::super::needs::First;
use super::super::step::Step;
use super::super::walk::Walk;
use crate::snapshot::Kind;
use crate::{CallKind, Name, ObjectId, Resource, Skip};

impl State {
    /// The last component of a path is used.
    pub(super) fn touch_found(&mut self, step: &mut Step, walk: &Walk) {
        if let Some(name) = walk.name {
            step.uses(Resource::Name(name));
        }
        match walk.object {
            Some(object) => step.uses(Resource::Object(object)),
            // A name that the trace removed: its absence is the directory's.
            None if walk.name.is_some_and(|name| self.names.was_removed(name)) => {
                step.uses(Resource::Object(walk.parent));
            }
            None => {}
        }
    }

    /// The call makes the name, or removes it.
    fn modifies_name(&mut self, step: &mut Step, walk: &Walk) {
        if let Some(name) = walk.name {
            step.modifies(Resource::Name(name));
        }
        step.modifies(Resource::Entries(walk.parent));
        step.modifies(Resource::Object(walk.parent));
    }

    /// A new object with the name that the walk led to.
    fn made(&mut self, step: &mut Step, walk: &Walk, kind: Kind) -> ObjectId {
        if walk.object.is_some() {
            self.counts.contradictions += 1;
        }
        walk.note(&mut self.names, First::Absent);
        let object = self.names.make(walk.parent, &walk.component, kind);
        self.modifies_name(step, walk);
        step.modifies(Resource::Object(object));
        object
    }

    pub(super) fn make(&mut self, step: &mut Step) {
        let call = step.call;
        let kind = match call.kind {
            CallKind::Mkdir | CallKind::Mkdirat => Kind::Directory,
            CallKind::Bind => Kind::Socket,
            // Without a kind, mknod makes a file.
            _ => call.mode.and_then(Kind::from_mode).unwrap_or(Kind::File),
        };
        // The descriptor of `bind` is the socket.
        let directory = call.fd.filter(|_| call.kind != CallKind::Bind);
        let path = (directory, call.path.as_ref());
        let Some(walk) = self.walk_as(step, path, Role::Make, false, None) else { return };
        self.place_first(step, &walk);
        if kind.is_special() && !self.options.special_files {
            step.skip(Skip::SpecialFile);
        }
        if call.succeeded() && walk.name.is_some() {
            self.made(step, &walk, kind);
        } else {
            self.touch_found(step, &walk);
        }
    }

    /// `bind` makes a name if the socket is a Unix socket whose name is a path.
    pub(super) fn bind_socket(&mut self, step: &mut Step) {
        let is_about_socket =
            matches!(step.call.errno, libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP | libc::EAFNOSUPPORT);
        if step.call.path.is_none() || is_about_socket {
            step.skip(Skip::NotAFile);
        } else {
            self.make(step);
        }
    }

    pub(super) fn symlink(&mut self, step: &mut Step) {
        let call = step.call;
        let mapped = call.path.as_ref().filter(|target| target.is_absolute());
        let mapped = mapped.and_then(|target| self.options.map.apply(target.as_bytes()));
        step.resolved.target = mapped.map(|target| Name::from(&*target)).or_else(|| call.path.clone());
        let path = (call.fd2, call.path2.as_ref());
        let Some(walk) = self.walk_as(step, path, Role::Make, false, None) else { return };
        self.place_second(step, &walk);
        if call.succeeded() && walk.name.is_some() {
            let object = self.made(step, &walk, Kind::Link);
            if let Some(object) = self.names.object_mut(object) {
                object.target = call.path.clone();
            }
        } else {
            self.touch_found(step, &walk);
        }
    }

    pub(super) fn link(&mut self, step: &mut Step) {
        let call = step.call;
        let follow = call.kind == CallKind::Linkat && step.has_flag(libc::AT_SYMLINK_FOLLOW);
        let Some((object, description)) = self.linked(step, follow) else { return };
        let path = (call.fd2, call.path2.as_ref());
        let Some(walk) = self.walk_as(step, path, Role::Make, false, None) else { return };
        self.place_second(step, &walk);
        if description.is_some() {
            // The directory of the new name is not what `fd` refers to.
            step.resolved.description = description;
        }
        if let Some(object) = object {
            step.uses(Resource::Object(object));
        }
        if call.succeeded()
            && walk.name.is_some()
            && let Some(object) = object
        {
            walk.note(&mut self.names, First::Absent);
            self.names.link(walk.parent, &walk.component, object);
            self.modifies_name(step, &walk);
            step.modifies(Resource::Object(object));
            step.modifies(Resource::Attributes(object));
        } else {
            self.touch_found(step, &walk);
        }
    }

    /// The object of the first path of a link, and its description if it is given by a descriptor.
    fn linked(&mut self, step: &mut Step, follow: bool) -> Option<(Option<ObjectId>, Option<crate::DescriptionId>)> {
        let call = step.call;
        let is_empty = call.path.as_ref().is_none_or(|path| path.as_bytes().is_empty());
        let by_descriptor = if is_empty && step.has_flag(libc::AT_EMPTY_PATH) {
            call.fd
        } else {
            call.path.as_ref().filter(|_| follow).and_then(own_descriptor)
        };
        if let Some(fd) = by_descriptor {
            let id = self.descriptor(step, Some(fd), None)?;
            return Some((self.descriptions.get(id).object, Some(id)));
        }
        let walk = self.walk_as(step, (call.fd, call.path.as_ref()), Role::Linked, follow, None)?;
        self.place_first(step, &walk);
        if let Some(name) = walk.name {
            step.uses(Resource::Name(name));
        }
        Some((walk.object, None))
    }

    pub(super) fn remove(&mut self, step: &mut Step) {
        let call = step.call;
        let is_directory =
            call.kind == CallKind::Rmdir || (call.kind == CallKind::Unlinkat && step.has_flag(libc::AT_REMOVEDIR));
        let (role, kind) =
            if is_directory { (Role::RemoveDirectory, Some(Kind::Directory)) } else { (Role::Unlink, None) };
        let Some(walk) = self.walk_as(step, (call.fd, call.path.as_ref()), role, false, kind) else { return };
        self.place_first(step, &walk);
        self.touch_found(step, &walk);
        let Some(object) = walk.object else { return };
        if is_directory {
            step.uses(Resource::Entries(object));
        }
        if call.succeeded() && walk.name.is_some() {
            if !is_directory {
                self.names.note_no_directory(object);
            }
            self.modifies_name(step, &walk);
            step.modifies(Resource::Object(object));
            step.modifies(if is_directory { Resource::Entries(object) } else { Resource::Attributes(object) });
            self.names.unlink(walk.parent, &walk.component);
        }
    }
}

/// The descriptor of `/proc/self/fd/N` or `/dev/fd/N`.
pub(crate) fn own_descriptor(path: &Name) -> Option<i32> {
    let number = [b"/proc/self/fd/".as_slice(), b"/dev/fd/", b"/proc/thread-self/fd/"]
        .iter()
        .find_map(|top| path.as_bytes().strip_prefix(*top))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}
