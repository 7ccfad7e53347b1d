//! Calls on what is not a file: pipes, sockets, memory.

use super::super::State;
use super::super::descriptions::Description;
use super::super::processes::Slot;
use super::super::step::Step;
use crate::{CallKind, Skip, Unreplayable};

impl State {
    fn bind_other(&mut self, step: &Step, fds: impl IntoIterator<Item = i32>, skip: Skip) {
        let closes_on_exec = closes_on_exec(step);
        let mut slots = Vec::new();
        for fd in fds {
            let description = self.descriptions.insert(Description::new(None, Some(skip)));
            slots.push((fd, Slot { description, closes_on_exec }));
        }
        self.bind(step, slots);
    }

    /// `pipe`, `socketpair`.
    pub(super) fn make_pair(&mut self, step: &mut Step) {
        step.skip(Skip::NotAFile);
        if step.call.succeeded() {
            self.bind_other(step, step.call.fd.into_iter().chain(step.call.fd2), Skip::NotAFile);
        }
    }

    /// Calls that return a descriptor of something else than a file.
    pub(super) fn make_other(&mut self, step: &mut Step) {
        step.skip(Skip::NotAFile);
        let fd = step.result().map(|fd| fd as i32);
        // `signalfd` may change an existing one.
        if matches!(step.call.kind, CallKind::Signalfd | CallKind::Signalfd4) && step.call.fd.is_some_and(|fd| fd >= 0)
        {
            return;
        }
        self.bind_other(step, fd, Skip::NotAFile);
    }

    /// Calls that return a descriptor of an unknown file.
    pub(super) fn make_unknown(&mut self, step: &mut Step) {
        step.skip(Skip::NotReplayable);
        *self.counts.not_followed.entry(step.call.kind).or_default() += 1;
        let fd = step.result().map(|fd| fd as i32);
        self.bind_other(step, fd, Skip::NotReplayable);
    }

    pub(super) fn map(&mut self, step: &mut Step) {
        let fd = step.call.fd.filter(|fd| *fd >= 0 && step.call.kind == CallKind::Mmap);
        let Some(fd) = fd else {
            step.skip(if step.call.kind == CallKind::Msync { Skip::Mapped } else { Skip::NotAFile });
            return;
        };
        let Some(id) = self.descriptor(step, Some(fd), None) else { return };
        if step.resolved.skip.is_none() && step.call.succeeded() {
            let path = self.descriptions.get(id).path.as_ref().map(ToString::to_string);
            self.counts.mapping(path);
        }
        let is_writable = match step.call.mode {
            Some(protection) => protection & libc::PROT_WRITE as u32 != 0,
            None => self.descriptions.get(id).flags & libc::O_ACCMODE as u64 == libc::O_RDWR as u64,
        };
        // MAP_SHARED, or MAP_SHARED_VALIDATE, which has its bit.
        if step.resolved.skip.is_none() && step.call.succeeded() && is_writable && step.has_flag(libc::MAP_SHARED) {
            step.mark_unreplayable(Unreplayable::Mapping);
        }
        step.skip(Skip::Mapped);
    }
}

/// Whether a call that makes descriptors lets `execve` close them.
fn closes_on_exec(step: &Step) -> bool {
    use CallKind::*;
    match step.call.kind {
        // SOCK_CLOEXEC, EFD_CLOEXEC, … have the value of O_CLOEXEC.
        Pipe2 | Socketpair | Socket | Accept4 | Eventfd2 | EpollCreate1 | TimerfdCreate | Signalfd4 | InotifyInit1
        | MqOpen => step.has_flag(libc::O_CLOEXEC),
        MemfdCreate => step.has_flag(libc::MFD_CLOEXEC as i32),
        PidfdOpen | PidfdGetfd | IoUringSetup | LandlockCreateRuleset => true,
        _ => false,
    }
}
