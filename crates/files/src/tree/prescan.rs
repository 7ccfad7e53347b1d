//! What a trace needs, found without I/O on the files.

use std::collections::BTreeMap;

use iosonar_trace::{Reader, Result};

use crate::state::{Counts, Options, State};
use crate::{Call, CallOutcome};

/// What a trace needs and does.
#[derive(Debug)]
pub struct Prescan {
    /// The state after the last call, with its needs.
    pub state: State,
    /// Calls.
    pub calls: u64,
    /// Calls that are not replayed, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// What could not be followed.
    pub counts: Counts,
}

/// Reads the whole trace. `each` is called for each call with the progress from 0 to 1.
///
/// # Errors
/// If the trace cannot be read.
pub fn prescan(reader: &mut dyn Reader<Call>, options: Options, mut each: impl FnMut(Option<f64>)) -> Result<Prescan> {
    let mut first = reader.next()?;
    let mut state = State::new(reader.metadata(), Options { with_needs: true, ..options });
    let (mut calls, mut skipped) = (0, BTreeMap::new());
    while let Some(call) = first {
        let resolved = state.next(&call);
        state.take_inferred();
        calls += 1;
        if let Some(skip) = resolved.skip {
            *skipped.entry(CallOutcome::from(skip).name()).or_default() += 1;
        }
        each(reader.progress());
        first = reader.next()?;
    }
    let counts = state.counts();
    Ok(Prescan { state, calls, skipped, counts })
}
