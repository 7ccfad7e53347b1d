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
        details: "A device is named as in the load, or by its number there, from 0. Devices that get the same name become\n\
                  one, on which their requests overlap; `adjacent` puts them side by side instead.",
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
    let mut map = Vec::new();
    for pair in settings.list("map") {
        let (old, new) = pair.split_once(':').map_or((pair.as_str(), None), |(old, new)| (old, Some(new.to_owned())));
        if old.is_empty() || new.as_deref() == Some("") {
            return Err(format!("`{pair}` is not of the form OLD:NEW"));
        }
        map.push((old.to_owned(), new));
    }
    let drop_others = settings.text("others") == "drop";
    Ok(Box::new(move |rows| apply(rows, &map, drop_others)))
}

fn apply(rows: Rows, map: &[(String, Option<String>)], drop_others: bool) -> Result<Rows> {
    let old = &rows.metadata().devices;
    let mut renamed: Vec<Option<String>> =
        old.iter().map(|device| (!drop_others).then(|| device.name.clone())).collect();
    for (name, new) in map {
        let index = index_of(old, name)?;
        renamed[index] = Some(new.clone().unwrap_or_else(|| old[index].name.clone()));
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

fn index_of(devices: &[Device], name: &str) -> Result<usize> {
    let by_number = || name.parse().ok().filter(|index| *index < devices.len());
    devices.iter().position(|device| device.name == name).or_else(by_number).ok_or_else(|| {
        let names = devices.iter().map(|device| device.name.as_str()).filter(|name| !name.is_empty());
        let last = devices.len() - 1;
        let suggestion = match names.clone().next() {
            Some(_) => format!("{}, or by number 0 to {last}", did_you_mean(name, names)),
            None => format!("its devices have no names, only numbers: 0 to {last}"),
        };
        Error::Request(format!("remap: the load has no device `{name}`; {suggestion}"))
    })
}
