//! A stream that is a recorded load: reads its keys, and makes the filament that asks for the requests of the load.

mod contents;
mod filament;
mod settings;

use std::path::Path;

use iosonar_trace::params::{Section, did_you_mean, parse_count, parse_positive};
use iosonar_trace::{DeviceId, Nanos, Sectors, human};
use toml::de::DeTable;

pub(super) use contents::Loads;
use contents::{Contents, DeviceContents};
pub(super) use settings::{Area, Recorded};

use super::keys::STREAM;
use super::parts::{above_zero, times};

/// The keys that a load has. `instances` is only accepted as 1.
const KEYS: [&str; 11] =
    ["data", "name", "load", "load_device", "start", "end", "speedup", "passes", "device", "region", "instances"];

/// The keys that only a load has.
pub(super) const OF_LOADS: [&str; 2] = ["load_device", "speedup"];

/// Why a load does not have a key.
fn why_not(key: &str) -> &'static str {
    match key {
        "script" | "code" => "a stream is a load or a script, not both; remove one of the keys",
        "arrivals" | "closed" => "the load says when its requests come; remove the key, or the load",
        "think" | "rate_limit" | "depth" => "the requests of a load do not wait for others; remove the key",
        "after" => "the times of a load do not wait for other streams; use `start`",
        "ramp_up" => "a load has one instance; use `start`",
        "per_scale" => "--scale does not multiply a load; remove the key, or use `speedup`",
        "own_region" => "a load has one instance; use `region`",
        "requests" => "a load ends after all of its requests; use `passes` or `end`",
        _ => "the load says what its requests are and where they go; remove the key, or the load",
    }
}

/// Whether a stream is a load.
pub(super) fn is_load(table: &DeTable<'_>) -> bool {
    table.contains_key("load")
}

/// Refuses keys that a load does not have.
pub(super) fn check_keys(section: &Section<'_, '_>) -> Result<(), String> {
    let others = STREAM.iter().filter(|key| !KEYS.contains(&key.name));
    if let Some(key) = others.map(|key| key.name).find(|key| section.has(key)) {
        return Err(section.error(key, why_not(key)));
    }
    if section.parsed("instances", parse_count)?.is_some_and(|instances| instances != 1) {
        let why = "a load is one sequence of requests; remove the key, or add another [[stream]] with the load";
        return Err(section.error("instances", why));
    }
    Ok(())
}

/// Reads a stream that is a load, whose requests go to this area.
pub(super) fn read(section: &Section<'_, '_>, area: Area, loads: &Loads) -> Result<Recorded, String> {
    let (start, _, end) = times(section)?;
    let speedup = section.parsed("speedup", parse_positive)?.unwrap_or(1.0);
    let passes = section.parsed("passes", above_zero(parse_count))?.unwrap_or(1);
    let name = section.text("load")?.unwrap_or_default();
    if name.is_empty() || name == "-" {
        let why = "name the file of a load; it is read several times, so standard input cannot be one";
        return Err(section.error("load", why));
    }
    let path = Path::new(section.text.file).with_file_name(name);
    let contents = loads.contents(&path).map_err(|why| section.error("load", &why))?;
    let (from, about) = device(section, &contents)?;
    if about.longest.0 > area.size {
        let key = if section.has("region") { "region" } else { "load" };
        let why = format!(
            "the load has a request of {}, but the region has {}; use a larger region",
            human::block(about.longest.bytes()),
            human::block(Sectors(area.size).bytes())
        );
        return Err(section.error(key, &why));
    }
    let (zero, period) = (contents.first.min(Nanos::ZERO), contents.period());
    let place = section.error("load", "");
    Ok(Recorded { path, place, from, area, start, end, speedup, passes, zero, period, about })
}

/// The device of the load whose requests are asked for.
fn device(section: &Section<'_, '_>, contents: &Contents) -> Result<(DeviceId, DeviceContents), String> {
    let used = || contents.devices.iter().enumerate().filter(|(_, device)| device.requests > 0);
    let named = |(number, device): (usize, &DeviceContents)| (DeviceId(number as u16), device.clone());
    let label = |(number, device): (usize, &DeviceContents)| match device.name.as_str() {
        "" => number.to_string(),
        name => name.to_owned(),
    };
    let Some(name) = section.text("load_device")? else {
        let labels: Vec<_> = used().map(label).collect();
        return match (used().next(), labels.len()) {
            (None, _) => Err(section.error("load", "the load has no requests")),
            (Some(only), 1) => Ok(named(only)),
            (Some(_), count) => {
                let why = format!(
                    "missing: the load has requests of {count} devices ({}); name one, as in load_device = \"{}\"",
                    labels.join(", "),
                    labels[0]
                );
                Err(section.error("load_device", &why))
            }
        };
    };
    let number = contents.devices.iter().position(|device| device.name == name).or_else(|| name.parse().ok());
    let found = number.and_then(|number| Some((number, contents.devices.get(number)?)));
    match found {
        Some((_, device)) if device.requests == 0 => {
            Err(section.error("load_device", &format!("the load has no request of device {name}")))
        }
        Some(found) => Ok(named(found)),
        None => {
            let known: Vec<_> = used().map(label).collect();
            let near = did_you_mean(&name, known.iter().map(String::as_str));
            Err(section.error("load_device", &format!("the load has no device {name}; {near}")))
        }
    }
}
