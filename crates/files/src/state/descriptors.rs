//! From a descriptor to its description, which may have been open before the trace began.

use super::OpenDescription;
use super::State;
use super::descriptions::Description;
use super::names::ROOT;
use super::paths::is_of_kernel;
use super::pending::Binding;
use super::processes::{Slot, TableId, Thread, TooMany};
use super::step::Step;
use super::walk::{PathEvidence, WalkOptions};
use crate::ids::IdMap;
use crate::snapshot::Kind;
use crate::{Call, DescriptionId, InitialProcess, Name, Resource, Skip};

/// Flags that opening again must not have.
const OPEN_ONCE: u64 = (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u64;

impl State {
    /// Lets descriptors exist whose calls have ended.
    pub(super) fn apply_pending(&mut self, call: &Call) {
        // A ring's call is not in the sequence of its thread.
        let thread = if call.is_uring { u32::MAX } else { call.thread };
        while let Some(binding) = self.pending.pop(call.begin, thread) {
            self.bind_now(binding);
        }
    }

    /// Lets the descriptors that the call returned exist from its end.
    pub(super) fn bind(&mut self, step: &Step, slots: Vec<(i32, Slot)>) {
        let binding = Binding { table: step.thread.table, slots };
        match step.call.end() {
            Some(end) => self.pending.push(end, step.call.thread, step.call.is_uring, binding),
            None => self.bind_now(binding),
        }
    }

    pub(super) fn bind_now(&mut self, Binding { table, slots }: Binding) {
        for (fd, slot) in slots {
            match self.processes.table_mut(table) {
                Some(table) => {
                    if let Some(old) = table.slots.insert(fd, slot) {
                        // Its close was not recorded.
                        let ended = self.drop_slot(old);
                        self.orphans.extend(ended);
                    }
                }
                // The process ended while the call was in flight.
                None => {
                    let ended = self.drop_slot(slot);
                    self.orphans.extend(ended);
                }
            }
        }
    }

    /// Descriptions that ended without a call that ends them end with this one.
    pub(super) fn end_orphans(&mut self, step: &mut Step) {
        for id in std::mem::take(&mut self.orphans) {
            self.ends(step, id);
        }
    }

    /// The call ends the description.
    pub(super) fn ends(&mut self, step: &mut Step, id: DescriptionId) {
        step.modifies(Resource::Description(id));
        step.resolved.ends.push(id);
    }

    /// A descriptor is closed. Returns its description if this ends it and it is replayed.
    pub(super) fn drop_slot(&mut self, slot: Slot) -> Option<DescriptionId> {
        let ended = self.descriptions.drop_reference(slot.description)?;
        if let Some(object) = ended.object {
            self.names.release(object);
        }
        (ended.skip.is_none() && !ended.is_unannounced).then_some(slot.description)
    }

    /// The slot of a descriptor, if the trace shows it.
    pub(super) fn slot(&mut self, step: &mut Step, fd: i32) -> Option<Slot> {
        let id = step.thread.table;
        let found = |state: &Self, table: TableId| Some(*state.processes.table(table)?.slots.get(&fd)?);
        if let Some(slot) = found(self, id) {
            return Some(slot);
        }
        // Recorded times are not exact: the call that makes it may seem to be in flight still.
        if let Some(binding) = self.pending.take(id, fd) {
            self.bind_now(binding);
            return found(self, id);
        }
        let origin = self.processes.table(id)?.origin;
        if let Some(origin) = origin {
            if let Some(binding) = self.pending.take(origin, fd) {
                self.bind_now(binding);
            } else {
                return None;
            }
            let slot = found(self, origin)?;
            self.descriptions.add_reference(slot.description);
            self.processes.table_mut(id)?.slots.insert(fd, slot);
            return Some(slot);
        }
        // Threads whose start was not recorded may be of one process.
        if step.call.process == 0
            && self.initial.processes.is_empty()
            && !self.processes.is_shared(id)
            && let Some(other) = self.only_table_with(fd, id)
        {
            let own = self.processes.table(id)?.slots.iter().map(|(fd, slot)| (*fd, *slot)).collect();
            self.processes.change_table(step.call.thread, other);
            self.bind_now(Binding { table: other, slots: own });
            step.thread.table = other;
            return found(self, other);
        }
        None
    }

    fn only_table_with(&mut self, fd: i32, table: TableId) -> Option<TableId> {
        self.processes.only_table_with(fd, table).unwrap_or_else(|TooMany| {
            self.counts.unsearched += 1;
            None
        })
    }

    /// The description of a descriptor that the call uses; the call is skipped if it is not a file. A descriptor that nothing
    /// shows to be opened was open before; `kind` is what the call shows about it.
    pub(super) fn descriptor(&mut self, step: &mut Step, fd: Option<i32>, kind: Option<Kind>) -> Option<DescriptionId> {
        let Some(fd) = fd.filter(|fd| *fd >= 0) else {
            if step.call.is_uring {
                self.counts.fixed_files += 1;
            }
            step.skip(Skip::NotReplayable);
            return None;
        };
        let id = match self.slot(step, fd) {
            Some(slot) => slot.description,
            None => {
                let path = step.call.fd_path.clone().filter(|_| step.call.fd == Some(fd));
                let description = self.inferred_description(fd, path.as_ref(), None, kind);
                match description.skip {
                    Some(Skip::NotReplayable) => {}
                    Some(_) => {}
                    None => self.counts.inferred_opens += 1,
                }
                let id = self.descriptions.insert(description);
                if let Some(table) = self.processes.table_mut(step.thread.table) {
                    table.slots.insert(fd, Slot { description: id, closes_on_exec: false });
                }
                id
            }
        };
        if self.descriptions.get(id).is_unannounced {
            self.descriptions.get_mut(id).is_unannounced = false;
            if self.descriptions.get(id).skip.is_none() {
                self.inferred.extend(self.reopening(id));
            }
        }
        let description = self.descriptions.get(id);
        match description.skip {
            Some(skip) => {
                if skip == Skip::NotReplayable {
                    self.counts.unknown_descriptors += 1;
                }
                step.skip(skip);
            }
            None => step.uses(Resource::Description(id)),
        }
        if step.resolved.path.is_none() {
            step.resolved.path = description.mapped.clone();
        }
        Some(id)
    }

    /// A description that was open before the trace.
    fn inferred_description(
        &mut self,
        fd: i32,
        path: Option<&Name>,
        flags: Option<u64>,
        kind: Option<Kind>,
    ) -> Description {
        let unknown = |skip| Description { is_unannounced: true, ..Description::new(None, Some(skip)) };
        let Some(path) = path else {
            // Standard input, output and error are rarely files that matter.
            return unknown(if fd <= libc::STDERR_FILENO { Skip::NotAFile } else { Skip::NotReplayable });
        };
        let bytes = path.as_bytes();
        let is_anonymous =
            [b"/memfd:".as_slice(), b"/dmabuf", b"/[aio]", b"/SYSV"].iter().any(|top| bytes.starts_with(top));
        if !path.is_absolute() || is_anonymous {
            return Description { path: Some(path.clone()), ..unknown(Skip::NotAFile) };
        }
        if is_of_kernel(bytes) {
            return Description { path: Some(path.clone()), mapped: Some(path.clone()), ..unknown(Skip::KernelFile) };
        }
        if bytes.ends_with(b" (deleted)") {
            return Description { path: Some(path.clone()), ..unknown(Skip::NotReplayable) };
        }
        let how = WalkOptions { follow: true, is_entry: false, shows: PathEvidence::Exists, kind };
        let Ok(walk) = self.names.walk(ROOT, ROOT, bytes, how) else { return unknown(Skip::NotReplayable) };
        let (mapped, skip) = self.place(&walk.path);
        let object = walk.object;
        if let Some(object) = object {
            self.names.hold(object);
        }
        let is_directory =
            object.and_then(|object| self.names.object(object)).is_some_and(|object| object.is_directory());
        let assumed = if is_directory { libc::O_DIRECTORY } else { libc::O_RDWR };
        Description {
            path: Some(walk.path.as_slice().into()),
            mapped: Some(mapped),
            flags: flags.unwrap_or(assumed as u64),
            is_unannounced: true,
            ..Description::new(object, skip)
        }
    }

    /// How to open a description again.
    pub(super) fn reopening(&self, id: DescriptionId) -> Option<OpenDescription> {
        let description = self.descriptions.get(id);
        let object = description.object.and_then(|object| self.names.object(object));
        // The file may have another name meanwhile.
        let current = object.filter(|object| object.links > 0).and_then(|object| object.place()).and_then(|place| {
            let (mut path, _) = self.names.path_of(place.parent)?;
            path.push(b'/');
            path.extend_from_slice(&place.component);
            Some(self.place(&path).0)
        });
        let current = current.or_else(|| (description.object == Some(ROOT)).then(|| self.place(b"/").0));
        Some(OpenDescription {
            id,
            path: current.or_else(|| description.mapped.clone())?,
            flags: description.flags & !OPEN_ONCE,
            position: description.position.unwrap_or(0),
            is_deleted: object.is_some_and(|object| object.links == 0 && description.object != Some(ROOT)),
        })
    }

    /// The thread of a call. One that no call started was there before.
    pub(super) fn thread_of(&mut self, call: &Call) -> Thread {
        if let Some(thread) = self.processes.thread(call.thread) {
            return thread;
        }
        let process = if call.process == 0 { call.thread } else { call.process };
        let known = self
            .initial
            .processes
            .iter()
            .position(|initial| initial.process == process || initial.threads.contains(&call.thread));
        if let Some(initial) = known {
            let initial = self.initial.processes[initial].clone();
            self.started.insert(initial.process);
            return self.start_initial(call.thread, initial.process, Some(&initial));
        }
        self.start_initial(call.thread, process, None)
    }

    fn start_initial(&mut self, number: u32, process: u32, initial: Option<&InitialProcess>) -> Thread {
        let sibling = self.processes.any_thread_of(process);
        let thread = sibling.unwrap_or_else(|| {
            let mut slots = IdMap::default();
            for open in initial.into_iter().flat_map(|initial| &initial.descriptors) {
                let path = Name::from(open.path.as_str());
                let mut description = self.inferred_description(open.fd, Some(&path), Some(open.flags), None);
                description.position = Some(open.position);
                let closes_on_exec = open.flags & libc::O_CLOEXEC as u64 != 0;
                slots.insert(open.fd, Slot { description: self.descriptions.insert(description), closes_on_exec });
            }
            let cwd = match initial {
                Some(initial) => self.names.directory(&Name::from(initial.cwd.as_str())),
                None => self.cwd,
            };
            self.names.hold(ROOT);
            self.names.hold(cwd);
            Thread {
                process,
                table: self.processes.new_table(slots, None),
                directories: self.processes.new_directories(ROOT, cwd, initial.and_then(|initial| initial.umask)),
            }
        });
        let thread = Thread { process, ..thread };
        self.processes.start(number, thread);
        thread
    }
}
