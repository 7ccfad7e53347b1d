//! Which target a request goes to, and where on it.

use iosonar_trace::{DeviceId, Op, Outcome, Request, Sector, Sectors};

use crate::address::device_map::Map;
use crate::address::placement::{Fit, Geometry};
use crate::config::target::Rules;
use crate::device::capabilities::Capabilities;

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
    /// Of each target.
    capabilities: Vec<Capabilities>,
    map: Map,
    rules: Rules,
    /// How far each device of the load reaches, for [`Fit::Scale`].
    extents: Vec<u64>,
}

impl Routes {
    /// To these targets. `extents` are needed to scale: the size of each device of the load, in sectors.
    pub fn new(targets: Vec<Geometry>, map: Map, rules: Rules, extents: Vec<u64>) -> Self {
        let capabilities = vec![Capabilities::ALL; targets.len()];
        Self { targets, capabilities, map, rules, extents }
    }

    /// Leaves out what a target cannot do.
    pub fn with_capabilities(mut self, capabilities: Vec<Capabilities>) -> Self {
        self.capabilities = capabilities;
        self
    }

    fn can_do(&self, op: Op, target: u16) -> bool {
        let Capabilities { discard, write_zeroes } = self.capabilities[usize::from(target)];
        match op {
            Op::Discard => discard,
            Op::WriteZeroes => write_zeroes,
            Op::Read | Op::Write | Op::Flush => true,
        }
    }

    /// Finds a request's place.
    pub fn route(&self, request: &Request) -> Routed {
        let Some(target) = self.map.target_of(request.device) else {
            return Self::left_out(0, request, Outcome::Excluded);
        };
        if self.rules.reads_only && request.op != Op::Read {
            return Self::left_out(target, request, Outcome::Excluded);
        }
        if !self.can_do(request.op, target) {
            return Self::left_out(target, request, Outcome::Unsupported);
        }
        let geometry = &self.targets[usize::from(target)];
        let Request { mut sector, sectors, .. } = *request;
        if request.op == Op::Flush {
            return Routed { target, sector, sectors, widened: false, skip: None };
        }
        match self.rules.fit {
            Fit::Wrap => {}
            Fit::Scale => sector = geometry.scale(sector, sectors, self.extent(request.device, geometry)),
            Fit::Clip | Fit::Reject if geometry.holds(sector, sectors) => {}
            Fit::Clip | Fit::Reject => return Self::left_out(target, request, Outcome::BeyondEnd),
        }
        match geometry.place(sector, sectors, self.rules.align) {
            Ok(place) => {
                let (sector, sectors, widened) = (place.sector, place.sectors, place.widened);
                Routed { target, sector, sectors, widened, skip: None }
            }
            Err(reason) => Self::left_out(target, request, reason),
        }
    }

    /// What becomes the whole target; one of which nothing is known is not changed.
    fn extent(&self, device: DeviceId, target: &Geometry) -> u64 {
        self.extents.get(usize::from(device.0)).copied().filter(|&extent| extent > 0).unwrap_or(target.sectors)
    }

    fn left_out(target: u16, request: &Request, reason: Outcome) -> Routed {
        Routed { target, sector: request.sector, sectors: request.sectors, widened: false, skip: Some(reason) }
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Nanos;

    use super::*;

    fn request(device: u16, op: Op, sector: u64, sectors: u64) -> Request {
        Request { device: DeviceId(device), ..Request::new(Nanos(0), op, Sector(sector), Sectors(sectors)) }
    }

    /// Device 0 on a target of 1000 sectors, device 2 on one of 4000; device 1 on none.
    fn routes(rules: Rules) -> Routes {
        let mut map = Map::default();
        assert!(map.insert(Some(DeviceId(0)), 0) && map.insert(Some(DeviceId(2)), 1));
        let targets = vec![Geometry::new(1000 * 512, 512), Geometry::new(4000 * 512, 512)];
        Routes::new(targets, map, rules, vec![2000, 50, 2000])
    }

    /// Target, sector, and why not.
    fn place(rules: Rules, device: u16, op: Op, sector: u64) -> (u16, u64, Option<Outcome>) {
        let routed = routes(rules).route(&request(device, op, sector, 8));
        (routed.target, routed.sector.0, routed.skip)
    }

    #[test]
    fn each_device_goes_to_its_target_and_one_without_is_left_out() {
        let rules = Rules::default();
        assert_eq!(place(rules, 0, Op::Write, 1600), (0, 600, None));
        assert_eq!(place(rules, 2, Op::Write, 1600), (1, 1600, None));
        assert_eq!(place(rules, 1, Op::Flush, 0).2, Some(Outcome::Excluded));
    }

    #[test]
    fn fits_in_each_of_the_ways() {
        let with = |fit| Rules { fit, ..Rules::default() };
        assert_eq!(place(with(Fit::Scale), 0, Op::Read, 1600), (0, 800, None));
        assert_eq!(place(with(Fit::Scale), 2, Op::Read, 1600), (1, 3200, None));
        for fit in [Fit::Clip, Fit::Reject] {
            assert_eq!(place(with(fit), 0, Op::Read, 992), (0, 992, None));
            assert_eq!(place(with(fit), 0, Op::Read, 993), (0, 993, Some(Outcome::BeyondEnd)));
            assert_eq!(place(with(fit), 2, Op::Read, 1600), (1, 1600, None));
        }
    }

    #[test]
    fn of_reads_only_nothing_else_is_left() {
        let rules = Rules { reads_only: true, ..Rules::default() };
        assert_eq!(place(rules, 0, Op::Read, 8), (0, 8, None));
        for op in [Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush] {
            assert_eq!(place(rules, 0, op, 8), (0, 8, Some(Outcome::Excluded)));
        }
    }
}
