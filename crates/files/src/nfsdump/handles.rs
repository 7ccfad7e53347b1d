//! The names of handles, and the descriptors that stand for them.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::Name;

/// Files that are open at a time, of all clients. NFS has no opens: the file used longest ago is closed.
const OPEN: usize = 512;

/// Components of a path; a loop of handles ends there.
const DEPTH: usize = 256;

/// A handle, as a number.
type Handle = u64;

/// What is known about handles.
#[derive(Default)]
pub struct Handles {
    /// Directory and name of each.
    places: HashMap<Handle, (Handle, Vec<u8>)>,
    /// Descriptors by client and handle, with the time of their last use.
    open: HashMap<(u32, Handle), (i32, u64)>,
    by_use: BTreeMap<u64, (u32, Handle)>,
    uses: u64,
    next_fd: i32,
}

/// A descriptor for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub fd: i32,
    pub is_new: bool,
}

/// The number of a handle: a hash, which is the same in each run.
fn number(handle: &[u8]) -> Handle {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(handle)
}

impl Handles {
    /// The path of a handle.
    pub fn path(&self, handle: &[u8]) -> Name {
        self.path_of(number(handle), None)
    }

    /// The path of a name in a directory.
    pub fn path_in(&self, directory: &[u8], name: &[u8]) -> Name {
        self.path_of(number(directory), Some(name))
    }

    fn path_of(&self, mut handle: Handle, last: Option<&[u8]>) -> Name {
        let mut components: Vec<Vec<u8>> = last.into_iter().map(<[u8]>::to_vec).collect();
        while components.len() < DEPTH
            && let Some((directory, name)) = self.places.get(&handle)
        {
            components.push(name.clone());
            handle = *directory;
        }
        components.push(format!("fh-{handle:016x}").into_bytes());
        let mut path = Vec::new();
        for component in components.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(component);
        }
        Name::from(&path[..])
    }

    /// A reply gives the handle of a name.
    pub fn learn(&mut self, directory: &[u8], name: &[u8], handle: &[u8]) {
        let (directory, handle) = (number(directory), number(handle));
        if handle != directory && !matches!(name, b"." | b"..") && !self.leads_to(directory, handle) {
            self.places.insert(handle, (directory, name.to_vec()));
        }
    }

    /// Whether `directory` is below `handle`.
    fn leads_to(&self, mut directory: Handle, handle: Handle) -> bool {
        for _ in 0..DEPTH {
            match self.places.get(&directory) {
                Some((parent, _)) if *parent != handle => directory = *parent,
                Some(_) => return true,
                None => return false,
            }
        }
        true
    }

    /// A file got another name.
    pub fn rename(&mut self, from: (&[u8], &[u8]), to: (&[u8], &[u8])) {
        let from = (number(from.0), from.1);
        let moved =
            self.places.iter().find(|(_, (directory, name))| (*directory, &name[..]) == from).map(|(moved, _)| *moved);
        if let Some(moved) = moved
            && !self.leads_to(number(to.0), moved)
        {
            self.places.insert(moved, (number(to.0), to.1.to_vec()));
        }
    }

    /// The descriptor of a client for a handle.
    pub fn open(&mut self, client: u32, handle: &[u8]) -> Opened {
        let key = (client, number(handle));
        self.uses += 1;
        let known = self.open.get(&key).copied();
        let fd = match known {
            Some((fd, used)) => {
                self.by_use.remove(&used);
                fd
            }
            None => {
                self.next_fd = if self.next_fd < 3 { 3 } else { self.next_fd.wrapping_add(1).max(3) };
                self.next_fd
            }
        };
        self.open.insert(key, (fd, self.uses));
        self.by_use.insert(self.uses, key);
        Opened { fd, is_new: known.is_none() }
    }

    /// A descriptor to close, if too many are open, with its client.
    pub fn surplus(&mut self) -> Option<(u32, i32)> {
        if self.open.len() <= OPEN {
            return None;
        }
        let (_, key) = self.by_use.pop_first()?;
        self.open.remove(&key).map(|(fd, _)| (key.0, fd))
    }
}
