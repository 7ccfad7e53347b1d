//! What is said before anything is overwritten.

use std::io::IsTerminal;
use std::time::Duration;

use iosonar_replay::data::DataSpec;
use iosonar_replay::device::Device;
use iosonar_replay::mapping::labelled;
use iosonar_replay::run::Prepared;
use iosonar_trace::{DeviceId, SECTOR_BYTES};

use crate::human;
use crate::told::tell;

/// Says what is going to be overwritten, before it is, or that nothing is real.
pub fn announce(prepared: &Prepared) {
    if let Some(fake) = prepared.options().fake() {
        tell!("{fake}");
    }
    if prepared.options().method.does_io() {
        announce_destruction(prepared);
    }
    for said in prepared.isolation() {
        tell!("isolated: {said}");
    }
    for warning in prepared.warnings() {
        tell!("warning: {warning}");
    }
    if prepared.options().data != DataSpec::default() {
        tell!("what is written: {}", prepared.options().data);
    }
    if !std::io::stderr().is_terminal()
        && let Some(duration) = prepared.duration()
    {
        tell!("this takes {}", human::span(Duration::from_nanos(duration.0.max(0) as u64).as_secs_f64()));
    }
}

/// What becomes of the targets, and by what.
fn announce_destruction(prepared: &Prepared) {
    let what = demand(prepared);
    match prepared.devices() {
        [device] if prepared.options().targets.iter().all(|mapping| mapping.source.is_none()) => {
            tell!("{}: {what}", fate(prepared, device));
        }
        devices => {
            for (target, device) in devices.iter().enumerate() {
                tell!("{}; for {}", fate(prepared, device), sources(prepared, target as u16));
            }
            let lost = labels(prepared, |target| target.is_none());
            if !lost.is_empty() {
                tell!("left out, for no --target names them: {}", lost.join(", "));
            }
            tell!("{what}");
        }
    }
}

/// What becomes of a target.
fn fate(prepared: &Prepared, device: &Device) -> String {
    let size = human::block(device.geometry.sectors * SECTOR_BYTES);
    let fate = match (prepared.options().reads_only, &device.user) {
        (false, _) => "its content is overwritten".to_owned(),
        (true, None) => "it is only read".to_owned(),
        (true, Some(user)) => format!("it is only read ({user}: what others do there will show in the times)"),
    };
    format!("{}: {size}; {fate}", device.path.display())
}

/// How much of the load that is about.
fn demand(prepared: &Prepared) -> String {
    let again = if prepared.options().again { " of each round" } else { "" };
    match (prepared.survey(), prepared.options().reads_only) {
        (None, false) => "whatever the load writes".to_owned(),
        (None, true) => "all but the reads of the load is left out".to_owned(),
        (Some(s), false) => format!("{} of {} requests{again} write", s.writes, s.requests),
        (Some(s), true) => format!("{} of {} requests{again} are no reads, and are left out", s.writes, s.requests),
    }
}

/// Which devices of the load go to a target.
fn sources(prepared: &Prepared, target: u16) -> String {
    let mut labels = labels(prepared, |to| to == Some(target));
    let (_, takes_others) = prepared.map().sources_of(target);
    if prepared.survey().is_none() && takes_others {
        labels.push("all that no other target takes".into());
    }
    if labels.is_empty() { "nothing of this load".into() } else { labels.join(", ") }
}

/// The devices of the load whose target is such, by name and number.
fn labels(prepared: &Prepared, is_such: impl Fn(Option<u16>) -> bool) -> Vec<String> {
    let known = prepared.survey().map_or(&[][..], |survey| &survey.devices);
    let such =
        known.iter().enumerate().filter(|(number, _)| is_such(prepared.map().target_of(DeviceId(*number as u16))));
    such.map(|(number, device)| labelled(number, &device.name)).collect()
}
