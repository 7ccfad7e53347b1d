//! A tree of files in memory: names, kinds, sizes, permissions, links and holes, but no content.

use std::collections::hash_map::Entry as MapEntry;

use crate::ids::{IdMap, name_id};
use crate::{NameId, ObjectId};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::File, Self::Directory, Self::Link, Self::Fifo, Self::Socket, Self::CharDevice, Self::BlockDevice];

    /// Its name in tables and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "symlink",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharDevice => "character_device",
            Self::BlockDevice => "block_device",
        }
    }

    /// From the `S_IFMT` part of a mode.
    pub fn from_mode(mode: u32) -> Option<Self> {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Some(Self::File),
            libc::S_IFDIR => Some(Self::Directory),
            libc::S_IFLNK => Some(Self::Link),
            libc::S_IFIFO => Some(Self::Fifo),
            libc::S_IFSOCK => Some(Self::Socket),
            libc::S_IFCHR => Some(Self::CharDevice),
            libc::S_IFBLK => Some(Self::BlockDevice),
            _ => None,
        }
    }

    /// The `S_IFMT` part of its mode.
    pub fn mode(self) -> u32 {
        match self {
            Self::File => libc::S_IFREG,
            Self::Directory => libc::S_IFDIR,
            Self::Link => libc::S_IFLNK,
            Self::Fifo => libc::S_IFIFO,
            Self::Socket => libc::S_IFSOCK,
            Self::CharDevice => libc::S_IFCHR,
            Self::BlockDevice => libc::S_IFBLK,
        }
    }

    /// A device node, socket or FIFO.
    pub fn is_special(self) -> bool {
        !matches!(self, Self::File | Self::Directory | Self::Link)
    }
}

/// The number of an entry in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(pub u32);

impl EntryId {
    /// The directory above all others.
    pub const ROOT: Self = Self(0);
}

/// A name in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The directory that holds it; the root holds itself.
    pub parent: EntryId,
    /// Its last component; empty for the root.
    pub component: Box<[u8]>,
    /// What it is.
    pub kind: Kind,
    /// Size of a file.
    pub bytes: u64,
    /// Permissions, with set-user-ID, set-group-ID and sticky bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When the content changed last, in nanoseconds since 1970 UTC.
    pub modified_ns: i64,
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// The same number for all names of a file with several names.
    pub group: Option<u64>,
    /// Of a device node: its number.
    pub device: Option<u64>,
    /// Bytes that the file occupies on its device.
    pub allocated: u64,
    /// It was captured. Else it is only on the way to something that was.
    pub is_captured: bool,
    /// Of a directory: the tree has everything in it.
    pub is_complete: bool,
    /// Ranges without data: offset and length, in ascending order.
    pub holes: Box<[(u64, u64)]>,
}

impl Entry {
    /// An entry with usual permissions and no content.
    pub fn new(parent: EntryId, component: &[u8], kind: Kind) -> Self {
        Self {
            parent,
            component: component.into(),
            kind,
            bytes: 0,
            mode: if kind == Kind::Directory { 0o755 } else { 0o644 },
            uid: 0,
            gid: 0,
            modified_ns: 0,
            target: None,
            group: None,
            device: None,
            allocated: 0,
            is_captured: false,
            is_complete: false,
            holes: Box::default(),
        }
    }
}

/// A snapshot of one or several directories, at the paths that they had in the trace.
#[derive(Clone, Debug)]
pub struct Tree {
    entries: Vec<Entry>,
    children: IdMap<NameId, EntryId>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { entries: vec![Entry::new(EntryId::ROOT, b"", Kind::Directory)], children: IdMap::default() }
    }
}

impl Tree {
    /// Adds an entry, or replaces it. Its directory is in the tree already.
    pub fn add(&mut self, entry: Entry) -> EntryId {
        match self.children.entry(key(entry.parent, &entry.component)) {
            MapEntry::Occupied(old) => {
                let id = *old.get();
                self.entries[id.0 as usize] = entry;
                id
            }
            MapEntry::Vacant(place) => {
                let id = *place.insert(EntryId(self.entries.len() as u32));
                self.entries.push(entry);
                id
            }
        }
    }

    /// The directory of an absolute path without `.` and `..`. Those on the way that are not in the tree are added, with
    /// unknown content.
    pub fn directory(&mut self, path: &[u8]) -> EntryId {
        let mut at = EntryId::ROOT;
        for component in path.split(|&byte| byte == b'/').filter(|component| !component.is_empty()) {
            at = match self.child(at, component) {
                Some(child) => child,
                None => self.add(Entry::new(at, component, Kind::Directory)),
            };
        }
        at
    }

    /// The entry with this number, which must be of this tree.
    pub fn entry(&self, id: EntryId) -> &Entry {
        &self.entries[id.0 as usize]
    }

    pub(super) fn entry_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut self.entries[id.0 as usize]
    }

    /// The entry with this name in a directory, if there is one.
    pub fn child(&self, directory: EntryId, component: &[u8]) -> Option<EntryId> {
        self.children.get(&key(directory, component)).copied()
    }

    /// The entry of an absolute path without `.` and `..`.
    pub fn find(&self, path: &[u8]) -> Option<EntryId> {
        let mut components = path.split(|&byte| byte == b'/').filter(|component| !component.is_empty());
        components.try_fold(EntryId::ROOT, |at, component| self.child(at, component))
    }

    /// All entries but the root, directories before what they contain.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.entries.iter().enumerate().skip(1).map(|(at, entry)| (EntryId(at as u32), entry))
    }

    /// The number of entries that were captured.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_captured).count()
    }

    /// Whether nothing was captured.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The absolute path of an entry.
    pub fn path(&self, mut id: EntryId) -> Vec<u8> {
        let mut components = Vec::new();
        while id != EntryId::ROOT {
            let entry = self.entry(id);
            components.push(&entry.component[..]);
            id = entry.parent;
        }
        if components.is_empty() {
            return b"/".to_vec();
        }
        components.push(b"");
        components.reverse();
        components.join(&b'/')
    }
}

fn key(parent: EntryId, component: &[u8]) -> NameId {
    name_id(ObjectId(parent.0.into()), component)
}
