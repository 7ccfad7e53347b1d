//! The requests of a load, as far as a fit needs them.

use iosonar_trace::{DeviceId, Flags, Nanos, Op, Request, Sector, Sectors};

use super::compare::page_for;

/// A request as far as a fit needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampledRequest {
    pub at: Nanos,
    pub sector: u64,
    pub sectors: u32,
    pub device: u16,
    pub op: Op,
    pub is_fua: bool,
}

/// Collects the requests of a load, at 32 bytes each.
#[derive(Default)]
pub struct Sample {
    pub(super) requests: Vec<SampledRequest>,
    /// Requests of operations that a program does not have.
    pub(super) others: u64,
}

impl Sample {
    /// Takes a request. Those that cannot be part of a program are counted.
    pub fn add(&mut self, request: &Request) {
        let Ok(sectors) = u32::try_from(request.sectors.0) else {
            self.others += 1;
            return;
        };
        let is_known = match request.op {
            Op::Read | Op::Write | Op::Discard => sectors > 0,
            Op::Flush => true,
            Op::WriteZeroes => false,
        };
        if !is_known {
            self.others += 1;
            return;
        }
        let is_fua = request.op == Op::Write && request.flags.has(Flags::FUA);
        let (at, sector, device) = (request.at, request.sector.0, request.device.0);
        self.requests.push(SampledRequest { at, sector, sectors, device, op: request.op, is_fua });
    }

    /// How many requests it holds.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Requests that were left out: writes of zeroes, and transfers without a length.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// The requests, with times from the first one on.
    pub fn requests(&self) -> impl Iterator<Item = Request> {
        let start = self.requests.first().map_or(Nanos::ZERO, |first| first.at);
        self.requests.iter().map(move |asked| Request {
            device: DeviceId(asked.device),
            flags: if asked.is_fua { Flags::FUA } else { Flags::NONE },
            ..Request::new(asked.at - start, asked.op, Sector(asked.sector), Sectors(u64::from(asked.sectors)))
        })
    }

    /// Sectors of a page in which it is compared.
    pub(super) fn page(&self) -> u64 {
        page_for(self.requests.iter().map(|asked| u64::from(asked.sectors)))
    }

    /// From the first request until one mean interval after the last.
    pub fn duration(&self) -> Nanos {
        let [first, .., last] = &self.requests[..] else { return Nanos(1) };
        let span = (last.at - first.at).0;
        Nanos(span + (span / (self.requests.len() as i64 - 1)).max(1))
    }
}
