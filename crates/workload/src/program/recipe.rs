//! A program of one open stream, as `iosonar generate` runs it without a device.

use std::sync::Arc;

use iosonar_trace::params::Settings;
use iosonar_trace::{Device, DeviceId, Kind, MAX_END_SECTOR, Metadata, Nanos, Sectors};

use super::plan::{Place, Plan, RegionPosition, Step};
use super::stream::{Source, Stream};
use crate::filament::{OpenLoad, Runtime, open_load};
use crate::length::refuse_many;
use crate::positions::Space;
use crate::{Mix, Sizes, arrivals, positions};

/// All parameters of a generated load.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// When requests come: the settings of one of [`arrivals::KINDS`].
    pub arrivals: Settings,
    /// Where they go: the settings of one of [`positions::KINDS`].
    pub positions: Settings,
    /// How large they are.
    pub sizes: Sizes,
    /// Which operations they have.
    pub mix: Mix,
    /// The size of the device; no request goes beyond it.
    pub span: Sectors,
    /// Alignment of all positions.
    pub align: Sectors,
    /// The load ends at this time…
    pub duration: Nanos,
    /// …or after this many requests.
    pub requests: Option<u64>,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Recipe {
    /// A recipe with the defaults of `iosonar generate`: 4 KiB, 70 % reads, 1 GiB, one minute, seed 1.
    ///
    /// # Errors
    /// If arrivals or positions are unknown, or their settings are invalid.
    pub fn new(arrivals: &str, positions: &str) -> Result<Self, String> {
        Ok(Self {
            arrivals: arrivals::parse(arrivals)?,
            positions: positions::parse(positions)?,
            sizes: "4k".parse()?,
            mix: Mix::of_reads(0.7),
            span: Sectors(1 << 21),
            align: Sectors(8),
            duration: Nanos::from_secs(60.0),
            requests: None,
            seed: 1,
        })
    }

    /// The load, which is generated while it is read.
    ///
    /// # Errors
    /// If the parameters do not fit together, for example if requests are larger than the span, or if there would be too many.
    pub fn generate(self) -> Result<OpenLoad, String> {
        if self.align.0 == 0 {
            return Err("the alignment is 0: set it to one sector or more".into());
        }
        if self.span.0 > MAX_END_SECTOR {
            return Err(format!("the span is too large: a load holds at most {MAX_END_SECTOR} sectors"));
        }
        if self.requests == Some(0) {
            return Err("the number of requests is 0: set it to 1 or more, or leave it out".into());
        }
        let space = Space::new(self.span, self.align, self.sizes.largest())?;
        let mut metadata = Metadata::new(Kind::Load, "generated");
        metadata.devices = vec![Device { name: "artificial".into(), sectors: Some(self.span.0) }];
        metadata.source.preamble = format!("Artificial load: {}", self.command());
        let place = Place::Region {
            device: DeviceId(0),
            first: 0,
            stride: 0,
            size: self.span.0,
            which: RegionPosition::Own(0),
        };
        let step = Step { mix: self.mix, sizes: self.sizes, redraws: false, place, repeat: 1, is_waiting: false };
        let times = Plan::of_times(1, Nanos::ZERO, 0.0, self.duration);
        let transactions = self.requests.unwrap_or(u64::MAX);
        let stream = Stream {
            name: metadata.devices[0].name.clone(),
            instances: 1,
            arrivals: Some(self.arrivals),
            plan: Arc::new(Plan { steps: vec![step], transactions, ..times }),
            own: vec![(self.positions, space)],
            after: Vec::new(),
            kind: Source::Keys,
            data: None,
        };
        refuse_many("load", stream.expected_requests(self.duration)?)?;
        let mut runtime = Runtime::default();
        stream.add_to(&mut runtime, 0, self.seed, 0..1)?.into_iter().for_each(|warning| metadata.warning(warning));
        Ok(open_load(runtime, self.duration, metadata).of_at_most(self.requests))
    }

    /// The command that generates this load again, with all values.
    pub fn command(&self) -> String {
        // Numbers with units may contain spaces, which a shell would split.
        let bare = |text: &str| text.replace(char::is_whitespace, "");
        let mut line = format!("iosonar generate {} OUT", self.arrivals.name());
        for (name, value) in self.arrivals.all() {
            line += &format!(" --{name} {}", bare(value));
        }
        let positions = self.positions.all().map(|(name, value)| format!(" {name}={}", bare(value)));
        line += &format!(
            " --positions '{}{}' --size {} {} --span {}s --align {}s --duration {}",
            self.positions.name(),
            positions.collect::<String>(),
            self.sizes.option(),
            self.mix.option(),
            self.span.0,
            self.align.0,
            self.duration.as_secs(),
        );
        if let Some(requests) = self.requests {
            line += &format!(" --requests {requests}");
        }
        line + &format!(" --seed {}", self.seed)
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Flags, Op, Reader as _, Request, Sector};
    use proptest::prelude::*;

    use super::*;

    fn all(recipe: Recipe) -> Vec<Request> {
        let mut load = recipe.generate().unwrap();
        let mut requests = Vec::new();
        while let Some(request) = load.next().unwrap() {
            requests.push(request);
        }
        assert_eq!(load.metadata().counts.requests, requests.len() as u64);
        assert!(load.next().unwrap().is_none(), "requests after the end");
        requests
    }

    #[test]
    fn the_same_recipe_generates_the_same_load() {
        let recipe = Recipe { requests: Some(1000), ..Recipe::new("poisson rate=500", "zipf").unwrap() };
        assert_eq!(all(recipe.clone()), all(recipe.clone()));
        assert_ne!(all(recipe.clone()), all(Recipe { seed: 2, ..recipe }));
    }

    #[test]
    fn a_change_of_one_part_leaves_the_others_unchanged() {
        let recipe = Recipe { requests: Some(1000), ..Recipe::new("poisson rate=500", "uniform").unwrap() };
        let one = all(recipe.clone());
        let other = all(Recipe {
            positions: positions::parse("sequential").unwrap(),
            mix: Mix::of_reads(0.0),
            ..recipe.clone()
        });
        assert!(one.iter().zip(&other).all(|(a, b)| a.at == b.at));
        let sizes = "4k:70,1M:30".parse().unwrap();
        let larger = all(Recipe { sizes, mix: "read=1,flush=1".parse().unwrap(), ..recipe.clone() });
        assert!(one.iter().zip(&larger).all(|(a, b)| a.at == b.at));
        assert!(one.iter().zip(&other).any(|(a, b)| a.sector != b.sector));
    }

    #[test]
    fn the_load_has_the_share_of_reads() {
        let recipe = Recipe {
            mix: Mix::of_reads(0.3),
            requests: Some(100_000),
            ..Recipe::new("uniform rate=1M", "uniform").unwrap()
        };
        let reads = all(recipe).iter().filter(|r| r.op == Op::Read).count() as f64;
        assert!((reads - 30_000.0).abs() < 5.0 * (100_000.0_f64 * 0.3 * 0.7).sqrt(), "{reads}");
    }

    #[test]
    fn a_flush_has_no_sectors_and_shifts_no_other_request() {
        let mix = "read=50,flush=30,fua=20".parse().unwrap();
        let recipe = Recipe { mix, requests: Some(1000), ..Recipe::new("poisson", "sequential").unwrap() };
        assert!(recipe.command().contains(" --mix read=50,flush=30,fua=20 "), "{}", recipe.command());
        let (flushes, others): (Vec<_>, Vec<_>) = all(recipe).into_iter().partition(|r| r.op == Op::Flush);
        assert!(!flushes.is_empty() && flushes.iter().all(|r| r.is_empty() && r.sector == Sector(0)));
        assert!(others.iter().zip(0..).all(|(r, n)| r.sector.0 == 8 * n));
        assert!(others.iter().all(|r| r.flags == if r.op == Op::Write { Flags::FUA } else { Flags::NONE }));
    }

    #[test]
    fn the_command_has_all_parameters() {
        let mut recipe = Recipe::new("bursts", "hotspots share=80%").unwrap();
        recipe.requests = Some(5);
        let command = recipe.command();
        for part in
            ["generate bursts OUT --", "--growth 10", "hotspots", "share=80%", "--size 4k", "--seed 1", "--requests 5"]
        {
            assert!(command.contains(part), "{part}: {command}");
        }
        assert_eq!(recipe.generate().unwrap().metadata().source.preamble, format!("Artificial load: {command}"));
    }

    #[test]
    fn the_command_has_no_spaces_in_values() {
        let mut recipe = Recipe::new("bursts 'every=1 s'", "hotspots 'share=80 %'").unwrap();
        recipe.sizes = "4k:70, 64k:30".parse().unwrap();
        let command = recipe.command();
        for part in ["--every 1s ", "share=80%'", "--size 4k:70,64k:30 "] {
            assert!(command.contains(part), "{part}: {command}");
        }
    }

    #[test]
    fn a_span_beyond_the_limit_and_zero_requests_are_refused() {
        let recipe = || Recipe::new("uniform", "uniform").unwrap();
        let refused = |recipe: Recipe| recipe.generate().err().unwrap();
        assert!(refused(Recipe { span: Sectors(MAX_END_SECTOR + 1), ..recipe() }).contains("span is too large"));
        assert!(refused(Recipe { requests: Some(0), ..recipe() }).contains("number of requests is 0"));
        assert!(Recipe { span: Sectors(MAX_END_SECTOR), ..recipe() }.generate().is_ok());
    }

    #[test]
    fn a_load_of_too_many_requests_is_refused() {
        let why = Recipe::new("uniform rate=1G", "uniform").unwrap().generate().err().unwrap();
        assert!(why.contains("about 60,000,000,000 requests at this rate"), "{why}");
        // Fewer were asked for.
        let few = Recipe { requests: Some(1000), ..Recipe::new("uniform rate=1G", "uniform").unwrap() };
        assert_eq!(all(few).len(), 1000);
    }

    #[test]
    fn requests_larger_than_the_span_are_refused() {
        let recipe = Recipe { sizes: "2G".parse().unwrap(), ..Recipe::new("uniform", "uniform").unwrap() };
        assert!(recipe.generate().err().unwrap().contains("larger"));
    }

    proptest! {
        #[test]
        fn every_load_is_sorted_aligned_and_within_its_bounds(
            arrivals in 0..arrivals::KINDS.len(), positions in 0..positions::KINDS.len(), seed: u64,
            span in 4096_u64..1 << 24, align in prop::sample::select(vec![1_u64, 3, 8, 2048]), millis in 1_i64..3000,
        ) {
            let (arrivals, positions) = (arrivals::KINDS[arrivals].form.name, positions::KINDS[positions].form.name);
            let recipe = Recipe {
                sizes: "4k:5,512B:1,1M:1".parse().unwrap(), span: Sectors(span), align: Sectors(align),
                duration: Nanos(millis * 1_000_000), seed, ..Recipe::new(arrivals, positions).unwrap()
            };
            let mut last = Nanos::ZERO;
            for request in all(recipe) {
                prop_assert!(request.at >= last && request.at < Nanos(millis * 1_000_000));
                prop_assert!(request.end().0 <= span, "{request:?} ends beyond {span}");
                prop_assert_eq!(request.sector.0 % align, 0);
                last = request.at;
            }
        }
    }
}
