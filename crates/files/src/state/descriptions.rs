//! Open file descriptions: what descriptors refer to.

use crate::ids::IdMap;
use crate::{DescriptionId, Name, ObjectId, Skip};

/// An open file description.
#[derive(Clone, Debug)]
pub(super) struct Description {
    /// The file. `None` if it is not one.
    pub object: Option<ObjectId>,
    /// The name under which it was opened, in the trace's tree.
    pub path: Option<Name>,
    /// The same below the root.
    pub mapped: Option<Name>,
    /// The flags of opening, as `fcntl` changed them.
    pub flags: u64,
    /// Where the next read or write begins; `None` if it is unknown: after appending to a file of unknown size.
    pub position: Option<u64>,
    /// Descriptors that refer to it, and calls in flight that will make one.
    pub references: u32,
    /// Why calls on it are not replayed.
    pub skip: Option<Skip>,
    /// The trace does not show how it was opened, and it has not been used yet.
    pub is_unannounced: bool,
}

impl Description {
    pub fn new(object: Option<ObjectId>, skip: Option<Skip>) -> Self {
        Self {
            object,
            path: None,
            mapped: None,
            flags: 0,
            position: Some(0),
            references: 1,
            skip,
            is_unannounced: false,
        }
    }

    pub fn has_flag(&self, flag: i32) -> bool {
        self.flags & flag as u64 != 0
    }
}

/// All that are open.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    all: IdMap<DescriptionId, Description>,
    next: u64,
}

impl Descriptions {
    pub fn insert(&mut self, description: Description) -> DescriptionId {
        let id = DescriptionId(self.next);
        self.next += 1;
        self.all.insert(id, description);
        id
    }

    pub fn find(&self, id: DescriptionId) -> Option<&Description> {
        self.all.get(&id)
    }

    pub fn get(&self, id: DescriptionId) -> &Description {
        &self.all[&id]
    }

    pub fn get_mut(&mut self, id: DescriptionId) -> &mut Description {
        self.all.get_mut(&id).expect("descriptors refer to open descriptions")
    }

    pub fn add_reference(&mut self, id: DescriptionId) {
        self.get_mut(id).references += 1;
    }

    /// Takes a reference away. Returns the description if it was the last one.
    pub fn drop_reference(&mut self, id: DescriptionId) -> Option<Description> {
        let description = self.get_mut(id);
        description.references -= 1;
        if description.references == 0 { self.all.remove(&id) } else { None }
    }

    pub fn iter(&self) -> impl Iterator<Item = (DescriptionId, &Description)> {
        self.all.iter().map(|(id, description)| (*id, description))
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }
}
