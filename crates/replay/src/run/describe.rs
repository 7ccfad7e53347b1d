//! What the footer says about a run before it starts.

use iosonar_device::Device;
use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::host::machine;
use iosonar_trace::run_info::RunData;
use iosonar_trace::{self as trace, Kind, Metadata, RunInfo, path_text};

use super::program::Placed;
use super::targets;
use crate::address::device_map::DeviceMap;
use crate::config::plan::Plan;
use crate::dependencies::Dependencies;

/// A run that is described.
pub struct Described<'a> {
    pub plan: &'a Plan,
    /// The metadata of the load.
    pub load: &'a Metadata,
    pub load_devices: Vec<trace::Device>,
    pub program: Option<&'a Placed>,
    pub dependencies: Option<&'a Dependencies>,
    pub targets: &'a [Device],
    pub map: &'a DeviceMap,
    /// The seed of the data of writes.
    pub seed: u64,
    pub contention: Option<&'a Contention>,
    pub isolation: Option<&'a Isolation>,
}

impl Described<'_> {
    /// The footer so far.
    pub fn metadata(self) -> Metadata {
        let Self { plan, targets, map, program, .. } = self;
        let options = &plan.options;
        let mut metadata = Metadata::new(Kind::Replay, "iosonar");
        metadata.source.path = options.load.as_ref().map(path_text);
        metadata.source.preamble.clone_from(&self.load.source.preamble);
        metadata.devices = match program {
            Some(program) if !options.has_load() => program.devices.clone(),
            _ => self.load_devices,
        };
        let of_load = options.has_load().then_some(&options.data);
        let what = program.map_or_else(|| options.data.to_string(), |program| program.data_text(of_load));
        let mut run = RunInfo {
            load: metadata.source.path.clone().map(Into::into).unwrap_or_default(),
            program: program.map(|program| program.info.clone().into()).unwrap_or_default(),
            dependencies: self.dependencies.map(|known| known.summary().into()).unwrap_or_default(),
            options: plan.resolved_options().into(),
            typed: options.typed.options().clone().into(),
            configured: options.typed.configured().to_vec().into(),
            target: targets[0].describe().into(),
            targets: targets::describe(targets, map).into(),
            machine: machine::snapshot().into(),
            fake: options.fake().into(),
            wait: plan.waiting.wait.name().into(),
            wait_reason: plan.wait_reason.clone().into(),
            contention: self.contention.map(Contention::describe).into(),
            data: RunData { what: what.into(), seed: self.seed.into(), ..RunData::default() }.into(),
            ..RunInfo::default()
        };
        if let Some(isolation) = self.isolation {
            run.isolation = isolation.changes().to_vec().into();
        }
        metadata.run = Some(Box::new(run));
        metadata
    }
}
