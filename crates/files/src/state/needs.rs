//! What the tree must be like before the trace starts, as far as the trace shows it.

use crate::ids::{IdMap, name_id};
use crate::snapshot::Kind;
use crate::{Name, NameId, ObjectId};

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

/// What a symbolic link needs.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// What it contains, where the trace shows it.
    pub target: Option<Name>,
    /// The number of bytes of its target, if the link was read.
    pub target_bytes: Option<u64>,
    /// Whether what it leads to must exist.
    pub leads: First,
    /// It leads to itself, perhaps over other links.
    pub is_loop: bool,
}

/// What a name must have before the trace starts. Of a symbolic link, kind, size and permissions are those of what it leads
/// to: calls may have followed it before one shows that it is a link.
#[derive(Clone, Debug, Default)]
pub struct Need {
    parent: u32,
    /// The last component of the name.
    pub component: Box<[u8]>,
    /// Whether it must exist.
    pub first: First,
    /// It is missing, but only calls that follow symbolic links showed it: it may be one that leads nowhere.
    may_lead_nowhere: bool,
    /// It is a symbolic link.
    pub link: Option<Link>,
    /// A call that follows symbolic links found something.
    is_used: bool,
    /// What it is; `None` if the trace does not show it.
    pub kind: Option<Kind>,
    /// It is no directory, whatever else it is: a file, a link, a socket.
    pub is_no_directory: bool,
    /// It is a directory, and could not be removed since something was in it.
    pub is_full: bool,
    /// A lookup of a name in it failed because there was no such name: then it is a directory, if it exists.
    pub is_passed: bool,
    /// The least size of a file: the end of the furthest read, and what the results show.
    pub bytes: u64,
    /// Results show that the file has this size exactly.
    pub is_exact: bool,
    /// Somebody has the permission to execute it.
    pub is_executable: bool,
}

impl Need {
    /// What it is, as far as anything shows it.
    pub fn shown_kind(&self) -> Option<Kind> {
        self.kind.or(self.is_passed.then_some(Kind::Directory))
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

    /// Whether the name is missing, or a symbolic link that leads nowhere.
    pub(super) fn may_lead_nowhere(&self, parent: NeedId, component: &[u8]) -> bool {
        let id = self.children.get(&key(parent, component));
        id.is_some_and(|&id| self.all[id as usize].may_lead_nowhere)
    }

    /// Nothing was found; `follows`: after symbolic links.
    pub(super) fn note_missing(&mut self, id: NeedId, follows: bool) {
        let need = self.need_mut(id);
        match &mut need.link {
            Some(link) if link.leads == First::Unknown => link.leads = First::Absent,
            Some(_) => {}
            None => {
                need.may_lead_nowhere = follows && (need.first == First::Unknown || need.may_lead_nowhere);
                self.note(id, First::Absent);
            }
        }
    }

    /// A call that follows symbolic links found something.
    pub(super) fn note_used(&mut self, id: NeedId) {
        let need = self.need_mut(id);
        need.is_used = true;
        if let Some(link) = need.link.as_mut().filter(|link| link.leads == First::Unknown) {
            link.leads = First::Exists;
        }
    }

    /// The name is a symbolic link.
    pub(super) fn note_link(&mut self, id: NeedId) -> &mut Link {
        let need = self.need_mut(id);
        if need.link.is_none() {
            let leads = match need.first {
                First::Exists if need.is_used || need.kind.is_some() || need.is_passed => First::Exists,
                First::Exists | First::Unknown => First::Unknown,
                First::Either => First::Either,
                First::Absent => First::Absent,
            };
            let was_missing = std::mem::take(&mut need.may_lead_nowhere);
            need.link = Some(Link { leads, ..Link::default() });
            if need.first != First::Absent || was_missing {
                need.first = First::Exists;
                self.note_parents(id);
            }
        }
        self.need_mut(id).link.get_or_insert_default()
    }

    /// The name is not that of a directory. If one was found there, the name is a symbolic link.
    pub(super) fn note_no_directory(&mut self, id: NeedId) {
        let need = self.need_mut(id);
        match need.shown_kind() {
            Some(Kind::Directory) => {
                self.note_link(id);
            }
            Some(_) => {}
            None => need.is_no_directory = true,
        }
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
        match kind {
            Kind::Link => {
                self.note_link(id);
            }
            kind => {
                self.need_mut(id).kind.get_or_insert(kind);
            }
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
