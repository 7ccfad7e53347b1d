//! Results of requests as entries of a journal.

use super::{Entry, Length, RowId};
use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::request::{DeviceId, Flags, Op};
use crate::model::units::{Nanos, Sector, Sectors};

/// Bytes of an entry, without its checksum.
const BYTES: usize = 102;
/// Entries of layout 2 lack stream and cause.
const BYTES_OF_LAYOUT_2: usize = 96;
/// A missing stream.
const NO_STREAM: u16 = u16::MAX;
/// A missing time.
const NEVER: i64 = i64::MIN;

impl Entry for IoResult {
    type Row = Self;
    const LAYOUTS: &'static [u8] = &[2, 3];

    fn length(layout: u8) -> Length {
        Length::Fixed(if layout == 2 { BYTES_OF_LAYOUT_2 } else { BYTES })
    }

    fn encode(&self, content: &mut Vec<u8>) {
        let mut out = [0; BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let r = self;
        // Three times are stored as 32-bit differences: return of the submission and last empty poll in ns (up to 4 s),
        // readiness in µs (up to 2147 s). Longer ones are unknown.
        let issued = r.issued.map_or(NEVER, |t| t.0);
        let between = |from: Option<Nanos>, to: Option<Nanos>| match (from, to) {
            (Some(from), Some(to)) => u32::try_from((to - from).0).unwrap_or(u32::MAX),
            _ => u32::MAX,
        };
        let submitted = between(r.issued, r.submitted);
        let last_empty_poll = between(r.last_empty_poll, r.completed);
        let ready_us = r.ready.and_then(|t| i32::try_from((t - r.scheduled).0 / 1000).ok()).unwrap_or(i32::MIN);
        put(&r.request.to_le_bytes());
        put(&r.scheduled.0.to_le_bytes());
        put(&issued.to_le_bytes());
        put(&r.completed.map_or(NEVER, |t| t.0).to_le_bytes());
        put(&r.source_sector.0.to_le_bytes());
        put(&r.sector.0.to_le_bytes());
        put(&r.bytes_done.to_le_bytes());
        put(&r.sectors.0.to_le_bytes()[..6]);
        put(&r.device.0.to_le_bytes());
        put(&r.iteration.to_le_bytes());
        put(&r.in_flight.to_le_bytes());
        put(&r.waiting.to_le_bytes());
        put(&submitted.to_le_bytes());
        put(&last_empty_poll.to_le_bytes());
        put(&ready_us.to_le_bytes());
        put(&(r.errno as i16).to_le_bytes());
        put(&r.flags.0.to_le_bytes());
        put(&[r.op as u8, r.outcome as u8, r.delay_reason as u8, u8::from(r.pushed_back) | u8::from(r.widened) << 1]);
        // The cause is stored as the number of requests between.
        put(&r.stream.unwrap_or(NO_STREAM).to_le_bytes());
        put(&r.cause.map_or(0, |cause| u32::try_from(r.request - cause).unwrap_or(0)).to_le_bytes());
        content.extend(out);
    }

    fn decode(_: u8, bytes: &[u8]) -> Option<Self> {
        let is_whole = bytes.len() == BYTES;
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
        let time = |at: usize| Some(long(at) as i64).filter(|&t| t != NEVER).map(Nanos);
        let distance = |at: usize| Some(word(at)).filter(|&ns| ns != u32::MAX).map(|ns| Nanos(ns.into()));
        let (scheduled, issued, completed) = (Nanos(long(8) as i64), time(16), time(24));
        Some(Self {
            request: long(0),
            scheduled,
            issued,
            completed,
            source_sector: Sector(long(32)),
            sector: Sector(long(40)),
            bytes_done: long(48),
            sectors: Sectors(long(56) & 0xffff_ffff_ffff),
            device: DeviceId(short(62)),
            iteration: word(64),
            in_flight: word(68),
            waiting: word(72),
            submitted: issued.zip(distance(76)).map(|(issued, after)| issued + after),
            last_empty_poll: completed.zip(distance(80)).map(|(completed, before)| completed - before),
            ready: Some(word(84) as i32).filter(|&us| us != i32::MIN).map(|us| scheduled + Nanos(i64::from(us) * 1000)),
            errno: i32::from(short(88) as i16),
            flags: Flags(short(90)),
            op: Op::from_number(bytes[92])?,
            outcome: Outcome::from_number(bytes[93])?,
            delay_reason: DelayReason::from_number(bytes[94])?,
            pushed_back: bytes[95] & 1 != 0,
            widened: bytes[95] & 2 != 0,
            stream: is_whole.then(|| short(96)).filter(|&stream| stream != NO_STREAM),
            cause: is_whole.then(|| word(98)).filter(|&before| before > 0).map(|before| long(0) - u64::from(before)),
        })
    }

    fn id(&self) -> RowId {
        RowId { of_program: self.stream.is_some(), pass: self.iteration, number: self.request }
    }

    fn into_row(self) -> Self {
        self
    }
}
