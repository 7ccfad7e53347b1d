//! The program of a run: opens it, and lays its devices on the targets.

use iosonar_device::Device;
use iosonar_pacing::buffers::Pool;
use iosonar_pacing::payload::DataSpec;
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
use crate::run::prescan::Prescan;

/// The size of the target where nothing says how large it is: 100 GiB.
const SECTORS_WITHOUT_DEVICE: Sectors = Sectors(100 << 21);

/// The first request of a program beside a load whose number of requests is not known.
const BESIDE_UNKNOWN: u64 = 1 << 40;

/// The number of a program's first request: those beside a load continue its numbers, so that `cause` means one request.
pub fn first_number(options: &Options, prescan: Option<&Prescan>) -> u64 {
    if options.has_load() { prescan.and_then(|prescan| prescan.of_load).unwrap_or(BESIDE_UNKNOWN) } else { 0 }
}

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
    /// The data of the writes of each stream.
    pub data: Vec<DataSpec>,
    /// What its conversion from a job file left out, a line each.
    pub left_out: Vec<String>,
}

impl Placed {
    /// The program as the loops take it, whose requests are numbered from `first` on, what refills their supplies of buffers,
    /// if its requests have data, and what runs ahead.
    pub fn start(
        self,
        options: &Options,
        pool: &Pool,
        first: u64,
        seed: u64,
    ) -> (Vec<ProgramInput>, Option<Refill>, Option<AheadStage>) {
        let Self { parts, ahead, demand, routes, data, .. } = self;
        let until = options.pacing.until().unwrap_or(Nanos::MAX);
        let has_data = options.method.has_device() && (demand.reads || demand.writes);
        let (refill, supplies) = has_data.then(|| supplies(&demand, pool.largest(), parts.len(), &data, seed)).unzip();
        let mut supplies = supplies.into_iter().flatten();
        let (mut ahead, stage) = ahead.map(|runtime| Ahead::of(runtime, until)).unzip();
        let input = |Part { mut runtime, .. }| {
            runtime.number_from(first);
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
    let data = placement.streams().iter().map(|stream| data_of(stream, options)).collect();
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
    Ok(Placed { parts, ahead, demand, devices, routes, info, data, left_out })
}

/// What the command line says, else the stream.
fn data_of(stream: &StreamInfo, options: &Options) -> DataSpec {
    let of_run = ["data", "compressible", "dedupe", "fill-random", "data-block"];
    match &stream.data {
        Some(data) if !of_run.into_iter().any(|name| options.typed.is_given(name)) => data.clone(),
        _ => options.data.clone(),
    }
}

impl Placed {
    /// The data of its writes, for people.
    pub fn data_text(&self, of_load: Option<&DataSpec>) -> String {
        let names = self.info.streams.known().into_iter().flatten();
        let mut all: Vec<(String, String)> =
            of_load.map(|data| (data.to_string(), "load".into())).into_iter().collect();
        for (stream, data) in names.zip(&self.data) {
            let (data, name) = (data.to_string(), stream.name.known().cloned().unwrap_or_default());
            match all.iter_mut().find(|(known, _)| *known == data) {
                Some((_, streams)) => *streams += &format!(", {name}"),
                None => all.push((data, name)),
            }
        }
        match all.as_slice() {
            [(data, _)] => data.clone(),
            all => all.iter().map(|(data, names)| format!("{names}: {data}")).collect::<Vec<_>>().join("; "),
        }
    }
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
