//! The rests of requests that were split. From Linux 4.3 to 4.11 they are asked for once more, in an event of their own: `Q
//! 0+2048`, `X 0 / 1024`, `Q 1024+1024`. (Before, nothing was split; later kernels tell of a bio once.)

use std::collections::VecDeque;

use crate::model::request::DeviceId;
use crate::model::units::Sector;

use super::{Action, Event};

/// Processes whose next event is waited for.
const MAX_PROCESSES: usize = 1024;

/// Who has split a request just now, and where.
#[derive(Default)]
pub struct Splits(VecDeque<(DeviceId, Option<u32>, Sector)>);

impl Splits {
    /// A request was split.
    pub fn split(&mut self, event: &Event) {
        self.take(event);
        self.0.push_back((event.device, event.pid, event.sector));
        if self.0.len() > MAX_PROCESSES {
            self.0.pop_front();
        }
    }

    /// Whether an event may be that of a rest: it is the next thing that the process does that has split a request, but for
    /// what an interrupt completes meanwhile. Of its place kernels tell 32 bits.
    pub fn may_be_rest(&mut self, event: &Event) -> bool {
        !self.0.is_empty()
            && event.action < Action::Requeue
            && self.take(event).is_some_and(|rest| rest.0 as u32 == event.sector.0 as u32)
            && event.action == Action::Queue
    }

    fn take(&mut self, event: &Event) -> Option<Sector> {
        let is_its = |&(device, pid, _): &(DeviceId, Option<u32>, Sector)| (device, pid) == (event.device, event.pid);
        let index = self.0.iter().position(is_its)?;
        self.0.remove(index).map(|(.., sector)| sector)
    }
}
