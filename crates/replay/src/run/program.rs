//! The program of a run: opens it, and lays its devices on the targets.

use iosonar_device::Device;
use iosonar_pacing::buffers::Pool;
use iosonar_pacing::{Error, Result};
use iosonar_trace::run_info::{RunProgram, RunStream};
use iosonar_trace::{self as trace, DeviceId, Nanos, SECTOR_BYTES, Sectors};
use iosonar_workload::filament::Runtime;
use iosonar_workload::program::{Demand, Layout, Part, Program, Settings, StreamInfo};

use crate::address::device_map::DeviceMap;
use crate::address::router::Fit;
use crate::address::router::Routes;
use crate::address::router::Rules;
use crate::config::options::Options;
use crate::pipeline::ahead::{Ahead, AheadStage};
use crate::pipeline::program::{ProgramInput, Refill, supplies};

/// The size of the target where nothing says how large it is: 100 GiB.
const SECTORS_WITHOUT_DEVICE: Sectors = Sectors(100 << 21);

/// A program that is ready to run.
pub struct Placed {
    /// Its filaments, for each loop.
    pub parts: Vec<Part>,
    /// The filaments that run ahead of the first loop.
    pub ahead: Option<Runtime>,
    /// What its requests need.
    pub demand: Demand,
    /// Its devices, for the footer.
    pub devices: Vec<trace::Device>,
    /// Where its requests go.
    pub routes: Routes,
    /// Its description, for the footer.
    pub info: RunProgram,
    /// What its conversion from a job file left out, a line each.
    pub left_out: Vec<String>,
}

impl Placed {
    /// The program as the loops take it, what refills their supplies of buffers, if its requests have data, and what runs ahead.
    pub fn start(self, options: &Options, pool: &Pool) -> (Vec<ProgramInput>, Option<Refill>, Option<AheadStage>) {
        let Self { parts, ahead, demand, routes, .. } = self;
        let until = options.pacing.until().unwrap_or(Nanos::MAX);
        let has_data = options.method.has_device() && (demand.reads || demand.writes);
        let (refill, supplies) = has_data.then(|| supplies(&demand, pool.largest(), parts.len())).unzip();
        let mut supplies = supplies.into_iter().flatten();
        let (mut ahead, stage) = ahead.map(|runtime| Ahead::of(runtime, until)).unzip();
        let input = |Part { runtime, .. }| {
            ProgramInput::new(runtime, routes.clone(), supplies.next(), until).with_ahead(ahead.take())
        };
        (parts.into_iter().map(input).collect(), refill, stage)
    }

    /// The most requests of the closed streams of each loop at a time.
    pub fn at_once(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.closed_at_once).collect()
    }
}

/// Opens the program, if the options name one.
pub fn open(options: &Options) -> Result<Option<Program>> {
    let Some(name) = &options.program.program else { return Ok(None) };
    let program = iosonar_jobfiles::open(name).map_err(Error::Usage)?;
    if let Some(endless) = program.streams().iter().find(|stream| !stream.ends)
        && options.pacing.until().is_none()
    {
        return Err(Error::Usage(format!(
            "stream {} of {} does not end: say how long the program runs, for example --for 10m",
            endless.name,
            program.name()
        )));
    }
    Ok(Some(program))
}

/// Its devices, whose sizes are not known yet.
pub fn devices(program: &Program) -> Vec<trace::Device> {
    program.device_names().iter().map(|name| trace::Device { name: name.clone(), sectors: None }).collect()
}

/// Lays the devices of the program on the targets: side by side on one, or each on a target of its own. For at most so many
/// loops.
pub fn place(
    program: &Program,
    options: &Options,
    loops: usize,
    targets: &[Device],
    map: &DeviceMap,
) -> Result<Placed> {
    let has_names = options.target.targets.iter().any(|mapping| mapping.source.is_some());
    let layout = match has_names {
        true => Layout::Separate(own_targets(program, targets, map)?),
        false if options.method.has_device() => Layout::Together(Sectors(targets[0].geometry.sectors)),
        false => Layout::Together(size_without_device(options)),
    };
    let (seed, scale) = (*options.pacing.seed, options.program.scale);
    let settings = Settings { seed, scale, set: options.program.parameters(), layout };
    let placement = program.place(&settings).map_err(Error::Usage)?;
    placement.check_length(options.pacing.until().unwrap_or(Nanos::MAX)).map_err(Error::Usage)?;
    let map = if has_names { map.clone() } else { DeviceMap::all_to_first() };
    let (demand, devices, info) = (placement.demand(), placement.devices(), info(program, placement.streams()));
    // In virtual time one thread does everything, so that all runs are the same.
    let parts = match options.method.virtual_time {
        true => {
            let closed_at_once = demand.closed_at_once;
            placement.runtime().map(|runtime| (vec![Part { runtime, closed_at_once }], None))
        }
        false => placement.parts(loops),
    };
    let (parts, ahead) = parts.map_err(Error::Usage)?;
    let (routes, left_out) = (routes(options, targets, map), program.left_out().to_vec());
    Ok(Placed { parts, ahead, demand, devices, routes, info, left_out })
}

/// The size of a described device, if one is simulated.
fn size_without_device(options: &Options) -> Sectors {
    options.method.simulated_size().map_or(SECTORS_WITHOUT_DEVICE, |bytes| Sectors(bytes / SECTOR_BYTES))
}

/// The size of the target of each device.
fn own_targets(program: &Program, targets: &[Device], map: &DeviceMap) -> Result<Vec<Sectors>> {
    let names = program.device_names();
    let mut taken = vec![None; targets.len()];
    let mut sizes = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let Some(target) = map.target_of(DeviceId(number as u16)).map(usize::from) else {
            return Err(Error::Usage(format!(
                "device {name} of {} has no target: add --target {name}=PATH",
                program.name()
            )));
        };
        if let Some(other) = taken[target].replace(name) {
            return Err(Error::Usage(format!(
                "devices {other} and {name} of {} share {}: give each a target of its own, or one --target for all without \
                 a name",
                program.name(),
                targets[target].path.display()
            )));
        }
        sizes.push(Sectors(targets[target].geometry.sectors));
    }
    Ok(sizes)
}

fn routes(options: &Options, targets: &[Device], map: DeviceMap) -> Routes {
    // The program's positions fit on its targets.
    let rules = Rules { fit: Fit::Wrap, ..options.target.rules };
    let geometries = targets.iter().map(|target| target.geometry).collect();
    let capabilities = targets.iter().map(|target| target.capabilities).collect();
    Routes::new(geometries, map, rules, Vec::new()).with_capabilities(capabilities)
}

fn info(program: &Program, streams: &[StreamInfo]) -> RunProgram {
    let streams = streams.iter().map(|stream| RunStream {
        name: stream.name.clone().into(),
        instances: stream.instances.into(),
        open: stream.is_open.into(),
        ..RunStream::default()
    });
    RunProgram {
        name: program.name().to_owned().into(),
        about: program.about().to_owned().into(),
        text: program.text().into(),
        streams: streams.collect::<Vec<_>>().into(),
        ..RunProgram::default()
    }
}
