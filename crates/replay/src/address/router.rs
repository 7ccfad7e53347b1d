//! Routes requests: chooses the target of each request and its position there.

use clap::ValueEnum;
use iosonar_device::capabilities::Capabilities;
use iosonar_device::geometry::{Align, Geometry};
use iosonar_trace::{DeviceId, Op, Outcome, Request, Sector, Sectors};
use serde::{Deserialize, Serialize};

use crate::address::device_map::DeviceMap;

/// What to do where the load reaches beyond its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Wrap around to the start: the sector modulo the target's size
    #[default]
    Wrap,
    /// Scale all positions so that the load's device (if its size is unknown, up to its highest sector) fills the target
    Scale,
    /// Leave out requests that do not fit on the target, and count them
    Clip,
    /// Refuse the load
    Reject,
}

/// How requests map to a target.
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize)]
pub struct Rules {
    /// What to do with requests beyond the end of the target
    #[arg(long, value_enum, default_value_t)]
    pub fit: Fit,
    /// What to do with requests not aligned to the target's logical blocks
    #[arg(long, value_enum, default_value_t)]
    pub align: Align,
    /// Replay only the reads, and count the rest: writes nothing, so the target may hold data and be in use
    #[arg(long, conflicts_with = "force")]
    pub reads_only: bool,
}

/// Where a request is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// Index of the target.
    pub target: u16,
    /// First sector on the target.
    pub sector: Sector,
    /// Length on the target.
    pub sectors: Sectors,
    /// Whether it was widened to whole blocks.
    pub widened: bool,
    /// Why it is not issued, if so.
    pub skip: Option<Outcome>,
}

/// The run's targets, and the mapping of the load's devices to them.
#[derive(Clone, Debug)]
pub struct Routes {
    targets: Vec<Geometry>,
    /// Supported operations of each target.
    capabilities: Vec<Capabilities>,
    map: DeviceMap,
    rules: Rules,
    /// Size of each device of the load in sectors, for [`Fit::Scale`].
    extents: Vec<u64>,
}

impl Routes {
    /// Routes to these targets. Scaling needs `extents`, the size of each device of the load in sectors.
    pub fn new(targets: Vec<Geometry>, map: DeviceMap, rules: Rules, extents: Vec<u64>) -> Self {
        let capabilities = vec![Capabilities::ALL; targets.len()];
        Self { targets, capabilities, map, rules, extents }
    }

    /// Leaves out operations that a target does not support.
    pub fn with_capabilities(mut self, capabilities: Vec<Capabilities>) -> Self {
        self.capabilities = capabilities;
        self
    }

    fn supports(&self, op: Op, target: u16) -> bool {
        let Capabilities { discard, write_zeroes } = self.capabilities[usize::from(target)];
        match op {
            Op::Discard => discard,
            Op::WriteZeroes => write_zeroes,
            Op::Read | Op::Write | Op::Flush => true,
        }
    }

    /// Routes a request.
    pub fn route(&self, request: &Request) -> Routed {
        let Some(target) = self.map.target_of(request.device) else {
            return Self::skipped(0, request, Outcome::Excluded);
        };
        if self.rules.reads_only && request.op != Op::Read {
            return Self::skipped(target, request, Outcome::Excluded);
        }
        if !self.supports(request.op, target) {
            return Self::skipped(target, request, Outcome::Unsupported);
        }
        let geometry = &self.targets[usize::from(target)];
        let Request { mut sector, sectors, .. } = *request;
        if request.op == Op::Flush {
            return Routed { target, sector, sectors, widened: false, skip: None };
        }
        match self.rules.fit {
            Fit::Wrap => {}
            Fit::Scale => sector = geometry.scale(sector, sectors, self.extent(request.device, geometry)),
            Fit::Clip | Fit::Reject if geometry.contains(sector, sectors) => {}
            Fit::Clip | Fit::Reject => return Self::skipped(target, request, Outcome::BeyondEnd),
        }
        match geometry.place(sector, sectors, self.rules.align) {
            Ok(placement) => {
                let (sector, sectors, widened) = (placement.sector, placement.sectors, placement.widened);
                Routed { target, sector, sectors, widened, skip: None }
            }
            Err(reason) => Self::skipped(target, request, reason),
        }
    }

    /// The size of a device for scaling; if unknown, the target's size, so that positions do not change.
    fn extent(&self, device: DeviceId, target: &Geometry) -> u64 {
        self.extents.get(usize::from(device.0)).copied().filter(|&extent| extent > 0).unwrap_or(target.sectors)
    }

    fn skipped(target: u16, request: &Request, reason: Outcome) -> Routed {
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

    /// Maps device 0 to a target of 1000 sectors, device 2 to one of 4000, and device 1 to none.
    fn routes(rules: Rules) -> Routes {
        let mut map = DeviceMap::default();
        assert!(map.insert(Some(DeviceId(0)), 0) && map.insert(Some(DeviceId(2)), 1));
        let targets = vec![Geometry::new(1000 * 512, 512), Geometry::new(4000 * 512, 512)];
        Routes::new(targets, map, rules, vec![2000, 50, 2000])
    }

    /// Target, sector, and why it is skipped.
    fn place(rules: Rules, device: u16, op: Op, sector: u64) -> (u16, u64, Option<Outcome>) {
        let routed = routes(rules).route(&request(device, op, sector, 8));
        (routed.target, routed.sector.0, routed.skip)
    }

    #[test]
    fn devices_go_to_their_targets_and_unmapped_ones_are_left_out() {
        let rules = Rules::default();
        assert_eq!(place(rules, 0, Op::Write, 1600), (0, 600, None));
        assert_eq!(place(rules, 2, Op::Write, 1600), (1, 1600, None));
        assert_eq!(place(rules, 1, Op::Flush, 0).2, Some(Outcome::Excluded));
    }

    #[test]
    fn each_fit_places_requests_beyond_the_end_in_its_way() {
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
    fn reads_only_leaves_out_all_other_operations() {
        let rules = Rules { reads_only: true, ..Rules::default() };
        assert_eq!(place(rules, 0, Op::Read, 8), (0, 8, None));
        for op in [Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush] {
            assert_eq!(place(rules, 0, op, 8), (0, 8, Some(Outcome::Excluded)));
        }
    }
}
