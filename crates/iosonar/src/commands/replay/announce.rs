//! Messages before a replay starts.

use std::io::IsTerminal;
use std::time::Duration;

use iosonar_device::Device;
use iosonar_replay::address::device_map::device_label;
use iosonar_replay::run::Prepared;
use iosonar_trace::{DeviceId, SECTOR_BYTES};

use super::repeat::Warnings;
use crate::console::status;
use crate::human;

/// Prints what the replay will overwrite, or that its result is fake.
pub fn announce(prepared: &Prepared, said: &mut Warnings) {
    for line in prepared.left_out().iter().filter(|line| said.is_new(line)) {
        status!("{line}");
    }
    if let Some(fake) = prepared.plan().options.fake() {
        status!("{fake}");
    }
    if prepared.plan().options.method.does_io() {
        announce_destruction(prepared);
    }
    // With --asap, nothing waits for a scheduled time.
    if prepared.plan().options.has_deadlines() {
        let plan = prepared.plan();
        status!("waiting between requests: {} ({})", plan.waiting.wait.name(), plan.wait_reason);
    }
    if let Some(found) = prepared.dependencies() {
        status!("dependencies: {}", found.sentence());
    }
    for change in prepared.isolation() {
        status!("isolation: {change}");
    }
    for warning in prepared.warnings().iter().filter(|warning| said.is_new(warning)) {
        status!("warning: {warning}");
    }
    if !prepared.plan().options.data.is_fresh_random() {
        status!("data of writes: {}", prepared.plan().options.data);
    }
    if !std::io::stderr().is_terminal()
        && let Some(duration) = prepared.duration()
    {
        status!("expected duration: {}", human::span(Duration::from_nanos(duration.0.max(0) as u64).as_secs_f64()));
    }
}

/// Prints which targets the replay overwrites, and with how many writes.
fn announce_destruction(prepared: &Prepared) {
    let what = demand(prepared);
    match prepared.devices() {
        [device] if prepared.plan().options.target.targets.iter().all(|mapping| mapping.source.is_none()) => {
            status!("{}: {what}", fate(prepared, device));
        }
        devices => {
            for (target, device) in devices.iter().enumerate() {
                match sources(prepared, target as u16) {
                    Some(sources) => status!("{}; for {sources}", fate(prepared, device)),
                    None => status!("{}: not used: no device of this load goes there", device.path.display()),
                }
            }
            let lost = labels(prepared, |target| target.is_none());
            if !lost.is_empty() {
                status!("skipping requests to devices without a --target: {}", lost.join(", "));
            }
            status!("{what}");
        }
    }
}

/// A target, its size, and whether the replay overwrites it.
fn fate(prepared: &Prepared, device: &Device) -> String {
    let size = human::block(device.geometry.sectors * SECTOR_BYTES);
    let fate = match (prepared.changes_targets(), &device.user) {
        (true, _) => "overwriting its content".to_owned(),
        (false, None) => "reads only".to_owned(),
        (false, Some(user)) => format!("reads only ({user}: its I/O will affect the latencies)"),
    };
    format!("{}: {size}; {fate}", device.path.display())
}

/// How much of the load writes, and what the program is.
fn demand(prepared: &Prepared) -> String {
    let program = prepared.program().map(|program| {
        let streams = program.streams.list();
        let instances: u64 = streams.iter().filter_map(|stream| stream.instances.value()).sum();
        let parts = format!(
            "{} with {}",
            human::counted(streams.len() as u64, "stream"),
            human::counted(instances, "instance")
        );
        format!("program {}: {parts}", program.name.text().unwrap_or_default())
    });
    match (program, prepared.plan().options.has_load()) {
        (Some(program), false) => program,
        (Some(program), true) => format!("{}; {program}", demand_of_load(prepared)),
        (None, _) => demand_of_load(prepared),
    }
}

fn demand_of_load(prepared: &Prepared) -> String {
    let each = if prepared.plan().options.modes.loops { " of each iteration" } else { "" };
    match (prepared.prescan(), prepared.plan().options.target.rules.reads_only) {
        (None, false) => "all writes of the load".to_owned(),
        (None, true) => "all but the reads of the load are left out".to_owned(),
        (Some(s), false) => {
            let (writes, share) = (human::count(s.writes), human::percent_of(s.writes, s.requests));
            let others = match s.others {
                0 => String::new(),
                others => format!(", {} flush, discard or write zeroes", human::count(others)),
            };
            format!("{writes} of {}{each} are writes ({share}){others}", human::counted(s.requests, "request"))
        }
        (Some(s), true) => format!(
            "{} of {}{each} are not reads and are left out",
            human::count(s.writes + s.others),
            human::counted(s.requests, "request")
        ),
    }
}

/// The devices of the load or the program that a target takes; `None` if it takes none.
fn sources(prepared: &Prepared, target: u16) -> Option<String> {
    let mut labels = labels(prepared, |to| to == Some(target));
    let (_, takes_others) = prepared.map().sources_of(target);
    if prepared.source_devices().is_empty() && takes_others {
        labels.push("all other devices".into());
    }
    (!labels.is_empty()).then(|| labels.join(", "))
}

/// The devices of the load whose target fulfils the condition, by name and number.
fn labels(prepared: &Prepared, condition: impl Fn(Option<u16>) -> bool) -> Vec<String> {
    let known = prepared.source_devices().iter().enumerate();
    let selected = known.filter(|(number, _)| condition(prepared.map().target_of(DeviceId(*number as u16))));
    selected.map(|(number, device)| device_label(number, &device.name)).collect()
}
