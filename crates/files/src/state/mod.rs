//! Follows processes, descriptors and names through a trace, and says what each call uses and changes.
//!
//! [`State::next`] takes the calls in the order of their start. Opens and duplicates take effect at the end of the call;
//! closes, removals and new names at its begin; a new process inherits the descriptors at the start of the call that makes
//! it, since it may run before that call returns. Memory grows with names that exist, descriptors and open descriptions, not
//! with the length of the trace.

mod calls;
mod counts;
mod descriptions;
mod descriptors;
mod evidence;
mod ignore;
mod map;
mod names;
mod needs;
mod objects;
mod paths;
mod pending;
mod processes;
mod remaining;
mod step;
#[cfg(test)]
mod tests;
mod walk;
mod walked;

use std::sync::Arc;

pub(crate) use calls::own_descriptor;
pub use counts::{Counts, warning_of_unreplayable};
pub use ignore::Ignore;
pub use map::PathMap;
pub use needs::{First, Link, Need, NeedId, Needs};
pub(crate) use paths::is_of_kernel;

use descriptions::Descriptions;
use names::{Names, ROOT};
use pending::Pending;
use processes::Processes;
use step::Step;

use crate::ids::IdSet;
use crate::snapshot::Tree;
use crate::{Call, DescriptionId, Metadata, Name, ObjectId, Resolved, Skip};

/// What to assume about a trace, and which of its calls to replay.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The snapshot of the tree before the trace.
    pub tree: Option<Arc<Tree>>,
    /// Where paths of the trace are below the root.
    pub map: PathMap,
    /// Files whose calls are not replayed.
    pub ignore: Ignore,
    /// Replay calls that make device nodes, sockets and FIFOs.
    pub special_files: bool,
    /// The working directory of threads of which the trace does not show it.
    pub cwd: Option<Name>,
    /// Collect [`Needs`]: memory grows with the number of names that the trace touches.
    pub with_needs: bool,
}

/// A description that exists although no call that was seen made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDescription {
    /// The number by which calls refer to it.
    pub id: DescriptionId,
    /// The path of its file below the root.
    pub path: Name,
    /// Flags for opening it again, without `O_CREAT`, `O_EXCL` and `O_TRUNC`. Where they are unknown `O_RDWR`, or for a
    /// directory `O_DIRECTORY`.
    pub flags: u64,
    /// The position; 0 if it is unknown.
    pub position: u64,
    /// The file has lost its name: it cannot be opened by its path.
    pub is_deleted: bool,
}

/// Processes, descriptors and names at a moment of the trace.
#[derive(Debug)]
pub struct State {
    names: Names,
    processes: Processes,
    descriptions: Descriptions,
    pending: Pending,
    options: Options,
    counts: Counts,
    initial: Metadata,
    /// Processes of `initial` that have made a call.
    started: IdSet<u32>,
    cwd: ObjectId,
    is_cwd_known: bool,
    inferred: Vec<OpenDescription>,
    /// Descriptions that ended without a call that ended them.
    orphans: Vec<DescriptionId>,
}

impl State {
    /// The state before the first call.
    pub fn new(metadata: &Metadata, options: Options) -> Self {
        let mut names = Names::new(options.tree.clone(), options.with_needs);
        let default = metadata.processes.iter().find(|process| process.process == 0 || metadata.processes.len() == 1);
        let given = default.map(|process| Name::from(process.cwd.as_str())).or_else(|| options.cwd.clone());
        let is_cwd_known = given.is_some();
        let cwd = given.map_or(ROOT, |cwd| names.directory(&cwd));
        names.hold(cwd);
        let initial =
            Metadata { processes: metadata.processes.clone(), recorder: metadata.recorder, ..Metadata::default() };
        Self {
            names,
            processes: Processes::default(),
            descriptions: Descriptions::default(),
            pending: Pending::default(),
            options,
            counts: Counts::default(),
            initial,
            started: IdSet::default(),
            cwd,
            is_cwd_known,
            inferred: Vec::new(),
            orphans: Vec::new(),
        }
    }

    /// Resolves a call. Calls come in the order of their start.
    pub fn next(&mut self, call: &Call) -> Resolved {
        self.inferred.clear();
        self.apply_pending(call);
        let thread = self.thread_of(call);
        let umask = self.processes.directories(thread.directories).umask;
        let mut step = Step::new(call, thread, Resolved { umask, ..Resolved::default() });
        self.call(&mut step);
        self.end_orphans(&mut step);
        if let Some(change) = step.resolved.unreplayable {
            *self.counts.unreplayable.entry(change.to_string()).or_default() += 1;
        }
        let mut resolved = step.resolved;
        if resolved.skip.is_some_and(|skip| skip != Skip::Bookkeeping) {
            // What is not replayed neither waits nor lets others wait, but ends must not get lost.
            let ends: IdSet<_> = resolved.ends.iter().copied().collect();
            resolved
                .touches
                .retain(|touch| matches!(touch.resource, crate::Resource::Description(id) if ends.contains(&id)));
            (resolved.description, resolved.description2, resolved.makes) = (None, None, None);
        }
        resolved
    }

    /// Descriptions that the last call uses but no call made: they were open before the trace began.
    pub fn take_inferred(&mut self) -> Vec<OpenDescription> {
        std::mem::take(&mut self.inferred)
    }

    /// The descriptions of files that are open now, for a replay that begins in the middle.
    pub fn open_descriptions(&self) -> Vec<OpenDescription> {
        let open = self.descriptions.iter().filter(|(_, open)| open.skip.is_none() && !open.is_unannounced);
        let mut all: Vec<_> = open.filter_map(|(id, _)| self.reopening(id)).collect();
        all.sort_by_key(|open| open.id);
        all
    }

    /// What could not be followed so far.
    pub fn counts(&self) -> Counts {
        Counts { appeared: self.names.appeared, ..self.counts.clone() }
    }

    /// Sentences about what could not be followed so far.
    pub fn warnings(&self) -> Vec<String> {
        self.counts().warnings()
    }

    /// What the tree must have been before the calls so far; `None` unless [`Options::with_needs`].
    pub fn needs(&self) -> Option<&Needs> {
        self.names.needs.as_ref()
    }
}
