//! Calls that read, write, seek, list and resize through a descriptor.

use super::super::State;
use super::super::evidence::Role;
use super::super::step::Step;
use crate::snapshot::Kind;
use crate::{CallKind, DescriptionId, ObjectId, Resource};

const RWF_APPEND: i32 = 0x10;
const RWF_NOAPPEND: i32 = 0x20;

/// Where an access ends: the kernel has no larger offset than 2^63 - 1.
pub(super) fn end_of(position: u64, bytes: u64) -> u64 {
    position.saturating_add(bytes).min(i64::MAX as u64)
}

impl State {
    /// The description and object of the call's first descriptor, if calls on it are replayed.
    pub(super) fn file(&mut self, step: &mut Step, kind: Option<Kind>) -> Option<(DescriptionId, ObjectId)> {
        let id = self.descriptor(step, step.call.fd, kind)?;
        step.resolved.description = Some(id);
        let object = self.descriptions.get(id).object.filter(|_| step.resolved.skip.is_none())?;
        let shown = match step.call.errno {
            _ if step.call.succeeded() => kind,
            libc::EISDIR => Some(Kind::Directory),
            _ => None,
        };
        if let Some(kind) = shown {
            self.names.learn_kind(object, kind);
        }
        Some((id, object))
    }

    /// The call moves data as the flags of its description say.
    pub(super) fn transfers(step: &mut Step, id: DescriptionId) {
        step.uses(Resource::Flags(id));
    }

    /// The offset that the call states; `None` if it uses the position of the description.
    fn stated_offset(step: &Step) -> Option<u64> {
        use CallKind::*;
        let call = step.call;
        let states = call.is_uring || matches!(call.kind, Pread64 | Preadv | Preadv2 | Pwrite64 | Pwritev | Pwritev2);
        call.offset.filter(|offset| states && *offset >= 0).map(|offset| offset as u64)
    }

    pub(super) fn read(&mut self, step: &mut Step) {
        let Some((id, object)) = self.file(step, Some(Kind::File)) else { return };
        Self::transfers(step, id);
        let stated = Self::stated_offset(step);
        let position = stated.or(self.descriptions.get(id).position);
        step.resolved.position = position;
        if stated.is_none() {
            step.modifies(Resource::Position(id));
        }
        step.uses(Resource::Size(object));
        step.uses(Resource::Object(object));
        let (Some(bytes), Some(position)) = (step.result(), position) else { return };
        self.show_read(object, position, bytes, step.call.length);
        if stated.is_none() {
            self.descriptions.get_mut(id).position = Some(end_of(position, bytes));
        }
    }

    pub(super) fn write(&mut self, step: &mut Step) {
        let Some((id, object)) = self.file(step, Some(Kind::File)) else { return };
        Self::transfers(step, id);
        let stated = Self::stated_offset(step);
        let description = self.descriptions.get(id);
        let is_appending =
            (description.has_flag(libc::O_APPEND) && !step.has_rwf(RWF_NOAPPEND)) || step.has_rwf(RWF_APPEND);
        let position = if is_appending { self.size(object) } else { stated.or(description.position) };
        step.resolved.position = position;
        if stated.is_none() {
            step.modifies(Resource::Position(id));
        }
        step.modifies(Resource::Object(object));
        let bytes = step.result().unwrap_or(0);
        let end = position.map(|position| end_of(position, bytes));
        if bytes > 0 {
            self.extend(step, object, end, bytes);
        } else {
            step.uses(Resource::Size(object));
        }
        if stated.is_none() && bytes > 0 {
            self.descriptions.get_mut(id).position = end;
        }
    }

    /// Bytes were written up to `end`; to an unknown place if it is unknown.
    pub(super) fn extend(&mut self, step: &mut Step, object: ObjectId, end: Option<u64>, bytes: u64) {
        let Some(found) = self.names.object_mut(object) else { return };
        let size = &mut found.size;
        match end {
            Some(end) if end <= size.bytes => step.uses(Resource::Size(object)),
            _ => {
                size.bytes = end.unwrap_or(end_of(size.bytes, bytes));
                size.is_changed = true;
                step.modifies(Resource::Size(object));
            }
        }
    }

    /// The size of a file, if it is known.
    pub(super) fn size(&self, object: ObjectId) -> Option<u64> {
        self.names.object(object).map(|object| object.size).filter(|size| size.is_exact).map(|size| size.bytes)
    }

    pub(super) fn set_size(&mut self, object: ObjectId, bytes: u64) {
        if let Some(object) = self.names.object_mut(object) {
            object.size.bytes = bytes.min(i64::MAX as u64);
            object.size.is_exact = true;
            object.size.is_changed = true;
        }
    }

    /// A result shows the size: it is at least `bytes`, or exactly that.
    pub(super) fn show_size(&mut self, object: ObjectId, bytes: u64, is_exact: bool) {
        let Some(found) = self.names.object_mut(object) else { return };
        let size = &mut found.size;
        let (was_known, is_changed) = (size.is_exact, size.is_changed);
        let is_news = bytes > size.bytes;
        if is_news || is_exact {
            size.bytes = bytes;
        }
        size.is_exact |= is_exact;
        if let (Some(need), false, Some(needs)) = (found.need, was_known, &mut self.names.needs) {
            let need_of = needs.need_mut(need);
            if is_news {
                need_of.bytes = need_of.bytes.max(bytes);
                if bytes > 0 {
                    needs.note(need, super::super::needs::First::Exists);
                }
            }
            if is_exact && !is_changed {
                needs.need_mut(need).is_exact = true;
            }
        }
    }

    /// A read of `bytes` at `position` succeeded; `asked` bytes were asked for.
    pub(super) fn show_read(&mut self, object: ObjectId, position: u64, bytes: u64, asked: Option<u64>) {
        let end = end_of(position, bytes);
        let is_short = asked.is_some_and(|asked| bytes < asked);
        let known = self.names.object(object).map_or(0, |object| object.size.bytes);
        if bytes > 0 {
            self.show_size(object, end, is_short);
        } else if is_short && known == position {
            // The end of the file was where the last read ended.
            self.show_size(object, position, true);
        }
    }

    pub(super) fn seek(&mut self, step: &mut Step) {
        let Some((id, object)) = self.file(step, None) else { return };
        step.resolved.position = self.descriptions.get(id).position;
        step.modifies(Resource::Position(id));
        step.uses(Resource::Object(object));
        let whence = step.call.flags as i32;
        if !matches!(whence, libc::SEEK_SET | libc::SEEK_CUR) {
            step.uses(Resource::Size(object));
        }
        let Some(position) = step.result() else { return };
        self.descriptions.get_mut(id).position = Some(position);
        let is_directory = self.names.object(object).is_some_and(|object| object.is_directory());
        if whence == libc::SEEK_END && !is_directory {
            let bytes = i128::from(position) - i128::from(step.call.offset.unwrap_or(0));
            if let Ok(bytes) = i64::try_from(bytes).and_then(u64::try_from) {
                self.show_size(object, bytes, true);
            }
        }
    }

    pub(super) fn list(&mut self, step: &mut Step) {
        let Some((id, object)) = self.file(step, Some(Kind::Directory)) else { return };
        step.resolved.position = self.descriptions.get(id).position;
        step.modifies(Resource::Position(id));
        step.uses(Resource::Entries(object));
        step.uses(Resource::Object(object));
    }

    pub(super) fn sync_or_advise(&mut self, step: &mut Step) {
        let Some((_, object)) = self.file(step, None) else { return };
        let call = step.call;
        step.resolved.position = call.offset.and_then(|offset| offset.try_into().ok());
        step.uses(Resource::Size(object));
        if call.succeeded() && matches!(call.kind, CallKind::Fsync | CallKind::Fdatasync | CallKind::SyncFileRange) {
            step.modifies(Resource::Object(object));
        } else {
            step.uses(Resource::Object(object));
        }
    }

    pub(super) fn resize(&mut self, step: &mut Step) {
        let Some((_, object)) = self.file(step, Some(Kind::File)) else { return };
        let call = step.call;
        if !call.succeeded() {
            step.uses(Resource::Object(object));
            step.uses(Resource::Size(object));
            return;
        }
        step.modifies(Resource::Object(object));
        let length = call.length.unwrap_or(0);
        if call.kind == CallKind::Ftruncate {
            step.modifies(Resource::Size(object));
            self.set_size(object, length);
            return;
        }
        let offset = call.offset.and_then(|offset| u64::try_from(offset).ok()).unwrap_or(0);
        step.resolved.position = Some(offset);
        let mode = call.flags as i32;
        let size = self.size(object);
        if mode & libc::FALLOC_FL_COLLAPSE_RANGE != 0 || mode & libc::FALLOC_FL_INSERT_RANGE != 0 {
            step.modifies(Resource::Size(object));
            let is_collapse = mode & libc::FALLOC_FL_COLLAPSE_RANGE != 0;
            let resized = size.map(|size| if is_collapse { size.saturating_sub(length) } else { end_of(size, length) });
            match (resized, self.names.object_mut(object)) {
                (Some(size), _) => self.set_size(object, size),
                (None, Some(object)) => object.size.is_changed = true,
                _ => {}
            }
        } else if mode & libc::FALLOC_FL_KEEP_SIZE != 0 {
            step.uses(Resource::Size(object));
        } else {
            self.extend(step, object, Some(end_of(offset, length)), length);
        }
    }

    pub(super) fn truncate(&mut self, step: &mut Step) {
        let call = step.call;
        let path = (None, call.path.as_ref());
        let Some(walk) = self.walk_as(step, path, Role::Find, true, Some(Kind::File)) else { return };
        self.place_first(step, &walk);
        self.touch_found(step, &walk);
        if let Some(object) = walk.object.filter(|_| call.succeeded()) {
            step.modifies(Resource::Size(object));
            step.modifies(Resource::Object(object));
            self.set_size(object, call.length.unwrap_or(0));
        }
    }
}

impl Step<'_> {
    /// Whether a `preadv2` or `pwritev2` has the flag.
    fn has_rwf(&self, flag: i32) -> bool {
        self.has_flag(flag) && matches!(self.call.kind, CallKind::Preadv2 | CallKind::Pwritev2)
    }
}
