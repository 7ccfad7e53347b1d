//! Requests in reverse order.

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::params::Definition;

use super::counted::{Counted, Source};
use super::spool::Spool;
use super::{Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "reverse",
        about: "Reverses the order of the requests; the times stay",
        details: "",
        params: &[],
        example: "reverse",
    },
    needs: Needs::Whole,
    length: kept,
    build: |_| {
        Ok(Box::new(|rows| {
            let (requests, metadata) = Spool::of(rows, |_, request| request)?;
            Ok(Counted::on_same_devices(Reverse { next: 0, times: requests.try_clone()?, requests, metadata }))
        }))
    },
};

/// Takes times from the beginning and requests from the end.
struct Reverse {
    next: u64,
    times: Spool,
    requests: Spool,
    metadata: Metadata,
}

impl Source for Reverse {
    fn next(&mut self) -> Result<Option<Request>> {
        let count = self.requests.len();
        if self.next == count {
            return Ok(None);
        }
        let at = self.times.get(self.next)?.at;
        let request = self.requests.get(count - 1 - self.next)?;
        self.next += 1;
        Ok(Some(Request { at, ..request }))
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<f64> {
        Some(self.next as f64 / self.requests.len().max(1) as f64)
    }
}
