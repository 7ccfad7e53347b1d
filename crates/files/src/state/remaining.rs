//! What the calls so far have left: the processes with their descriptors, as a recording that begins now would find them.

use std::os::unix::ffi::OsStrExt as _;

use super::State;
use super::descriptions::Description;
use super::processes::Slot;
use crate::{InitialDescriptor, InitialProcess, Skip};

impl State {
    /// The processes that exist after the calls so far. Opens in flight count as done.
    pub fn processes(&mut self) -> Vec<InitialProcess> {
        while let Some(binding) = self.pending.pop_any() {
            self.bind_now(binding);
        }
        let mut found: Vec<InitialProcess> = Vec::new();
        for (process, threads) in self.processes.groups() {
            let Some(thread) = threads.first().and_then(|&thread| self.processes.thread(thread)) else { continue };
            let directories = self.processes.directories(thread.directories);
            let cwd = self.names.path_of(directories.cwd).map(|(path, _)| path);
            let slots = self.processes.table(thread.table).into_iter().flat_map(|table| &table.slots);
            let mut descriptors: Vec<_> = slots.filter_map(|(&fd, &slot)| self.remaining(fd, slot)).collect();
            descriptors.sort_by_key(|descriptor| descriptor.fd);
            found.push(InitialProcess {
                process,
                threads,
                cwd: text(cwd.as_deref().filter(|cwd| !cwd.is_empty()).unwrap_or(b"/")),
                umask: directories.umask,
                descriptors,
            });
        }
        // Those that were there at the beginning, and have made no call yet.
        let waiting = self.initial.processes.iter().filter(|process| {
            !self.started.contains(&process.process) && found.iter().all(|other| other.process != process.process)
        });
        let waiting: Vec<_> = waiting.cloned().collect();
        found.extend(waiting);
        found.sort_by_key(|process| process.process);
        found
    }

    /// A descriptor; `None` if nothing is known about it.
    fn remaining(&self, fd: i32, slot: Slot) -> Option<InitialDescriptor> {
        let description = self.descriptions.get(slot.description);
        let path = match description.skip {
            None | Some(Skip::Ignored) => {
                let open = self.reopening(slot.description)?;
                let deleted: &[u8] = if open.is_deleted { b" (deleted)" } else { b"" };
                text(&[open.path.as_bytes(), deleted].concat())
            }
            Some(Skip::NotAFile) => description.path.as_ref().map_or("pipe:[0]".into(), |path| text(path.as_bytes())),
            Some(_) => text(description.path.as_ref()?.as_bytes()),
        };
        let closes = if slot.closes_on_exec { libc::O_CLOEXEC as u64 } else { 0 };
        let Description { flags, position, .. } = description;
        Some(InitialDescriptor {
            fd,
            path,
            flags: flags & !(libc::O_CLOEXEC as u64) | closes,
            position: position.unwrap_or(0),
        })
    }
}

/// A path as footers have it.
fn text(path: &[u8]) -> String {
    iosonar_trace::path_text(std::ffi::OsStr::from_bytes(path))
}
