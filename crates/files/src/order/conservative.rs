//! The policy `conservative`.

use iosonar_trace::Nanos;

use super::edges::{Edges, Lane};
use super::frontier::{Frontier, Interval};
use super::tables::Map;
use crate::{Call, DescriptionId, Resolved};

/// A call follows all that had ended before it began.
#[derive(Default)]
pub(super) struct Conservative {
    frontier: Frontier,
    /// The last call of each thread, without those of io_uring.
    threads: Map<u32, Interval>,
    descriptions: Map<DescriptionId, Stage>,
    /// Uses in flight of the descriptions that a call ends.
    unended: Vec<Interval>,
}

/// An open description. Its ended uses precede whatever comes: only those in flight matter.
#[derive(Default)]
struct Stage {
    maker: Option<Interval>,
    uses: Vec<Interval>,
}

impl Conservative {
    pub(super) fn follow(&mut self, number: u64, call: &Call, resolved: &Resolved, edges: &mut Edges) {
        let now = call.begin;
        let this = Interval { number, begin: now, end: call.end().unwrap_or(Nanos::MAX), lane: Lane::NONE };
        self.frontier.advance(now);
        if !call.is_uring
            && let Some(before) = self.threads.insert(call.thread, this)
        {
            self.frontier.end_early(before, &this);
        }
        for description in [resolved.description, resolved.description2].into_iter().flatten() {
            let stage = self.descriptions.entry(description).or_default();
            // The program knew the descriptor, so the call that made it had returned.
            if let Some(maker) = stage.maker.take() {
                self.frontier.end_early(maker, &this);
            }
            if stage.uses.len() == stage.uses.capacity() {
                stage.uses.retain(|call| call.end > now);
            }
            stage.uses.push(this);
        }
        self.collect_ended(resolved, this);
        // The last one to begin follows those that had ended by then.
        let last = self.unended.iter().copied().max_by_key(|user| user.number);
        for member in self.frontier.maximal() {
            if !last.is_some_and(|last| member.precedes(&last)) {
                edges.push(member.call.number, Lane::NONE);
            }
        }
        for user in &self.unended {
            edges.push(user.number, Lane::NONE);
        }
        if let Some(made) = resolved.makes {
            self.descriptions.insert(made, Stage { maker: Some(this), uses: Vec::new() });
        }
        self.frontier.begin(this);
    }

    /// Uses may still be in flight when a close begins: the kernel keeps the file until they return.
    fn collect_ended(&mut self, resolved: &Resolved, this: Interval) {
        self.unended.clear();
        for description in &resolved.ends {
            let Some(stage) = self.descriptions.remove(description) else { continue };
            let touched = stage.maker.into_iter().chain(stage.uses);
            self.unended.extend(touched.filter(|user| user.end > this.begin && user.number != this.number));
        }
    }
}
