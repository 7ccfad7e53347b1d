//! What the checker found.

use iosonar_trace::Nanos;
use serde::{Deserialize, Serialize};

use crate::order::Policy;

/// Violations that a report names.
pub const NAMED: usize = 20;

/// Why a call must follow another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The other had ended before it began in the trace.
    Ended,
    /// The other is before it in the same thread.
    Thread,
    /// One opens or closes the description that the other uses.
    Description,
    /// The position of a description.
    Position,
    /// The flags of a description, as `F_SETFL` changes them.
    Flags,
    /// A name in a directory.
    Name,
    /// The entries of a directory.
    Entries,
    /// The size of a file.
    Size,
    /// The attributes of an object.
    Attributes,
    /// The object, in the sense of the order `fs`.
    Object,
}

/// A call that was issued before a predecessor had completed, or was issued if the order asks for no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Which of the concurrent instances made it.
    pub instance: u32,
    /// The number in the trace of the call that was too early.
    pub call: u64,
    /// The name of its system call.
    pub kind: String,
    /// Its file, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The number of the call that it had to follow.
    pub predecessor: u64,
    /// Why.
    pub rule: Rule,
    /// By how much it was issued too early.
    pub early_ns: Nanos,
}

/// Whether a run kept its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The order that was checked.
    pub policy: Policy,
    /// Calls that were issued and checked, of all instances.
    pub calls: u64,
    /// Calls that should have been issued, but have no row in the result.
    pub missing: u64,
    /// Pairs of a call and one that it had to follow, checked.
    pub pairs: u64,
    /// Of these, pairs that are in the wrong order. Where several predecessors of one kind completed too late, only the last
    /// of them counts.
    pub violations: u64,
    /// The first violations, at most [`NAMED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_violations: Vec<Violation>,
    /// Calls of the trace that take part in the order.
    pub ordered: u64,
    /// Of these, calls that need not follow the call before them in the trace.
    pub reorderable: u64,
    /// Their share of all calls that take part but the first.
    pub reorderable_share: f64,
    /// How long the check took.
    pub seconds: f64,
}

impl Report {
    /// Whether every dependent call was issued after its predecessors.
    pub fn is_proven(&self) -> bool {
        self.violations == 0 && self.missing == 0
    }
}
