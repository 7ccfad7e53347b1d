//! Finds the result of each call of a trace, though results come in the order of completion.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use iosonar_trace::{Reader, Result};

use super::times::Times;
use crate::{CallOutcome, CallResult};

/// The results that were read ahead of their calls. Calls that were not issued take no part.
pub(super) struct Join<'a> {
    results: &'a mut dyn Reader<CallResult>,
    /// `None`: not issued.
    ahead: HashMap<(u32, u64), Option<Times>, FixedState>,
    at_end: bool,
}

impl<'a> Join<'a> {
    pub(super) fn new(results: &'a mut dyn Reader<CallResult>) -> Self {
        Self { results, ahead: HashMap::default(), at_end: false }
    }

    /// The times of a call; `None` if the result has no row for it, `Some(None)` if it was not issued. Calls come in turn. One
    /// that is not `awaited` is not read for: it was skipped.
    pub(super) fn take(&mut self, instance: u32, call: u64, awaited: bool) -> Result<Option<Option<Times>>> {
        loop {
            if let Some(times) = self.ahead.remove(&(instance, call)) {
                return Ok(Some(times));
            }
            if !awaited || self.at_end {
                return Ok(None);
            }
            match self.results.next()? {
                None => self.at_end = true,
                Some(row) => {
                    let times = row.issued.zip(row.completed);
                    let times = times.map(|(issued, completed)| Times { issued, completed });
                    // Rows of skipped calls that were not awaited stay behind: keep none of them.
                    if times.is_some() || row.outcome.is_issued() || row.outcome == CallOutcome::NotReached {
                        self.ahead.insert((row.instance, row.call), times);
                    }
                }
            }
        }
    }
}
