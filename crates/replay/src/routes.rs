//! Which target a request goes to, and where on it.

use iosonar_trace::{DeviceId, Op, Outcome, Request, Sector, Sectors};

use crate::placement::{Align, Geometry};

/// Where one request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// Which of the run's targets.
    pub target: u16,
    /// First sector there.
    pub sector: Sector,
    /// Length there.
    pub sectors: Sectors,
    /// Whether it was widened to whole blocks.
    pub widened: bool,
    /// Why it is not to be issued, if so.
    pub skip: Option<Outcome>,
}

/// The run's targets, and what the load's devices are mapped to.
#[derive(Clone, Debug)]
pub struct Routes {
    targets: Vec<Geometry>,
    align: Align,
}

impl Routes {
    /// All devices of the load go to the first target.
    pub fn new(targets: Vec<Geometry>, align: Align) -> Self {
        Self { targets, align }
    }

    fn target_of(&self, _device: DeviceId) -> u16 {
        0
    }

    /// Finds a request's place.
    pub fn route(&self, request: &Request) -> Routed {
        let target = self.target_of(request.device);
        let geometry = &self.targets[usize::from(target)];
        let unchanged = Routed { target, sector: request.sector, sectors: request.sectors, widened: false, skip: None };
        if request.op == Op::Flush {
            return unchanged;
        }
        match geometry.place(request.sector, request.sectors, self.align) {
            Ok(place) => Routed { sector: place.sector, sectors: place.sectors, widened: place.widened, ..unchanged },
            Err(reason) => Routed { skip: Some(reason), ..unchanged },
        }
    }
}
