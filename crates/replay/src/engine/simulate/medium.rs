//! The medium of a simulated device: servers, each with one request at a time, on one or several members.
//!
//! With a stripe, chunk c is on member c mod n; a request completes when its parts on all members have.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosonar_trace::Nanos;
use iosonar_trace::params::{Key, Section, Takes};

use super::law::{Arrival, Passage};
use super::seek::Seek;
use super::stall::Stall;
use super::values::{Count, Factor, Size, Speed, whole};
use crate::engine::service::ServiceTimes;

/// Settings of a stripe with one slow member.
#[derive(Clone, Debug, PartialEq)]
pub struct StripeSettings {
    /// Number of members. Each has the servers of the device.
    pub members: Count,
    /// Bytes on a member before the next one follows.
    pub chunk: Size,
    /// The slow member, from 0; all are equally fast unless set.
    pub slow_member: Option<u32>,
    /// Factor of its service times; 10 unless set.
    pub factor: Option<Factor>,
}

impl StripeSettings {
    pub const KEYS: &[Key] = &[
        Key::new(
            "members",
            Takes::Number,
            "Number of members; each has the servers and the service time of the device",
        )
        .required(),
        Key::new("chunk", Takes::Number, "Bytes on a member before the next one follows").required(),
        Key::new("slow_member", Takes::Number, "The slow member, counted from 0 (default: all are equally fast)"),
        Key::new("factor", Takes::Number, "Factor of its service time (default 10)"),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let members = section.required("members", Count::parse)?;
        let settings = Self {
            members,
            chunk: section.required("chunk", Size::parse)?,
            slow_member: section.parsed("slow_member", |text| whole(text, 0..=u64::from(members.0) - 1))?,
            factor: section.parsed("factor", Factor::parse)?,
        };
        if settings.factor.is_some() && settings.slow_member.is_none() {
            return Err(section.error("factor", "it needs slow_member, whose factor it is; add slow_member"));
        }
        Ok(settings)
    }
}

/// How long the medium takes for a request.
#[derive(Debug)]
pub enum Service {
    /// By a distribution.
    Times(ServiceTimes),
    /// By the distance from the last one.
    Seek(Seek),
}

#[derive(Debug)]
struct Member {
    factor: f64,
    /// When each server becomes free, earliest first; empty if their number is unlimited.
    servers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Where the last request of each server ended.
    heads: Vec<u64>,
}

/// Members with servers.
#[derive(Debug)]
pub struct Medium {
    service: Service,
    transfer: Option<Speed>,
    chunk: u64,
    members: Vec<Member>,
}

impl Medium {
    /// An idle medium. `servers` of `None` is unlimited.
    pub fn new(
        service: Service,
        transfer: Option<Speed>,
        servers: Option<u32>,
        stripe: Option<&StripeSettings>,
    ) -> Self {
        let slow = stripe.and_then(|stripe| stripe.slow_member);
        let slow_factor = stripe.and_then(|stripe| stripe.factor).map_or(10.0, |factor| factor.0);
        let members = (0..stripe.map_or(1, |stripe| stripe.members.0)).map(|number| Member {
            factor: if slow == Some(number) { slow_factor } else { 1.0 },
            servers: (0..servers.unwrap_or(0)).map(|server| Reverse((Nanos(i64::MIN), server))).collect(),
            heads: vec![0; servers.unwrap_or(1) as usize],
        });
        Self { service, transfer, chunk: stripe.map_or(0, |stripe| stripe.chunk.0), members: members.collect() }
    }

    /// When a server of the only member is free; long ago if their number is unlimited.
    pub fn free_at(&self) -> Nanos {
        self.members[0].servers.peek().map_or(Nanos(i64::MIN), |Reverse((at, _))| *at)
    }

    /// When a request completes.
    pub fn serve(&mut self, request: &Arrival, passage: &Passage, stall: Option<&Stall>) -> Nanos {
        let Arrival { key, offset, length, .. } = *request;
        let members = self.members.len() as u64;
        if members == 1 {
            return self.serve_on(0, key, request, (offset, length), passage, stall);
        }
        let first = offset / self.chunk;
        let last = if length > 0 { (offset + length - 1) / self.chunk } else { first };
        let mut end = passage.start;
        for chunk in first..=last.min(first + members - 1) {
            // All chunks of the request on this member are one part, at the place of the first one.
            let begin = offset.max(chunk * self.chunk);
            let on_member = (chunk / members) * self.chunk + begin % self.chunk;
            let mut bytes = 0;
            let mut next = chunk;
            while next <= last {
                bytes += (offset + length).min((next + 1) * self.chunk) - offset.max(next * self.chunk);
                next += members;
            }
            // A part other than the first draws its own random number.
            let key = key.wrapping_add((chunk - first) << 32);
            let part = (on_member, bytes);
            end = end.max(self.serve_on((chunk % members) as usize, key, request, part, passage, stall));
        }
        end
    }

    fn serve_on(
        &mut self,
        member: usize,
        key: u64,
        request: &Arrival,
        (offset, length): (u64, u64),
        passage: &Passage,
        stall: Option<&Stall>,
    ) -> Nanos {
        let member = &mut self.members[member];
        let server = member.servers.peek().map_or(0, |Reverse((_, server))| *server);
        let head = &mut member.heads[server as usize];
        let medium = match &self.service {
            Service::Times(times) => times.time(key, request.op, length),
            Service::Seek(seek) => seek.time(key, *head, offset),
        };
        *head = offset + length;
        let transfer = self.transfer.map_or(Nanos::ZERO, |speed| speed.time(length));
        let factor = passage.factor * member.factor;
        let mut time = medium + transfer;
        if factor != 1.0 {
            time = Nanos((time.0 as f64 * factor).round() as i64);
        }
        time = time + passage.extra;
        let end = |start| stall.map_or(start + time, |stall| stall.end(start, time));
        match member.servers.peek_mut() {
            Some(mut earliest) => {
                let end = end(earliest.0.0.max(passage.start));
                // Dropping `earliest` restores the order of the heap.
                earliest.0.0 = end;
                end
            }
            None => end(passage.start),
        }
    }
}
