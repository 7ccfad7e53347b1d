//! What calls name: files, directories and symbolic links.

use crate::snapshot::{EntryId, Kind};
use crate::state::needs::NeedId;
use crate::{Name, NameId, ObjectId};

/// A file, directory or symbolic link.
#[derive(Debug)]
pub(super) struct Object {
    pub kind: Option<Kind>,
    pub size: Size,
    /// What a symbolic link contains, where known.
    pub target: Option<Name>,
    /// Its names. A directory keeps its only one after its removal: `..` still leads to where it was.
    pub places: Vec<Place>,
    /// The number of its names.
    pub links: u32,
    /// Of a directory: names in it that the trace shows.
    pub entries: u32,
    /// Descriptions and working directories that refer to it, and removed directories that were in it.
    pub holders: u32,
    /// It is a removed directory, which holds the one it was in: `..` still leads there.
    pub holds_parent: bool,
    /// The trace made this directory, so that all of its names are known.
    pub is_complete: bool,
    /// Its entry in the snapshot.
    pub entry: Option<EntryId>,
    /// The file that has to exist before the trace starts.
    pub need: Option<NeedId>,
}

/// The directory and the component of a name.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub parent: ObjectId,
    pub component: Box<[u8]>,
    pub name: NameId,
}

/// Size of a file in bytes, as far as the trace shows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// At least.
    pub bytes: u64,
    /// It is exactly that.
    pub is_exact: bool,
    /// The trace changed it, so that it says nothing about the size at the start.
    pub is_changed: bool,
}

impl Object {
    pub fn new(kind: Option<Kind>) -> Self {
        Self {
            kind,
            size: Size::default(),
            target: None,
            places: Vec::new(),
            links: 0,
            entries: 0,
            holders: 0,
            holds_parent: false,
            is_complete: false,
            entry: None,
            need: None,
        }
    }

    /// One of its names. `None` for the root and what has no name.
    pub fn place(&self) -> Option<&Place> {
        self.places.last()
    }

    /// The directory that it held since its removal, which it no longer holds.
    pub fn take_held_parent(&mut self) -> Option<ObjectId> {
        std::mem::take(&mut self.holds_parent).then(|| self.place().map(|place| place.parent)).flatten()
    }

    /// The trace shows that it is something else than a symbolic link.
    pub fn is_no_link(&self) -> bool {
        self.kind.is_some_and(|kind| kind != Kind::Link)
    }

    pub fn is_directory(&self) -> bool {
        self.kind == Some(Kind::Directory)
    }
}
