//! What the tree must be like before the trace starts, as far as the trace shows it.

use crate::ids::{IdMap, name_id};
use crate::snapshot::Kind;
use crate::{NameId, ObjectId};

/// A name in the tree as it was before the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedId(u32);

impl NeedId {
    pub(super) const ROOT: Self = Self(0);
}

/// The first time that the trace touches a name, it existed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum First {
    /// The trace does not show it.
    #[default]
    Unknown,
    /// It must exist.
    Exists,
    /// It must not exist: it was created exclusively, or its lookup failed.
    Absent,
    /// Opened with `O_CREAT`: either is possible.
    Either,
}

/// What a name must have before the trace starts.
#[derive(Clone, Debug, Default)]
pub struct Need {
    parent: u32,
    /// The last component of the name.
    pub component: Box<[u8]>,
    /// Whether it must exist.
    pub first: First,
    /// What it is; `None` if the trace does not show it.
    pub kind: Option<Kind>,
    /// What `stat` found there, which may be what a symbolic link leads to. Counts if nothing else shows the kind.
    pub seen: Option<Kind>,
    /// A lookup of a name in it failed because there was no such name: then it is a directory, if it exists.
    pub is_passed: bool,
    /// The least size of a file: the end of the furthest read, and what the results show.
    pub bytes: u64,
    /// Results show that the file has this size exactly.
    pub is_exact: bool,
    /// Somebody has the permission to execute it.
    pub is_executable: bool,
    /// The number of bytes of a symbolic link's target, if the link was read.
    pub target_bytes: Option<u64>,
}

impl Need {
    /// What it is, as far as anything shows it.
    pub fn shown_kind(&self) -> Option<Kind> {
        self.kind.or(self.seen).or(self.is_passed.then_some(Kind::Directory))
    }
}

/// All of them: a tree whose root is the root directory.
#[derive(Debug)]
pub struct Needs {
    all: Vec<Need>,
    children: IdMap<NameId, u32>,
}

impl Default for Needs {
    fn default() -> Self {
        let root = Need { first: First::Exists, kind: Some(Kind::Directory), ..Need::default() };
        Self { all: vec![root], children: IdMap::default() }
    }
}

impl Needs {
    /// The name in a directory. Until something is noted it is unknown whether it existed.
    pub(super) fn child(&mut self, parent: NeedId, component: &[u8]) -> NeedId {
        let Self { all, children } = self;
        let id = children.entry(key(parent, component)).or_insert_with(|| {
            all.push(Need { parent: parent.0, component: component.into(), ..Need::default() });
            all.len() as u32 - 1
        });
        NeedId(*id)
    }

    /// Whether the trace has shown, by an earlier call, if the name existed at first.
    pub(super) fn is_first_touch_known(&self, parent: NeedId, component: &[u8]) -> bool {
        self.children
            .get(&key(parent, component))
            .is_some_and(|&id| !matches!(self.all[id as usize].first, First::Unknown))
    }

    /// Notes whether a name existed at its first touch. Later touches change nothing, but that `Either` becomes `Exists`.
    pub(super) fn note(&mut self, id: NeedId, first: First) {
        let old = &mut self.all[id.0 as usize].first;
        if *old == First::Unknown || (*old == First::Either && first == First::Exists) {
            *old = first;
        }
        if first == First::Absent {
            let parent = self.all[id.0 as usize].parent;
            self.all[parent as usize].is_passed = true;
        }
        if first == First::Exists {
            self.note_parents(id);
        }
    }

    /// A name exists, and so do the directories above it.
    fn note_parents(&mut self, id: NeedId) {
        let mut at = self.all[id.0 as usize].parent;
        while at != 0 && self.all[at as usize].first == First::Unknown {
            let need = &mut self.all[at as usize];
            (need.first, need.kind) = (First::Exists, Some(Kind::Directory));
            at = need.parent;
        }
    }

    pub(super) fn learn_kind(&mut self, id: NeedId, kind: Kind) {
        self.all[id.0 as usize].kind.get_or_insert(kind);
    }

    /// `stat` found something of this kind under the name. Of a link and what it leads to, the latter counts: it can be used.
    pub(super) fn see_kind(&mut self, id: NeedId, kind: Kind) {
        let seen = &mut self.all[id.0 as usize].seen;
        if seen.is_none_or(|seen| seen == Kind::Link) {
            *seen = Some(kind);
        }
    }

    pub(super) fn need_mut(&mut self, id: NeedId) -> &mut Need {
        &mut self.all[id.0 as usize]
    }

    /// All needs with their paths in the trace's tree; directories before what they contain.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<u8>, &Need)> {
        self.all.iter().enumerate().skip(1).map(|(at, need)| (self.path(at), need))
    }

    fn path(&self, mut at: usize) -> Vec<u8> {
        let mut components = Vec::new();
        while at != 0 {
            components.push(&self.all[at].component);
            at = self.all[at].parent as usize;
        }
        components.iter().rev().flat_map(|component| [b"/".as_slice(), component].concat()).collect()
    }
}

fn key(parent: NeedId, component: &[u8]) -> NameId {
    name_id(ObjectId(parent.0.into()), component)
}
