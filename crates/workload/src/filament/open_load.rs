//! The open part of a program as a load: what its filaments ask for if no request ever completes.

use iosonar_trace::{Error, Kind, Metadata, Nanos, Reader, Request, Result};

use super::{Overrun, Runtime};
use crate::length::{KNOWN_AFTER, check_length};

/// Requests that a program's filaments ask for by timers and messages alone, in the order of their times.
pub struct OpenLoad {
    runtime: Runtime,
    until: Nanos,
    metadata: Metadata,
    left_out: u64,
    /// How many requests it has at most, if that is known.
    most: Option<u64>,
}

/// The open part of a program, up to this time. The metadata may name devices.
pub fn open_load(mut runtime: Runtime, until: Nanos, metadata: Metadata) -> OpenLoad {
    runtime.leave_device();
    OpenLoad { runtime, until, metadata: Metadata { kind: Kind::Load, ..metadata }, left_out: 0, most: None }
}

impl OpenLoad {
    /// The same, whose filaments ask for so many requests at most.
    pub(crate) fn of_at_most(self, most: Option<u64>) -> Self {
        Self { most, ..self }
    }

    /// Requests of closed filaments, which a load cannot hold: only their completions say when the next ones come.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Why the program could not go on.
    pub fn overrun(&self) -> Option<Overrun> {
        self.runtime.overrun()
    }
}

impl Reader<Request> for OpenLoad {
    fn next(&mut self) -> Result<Option<Request>> {
        while let Some(at) = self.runtime.next_at().filter(|&at| at < self.until) {
            let Some(submitted) = self.runtime.next_due(at) else {
                match self.runtime.overrun() {
                    Some(why) => return Err(Error::Request(format!("the program ended early: {why}"))),
                    None => continue,
                }
            };
            if submitted.ticket.is_some() {
                self.left_out += 1;
                continue;
            }
            let spec = submitted.spec;
            let request = Request {
                device: spec.device,
                flags: spec.flags,
                ..Request::new(submitted.at, spec.op, spec.sector, spec.sectors)
            };
            // Streams that end by themselves may ask for most of their requests at the beginning.
            if self.runtime.is_endless() && self.metadata.counts.requests == 64 * KNOWN_AFTER {
                check_length(self.metadata.counts.requests, submitted.at, self.until)?;
            }
            self.metadata.count_request(&request);
            return Ok(Some(request));
        }
        Ok(None)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        let Metadata { span, counts, .. } = &self.metadata;
        let by_number = self.most.map_or(0.0, |most| counts.requests as f64 / most.max(1) as f64);
        Some((span.last_ns as f64 / self.until.0 as f64).max(by_number).clamp(0.0, 1.0))
    }
}
