//! The objects that calls name, and their names: the tree as far as the trace shows it.

mod observations;

use std::collections::VecDeque;
use std::sync::Arc;

use super::needs::{First, NeedId, Needs};
pub(super) use super::objects::{Object, Place, Size};
use crate::ids::{IdMap, IdSet, found_object, name_id};
use crate::snapshot::{EntryId, Kind, Tree};
use crate::{Name, NameId, ObjectId};

pub(super) const ROOT: ObjectId = ObjectId(0);
/// A working directory of which the trace does not show where it is. It is no object.
pub(super) const UNKNOWN: ObjectId = ObjectId(u64::MAX);
/// How many names that the trace removed are remembered. A failing lookup of an older one counts as one of a name that the
/// trace never made.
const REMOVED_NAMES: usize = 1 << 20;
/// Longer paths cannot be given to a system call.
pub(super) const PATH_MAX: usize = 4096;

/// What is known about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// An object has it.
    Object(ObjectId),
    /// No object has it.
    Absent,
    /// The trace does not show it.
    Unknown,
}

/// What has a name.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Object(ObjectId),
    /// The snapshot has it, the trace removed it.
    Removed,
}

/// Objects and names.
#[derive(Debug)]
pub(super) struct Names {
    objects: IdMap<ObjectId, Object>,
    slots: IdMap<NameId, Slot>,
    tree: Option<Arc<Tree>>,
    /// Objects of the snapshot with several names.
    shared: IdMap<u64, ObjectId>,
    removed: IdSet<NameId>,
    removed_queue: VecDeque<NameId>,
    pub needs: Option<Needs>,
    next: u64,
    /// Names that an object had although the trace shows that it was absent: other programs made it.
    pub appeared: u64,
}

impl Names {
    pub fn new(tree: Option<Arc<Tree>>, with_needs: bool) -> Self {
        let mut names = Self {
            objects: IdMap::default(),
            slots: IdMap::default(),
            shared: IdMap::default(),
            tree: None,
            removed: IdSet::default(),
            removed_queue: VecDeque::new(),
            needs: with_needs.then(Needs::default),
            next: 1,
            appeared: 0,
        };
        let mut root = Object::new(Some(Kind::Directory));
        (root.links, root.holders) = (1, 1);
        root.need = names.needs.as_ref().map(|_| NeedId::ROOT);
        names.objects.insert(ROOT, root);
        if tree.is_some() {
            names.object_mut(ROOT).expect("just inserted").entry = Some(EntryId::ROOT);
        }
        names.tree = tree;
        names
    }

    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(&id)
    }

    pub fn object_mut(&mut self, id: ObjectId) -> Option<&mut Object> {
        self.objects.get_mut(&id)
    }

    /// What has the name.
    pub fn lookup(&mut self, directory: ObjectId, component: &[u8]) -> Lookup {
        let name = name_id(directory, component);
        match self.slots.get(&name) {
            Some(Slot::Object(id)) => return Lookup::Object(*id),
            Some(Slot::Removed) => return Lookup::Absent,
            None => {}
        }
        let Some(object) = self.objects.get(&directory) else { return Lookup::Unknown };
        if object.is_complete {
            return Lookup::Absent;
        }
        if let (Some(entry), Some(tree)) = (object.entry, &self.tree) {
            let tree = Arc::clone(tree);
            match tree.child(entry, component) {
                Some(child) => return Lookup::Object(self.take_from_tree(directory, component, &tree, child)),
                None if tree.entry(entry).is_complete => return Lookup::Absent,
                None => {}
            }
        }
        if self.removed.contains(&name) {
            return Lookup::Absent;
        }
        match (object.need, &self.needs) {
            (Some(need), Some(needs)) if needs.is_first_touch_known(need, component) => Lookup::Absent,
            _ => Lookup::Unknown,
        }
    }

    /// Whether the trace removed the name, not very long ago.
    pub fn was_removed(&self, name: NameId) -> bool {
        self.removed.contains(&name)
    }

    fn take_from_tree(&mut self, directory: ObjectId, component: &[u8], tree: &Tree, id: EntryId) -> ObjectId {
        let entry = tree.entry(id);
        let group = entry.group;
        if let Some(&object) = group.and_then(|group| self.shared.get(&group))
            && self.objects.contains_key(&object)
        {
            self.link(directory, component, object);
            return object;
        }
        let object = self.find(directory, component, Some(entry.kind));
        let found = self.objects.get_mut(&object).expect("just found");
        found.size = Size { bytes: entry.bytes, is_exact: entry.kind == Kind::File, is_changed: false };
        found.target = entry.target.as_deref().map(Name::from);
        found.entry = (entry.kind == Kind::Directory).then_some(id);
        if let Some(group) = group {
            self.shared.insert(group, object);
        }
        object
    }

    /// The object of a name that existed before the trace, or that another program made meanwhile.
    pub fn find(&mut self, directory: ObjectId, component: &[u8], kind: Option<Kind>) -> ObjectId {
        let was_absent = self.was_absent(directory, component);
        self.found(directory, component, kind, was_absent)
    }

    /// The object of a name that cannot have existed before, as far as the trace shows.
    pub fn appears(&mut self, directory: ObjectId, component: &[u8], kind: Option<Kind>) -> ObjectId {
        self.found(directory, component, kind, true)
    }

    fn found(&mut self, directory: ObjectId, component: &[u8], kind: Option<Kind>, was_absent: bool) -> ObjectId {
        let mut object = Object::new(kind);
        let parent_need = self.objects.get(&directory).and_then(|directory| directory.need);
        if was_absent {
            self.appeared += 1;
        } else if let (Some(needs), Some(parent)) = (&mut self.needs, parent_need) {
            let need = needs.child(parent, component);
            needs.note(need, First::Exists);
            if let Some(kind) = kind {
                needs.learn_kind(need, kind);
            }
            object.need = Some(need);
        }
        let name = name_id(directory, component);
        let mut id = found_object(name);
        if self.objects.contains_key(&id) {
            id = self.fresh();
        }
        self.objects.insert(id, object);
        self.link(directory, component, id);
        id
    }

    /// The symbolic link of a name that calls which follow links did not find.
    pub fn find_link(&mut self, directory: ObjectId, component: &[u8]) -> Option<ObjectId> {
        let found = self.objects.get(&directory)?;
        let parent = found.need.filter(|_| !found.is_complete && found.entry.is_none())?;
        if self.removed.contains(&name_id(directory, component)) {
            return None;
        }
        let needs = self.needs.as_mut().filter(|needs| needs.may_lead_nowhere(parent, component))?;
        let need = needs.child(parent, component);
        needs.note_link(need);
        let id = self.make_unnamed(Kind::Link);
        self.object_mut(id)?.need = Some(need);
        self.link(directory, component, id);
        Some(id)
    }

    /// A name turned out to be that of a symbolic link. What calls found under it before is what the link leads to.
    pub fn becomes_link(&mut self, directory: ObjectId, component: &[u8], id: ObjectId) -> ObjectId {
        let Some(object) = self.objects.get_mut(&id) else { return id };
        match object.kind {
            Some(Kind::Link) => return id,
            // Nothing but its name is known.
            None if object.holders == 0 && object.entries == 0 => {
                object.kind = Some(Kind::Link);
                object.size = Size::default();
                if let (Some(need), Some(needs)) = (object.need, &mut self.needs) {
                    needs.note_link(need);
                }
                return id;
            }
            _ => {}
        }
        let parent = self.objects.get(&directory).and_then(|directory| directory.need);
        let own = self.objects.get(&id).and_then(|object| object.need);
        let need = match (own, parent, &mut self.needs) {
            (Some(need), _, Some(needs)) => {
                needs.note_link(need);
                Some(need)
            }
            (None, Some(parent), Some(needs)) if needs.may_lead_nowhere(parent, component) => {
                let need = needs.child(parent, component);
                needs.note_link(need);
                Some(need)
            }
            _ => None,
        };
        let link = self.make_unnamed(Kind::Link);
        if let Some(made) = self.object_mut(link) {
            made.need = need;
        }
        // The caller releases it.
        self.hold(id);
        self.link(directory, component, link);
        link
    }

    /// What calls found under a link's name is what the link leads to.
    pub fn moves_to(&mut self, id: ObjectId, need: Option<NeedId>) {
        let Some(object) = self.objects.get_mut(&id) else { return };
        let old = std::mem::replace(&mut object.need, need);
        if let (Some(old), Some(need), Some(needs)) = (old, need, &mut self.needs) {
            let leads = needs.note_link(old).leads;
            if leads == First::Exists {
                needs.note(need, First::Exists);
                needs.note_used(need);
            }
        }
    }

    /// The trace shows what a symbolic link contains.
    pub fn learn_target(&mut self, link: ObjectId, target: &Name) {
        let Some(object) = self.objects.get_mut(&link).filter(|object| object.kind == Some(Kind::Link)) else { return };
        object.target.get_or_insert_with(|| target.clone());
        if let (Some(need), Some(needs)) = (object.need, &mut self.needs) {
            needs.note_link(need).target.get_or_insert_with(|| target.clone());
        }
    }

    fn was_absent(&self, directory: ObjectId, component: &[u8]) -> bool {
        let Some(object) = self.objects.get(&directory) else { return false };
        if let (Some(entry), Some(tree)) = (object.entry, &self.tree)
            && tree.entry(entry).is_complete
            && tree.child(entry, component).is_none()
        {
            return true;
        }
        let is_known = |need| self.needs.as_ref().is_some_and(|needs| needs.is_first_touch_known(need, component));
        object.is_complete || self.removed.contains(&name_id(directory, component)) || object.need.is_some_and(is_known)
    }

    /// A new object with a name that no object had.
    pub fn make(&mut self, directory: ObjectId, component: &[u8], kind: Kind) -> ObjectId {
        let id = self.make_unnamed(kind);
        self.link(directory, component, id);
        id
    }

    /// A new file without a name: `O_TMPFILE`.
    pub fn make_unnamed(&mut self, kind: Kind) -> ObjectId {
        let id = self.fresh();
        let mut object = Object::new(Some(kind));
        object.size = Size { bytes: 0, is_exact: true, is_changed: true };
        object.is_complete = kind == Kind::Directory;
        self.objects.insert(id, object);
        id
    }

    fn fresh(&mut self) -> ObjectId {
        self.next += 1;
        ObjectId(self.next - 1)
    }

    /// Gives the object a further name. Another object that has it loses it.
    pub fn link(&mut self, directory: ObjectId, component: &[u8], id: ObjectId) {
        let name = name_id(directory, component);
        match self.slots.insert(name, Slot::Object(id)) {
            Some(Slot::Object(old)) if old != id => self.unname(old, name),
            Some(Slot::Object(_)) => {}
            _ => self.count_entries(directory, 1),
        }
        self.removed.remove(&name);
        let mut left = None;
        if let Some(object) = self.objects.get_mut(&id) {
            object.links += 1;
            if object.is_directory() {
                left = object.take_held_parent();
                object.places.clear();
            }
            object.places.push(Place { parent: directory, component: component.into(), name });
        }
        if let Some(parent) = left {
            self.release(parent);
        }
    }

    /// Takes the name away. Returns what had it.
    pub fn unlink(&mut self, directory: ObjectId, component: &[u8]) -> Option<ObjectId> {
        let name = name_id(directory, component);
        let in_tree = self.objects.get(&directory).is_some_and(|directory| directory.entry.is_some());
        let slot = if in_tree { self.slots.insert(name, Slot::Removed) } else { self.slots.remove(&name) };
        self.remember_removed(name);
        match slot? {
            Slot::Object(id) => {
                self.count_entries(directory, -1);
                self.unname(id, name);
                Some(id)
            }
            Slot::Removed => None,
        }
    }

    fn count_entries(&mut self, directory: ObjectId, change: i32) {
        if let Some(directory) = self.objects.get_mut(&directory) {
            directory.entries = directory.entries.saturating_add_signed(change);
        }
    }

    fn remember_removed(&mut self, name: NameId) {
        if self.removed.insert(name) {
            self.removed_queue.push_back(name);
        }
        if self.removed_queue.len() > REMOVED_NAMES
            && let Some(oldest) = self.removed_queue.pop_front()
        {
            self.removed.remove(&oldest);
        }
    }

    fn unname(&mut self, id: ObjectId, name: NameId) {
        let mut parent = None;
        if let Some(object) = self.objects.get_mut(&id) {
            object.links = object.links.saturating_sub(1);
            if !object.is_directory() {
                object.places.retain(|place| place.name != name);
            } else if object.links == 0 && object.holders > 0 && !object.holds_parent {
                parent = object.place().map(|place| place.parent);
                object.holds_parent = parent.is_some();
            }
        }
        if let Some(parent) = parent {
            self.hold(parent);
        }
        self.forget_unused(id);
    }

    /// A description or working directory refers to the object.
    pub fn hold(&mut self, id: ObjectId) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.holders += 1;
        }
    }

    /// A description or working directory no longer refers to the object.
    pub fn release(&mut self, id: ObjectId) {
        if let Some(object) = self.objects.get_mut(&id) {
            object.holders = object.holders.saturating_sub(1);
        }
        self.forget_unused(id);
    }

    fn forget_unused(&mut self, id: ObjectId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            if self.objects.get(&id).is_some_and(|object| object.links == 0 && object.holders == 0) {
                // A removed directory may be the last that held the one it was in.
                next = self.objects.remove(&id).and_then(|mut object| object.take_held_parent());
                if let Some(parent) = next.and_then(|parent| self.objects.get_mut(&parent)) {
                    parent.holders = parent.holders.saturating_sub(1);
                }
            }
        }
    }

    /// The absolute path of a directory, and the names on its way, first the one in the root. `None` if it was removed, or if
    /// the path is too long for a system call.
    pub fn path_of(&self, directory: ObjectId) -> Option<(Vec<u8>, Vec<NameId>)> {
        let (mut reversed, mut names, mut length) = (Vec::new(), Vec::new(), 0);
        let mut id = directory;
        while id != ROOT {
            let object = self.objects.get(&id)?;
            let place = object.place().filter(|_| object.links > 0)?;
            reversed.push(&place.component);
            names.push(place.name);
            length += place.component.len() + 1;
            if length >= PATH_MAX {
                return None;
            }
            id = place.parent;
        }
        let mut path = Vec::with_capacity(length);
        for component in reversed.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(component);
        }
        names.reverse();
        Some((path, names))
    }

    /// Whether `directory` is `ancestor` or below it. `None` if it is too deep to tell.
    pub fn is_below(&self, directory: ObjectId, ancestor: ObjectId) -> Option<bool> {
        let mut id = directory;
        for _ in 0..PATH_MAX {
            if id == ancestor {
                return Some(true);
            }
            match self.objects.get(&id).and_then(|object| object.place()) {
                Some(place) if id != ROOT => id = place.parent,
                _ => return Some(false),
            }
        }
        None
    }

    /// The directory that holds this one. The root holds itself.
    pub fn parent_of(&self, directory: ObjectId) -> ObjectId {
        self.objects.get(&directory).and_then(|object| object.place()).map_or(ROOT, |place| place.parent)
    }

    /// Numbers of objects and names, for tests of the memory's bound.
    #[cfg(test)]
    pub fn len(&self) -> (usize, usize) {
        (self.objects.len(), self.slots.len())
    }
}
