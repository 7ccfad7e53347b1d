//! A call while it is resolved.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::processes::Thread;
use crate::{Access, Call, Resolved, Resource, Skip, Touch, Unreplayable};

/// More touches are found by hash: the end of a process may close a million descriptors.
const SEARCHED: usize = 32;

/// A call, its thread, and what was found out about it so far.
pub(super) struct Step<'a> {
    pub call: &'a Call,
    pub thread: Thread,
    pub resolved: Resolved,
    /// The place of each resource in `touches`, if there are many.
    touched: HashMap<Resource, usize, FixedState>,
}

impl<'a> Step<'a> {
    pub fn new(call: &'a Call, thread: Thread, resolved: Resolved) -> Self {
        Self { call, thread, resolved, touched: HashMap::default() }
    }

    /// The result of the call depends on the resource.
    pub fn uses(&mut self, resource: Resource) {
        self.touch(resource, Access::Use);
    }

    /// The call changes the resource.
    pub fn modifies(&mut self, resource: Resource) {
        self.touch(resource, Access::Modify);
    }

    fn touch(&mut self, resource: Resource, access: Access) {
        let touches = &mut self.resolved.touches;
        let place = if touches.len() <= SEARCHED {
            touches.iter().position(|touch| touch.resource == resource)
        } else {
            self.touched.get(&resource).copied()
        };
        match place {
            Some(place) if access == Access::Modify => touches[place].access = access,
            Some(_) => {}
            None => {
                touches.push(Touch { resource, access });
                if touches.len() > SEARCHED {
                    let from = if self.touched.is_empty() { 0 } else { touches.len() - 1 };
                    self.touched.extend((from..touches.len()).map(|place| (touches[place].resource, place)));
                }
            }
        }
    }

    /// The call is not replayed; the first reason counts.
    pub fn skip(&mut self, reason: Skip) {
        self.resolved.skip.get_or_insert(reason);
    }

    /// The call changes files, and no replay of it exists. What is left out for another reason is not lost.
    pub fn mark_unreplayable(&mut self, change: Unreplayable) {
        if self.resolved.skip.is_none_or(|skip| skip == Skip::NotReplayable) {
            (self.resolved.skip, self.resolved.unreplayable) = (Some(Skip::ChangesFiles), Some(change));
        }
    }

    /// The number that the call returned, if it succeeded.
    pub fn result(&self) -> Option<u64> {
        self.call.result.filter(|_| self.call.succeeded()).map(|result| result as u64)
    }

    pub fn has_flag(&self, flag: i32) -> bool {
        self.call.flags & flag as u32 as u64 != 0
    }
}
