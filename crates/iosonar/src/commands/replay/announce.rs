//! What is said before anything is overwritten.

use std::io::IsTerminal;
use std::time::Duration;

use iosonar_replay::data::DataSpec;
use iosonar_replay::run::Prepared;
use iosonar_trace::SECTOR_BYTES;

use crate::human;

/// Says what is going to be overwritten, before it is.
pub fn announce(prepared: &Prepared) {
    let device = &prepared.devices()[0];
    let size = human::block(device.geometry.sectors * SECTOR_BYTES);
    let what = prepared.survey().map_or_else(
        || "whatever the load writes".to_owned(),
        |s| format!("{} of {} requests write", s.writes, s.requests),
    );
    eprintln!("{}: {size}; its content is overwritten: {what}", device.path.display());
    for said in prepared.isolation() {
        eprintln!("isolated: {said}");
    }
    for warning in prepared.warnings() {
        eprintln!("warning: {warning}");
    }
    if *prepared.data() != DataSpec::default() {
        eprintln!("what is written: {}", prepared.data());
    }
    if !std::io::stderr().is_terminal()
        && let Some(duration) = prepared.duration()
    {
        eprintln!("this takes {}", human::span(Duration::from_nanos(duration.0.max(0) as u64).as_secs_f64()));
    }
}
