//! The order that a replay kept, from its rows and the trace.

use iosonar_trace::Reader;

use super::prepared::Prepared;
use crate::order::Outdegrees;
use crate::replay::error::Result;
use crate::{CallResult, OpenOptions, verify};

/// What the rows of a replay prove.
pub struct Proof {
    /// Whether each call was issued after its predecessors.
    pub report: verify::Report,
    /// The graph that was replayed.
    pub outdegrees: Outdegrees,
}

impl Prepared {
    /// Proves the order from the result, and counts how many calls waited for each call.
    pub(super) fn prove(&self, results: &mut dyn Reader<CallResult>) -> Result<Proof> {
        let mut calls = crate::open(&self.options.trace, &OpenOptions { cwd: self.options.cwd.clone() })?;
        let mut trace = self.trace(0)?;
        let window = self.window();
        let options = verify::Options {
            policy: self.options.order,
            window: (self.options.start, self.options.end),
            instances: self.options.instances,
        };
        let mut outdegrees = Outdegrees::new(self.options.order);
        let mut number = 0;
        let report = verify::check(&mut *calls, results, &options, |call| {
            let resolved = trace.resolve(call);
            if window.contains(call.begin) {
                outdegrees.add(number, call, &resolved);
            }
            number += 1;
            resolved
        })?;
        Ok(Proof { report, outdegrees })
    }
}
