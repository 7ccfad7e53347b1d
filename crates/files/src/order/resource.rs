//! The policies `resource` and `thread`.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::edges::{Edges, Lane};
use super::sequence::Threads;
use super::tables::{FEWEST_TO_SWEEP, Map};
use super::uses::{Stamps, User, Users};
use crate::{Access, Call, Resolved, Resource};

/// A call follows the one before it in its thread. A modification of a resource follows the modification before it and all
/// uses since; a use follows the last modification.
#[derive(Default)]
pub(super) struct Resources {
    threads: Threads,
    touched: Map<u64, Touched>,
    stamps: Stamps,
    only_descriptions: bool,
    sweep_at: usize,
}

/// The calls that touched a resource.
#[derive(Default)]
struct Touched {
    modifier: Option<User>,
    /// Since then.
    users: Users,
}

/// A resource as a key: kind and number in one word.
fn key(resource: Resource) -> u64 {
    let (kind, id) = match resource {
        Resource::Description(id) => (0, id.0),
        Resource::Position(id) => (1, id.0),
        Resource::Name(id) => (2, id.0),
        Resource::Entries(id) => (3, id.0),
        Resource::Size(id) => (4, id.0),
        Resource::Attributes(id) => (5, id.0),
        Resource::Object(id) => (6, id.0),
        Resource::Flags(id) => (7, id.0),
    };
    id << 3 | kind
}

impl Resources {
    /// The policy `thread`.
    pub(super) fn descriptions_only() -> Self {
        Self { only_descriptions: true, ..Self::default() }
    }

    pub(super) fn follow(&mut self, number: u64, call: &Call, resolved: &Resolved, floor: u64, edges: &mut Edges) {
        let mut this = User { number, lane: Lane::NONE };
        if resolved.skip.is_none() || self.only_descriptions {
            this.lane = self.threads.follow(number, call, edges);
            for description in [resolved.description, resolved.description2].into_iter().flatten() {
                if !resolved.ends.contains(&description) {
                    self.touch(Resource::Description(description), Access::Use, this, edges);
                }
            }
            if !self.only_descriptions {
                // The end of a process may end a million.
                let ended: HashSet<_, FixedState> = resolved.ends.iter().copied().collect();
                for touch in &resolved.touches {
                    let elsewhere = match touch.resource {
                        Resource::Object(_) => true,
                        Resource::Description(description) => ended.contains(&description),
                        _ => false,
                    };
                    if !elsewhere {
                        self.touch(touch.resource, touch.access, this, edges);
                    }
                }
            }
        }
        for &ended in &resolved.ends {
            if self.touched.contains_key(&key(Resource::Description(ended))) {
                self.touch(Resource::Description(ended), Access::Modify, this, edges);
            }
            self.touched.remove(&key(Resource::Description(ended)));
            self.touched.remove(&key(Resource::Position(ended)));
            self.touched.remove(&key(Resource::Flags(ended)));
        }
        if let Some(made) = resolved.makes
            && (self.only_descriptions || super::tables::makes_descriptions(resolved))
        {
            self.touch(Resource::Description(made), Access::Modify, this, edges);
        }
        if floor > 0 && self.touched.len() > self.sweep_at {
            self.forget(floor);
        }
    }

    fn touch(&mut self, resource: Resource, access: Access, this: User, edges: &mut Edges) {
        let touched = self.touched.entry(key(resource)).or_default();
        let mut after = |user: User| {
            if user.number != this.number && (user.lane != this.lane || user.lane == Lane::NONE) {
                edges.push(user.number, user.lane);
            }
        };
        match access {
            Access::Use => {
                // An earlier use in the same thread followed the modification.
                if !touched.users.push(this, &mut self.stamps) {
                    touched.modifier.into_iter().for_each(after);
                }
            }
            Access::Modify => {
                // Each use follows the modification before it.
                if touched.users.is_empty() {
                    touched.modifier.into_iter().for_each(&mut after);
                }
                touched.users.iter().for_each(&mut after);
                touched.users.clear();
                touched.modifier = Some(this);
            }
        }
    }

    /// Looks through all resources only when their number has doubled.
    fn forget(&mut self, floor: u64) {
        self.touched.retain(|_, touched| {
            touched.modifier.iter().copied().chain(touched.users.iter()).any(|user| user.number >= floor)
        });
        self.sweep_at = (2 * self.touched.len()).max(FEWEST_TO_SWEEP);
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.touched.len()
    }
}
