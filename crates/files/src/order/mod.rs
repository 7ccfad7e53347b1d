//! Which calls must precede a call, by four policies.
//!
//! ```text
//!  conservative   all calls that had ended before it began in the trace          frontier.rs, conservative.rs
//!  fs             the last call that modified an object that it touches          fs.rs
//!  fs-dispatched  the same, but it suffices that this call is issued             fs.rs
//!  thread         the call before it in its thread                               sequence.rs, resource.rs
//!  resource       that, and the calls that its resources depend on               resource.rs, uses.rs
//! ```
//!
//! In every policy a call that uses an open file description follows the call that made it, and the call that ends the
//! description follows its uses. `docs/files-orders.md` defines the rules.

mod conservative;
mod degrees;
mod edges;
mod frontier;
mod fs;
mod graph;
mod outdegrees;
#[cfg(test)]
pub(crate) mod random;
mod reduce;
mod resource;
mod sequence;
mod tables;
#[cfg(test)]
mod tests;
mod uses;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Call, Resolved};
use conservative::Conservative;
use edges::Edges;
use fs::Fs;
use resource::Resources;

pub use degrees::{Degrees, Summary};
pub use graph::{GraphFormat, GraphWriter};
pub use outdegrees::Outdegrees;
pub use reduce::Reducer;

/// Which calls must precede a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// All calls that had ended before it began in the trace.
    #[default]
    Conservative,
    /// The last call that modified the same object, or the directory that holds the name.
    Fs,
    /// The same calls as `Fs`, but it suffices that they are issued. Calls on descriptors must have completed.
    #[serde(rename = "fs-dispatched")]
    FsDispatched,
    /// The call before it in its thread.
    Thread,
    /// The call before it in its thread, and calls that made, used or changed the same resources.
    Resource,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Conservative, Self::Fs, Self::FsDispatched, Self::Thread, Self::Resource];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Conservative => "conservative",
            Self::Fs => "fs",
            Self::FsDispatched => "fs-dispatched",
            Self::Thread => "thread",
            Self::Resource => "resource",
        }
    }

    /// Whether the calls of a thread follow each other.
    pub fn keeps_threads(self) -> bool {
        !matches!(self, Self::Fs | Self::FsDispatched)
    }

    /// Whether calls that are not replayed (`Resolved::skip`) take part in the order. In `fs` and `resource` such a call
    /// only makes and ends descriptions.
    pub fn orders_skipped_calls(self) -> bool {
        matches!(self, Self::Conservative | Self::Thread)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| format!("unknown order {name}; use conservative, fs, fs-dispatched, thread or resource"))
    }
}

/// Finds the predecessors of each call of a trace, one call after another.
pub struct Order {
    policy: Policy,
    rules: Rules,
    edges: Edges,
    numbers: Vec<u64>,
    /// Calls below are never listed again.
    floor: u64,
}

enum Rules {
    Conservative(Conservative),
    Fs(Fs),
    /// Also `thread`, which is `resource` with descriptions as the only resources.
    Resource(Resources),
}

impl Order {
    /// At the start of a trace.
    pub fn new(policy: Policy) -> Self {
        let rules = match policy {
            Policy::Conservative => Rules::Conservative(Conservative::default()),
            Policy::Fs | Policy::FsDispatched => Rules::Fs(Fs::default()),
            Policy::Thread => Rules::Resource(Resources::descriptions_only()),
            Policy::Resource => Rules::Resource(Resources::default()),
        };
        Self { policy, rules, edges: Edges::default(), numbers: Vec::new(), floor: 0 }
    }

    /// The policy that it was made for.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The numbers of the calls that must complete before this one is issued, ascending; each is below `number`. Every call
    /// of the trace in turn, in the order of begin; calls are numbered from 0.
    pub fn predecessors(&mut self, number: u64, call: &Call, resolved: &Resolved) -> &[u64] {
        self.edges.clear();
        match &mut self.rules {
            Rules::Conservative(rules) => rules.follow(number, call, resolved, &mut self.edges),
            Rules::Fs(rules) => rules.follow(number, resolved, self.floor, &mut self.edges),
            Rules::Resource(rules) => rules.follow(number, call, resolved, self.floor, &mut self.edges),
        }
        self.edges.numbers(self.floor, &mut self.numbers);
        &self.numbers
    }

    /// The predecessors of the latest call, and whether it may be issued as soon as each is issued: it need not complete.
    pub fn latest(&self) -> impl Iterator<Item = (u64, bool)> {
        let awaited = match (&self.rules, self.policy) {
            (Rules::Fs(rules), Policy::FsDispatched) => Some(rules.awaited()),
            _ => None,
        };
        let suffices = move |number| awaited.is_some_and(|awaited| awaited.binary_search(&number).is_err());
        self.numbers.iter().map(move |&number| (number, suffices(number)))
    }

    /// States that all calls below `number` are complete. They are no longer listed, and resources that no later call touched
    /// are forgotten. Without it, `fs` and `resource` keep an entry for each object or resource of the trace, and
    /// `fs` also one for each use of an open description; `conservative` and `thread` stay bounded by what is in flight or
    /// open.
    pub fn forget_before(&mut self, number: u64) {
        self.floor = self.floor.max(number);
    }

    /// Entries in the tables of objects or resources.
    #[cfg(test)]
    fn entries(&self) -> usize {
        match &self.rules {
            Rules::Conservative(_) => 0,
            Rules::Fs(rules) => rules.entries(),
            Rules::Resource(rules) => rules.entries(),
        }
    }
}
