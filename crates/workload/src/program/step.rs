//! Steps: which requests, and where they go.

use std::sync::atomic::AtomicU64;

use iosonar_trace::Sectors;
use iosonar_trace::params::{Section, Settings as Kind, did_you_mean, parse_count, parse_sectors};

use super::parts::{Placed, above_zero};
use super::plan::{Place, RegionPosition, Step};
use crate::positions::{self, Space};
use crate::region::Region;
use crate::{Mix, Sizes};

const MAX_REPEATS: u64 = 1_000_000;

/// A step, which has the values of its stream where it has none of its own.
pub(super) struct StepSection<'s, 't, 'a> {
    pub step: Option<&'s Section<'t, 'a>>,
    pub stream: &'s Section<'t, 'a>,
}

impl<'s, 't, 'a> StepSection<'s, 't, 'a> {
    /// The section that has the key, or the innermost.
    fn section(&self, key: &str) -> &'s Section<'t, 'a> {
        self.step.filter(|step| step.has(key)).unwrap_or(self.stream)
    }

    fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        self.section(key).parsed(key, parse)
    }

    pub fn step(
        &self,
        devices: &[Placed],
        instances: u64,
        own: &mut Vec<(Kind, Space)>,
        is_first: bool,
    ) -> Result<Step, String> {
        let innermost = self.step.unwrap_or(self.stream);
        let sizes = self.parsed("sizes", str::parse)?;
        let sizes: Sizes = sizes.map_or_else(|| "4k".parse(), Ok)?;
        let redraws = self.section("redraw_sizes").flag("redraw_sizes")?.unwrap_or(false);
        let flag = |key| self.step.map_or(Ok(None), |step| step.flag(key));
        let is_same = flag("same")?.unwrap_or(false);
        let place = if is_same {
            if is_first {
                return Err(innermost.error("same", "the first step has no request before it; remove the key"));
            }
            let own_keys = ["sizes", "redraw_sizes", "positions", "align", "device", "region", "own_region"];
            if let Some(key) = own_keys.into_iter().find(|key| innermost.has(key)) {
                return Err(innermost.error(
                    key,
                    "the step has the place of the request before it (same = true); remove one of the keys",
                ));
            }
            Place::Same
        } else {
            self.region(devices, instances, &sizes, redraws, own)?
        };
        let repeat = self.step.map_or(Ok(None), |step| step.parsed("repeat", above_zero(parse_count)))?.unwrap_or(1);
        if repeat > MAX_REPEATS {
            return Err(innermost.error("repeat", &format!("too large; use at most {MAX_REPEATS}")));
        }
        let is_waiting = flag("wait")?.unwrap_or(true);
        Ok(Step { mix: self.mix()?, sizes, redraws, place, repeat: repeat as u32, is_waiting })
    }

    fn mix(&self) -> Result<Mix, String> {
        let section = self.step.filter(|step| step.has("op") || step.has("mix")).unwrap_or(self.stream);
        let op = section.parsed("op", |text| {
            let known = ["read", "write", "flush", "fua", "discard"];
            match known.contains(&text) {
                true => format!("{text}=1").parse::<Mix>(),
                false => Err(format!("unknown operation `{text}`; {}", did_you_mean(text, known.into_iter()))),
            }
        })?;
        match (op, section.parsed("mix", str::parse)?) {
            (Some(_), Some(_)) => Err(section.error("mix", "set `op` or `mix`, not both")),
            (Some(mix), None) | (None, Some(mix)) => Ok(mix),
            (None, None) => {
                let innermost = self.step.unwrap_or(self.stream);
                Err(innermost.error("op", "missing: set op = \"read\", for example, or mix = \"read=70,write=30\""))
            }
        }
    }

    pub fn region(
        &self,
        devices: &[Placed],
        instances: u64,
        sizes: &Sizes,
        redraws: bool,
        own: &mut Vec<(Kind, Space)>,
    ) -> Result<Place, String> {
        let device = self.parsed("device", |name| {
            let known = devices.iter().map(|device| device.name.as_str());
            let device = devices.iter().find(|device| device.name == name);
            device.ok_or_else(|| format!("unknown device {name}; {}", did_you_mean(name, known)))
        })?;
        let device = match (device, devices) {
            (Some(device), _) | (None, [device]) => device,
            _ => {
                let innermost = self.step.unwrap_or(self.stream);
                return Err(innermost.error("device", "missing: the program has several devices; name one of them"));
            }
        };
        let region = self.parsed("region", Region::parse)?.unwrap_or(Region::ALL);
        let (first, size) = region.of(device.size).map_err(|why| self.section("region").error("region", &why))?;
        let align = self.parsed("align", |text| above_zero(|text| Ok(parse_sectors(text)?.0))(text))?.unwrap_or(8);
        let is_own = self.section("own_region").flag("own_region")?.unwrap_or(false);
        let stride = if is_own { size / instances / align * align } else { 0 };
        let size = if is_own { stride } else { size };
        let fitting = sizes.largest_within(Sectors(size)).filter(|_| redraws);
        let largest = fitting.unwrap_or_else(|| sizes.largest());
        let why = |why: String| {
            let key = if is_own { "own_region" } else { "sizes" };
            self.section(key).error(key, &format!("{why}; use smaller sizes or a larger region"))
        };
        let space = Space::new(Sectors(size), Sectors(align), largest).map_err(why)?.with_smallest(sizes.smallest());
        let append = self.parsed("positions", |text| Ok(text.trim() == "append"))?.unwrap_or(false);
        let which = if append {
            RegionPosition::Append { next: AtomicU64::new(0), size, align }
        } else {
            let kind = self.parsed("positions", |text| {
                let kind = positions::parse(text)?;
                positions::build(&kind, space, 1)?;
                Ok(kind)
            })?;
            own.push((kind.map_or_else(|| positions::parse("uniform"), Ok)?, space));
            RegionPosition::Own(own.len() - 1)
        };
        if append && redraws {
            return Err(self
                .section("redraw_sizes")
                .error("redraw_sizes", "`append` draws the size first; remove the key"));
        }
        if append && is_own {
            return Err(self.section("own_region").error(
                "own_region",
                "`append` is for all instances together; use positions = \"sequential\", or remove own_region",
            ));
        }
        Ok(Place::Region { device: device.id, first: device.first + first, stride, size, which })
    }
}
