//! A call while it is resolved.

use super::processes::Thread;
use crate::{Access, Call, Resolved, Resource, Skip, Touch};

/// A call, its thread, and what was found out about it so far.
pub(super) struct Step<'a> {
    pub call: &'a Call,
    pub thread: Thread,
    pub resolved: Resolved,
}

impl Step<'_> {
    /// The result of the call depends on the resource.
    pub fn uses(&mut self, resource: Resource) {
        self.touch(resource, Access::Use);
    }

    /// The call changes the resource.
    pub fn modifies(&mut self, resource: Resource) {
        self.touch(resource, Access::Modify);
    }

    fn touch(&mut self, resource: Resource, access: Access) {
        match self.resolved.touches.iter_mut().find(|touch| touch.resource == resource) {
            Some(touch) if access == Access::Modify => touch.access = access,
            Some(_) => {}
            None => self.resolved.touches.push(Touch { resource, access }),
        }
    }

    /// The call is not replayed; the first reason counts.
    pub fn skip(&mut self, reason: Skip) {
        self.resolved.skip.get_or_insert(reason);
    }

    /// The number that the call returned, if it succeeded.
    pub fn result(&self) -> Option<u64> {
        self.call.result.filter(|_| self.call.succeeded()).map(|result| result as u64)
    }

    pub fn has_flag(&self, flag: i32) -> bool {
        self.call.flags & flag as u32 as u64 != 0
    }
}
