//! Requests and records with any values, for the tests of formats.

use proptest::prelude::*;

use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::request::{Comm, DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

const YEAR: i64 = 31_557_600_000_000_000;

prop_compose! {
    pub fn any_request()(
        at in i64::MIN + 1..i64::MAX, device in any::<u16>(), sector in 0_u64..1 << 53, sectors in 0_u64..1 << 40, op in 0_usize..5,
        flags in any::<u16>(), latency in prop::option::of(0..YEAR), queued in prop::option::of(0..YEAR), pid in any::<Option<u32>>(),
        comm in "[^\0]{0,15}",
    ) -> Request {
        Request {
            at: Nanos(at), device: DeviceId(device), sector: Sector(sector), sectors: Sectors(sectors), op: Op::ALL[op],
            flags: Flags(flags), latency: latency.map(Nanos), queued: queued.map(Nanos), pid, comm: Comm::new(&comm),
        }
    }
}

prop_compose! {
    pub fn any_record()(
        request in any_request(), number in 0..u64::MAX >> 1, iteration in 0..u32::MAX >> 1, target in 0_u64..1 << 53,
        times in any::<[Option<i64>; 5]>(), bytes_done in 0..u64::MAX >> 1, counted in any::<Option<(u16, u16)>>(),
        (pushed_back, widened) in any::<(bool, bool)>(), reason in 0..DelayReason::ALL.len(),
        outcome in 0..Outcome::ALL.len(), errno in any::<i32>(), stream: Option<u16>,
        cause in prop::option::of(0..u64::MAX >> 1),
    ) -> IoResult {
        let [issued, completed, ready, submitted, last_empty_poll] = times.map(|t| t.map(Nanos));
        let mut record = IoResult {
            request: number, iteration, device: request.device, source_sector: request.sector, sector: Sector(target),
            sectors: request.sectors, op: request.op, flags: request.flags, scheduled: request.at, issued, completed,
            ready, submitted, last_empty_poll, bytes_done, in_flight: counted.map_or(0, |c| u32::from(c.0) + 1),
            waiting: counted.map_or(0, |c| c.1.into()), pushed_back, widened, delay_reason: DelayReason::ALL[reason],
            outcome: Outcome::ALL[outcome], errno, stream, cause,
        };
        record.remove_impossible_times();
        record
    }
}
