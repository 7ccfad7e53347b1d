//! Other devices.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::metadata::Device;
use crate::request::DeviceId;
use crate::words::{Form, Param, Settings, Takes, Unset, did_you_mean};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Form {
        name: "remap",
        about: "Renames devices, joins several into one, or leaves some out",
        details: "A device is named as in the load, or by its number there, from 0. A name may hold commas and colons, as\n\
                  7,1 does. Devices that get the same name become one, on which their requests overlap; `adjacent` puts\n\
                  them side by side instead.",
        params: &[
            Param { name: "map", takes: Takes::List, unset: Unset::Refused, help: "OLD:NEW, or OLD alone to keep it" },
            Param {
                name: "others",
                takes: Takes::Word(&["keep", "drop"]),
                unset: Unset::Default("keep"),
                help: "what happens to devices that are not mentioned",
            },
        ],
        example: "remap map=sda:disk,sdb:disk others=drop",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    // Names may hold commas: where one ends is known with the devices.
    let map = settings.list("map").join(",");
    let drop_others = settings.text("others") == "drop";
    Ok(Box::new(move |rows| apply(rows, &map, drop_others)))
}

fn apply(rows: Rows, map: &str, drop_others: bool) -> Result<Rows> {
    let old = &rows.metadata().devices;
    let mut renamed: Vec<Option<String>> =
        old.iter().map(|device| (!drop_others).then(|| device.name.clone())).collect();
    let mut mentioned = vec![false; old.len()];
    for (index, new) in pairs(old, map)? {
        if std::mem::replace(&mut mentioned[index], true) {
            let name = if old[index].name.is_empty() { index.to_string() } else { old[index].name.clone() };
            return Err(Error::Request(format!("remap: the device `{name}` stands twice in `{map}`")));
        }
        renamed[index] = Some(new.map_or_else(|| old[index].name.clone(), str::to_owned));
    }
    let mut devices: Vec<Device> = Vec::new();
    let mut by_name: HashMap<&str, DeviceId> = HashMap::new();
    let mut target = vec![None; old.len()];
    for (index, name) in renamed.iter().enumerate() {
        let Some(name) = name else { continue };
        let id = *by_name.entry(name).or_insert_with(|| {
            devices.push(Device { name: name.clone(), sectors: Some(0) });
            DeviceId((devices.len() - 1) as u16)
        });
        let joined = &mut devices[usize::from(id.0)];
        joined.sectors = joined.sectors.zip(old[index].sectors).map(|(one, other)| one.max(other));
        target[index] = Some(id);
    }
    if devices.is_empty() {
        return Err(Error::Request("remap: no device is left".into()));
    }
    let step = move |mut request: crate::Request| match target.get(usize::from(request.device.0)) {
        Some(Some(device)) => {
            request.device = *device;
            Step::Emit(request)
        }
        _ => Step::Skip,
    };
    Ok(Counted::on_devices(PerRow::new(rows, step), devices))
}

/// The devices that `OLD:NEW,OLD,…` mentions, by number, and their new names.
fn pairs<'a>(devices: &[Device], map: &'a str) -> Result<Vec<(usize, Option<&'a str>)>> {
    let mut pairs = Vec::new();
    let mut rest = map;
    loop {
        let start = rest;
        let old = item(devices, rest, &[',', ':']);
        rest = &rest[old.len()..];
        let mut new = None;
        if let Some(behind) = rest.strip_prefix(':') {
            let name = item(devices, behind, &[',']);
            (new, rest) = (Some(name), &behind[name.len()..]);
        }
        if old.is_empty() || new == Some("") {
            let pair = &start[..start.len() - rest.len()];
            return Err(Error::Request(format!("remap: `{pair}` is not of the form OLD:NEW")));
        }
        pairs.push((index_of(devices, old)?, new));
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None => return Ok(pairs),
        }
    }
}

/// What the text begins with: the longest name of a device that ends where an item can end, else all up to there. Names
/// such as `7,1` hold what ends an item.
fn item<'a>(devices: &[Device], text: &'a str, ends: &[char]) -> &'a str {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(ends);
    let names = devices.iter().map(|device| device.name.as_str()).filter(|name| !name.is_empty());
    let longest = names.filter(|name| text.strip_prefix(name).is_some_and(is_end)).map(str::len).max();
    &text[..longest.or_else(|| text.find(ends)).unwrap_or(text.len())]
}

fn index_of(devices: &[Device], name: &str) -> Result<usize> {
    let by_number = || name.parse().ok().filter(|index| *index < devices.len());
    devices.iter().position(|device| device.name == name).or_else(by_number).ok_or_else(|| {
        let names = devices.iter().map(|device| device.name.as_str()).filter(|name| !name.is_empty());
        let numbers = match devices.len() {
            1 => "its only number is 0".to_owned(),
            count => format!("its numbers go from 0 to {}", count - 1),
        };
        let suggestion = match names.clone().next() {
            Some(_) => format!("{numbers}; {}", did_you_mean(name, names)),
            None => format!("{numbers}, and it has no names"),
        };
        Error::Request(format!("remap: the load has no device `{name}`; {suggestion}"))
    })
}
