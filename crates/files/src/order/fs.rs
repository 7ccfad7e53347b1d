//! The policies `fs` and `fs-dispatched`.

use super::edges::{Edges, Lane};
use super::tables::Map;
use crate::{Access, DescriptionId, ObjectId, Resolved, Resource};

/// No call.
const NONE: u64 = u64::MAX;

/// A call follows the last one that modified an object that it touches: the file, or the directory of the name.
#[derive(Default)]
pub(super) struct Fs {
    /// The last call that modified each object.
    modified: Map<ObjectId, u64>,
    descriptions: Map<DescriptionId, Stage>,
    /// Predecessors of the latest call because of descriptions, ascending.
    awaited: Vec<u64>,
    sweep_at: usize,
}

/// An open description. Its uses have no order among themselves, so its end follows each of them.
struct Stage {
    maker: u64,
    uses: Vec<u64>,
}

impl Fs {
    pub(super) fn follow(&mut self, number: u64, resolved: &Resolved, floor: u64, edges: &mut Edges) {
        self.awaited.clear();
        if resolved.skip.is_none() {
            for touch in &resolved.touches {
                let Resource::Object(object) = touch.resource else { continue };
                let before = match touch.access {
                    Access::Use => self.modified.get(&object).copied(),
                    Access::Modify => self.modified.insert(object, number),
                };
                if let Some(before) = before.filter(|&before| before != number) {
                    edges.push(before, Lane::NONE);
                }
            }
            for description in [resolved.description, resolved.description2].into_iter().flatten() {
                if resolved.ends.contains(&description) {
                    continue;
                }
                let stage = self.descriptions.entry(description).or_insert(Stage { maker: NONE, uses: Vec::new() });
                if stage.maker != NONE {
                    self.awaited.push(stage.maker);
                }
                if stage.uses.len() == stage.uses.capacity() {
                    stage.uses.retain(|&user| user >= floor);
                }
                stage.uses.push(number);
            }
        }
        for description in &resolved.ends {
            let Some(stage) = self.descriptions.remove(description) else { continue };
            let users = stage.uses.into_iter().filter(|&user| user != number);
            let known = self.awaited.len();
            self.awaited.extend(users);
            if self.awaited.len() == known && stage.maker != NONE {
                self.awaited.push(stage.maker);
            }
        }
        self.awaited.sort_unstable();
        self.awaited.iter().for_each(|&number| edges.push(number, Lane::NONE));
        if let Some(made) = resolved.makes
            && super::tables::makes_descriptions(resolved)
        {
            self.descriptions.insert(made, Stage { maker: number, uses: Vec::new() });
        }
        self.forget(floor);
    }

    /// Predecessors of the latest call that made or used descriptions, ascending.
    pub(super) fn awaited(&self) -> &[u64] {
        &self.awaited
    }

    /// Looks through all objects only when their number has doubled.
    fn forget(&mut self, floor: u64) {
        if floor > 0 && self.modified.len() > self.sweep_at {
            self.modified.retain(|_, &mut number| number >= floor);
            self.sweep_at = (2 * self.modified.len()).max(super::tables::FEWEST_TO_SWEEP);
        }
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.modified.len()
    }
}
