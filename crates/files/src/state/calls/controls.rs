//! Calls that change what later calls see in other queues: flags of descriptions, requests of `ioctl`, mounts, rings.

use super::super::State;
use super::super::step::Step;
use super::io::end_of;
use crate::model::ioctl::{Effect, FICLONE, FICLONERANGE, FIDEDUPERANGE, effect};
use crate::snapshot::Kind;
use crate::{CallKind, Recorder, Resource, Skip, Unreplayable};

/// What `F_SETFL` changes: of the other flags the kernel takes no warning.
const CHANGEABLE: u64 = (libc::O_APPEND | libc::O_NONBLOCK | libc::O_DIRECT | libc::O_NOATIME) as u64;

impl State {
    /// `F_SETFL`: all descriptors of the description have the new flags.
    pub(super) fn change_flags(&mut self, step: &mut Step, argument: Option<u64>) {
        let id = self.descriptor(step, step.call.fd, None);
        step.resolved.description = id;
        let Some(id) = id.filter(|_| step.call.succeeded()) else {
            step.skip(Skip::Bookkeeping);
            return;
        };
        let Some(argument) = argument else {
            step.mark_unreplayable(Unreplayable::Call(CallKind::Fcntl));
            return;
        };
        let description = self.descriptions.get_mut(id);
        description.flags = description.flags & !CHANGEABLE | argument & CHANGEABLE;
        if description.skip.is_some() {
            return;
        }
        step.modifies(Resource::Flags(id));
        step.modifies(Resource::Position(id));
        if let Some(object) = description.object {
            step.modifies(Resource::Object(object));
        }
    }

    pub(super) fn ioctl(&mut self, step: &mut Step) {
        let call = step.call;
        let request = call.flags as u32;
        step.resolved.description = self.descriptor(step, call.fd, None);
        if step.resolved.skip.is_some() || !call.succeeded() {
            step.skip(Skip::NotReplayable);
            return;
        }
        match (request, effect(request)) {
            (FICLONE | FICLONERANGE, _) => self.clone_range(step),
            (FIDEDUPERANGE, _) => self.deduplicate(step),
            (_, Effect::ClosesOnExec(closes)) => {
                if let Some(fd) = call.fd {
                    self.set_closes_on_exec(step, fd, closes);
                }
                step.skip(Skip::Bookkeeping);
            }
            (_, Effect::Nothing) => step.skip(Skip::NotReplayable),
            (_, Effect::Changes) => step.mark_unreplayable(Unreplayable::Ioctl(request)),
        }
    }

    /// The second file's content, or a range of it, becomes the first one's.
    fn clone_range(&mut self, step: &mut Step) {
        let call = step.call;
        let source = self.descriptor(step, call.fd2, Some(Kind::File));
        let of = |id: Option<_>| id.and_then(|id| self.descriptions.get(id).object);
        let (Some(from), Some(to)) = (of(source), of(step.resolved.description)) else {
            step.mark_unreplayable(Unreplayable::Ioctl(call.flags as u32));
            return;
        };
        step.resolved.description2 = source;
        let [at, at_source] =
            [call.offset, call.offset2].map(|offset| offset.and_then(|offset| u64::try_from(offset).ok()).unwrap_or(0));
        step.resolved.position = Some(at);
        let length = call.length.filter(|&length| length > 0);
        if let Some(length) = length {
            self.show_read(from, at_source, length, None);
        }
        // Without a length: up to the end of the source.
        let bytes = length.or_else(|| Some(self.size(from)?.saturating_sub(at_source)));
        step.uses(Resource::Size(from));
        step.uses(Resource::Object(from));
        step.modifies(Resource::Object(to));
        self.extend(step, to, bytes.map(|bytes| end_of(at, bytes)), bytes.unwrap_or(0));
    }

    /// Ranges with the same content share their place; nobody sees that in the content.
    fn deduplicate(&mut self, step: &mut Step) {
        let call = step.call;
        let to = self.descriptor(step, call.fd2, Some(Kind::File));
        let of = |id: Option<_>| id.and_then(|id| self.descriptions.get(id).object);
        let (Some(from), Some(object)) = (of(step.resolved.description), of(to)) else {
            step.skip(Skip::NotReplayable);
            return;
        };
        step.resolved.description2 = to;
        step.resolved.position = call.offset.and_then(|offset| u64::try_from(offset).ok());
        for object in [from, object] {
            step.uses(Resource::Size(object));
            step.uses(Resource::Object(object));
        }
    }

    /// With strace, the requests that the ring takes have no rows.
    pub(super) fn enter_ring(&mut self, step: &mut Step) {
        if self.initial.recorder == Recorder::Strace && step.result().is_some_and(|taken| taken > 0) {
            step.mark_unreplayable(Unreplayable::Uring);
        }
        step.skip(Skip::NotAFile);
    }

    /// Calls after which paths lead elsewhere, and others that nothing follows.
    pub(super) fn not_followed(&mut self, step: &mut Step) {
        step.skip(Skip::NotReplayable);
        // Of the other namespaces nothing is to be seen in files.
        let is_elsewhere = step.call.kind == CallKind::Setns
            && step.call.flags != 0
            && !step.has_flag(libc::CLONE_NEWNS)
            && !step.has_flag(libc::CLONE_NEWUSER);
        let has_effect = match step.call.kind {
            CallKind::IoSubmit => step.result().is_some_and(|taken| taken > 0),
            _ => step.call.succeeded(),
        };
        if has_effect && !is_elsewhere {
            step.mark_unreplayable(Unreplayable::Call(step.call.kind));
        }
    }

    /// Extended attributes and those of file systems: the trace does not have their values. Those of users and trusted programs
    /// mean nothing to the kernel, so that any value will do.
    pub(super) fn lose_attribute(&mut self, step: &mut Step) {
        use CallKind::*;
        let call = step.call;
        let may_be_replayed = match call.kind {
            Setxattr | Lsetxattr | Fsetxattr | Removexattr | Lremovexattr | Fremovexattr => {
                let name = call.path2.as_ref().map_or(b"".as_slice(), |name| name.as_bytes());
                name.starts_with(b"user.") || name.starts_with(b"trusted.")
            }
            Setxattrat | Removexattrat | FileSetattr => false,
            _ => return,
        };
        if !may_be_replayed && call.succeeded() {
            step.mark_unreplayable(Unreplayable::Call(call.kind));
        } else if !may_be_replayed {
            step.skip(Skip::NotReplayable);
        }
    }
}
