//! How a path is walked, and where it led.

use super::names::Names;
use super::needs::{First, NeedId};
use crate::snapshot::Kind;
use crate::{NameId, ObjectId};

/// What the result of a call shows about its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathEvidence {
    /// All of it exists.
    Exists,
    /// The directories on the way exist; the last component is up to the call.
    Directory,
    /// The last component did not exist, or a directory on the way.
    Missing,
    /// Nothing.
    Nothing,
}

/// How to walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkOptions {
    /// Follow a symbolic link in the last component.
    pub follow: bool,
    /// The call makes or removes the entry: it follows no link even if a slash comes after it.
    pub is_entry: bool,
    pub shows: PathEvidence,
    /// What the last component is, where the call shows it.
    pub kind: Option<Kind>,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Walk {
    /// Absolute, without `.` and `..`; symbolic links are kept.
    pub path: Vec<u8>,
    /// The directory that holds the last component. It may not exist.
    pub parent: ObjectId,
    /// The last component, after symbolic links that were followed; empty if the path is that of a directory that ends in
    /// `..` or of the root.
    pub component: Vec<u8>,
    /// The name of the last component.
    pub name: Option<NameId>,
    /// What has the name, if the trace shows it.
    pub object: Option<ObjectId>,
    /// The trace shows that nothing has the name.
    pub is_absent: bool,
    /// The names on the way, without the last.
    pub names: Vec<NameId>,
    /// Symbolic links that were followed.
    pub links: Vec<ObjectId>,
    /// The path ends in a slash, or the target of its last link does.
    pub ends_in_slash: bool,
    /// The need of `parent`, as far as it is of the tree before the trace.
    pub need_parent: Option<NeedId>,
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkError {
    /// Too long for a system call.
    TooLong,
    /// The directory where it starts was removed; the object, if the path is that of the directory itself.
    NoStart(Option<ObjectId>),
    /// Nothing is known of the directory where it starts.
    UnknownStart,
}

impl Walk {
    /// One that has not left `directory`, which has this path and names on the way.
    pub(super) fn start(directory: ObjectId, path: Vec<u8>, names: Vec<NameId>) -> Self {
        Self {
            path,
            parent: directory,
            component: Vec::new(),
            name: None,
            object: None,
            is_absent: false,
            names,
            links: Vec::new(),
            ends_in_slash: false,
            need_parent: None,
        }
    }

    /// That of a directory without a path.
    pub(super) fn of_removed(directory: ObjectId) -> Self {
        Self { object: Some(directory), ..Self::start(directory, b"/".to_vec(), Vec::new()) }
    }

    /// Notes whether the last component existed, if this is its first touch.
    pub(super) fn note(&self, names: &mut Names, first: First) {
        if let (Some(parent), Some(needs)) = (self.need_parent, &mut names.needs)
            && !self.component.is_empty()
        {
            let need = needs.child(parent, &self.component);
            match first {
                First::Absent => needs.note_missing(need, false),
                first => needs.note(need, first),
            }
        }
    }

    /// The need of the last component, as far as it is of the tree before the trace.
    pub(super) fn need(&self, names: &mut Names) -> Option<NeedId> {
        let (parent, needs) = (self.need_parent?, names.needs.as_mut()?);
        (!self.component.is_empty()).then(|| needs.child(parent, &self.component))
    }
}
