//! A simulated device as the sum of its laws.
//!
//! A request passes them in this order: limits; never-written areas; read caches; write-back cache; slow first write;
//! asymmetry; queue collapse; garbage collection; the medium with its servers and members. A stall stops all of them.
//! Limits, garbage collection and a full cache delay its start. Never-written areas and caches answer it in place of the
//! medium. The others change its service time. A scheduler lets requests wait before the medium; without one, servers take
//! them in the order of their arrival, so that the completion is known at once.
//!
//! Completion times depend only on the seed and the requests that arrived before, never on a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosonar_pacing::Result;
use iosonar_trace::Nanos;

use super::asymmetry::Asymmetry;
use super::collapse::Collapse;
use super::description::Description;
use super::first_write::FirstWrite;
use super::garbage_collection::GarbageCollection;
use super::law::{Arrival, Law, Passage};
use super::limit::Limit;
use super::medium::{Medium, Service};
use super::read_cache::ReadCaches;
use super::scheduler::{Scheduler, Waiting};
use super::seek::Seek;
use super::stall::Stall;
use super::unwritten::Unwritten;
use super::write_cache::WriteCache;
use crate::engine::service::{Distribution, ServiceTimes};

/// Computes when requests complete.
#[derive(Debug)]
pub struct Device {
    laws: Vec<Box<dyn Law>>,
    medium: Medium,
    stall: Option<Stall>,
    scheduler: Option<Scheduler>,
    /// In bytes. Positions beyond it wrap around.
    size: u64,
    /// The first arrival, from which the device counts its time.
    zero: Option<Nanos>,
    /// Completion times of the requests in the device, earliest first; only if a law needs their number.
    in_device: Option<BinaryHeap<Reverse<Nanos>>>,
}

impl Device {
    /// A device with service times only. `servers` of `None` is unlimited.
    pub fn with_times(distribution: &Distribution, servers: Option<u32>, seed: u64) -> Result<Self> {
        let medium = Medium::new(Service::Times(ServiceTimes::new(distribution, seed)?), None, servers, None);
        let laws = Vec::new();
        Ok(Self { laws, medium, stall: None, scheduler: None, size: u64::MAX, zero: None, in_device: None })
    }

    /// The described device, for at most `slots` requests in flight. Reads the earlier run if it needs one.
    pub fn new(description: &Description, slots: usize, seed: u64) -> Result<Self> {
        let size = description.size.0;
        let service = match description.service.distribution() {
            Ok(distribution) => Service::Times(ServiceTimes::new(&distribution, seed)?),
            Err(settings) => Service::Seek(Seek::new(settings, size, seed)),
        };
        let servers = description.servers.map(|servers| servers.0);
        let mut laws: Vec<Box<dyn Law>> = Vec::new();
        let mut add = |law: Option<Box<dyn Law>>| laws.extend(law);
        description.limit.iter().for_each(|limit| add(Some(Box::new(Limit::new(limit)))));
        add(description.unwritten.as_ref().map(|law| Box::new(Unwritten::new(law, size)) as _));
        add((!description.read_cache.is_empty()).then(|| Box::new(ReadCaches::new(&description.read_cache)) as _));
        add(description.write_cache.as_ref().map(|law| Box::new(WriteCache::new(law)) as _));
        add(description.first_write.as_ref().map(|law| Box::new(FirstWrite::new(law, size)) as _));
        add(description.asymmetry.as_ref().map(|law| Box::new(Asymmetry::new(law)) as _));
        add(description.collapse.as_ref().map(|law| Box::new(Collapse(law.clone())) as _));
        add(description.garbage_collection.as_ref().map(|law| Box::new(GarbageCollection::new(law)) as _));
        Ok(Self {
            laws,
            medium: Medium::new(service, description.transfer, servers, description.stripe.as_ref()),
            stall: description.stall.as_ref().map(Stall::new),
            scheduler: description.scheduler.as_ref().map(|settings| Scheduler::new(settings, slots)),
            size,
            zero: None,
            in_device: description.collapse.as_ref().map(|_| BinaryHeap::with_capacity(slots + 1)),
        })
    }

    /// A request arrives: when it completes, if that is known, as no scheduler holds it. Requests must come in the order of
    /// their arrival.
    pub fn arrive(&mut self, slot: u32, request: &Arrival) -> Option<Nanos> {
        let zero = *self.zero.get_or_insert(request.at);
        let at = request.at - zero;
        let mut arrival = Arrival { at, offset: request.offset % self.size, ..*request };
        if let Some(in_device) = &mut self.in_device {
            while in_device.peek().is_some_and(|Reverse(end)| *end <= at) {
                in_device.pop();
            }
            arrival.in_device = in_device.len() + self.scheduler.as_ref().map_or(0, Scheduler::len) + 1;
        }
        let mut passage = Passage::starting(at);
        for law in &mut self.laws {
            law.apply(&arrival, &mut passage);
        }
        if let (Some(scheduler), None) = (&mut self.scheduler, passage.answer) {
            scheduler.add(Waiting { slot, arrival, passage });
            return None;
        }
        Some(zero + self.serve(&arrival, &passage))
    }

    /// Whether a scheduler lets requests wait.
    pub fn schedules(&self) -> bool {
        self.scheduler.is_some()
    }

    /// When the scheduler hands the next waiting request to a server.
    pub fn next_taken(&self) -> Option<Nanos> {
        Some(self.zero? + self.scheduler.as_ref()?.next(self.medium.free_at())?)
    }

    /// A waiting request that a server has taken until now: its slot and length, and when it completes.
    pub fn take_waiting(&mut self, now: Nanos) -> Option<(u32, u64, Nanos)> {
        let at = self.next_taken().filter(|at| *at <= now)?;
        let zero = self.zero?;
        let Waiting { slot, arrival, passage } = self.scheduler.as_mut()?.take(at - zero)?;
        let end = self.serve(&arrival, &Passage { start: at - zero, ..passage });
        self.scheduler.as_mut()?.taken(&arrival, end);
        Some((slot, arrival.length, zero + end))
    }

    fn serve(&mut self, arrival: &Arrival, passage: &Passage) -> Nanos {
        let stall = self.stall.as_ref();
        let end = match passage.answer {
            Some(time) => stall.map_or(passage.start + time, |stall| stall.end(passage.start, time)),
            None => self.medium.serve(arrival, passage, stall),
        };
        if let Some(in_device) = &mut self.in_device {
            in_device.push(Reverse(end));
        }
        end
    }
}
