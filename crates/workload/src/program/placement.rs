//! A program whose parameters are set and whose devices have their places: what it needs, and its filaments.

use std::sync::Arc;

use iosonar_trace::{Device, Nanos, Op, Sectors};

use super::memory;
use super::model::{Demand, Layout, Settings, StreamInfo};
use super::parts::Placed;
use super::plan::{Follower, Place};
use super::shares::Shares;
use super::stream::{Source, Stream, receivers};
use crate::filament::{FilamentId, Runtime};
use crate::length::refuse_many;

/// The filaments of a loop.
pub struct Part {
    /// The filaments.
    pub runtime: Runtime,
    /// The most requests of its closed streams at a time.
    pub closed_at_once: u64,
}

/// A program whose text was read with the settings of a run.
pub struct Placement {
    pub(super) file: String,
    pub(super) name: String,
    /// How errors about all streams begin.
    pub(super) place: String,
    pub(super) settings: Settings,
    pub(super) devices: Vec<Placed>,
    pub(super) streams: Vec<Stream>,
    pub(super) infos: Vec<StreamInfo>,
}

impl Placement {
    /// The devices with their sizes. With [`Layout::Together`] it is one device.
    pub fn devices(&self) -> Vec<Device> {
        match self.settings.layout {
            Layout::Together(size) => vec![Device { name: self.name.clone(), sectors: Some(size.0) }],
            Layout::Separate(_) => {
                let devices = self.devices.iter();
                devices.map(|d| Device { name: d.name.clone(), sectors: Some(d.size.0) }).collect()
            }
        }
    }

    /// The sizes of the program's devices.
    pub fn sizes(&self) -> Vec<Sectors> {
        self.devices.iter().map(|device| device.size).collect()
    }

    /// The streams, in the order of their numbers in a run.
    pub fn streams(&self) -> &[StreamInfo] {
        &self.infos
    }

    /// What the requests need.
    pub fn demand(&self) -> Demand {
        let mut demand = Demand::default();
        for stream in &self.streams {
            demand.memory = demand.memory.saturating_add(stream.bytes());
            let plan = &stream.plan;
            let of_kind = match &stream.kind {
                Source::Keys => None,
                // How many of its events are requests is not known.
                Source::Script(script) => Some((script.kinds.reads, script.kinds.writes, script.largest())),
                Source::Load(load) => Some((load.about.reads, load.about.writes, load.about.longest)),
            };
            if let Some((reads, writes, largest)) = of_kind {
                (demand.reads, demand.writes) = (demand.reads || reads, demand.writes || writes);
                demand.largest = demand.largest.max(largest);
                demand.changes = true;
                continue;
            }
            let at_once = stream.instances.saturating_mul(stream.closed_at_once());
            demand.closed_at_once = demand.closed_at_once.saturating_add(at_once);
            let mut largest = Sectors(0);
            for step in &plan.steps {
                // A request at the place of the one before it has its length.
                largest = if matches!(step.place, Place::Same) { largest } else { step.sizes.largest() };
                let (reads, writes) = (step.mix.has(Op::Read), step.mix.has(Op::Write));
                (demand.reads, demand.writes) = (demand.reads || reads, demand.writes || writes);
                demand.changes |= writes || step.mix.has(Op::Discard);
                if reads || writes {
                    demand.largest = demand.largest.max(largest);
                }
            }
        }
        demand
    }

    /// Refuses a run whose open streams would ask for far more requests than anybody waits for.
    ///
    /// # Errors
    /// If there are too many.
    pub fn check_length(&self, until: Nanos) -> Result<(), String> {
        let expected =
            self.streams.iter().map(|stream| stream.expected_requests(until)).sum::<Result<f64, String>>()?;
        refuse_many("run", expected).map_err(|why| format!("{}: {why}", self.name))
    }

    /// A filament of each instance of each stream.
    ///
    /// # Errors
    /// If the instances need more memory than there is, or a script or a load cannot be opened.
    pub fn runtime(self) -> Result<Runtime, String> {
        self.filaments(&Shares::one(&self.streams), 0, |_| true)
    }

    /// The same in at most `parts` parts, each for a loop, and what can run ahead of the first of them.
    ///
    /// # Errors
    /// Like [`Self::runtime`].
    pub fn parts(self, parts: usize) -> Result<(Vec<Part>, Option<Runtime>), String> {
        let runs_ahead: Vec<bool> = self.infos.iter().map(|stream| stream.runs_ahead).collect();
        let shares = Shares::new(&self.streams, &runs_ahead, parts);
        let beside = |part| {
            let runtime = self.filaments(&shares, part, |stream| !stream.runs_ahead)?;
            let streams = self.streams.iter().enumerate();
            let at_once = streams.map(|(number, s)| shares.count(number, part).saturating_mul(s.closed_at_once()));
            Ok::<_, String>(Part { runtime, closed_at_once: at_once.fold(0, u64::saturating_add) })
        };
        let beside = (0..shares.parts()).map(beside).collect::<Result<_, _>>()?;
        // No stream comes before or after one that runs ahead, so the two share no order.
        let one = Shares::one(&self.streams);
        let ahead = runs_ahead.contains(&true).then(|| self.filaments(&one, 0, |stream| stream.runs_ahead));
        Ok((beside, ahead.transpose()?))
    }

    /// The streams whose requests do not wait for completions, and the names of the others.
    ///
    /// # Errors
    /// Like [`Self::runtime`].
    pub fn open_part(self) -> Result<(Runtime, Vec<String>), String> {
        let left_out = self.infos.iter().filter(|stream| !stream.is_open).map(|stream| stream.name.clone()).collect();
        Ok((self.filaments(&Shares::one(&self.streams), 0, |stream| stream.is_open)?, left_out))
    }

    /// The filaments of one part of the wanted streams.
    fn filaments(
        &self,
        shares: &Shares,
        part: usize,
        is_wanted: impl Fn(&StreamInfo) -> bool,
    ) -> Result<Runtime, String> {
        let (streams, seed) = (&self.streams, self.settings.seed);
        let count = |number: usize| if is_wanted(&self.infos[number]) { shares.count(number, part) } else { 0 };
        let instances: Vec<u64> = (0..streams.len()).map(count).collect();
        let mut runtime = Runtime::default();
        runtime.set_part(part, shares.parts());
        memory::check(streams.iter().fold(0, |sum, stream| stream.bytes().saturating_add(sum)))
            .map_err(|why| format!("{}{why}", self.place))?;
        let wanted = || streams.iter().enumerate().filter(|(number, _)| instances[*number] > 0);
        for (number, stream) in wanted().filter(|(_, stream)| matches!(stream.kind, Source::Keys)) {
            if !stream.ends() {
                runtime.set_endless();
            }
            let events = u64::from(stream.plan.max_pending(stream.arrivals.is_some()));
            runtime.make_room(instances[number], instances[number].saturating_mul(events));
        }
        let receivers = receivers(streams, &instances);
        let mut followers: Vec<Vec<Follower>> = streams.iter().map(|_| Vec::new()).collect();
        for (number, stream) in wanted() {
            let first = FilamentId(runtime.filaments() as u32);
            for &before in &stream.after {
                followers[before].push(Follower { plan: Arc::clone(&stream.plan), first });
            }
            let stream_number = number as u16;
            match &stream.kind {
                Source::Script(script) => {
                    script.add_to(&mut runtime, stream_number, &stream.plan, seed, &receivers)?;
                }
                Source::Load(load) => load.add_to(&mut runtime, stream_number)?,
                Source::Keys => stream
                    .add_to(&mut runtime, stream_number, seed, shares.instances(number, part))
                    .map(drop)
                    .map_err(|why| format!("{}: stream {}: {why}", self.file, stream.name))?,
            }
        }
        for ((number, stream), followers) in streams.iter().enumerate().zip(followers) {
            // Streams that follow each other are in one part.
            if instances[number] > 0 {
                _ = stream.plan.order.followers.set(followers);
            }
        }
        Ok(runtime)
    }
}
