//! The rules of each policy, checked against the times of the replay.
//!
//! Written apart from `order`, and in another way: no lists of predecessors, but the latest completions that a call depends on.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use iosonar_trace::Nanos;

use super::report::{NAMED, Rule, Violation};
use super::sweep::Sweep;
use super::times::{Completion, Times};
use crate::order::Policy;
use crate::{Access, Call, Resolved, Resource};

type Map<K, V> = HashMap<K, V, FixedState>;

/// Checks the calls of one instance in the order of the trace.
pub(super) struct Checker {
    policy: Policy,
    instance: u32,
    all: Sweep,
    threads: Map<u32, Thread>,
    resources: Map<Resource, LastUses>,
    previous: Option<Previous>,
    pub(super) found: Counts,
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Counts {
    pub calls: u64,
    pub pairs: u64,
    pub violations: u64,
    pub first: Vec<Violation>,
    pub ordered: u64,
    pub reorderable: u64,
}

/// The call before that takes part in the order.
#[derive(Clone, Copy)]
struct Previous {
    number: u64,
    thread: u32,
    end: Option<Nanos>,
    is_uring: bool,
}

#[derive(Default)]
struct Thread {
    /// The last call, with its end in the trace; none of io_uring.
    last: Option<(Completion, Option<Nanos>)>,
    /// Of the calls before `last`: the latest completion, and the end of the last in the trace.
    earlier: Option<(Completion, Option<Nanos>)>,
    /// Of all its calls, once it has calls of io_uring, which overlap with others.
    overlapping: Option<Box<Sweep>>,
}

/// The last completions on a resource.
#[derive(Clone, Copy, Default)]
struct LastUses {
    modified: Option<Completion>,
    /// Of the uses since the modification, without the last one: the latest completion, and how many were issued.
    used: Option<Completion>,
    uses: u64,
    /// The last use, apart: it may be of the very call that goes on to modify.
    last_use: Option<(u64, Option<Completion>)>,
    /// The last calls in the order of the trace, issued or not.
    last_modifier: Option<u64>,
    earlier_user: Option<u64>,
}

impl LastUses {
    /// Adds the last use to the others, unless the call `number` made it.
    fn settle(&mut self, number: u64) {
        let Some((user, done)) = self.last_use.filter(|&(user, _)| user != number) else { return };
        self.last_use = None;
        self.earlier_user = Some(user);
        if let Some(done) = done {
            self.uses += 1;
            self.used = Some(self.used.filter(|used| used.at >= done.at).unwrap_or(done));
        }
    }
}

/// A call under examination.
#[derive(Clone, Copy)]
struct CheckedCall<'a> {
    number: u64,
    call: &'a Call,
    resolved: &'a Resolved,
    times: Option<Times>,
}

impl Checker {
    pub(super) fn new(policy: Policy, instance: u32) -> Self {
        Self {
            policy,
            instance,
            all: Sweep::default(),
            threads: Map::default(),
            resources: Map::default(),
            previous: None,
            found: Counts::default(),
        }
    }

    /// Checks the next call of the trace; `times` is `None` if it was not issued.
    pub(super) fn check(&mut self, number: u64, call: &Call, resolved: &Resolved, times: Option<Times>) {
        let takes_part = resolved.skip.is_none() || matches!(self.policy, Policy::Conservative | Policy::Thread);
        let this = CheckedCall { number, call, resolved, times };
        let mut follows_previous = false;
        if takes_part {
            follows_previous |= self.sequence(this);
            for &touch in &resolved.touches {
                let ordered = match self.policy {
                    Policy::Conservative | Policy::Thread => false,
                    Policy::Fs | Policy::FsDispatched => matches!(touch.resource, Resource::Object(_)),
                    Policy::Resource => !matches!(touch.resource, Resource::Object(_) | Resource::Description(_)),
                };
                if ordered {
                    follows_previous |= self.touch(this, touch.resource, touch.access);
                }
            }
            for description in [resolved.description, resolved.description2].into_iter().flatten() {
                if !resolved.ends.contains(&description) {
                    follows_previous |= self.touch(this, Resource::Description(description), Access::Use);
                }
            }
        }
        follows_previous |= self.descriptions(this);
        if takes_part {
            self.found.calls += u64::from(times.is_some());
            self.found.ordered += 1;
            self.found.reorderable += u64::from(self.previous.is_some() && !follows_previous);
            self.previous = Some(Previous { number, thread: call.thread, end: call.end(), is_uring: call.is_uring });
        }
    }

    /// Descriptions that the call ends and makes.
    fn descriptions(&mut self, this: CheckedCall<'_>) -> bool {
        let mut follows_previous = false;
        for &ended in &this.resolved.ends {
            let resource = Resource::Description(ended);
            if self.resources.contains_key(&resource) {
                follows_previous |= self.touch(this, resource, Access::Modify);
                self.resources.remove(&resource);
            }
        }
        if let Some(made) = this.resolved.makes {
            self.touch(this, Resource::Description(made), Access::Modify);
        }
        follows_previous
    }

    /// Checks what time and thread demand. Returns whether they place the call after the previous one.
    fn sequence(&mut self, this: CheckedCall<'_>) -> bool {
        let call = this.call;
        let previous = self.previous;
        let after_previous = previous.is_some_and(|previous| previous.end.is_some_and(|end| end <= call.begin));
        let same_thread = previous.is_some_and(|previous| {
            previous.thread == call.thread && (after_previous || !(previous.is_uring || call.is_uring))
        });
        match self.policy {
            Policy::Fs | Policy::FsDispatched => return false,
            Policy::Conservative => {
                let (latest, ended) = self.all.until(call.begin);
                self.demand(this, latest, Rule::Ended, ended);
                if let Some(times) = this.times {
                    self.all.add(call.end(), Completion { number: this.number, at: times.completed });
                }
            }
            Policy::Thread | Policy::Resource => {}
        }
        let is_conservative = self.policy == Policy::Conservative;
        let thread = self.threads.entry(call.thread).or_default();
        let done = this.times.map(|times| Completion { number: this.number, at: times.completed });
        let mut demands = [(None, 0), (None, 0)];
        if !call.is_uring {
            demands[0] = (thread.last.map(|(last, _)| last), u64::from(!is_conservative));
        }
        if !is_conservative && (call.is_uring || thread.overlapping.is_some()) {
            let known = [thread.earlier, thread.last];
            let sweep = thread.overlapping.get_or_insert_with(|| {
                let mut sweep = Sweep::default();
                for (before, end) in known.into_iter().flatten() {
                    sweep.add(end, before);
                }
                Box::new(sweep)
            });
            demands[1] = sweep.until(call.begin);
            if let Some(done) = done {
                sweep.add(call.end(), done);
            }
        }
        if let Some(done) = done.filter(|_| !call.is_uring)
            && let Some((last, end)) = thread.last.replace((done, call.end()))
        {
            let latest = thread.earlier.map(|(done, _)| done).filter(|earlier| earlier.at > last.at);
            // The thread went on, so it had ended.
            let end = end.map_or(call.begin, |end| end.min(call.begin));
            thread.earlier = Some((latest.unwrap_or(last), Some(end)));
        }
        for (before, pairs) in demands {
            self.demand(this, before, Rule::Thread, pairs);
        }
        same_thread || (is_conservative && after_previous)
    }

    /// Checks the calls that touched a resource before. Returns whether this places the call after the previous one.
    fn touch(&mut self, this: CheckedCall<'_>, resource: Resource, access: Access) -> bool {
        let touched = self.resources.entry(resource).or_default();
        touched.settle(this.number);
        let before = *touched;
        let rule = rule(resource);
        let suffices_issue = rule == Rule::Object && self.policy == Policy::FsDispatched;
        let at = |times: Times| if suffices_issue { times.issued } else { times.completed };
        let done = this.times.map(|times| Completion { number: this.number, at: at(times) });
        match access {
            Access::Use => touched.last_use = Some((this.number, done)),
            Access::Modify => {
                *touched = LastUses {
                    modified: done.or(before.modified),
                    last_modifier: Some(this.number),
                    ..LastUses::default()
                };
            }
        }
        // The order `fs` knows no uses that precede a modification.
        let follows_uses = access == Access::Modify && rule != Rule::Object;
        // Conservative has counted all pairs of calls of which one had ended.
        let counts = self.policy != Policy::Conservative;
        self.demand(this, before.modified, rule, u64::from(counts && before.modified.is_some()));
        if follows_uses {
            self.demand(this, before.used, rule, if counts { before.uses } else { 0 });
        }
        self.previous.is_some_and(|previous| {
            before.last_modifier == Some(previous.number)
                || (follows_uses && before.earlier_user == Some(previous.number))
        })
    }

    /// The call had to follow `before` and others that completed no later, together `pairs`.
    fn demand(&mut self, this: CheckedCall<'_>, before: Option<Completion>, rule: Rule, pairs: u64) {
        let (Some(times), Some(before)) = (this.times, before) else { return };
        if before.number == this.number {
            return;
        }
        self.found.pairs += pairs;
        if before.at <= times.issued {
            return;
        }
        self.found.violations += 1;
        if self.found.first.len() < NAMED {
            self.found.first.push(Violation {
                instance: self.instance,
                call: this.number,
                kind: this.call.kind.name().to_owned(),
                path: this.resolved.path.as_ref().map(ToString::to_string),
                predecessor: before.number,
                rule,
                early_ns: before.at - times.issued,
            });
        }
    }
}

fn rule(resource: Resource) -> Rule {
    match resource {
        Resource::Description(_) => Rule::Description,
        Resource::Position(_) => Rule::Position,
        Resource::Flags(_) => Rule::Flags,
        Resource::Name(_) => Rule::Name,
        Resource::Entries(_) => Rule::Entries,
        Resource::Size(_) => Rule::Size,
        Resource::Attributes(_) => Rule::Attributes,
        Resource::Object(_) => Rule::Object,
    }
}
