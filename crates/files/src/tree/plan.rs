//! What must exist below the root before a replay, and what must not.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::ops::Bound;

use super::links::{Links, invented_target};
use crate::snapshot::{Kind, Tree};
use crate::state::{First, Ignore, Need, Needs, PathMap, is_of_kernel};

/// Whether a path must exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// It must exist.
    Exist,
    /// It must not exist.
    NotExist,
}

/// A path below the root.
#[derive(Clone, Debug)]
pub struct PlannedPath {
    /// Absolute below the root.
    pub path: Box<[u8]>,
    /// Whether it must exist.
    pub must: Requirement,
    /// What it is. `None`: any kind will do; a file is made.
    pub kind: Option<Kind>,
    /// It is no directory, whatever else it is.
    pub is_no_directory: bool,
    /// The least size of a file.
    pub bytes: u64,
    /// It must have this size exactly.
    pub is_exact: bool,
    /// From the snapshot: permissions, owner, group and time of the last change in nanoseconds since 1970 UTC.
    pub attributes: Option<Attributes>,
    /// Somebody must have the permission to execute it.
    pub is_executable: bool,
    /// The target of a symbolic link.
    pub target: Option<Box<[u8]>>,
    /// The trace does not show the target: any other will do.
    pub is_target_invented: bool,
    /// The first path in the plan with the same file.
    pub linked_to: Option<Box<[u8]>>,
    /// The plan has other names of the same file.
    pub has_other_names: bool,
    /// The number of a device node.
    pub device: Option<u64>,
    /// Ranges without data: offset and length.
    pub holes: Box<[(u64, u64)]>,
}

/// Permissions, owner and time from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When the content changed last.
    pub modified_ns: i64,
}

impl PlannedPath {
    fn new(path: &[u8], must: Requirement, kind: Option<Kind>) -> Self {
        Self {
            path: path.into(),
            must,
            kind,
            is_no_directory: false,
            bytes: 0,
            is_exact: false,
            attributes: None,
            is_executable: false,
            target: None,
            is_target_invented: false,
            linked_to: None,
            has_other_names: false,
            device: None,
            holes: Box::default(),
        }
    }

    /// Adds what calls showed of a file.
    fn add(&mut self, need: &Need) {
        if self.attributes.is_some() {
            return;
        }
        self.kind = self.kind.or(need.shown_kind());
        self.is_no_directory |= need.is_no_directory;
        self.is_exact |= need.is_exact;
        self.is_executable |= need.is_executable;
        self.bytes = self.bytes.max(need.bytes);
    }

    /// What is made where nothing is.
    pub fn kind_to_make(&self) -> Kind {
        self.kind.unwrap_or(Kind::File)
    }
}

/// All paths, directories before what they contain.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In ascending order of their paths.
    pub items: Vec<PlannedPath>,
    /// Files that `--ignore` leaves out.
    pub ignored: u64,
    /// Files below `/proc`, `/sys` and `/dev`.
    pub of_kernel: u64,
    /// Symbolic links that were read or followed, and whose target is unknown. They are made with another one,
    /// which exists if a call followed them.
    pub unknown_links: Vec<Box<[u8]>>,
}

impl Plan {
    /// From what the trace shows and the snapshot, which knows better where it reaches.
    pub fn new(needs: &Needs, tree: Option<&Tree>, map: &PathMap, ignore: &Ignore) -> Self {
        let mut plan = Self::default();
        let mut items = BTreeMap::new();
        for item in tree.map(of_tree).into_iter().flatten() {
            plan.place(&mut items, item, map, ignore);
        }
        let links = Links::of(needs, tree);
        let (mut ends, mut full) = (Vec::new(), Vec::new());
        for (path, need) in needs.iter() {
            let Some(path) = links.place_of(&path) else { continue };
            let Some(link) = need.link.as_ref().filter(|_| need.first == First::Exists) else {
                plan.need(&mut items, item_of(&path, need.first, need), (map, ignore));
                if need.is_full {
                    full.push(path);
                }
                continue;
            };
            if tree.and_then(|tree| tree.find(&path)).is_some() {
                continue;
            }
            let is_missed = link.target.is_none() && (link.target_bytes.is_some() || link.leads == First::Exists);
            if is_missed && !is_of_kernel(&path) && !ignore.matches(&path) {
                plan.unknown_links.push(path.as_slice().into());
            }
            let mut item = PlannedPath::new(&path, Requirement::Exist, Some(Kind::Link));
            item.is_target_invented = link.target.is_none();
            item.target = Some(links.target(&path).map_or_else(|| invented_target(need), Into::into));
            plan.place(&mut items, item, map, ignore);
            ends.extend(links.end_of(&path).map(|end| (end, link.leads, need)));
        }
        // What is known of a name itself goes before what is known of it through links.
        for (path, leads, need) in ends {
            let name = map.apply(&path).unwrap_or_else(|| path.clone());
            if !items.contains_key(name.as_slice()) {
                plan.need(&mut items, item_of(&path, leads, need), (map, ignore));
            } else if let Some(item) = items.get_mut(name.as_slice()).filter(|item| item.must == Requirement::Exist) {
                item.add(need);
            }
        }
        plan.add_parents(&mut items);
        fill(&mut items, &full, map);
        plan.items = items.into_values().collect();
        plan.link_groups();
        plan
    }

    fn need(
        &mut self,
        items: &mut BTreeMap<Box<[u8]>, PlannedPath>,
        item: Option<PlannedPath>,
        (map, ignore): (&PathMap, &Ignore),
    ) {
        if let Some(item) = item {
            self.place(items, item, map, ignore);
        }
    }

    fn place(
        &mut self,
        items: &mut BTreeMap<Box<[u8]>, PlannedPath>,
        mut item: PlannedPath,
        map: &PathMap,
        ignore: &Ignore,
    ) {
        if is_of_kernel(&item.path) {
            self.of_kernel += 1;
            return;
        }
        if ignore.matches(&item.path) {
            self.ignored += 1;
            return;
        }
        if let Some(mapped) = map.apply(&item.path) {
            item.path = mapped.into_boxed_slice();
        }
        // Absolute targets lead where the map puts their files.
        if let Some(mapped) = item.target.as_deref().filter(|to| to.starts_with(b"/")).and_then(|to| map.apply(to)) {
            item.target = Some(mapped.into_boxed_slice());
        }
        if item.path.len() <= 1 {
            return;
        }
        match items.entry(item.path.clone()) {
            MapEntry::Vacant(entry) => {
                entry.insert(item);
            }
            MapEntry::Occupied(mut entry) => {
                // The snapshot came first; of two files of the trace that are mapped to one the larger counts.
                let old = entry.get_mut();
                if old.attributes.is_none() && item.must == Requirement::Exist {
                    let is_exact = old.is_exact && item.is_exact && old.bytes == item.bytes;
                    let bytes = old.bytes.max(item.bytes);
                    *old = PlannedPath { bytes, is_exact, ..item };
                }
            }
        }
    }

    /// The directories of all that exists, and of what is made: a map may have put it anywhere.
    fn add_parents(&self, items: &mut BTreeMap<Box<[u8]>, PlannedPath>) {
        let paths: Vec<Box<[u8]>> =
            items.values().filter(|item| item.must == Requirement::Exist).map(|item| item.path.clone()).collect();
        for path in paths {
            let mut end = path.len();
            while let Some(at) = path[..end].iter().rposition(|&byte| byte == b'/').filter(|at| *at > 0) {
                end = at;
                let directory = || PlannedPath::new(&path[..end], Requirement::Exist, Some(Kind::Directory));
                let item = items.entry(path[..end].into()).or_insert_with(directory);
                if item.must == Requirement::Exist && item.kind == Some(Kind::Directory) && item.attributes.is_some() {
                    break;
                }
                if item.must == Requirement::NotExist || item.kind.is_none() {
                    *item = directory();
                }
            }
        }
    }

    /// Of files with several names, the first in the plan is made, the others are linked to it. Until here `linked_to` has
    /// the number of the group.
    fn link_groups(&mut self) {
        let mut first: BTreeMap<Box<[u8]>, Box<[u8]>> = BTreeMap::new();
        for item in &mut self.items {
            if let Some(group) = item.linked_to.take() {
                match first.entry(group) {
                    MapEntry::Vacant(entry) => {
                        entry.insert(item.path.clone());
                    }
                    MapEntry::Occupied(entry) => item.linked_to = Some(entry.get().clone()),
                }
                item.has_other_names = true;
            }
        }
    }

    /// Adds the paths of another instance.
    pub fn add(&mut self, other: Self) {
        self.items.extend(other.items);
        self.items.sort_by(|a, b| a.path.cmp(&b.path));
        self.items.dedup_by(|later, first| later.path == first.path);
    }

    /// Bytes of data of all files that must exist, without holes.
    pub fn data_bytes(&self) -> u64 {
        let files = self.items.iter().filter(|item| item.must == Requirement::Exist && item.linked_to.is_none());
        files
            .map(|item| item.bytes - item.holes.iter().map(|(_, length)| length).sum::<u64>().min(item.bytes))
            .fold(0, u64::saturating_add)
    }
}

/// What the trace needs of a name, if it must exist or must not.
fn item_of(path: &[u8], first: First, need: &Need) -> Option<PlannedPath> {
    let must = match first {
        First::Exists => Requirement::Exist,
        First::Absent => Requirement::NotExist,
        First::Unknown | First::Either => return None,
    };
    let mut item = PlannedPath::new(path, must, need.shown_kind());
    item.add(need);
    Some(item)
}

/// Directories that could not be removed get an entry, unless something is made in them.
fn fill(items: &mut BTreeMap<Box<[u8]>, PlannedPath>, full: &[Vec<u8>], map: &PathMap) {
    for path in full {
        let path = map.apply(path).unwrap_or_else(|| path.clone());
        let below = [&path[..], b"/"].concat();
        let mut inside = items.range::<[u8], _>((Bound::Excluded(&below[..]), Bound::Unbounded));
        let is_filled = inside
            .by_ref()
            .take_while(|(path, _)| path.starts_with(&below))
            .any(|(_, item)| item.must == Requirement::Exist);
        if !is_filled && items.get(&path[..]).is_some_and(|item| item.kind == Some(Kind::Directory)) {
            let entry = [&below[..], b".unknown-entry"].concat();
            let item = PlannedPath::new(&entry, Requirement::Exist, Some(Kind::File));
            items.insert(entry.into(), item);
        }
    }
}

fn of_tree(tree: &Tree) -> impl Iterator<Item = PlannedPath> {
    tree.entries().map(|(id, entry)| {
        let mut item = PlannedPath::new(&tree.path(id), Requirement::Exist, Some(entry.kind));
        if entry.is_captured {
            item.bytes = entry.bytes;
            item.is_exact = entry.kind == Kind::File;
            item.attributes =
                Some(Attributes { mode: entry.mode, uid: entry.uid, gid: entry.gid, modified_ns: entry.modified_ns });
            item.target = entry.target.clone();
            item.linked_to = entry.group.map(|group| group.to_le_bytes().into());
            item.device = entry.device;
            item.holes = entry.holes.clone();
        }
        item
    })
}
