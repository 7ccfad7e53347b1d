//! Paths of calls: where they start, where they lead, and where they are below the root.

use super::State;
use super::names::{Names, ROOT, UNKNOWN};
use super::step::Step;
use super::walk::{PathEvidence, Walk, WalkError, WalkOptions};
use crate::snapshot::Kind;
use crate::{AT_FDCWD, Call, CallKind, Name, ObjectId, Resource, Skip};

impl Names {
    /// The directory of an absolute path, which exists; [`UNKNOWN`] if the path is too long.
    pub(super) fn directory(&mut self, path: &Name) -> ObjectId {
        let how =
            WalkOptions { follow: true, is_entry: false, shows: PathEvidence::Exists, kind: Some(Kind::Directory) };
        self.walk(ROOT, ROOT, path.as_bytes(), how).ok().and_then(|walk| walk.object).unwrap_or(UNKNOWN)
    }
}

/// The flags of resolving of `openat2`.
pub(super) fn resolving(call: &Call) -> u64 {
    call.offset.filter(|_| call.kind == CallKind::Openat2).map_or(0, i64::cast_unsigned)
}

/// The directory of the path is its root.
const RESOLVE_IN_ROOT: u64 = 0x10;

impl State {
    /// Walks a path of the call and touches the names on its way. `None` if it leads nowhere that is known; then the call is
    /// skipped.
    pub(super) fn walk(
        &mut self,
        step: &mut Step,
        fd: Option<i32>,
        path: Option<&Name>,
        how: WalkOptions,
    ) -> Option<Walk> {
        let Some(path) = path.filter(|path| !path.as_bytes().is_empty()) else {
            step.skip(Skip::NotReplayable);
            return None;
        };
        let directories = self.processes.directories(step.thread.directories);
        let is_in_root = resolving(step.call) & RESOLVE_IN_ROOT != 0;
        let base = if path.is_absolute() && !is_in_root {
            directories.root
        } else if let Some(fd) = fd.filter(|fd| *fd != AT_FDCWD) {
            let id = self.descriptor(step, Some(fd), Some(Kind::Directory))?;
            if fd == step.call.fd.unwrap_or(AT_FDCWD) {
                step.resolved.description = Some(id);
            } else {
                step.resolved.description2 = Some(id);
            }
            let object = self.descriptions.get(id).object?;
            if step.call.succeeded() {
                self.names.learn_kind(object, Kind::Directory);
            }
            if self.names.object(object).is_some_and(|object| object.kind.is_some_and(|kind| kind != Kind::Directory)) {
                // It fails with ENOTDIR, and its path might lead elsewhere.
                step.skip(Skip::NotReplayable);
                return None;
            }
            object
        } else if let Some(cwd) = step.call.fd_path.clone().filter(|cwd| fd == step.call.fd && cwd.is_absolute()) {
            // strace -y shows the working directory of AT_FDCWD.
            self.names.directory(&cwd)
        } else {
            if directories.cwd == self.cwd && !self.is_cwd_known {
                self.counts.assumed_cwds += 1;
            }
            directories.cwd
        };
        let root = if is_in_root { base } else { directories.root };
        match self.names.walk(root, base, path.as_bytes(), how) {
            Ok(walk) => {
                for &name in &walk.names {
                    step.uses(Resource::Name(name));
                }
                for &link in &walk.links {
                    step.uses(Resource::Object(link));
                }
                Some(walk)
            }
            Err(error) => {
                match error {
                    WalkError::TooLong => self.counts.long_paths += 1,
                    WalkError::NoStart(_) => self.counts.removed_starts += 1,
                    WalkError::UnknownStart => self.counts.unknown_starts += 1,
                }
                step.skip(Skip::NotReplayable);
                match error {
                    WalkError::NoStart(Some(directory)) => Some(Walk::of_removed(directory)),
                    _ => None,
                }
            }
        }
    }

    /// Where a path of the trace is below the root, and why calls on it are not replayed.
    pub(super) fn place(&self, path: &[u8]) -> (Name, Option<Skip>) {
        let skip = if is_of_kernel(path) {
            Some(Skip::KernelFile)
        } else if self.options.ignore.matches(path) {
            Some(Skip::Ignored)
        } else {
            None
        };
        let name = match self.options.map.apply(path) {
            Some(mapped) => Name::from(mapped.as_slice()),
            None => Name::from(path),
        };
        (name, skip)
    }

    /// The first path of a call: notes it, and whether the call is skipped for it.
    pub(super) fn place_first(&mut self, step: &mut Step, walk: &Walk) {
        let (name, skip) = self.place(&walk.path);
        step.resolved.path = Some(name);
        if let Some(skip) = skip {
            step.skip(skip);
        }
        let kind = walk.object.and_then(|object| self.names.object(object)).and_then(|object| object.kind);
        if kind.is_some_and(Kind::is_special) && !self.options.special_files {
            step.skip(Skip::SpecialFile);
        }
    }

    /// The second path of a call.
    pub(super) fn place_second(&mut self, step: &mut Step, walk: &Walk) {
        let (name, skip) = self.place(&walk.path);
        step.resolved.path2 = Some(name);
        if let Some(skip) = skip {
            step.skip(skip);
        }
    }
}

/// Whether the path is below `/proc`, `/sys` or `/dev`. `/dev/shm` has ordinary files.
pub(crate) fn is_of_kernel(path: &[u8]) -> bool {
    let is_below = |top: &[u8]| path.strip_prefix(top).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')));
    is_below(b"/proc") || is_below(b"/sys") || (is_below(b"/dev") && !is_below(b"/dev/shm"))
}
