//! The rests of split requests. Linux 4.3 to 4.11 queue them once more, in an event of their own: `Q 0+2048`,
//! `X 0 / 1024`, `Q 1024+1024`. (Earlier kernels split nothing; later kernels queue a bio once.)

use std::collections::VecDeque;

use crate::model::request::DeviceId;
use crate::model::units::Sector;

use super::{Action, Event};

/// Most processes whose next event is awaited.
const MAX_PROCESSES: usize = 1024;

/// Device and process of the last splits, and where the rests begin.
#[derive(Default)]
pub struct Splits(VecDeque<(DeviceId, Option<u32>, Sector)>);

impl Splits {
    /// Notes a split.
    pub fn split(&mut self, event: &Event) {
        self.take(event);
        self.0.push_back((event.device, event.pid, event.sector));
        if self.0.len() > MAX_PROCESSES {
            self.0.pop_front();
        }
    }

    /// Whether an event may queue the rest of a split request: it is the next event of the process that split it, apart from
    /// completions in an interrupt. Of its sector, kernels write only the low 32 bits.
    pub fn may_be_rest(&mut self, event: &Event) -> bool {
        !self.0.is_empty()
            && event.action < Action::Requeue
            && self.take(event).is_some_and(|rest| rest.0 as u32 == event.sector.0 as u32)
            && event.action == Action::Queue
    }

    fn take(&mut self, event: &Event) -> Option<Sector> {
        let is_same = |&(device, pid, _): &(DeviceId, Option<u32>, Sector)| (device, pid) == (event.device, event.pid);
        let index = self.0.iter().position(is_same)?;
        self.0.remove(index).map(|(.., sector)| sector)
    }
}
