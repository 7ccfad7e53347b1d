//! Renames, joins or drops devices.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::model::metadata::{Device, Metadata};
use crate::model::request::{DeviceId, Request};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, did_you_mean};

use super::counted::{Counted, Source};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "remap",
        about: "Renames devices, joins several into one, or drops some",
        details: "OLD is a device's name in the load, or its number there, from 0. A name may contain commas and\n\
                  colons, as in 7,1, and means all devices with that name. Devices with the same new name become one\n\
                  device, on which their requests overlap; `adjacent` puts them side by side instead.",
        params: &[
            ParamSpec {
                name: "map",
                takes: ParamType::List,
                default: ParamDefault::Required,
                help: "OLD:NEW, or OLD alone to keep it",
            },
            ParamSpec {
                name: "others",
                takes: ParamType::Word(&["keep", "drop"]),
                default: ParamDefault::Value("keep"),
                help: "the devices that are not listed",
            },
        ],
        example: "remap map=sda:disk,sdb:disk others=drop",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    // Names may contain commas: only the devices show where one ends.
    let map = settings.list("map").join(",");
    let others = if settings.text("others") == "drop" { Others::Dropped } else { Others::Kept };
    Ok(Box::new(move |rows| Ok(Counted::on_same_devices(Remapped::new(rows, &map, others)?))))
}

/// What happens to devices that are not listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Kept,
    Dropped,
}

/// A load with its devices remapped. Devices may appear late: each is looked up when it appears. A listed device that has
/// not appeared by the end is an error.
struct Remapped {
    rows: Rows,
    map: String,
    mappings: Vec<DeviceMapping>,
    others: Others,
    /// For each input device seen so far, the output device; `None` if it is dropped.
    targets: Vec<Option<DeviceId>>,
    /// Output devices by the new name given to them.
    given: HashMap<String, DeviceId>,
    /// The name of the only output device, if no input device is mapped to it yet.
    expected: Option<String>,
    dropped: bool,
    /// The metadata of the input, with the output devices.
    metadata: Metadata,
}

/// `OLD:NEW`, or `OLD` alone.
struct DeviceMapping {
    old: String,
    new: Option<String>,
    found: Found,
}

/// What `OLD` refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// All devices of that name.
    Name,
    /// The device of that number.
    Number(usize),
}

impl DeviceMapping {
    fn is_of(&self, index: usize, device: &Device) -> bool {
        match self.found {
            Found::Nothing => false,
            Found::Name => self.old == device.name,
            Found::Number(number) => number == index,
        }
    }
}

impl Remapped {
    fn new(rows: Rows, map: &str, others: Others) -> Result<Self> {
        let mut metadata = rows.metadata().clone();
        metadata.devices.clear();
        let mapping = |(old, new): (&str, Option<&str>)| DeviceMapping {
            old: old.to_owned(),
            new: new.map(str::to_owned),
            found: Found::Nothing,
        };
        let mappings = pairs(&rows.metadata().devices, map)?.into_iter().map(mapping).collect();
        let mut remapped = Self {
            rows,
            map: map.to_owned(),
            mappings,
            others,
            targets: Vec::new(),
            given: HashMap::new(),
            expected: None,
            dropped: false,
            metadata,
        };
        remapped.learn_devices()?;
        if remapped.rows.has_all_devices() {
            remapped.refuse_missing()?;
        }
        if remapped.metadata.devices.is_empty() {
            // A load has at least one device from its beginning: use the first one still to come.
            let late = remapped.mappings.iter().find(|mapping| mapping.found == Found::Nothing);
            let name = late.map(|late| late.new.clone().unwrap_or_else(|| late.old.clone())).unwrap_or_default();
            remapped.metadata.devices.push(Device { name: name.clone(), sectors: None });
            remapped.expected = Some(name);
        }
        Ok(remapped)
    }

    /// Maps the devices that have appeared since the last call.
    fn learn_devices(&mut self) -> Result<()> {
        let devices = self.rows.metadata().devices.clone();
        let known = self.targets.len();
        let late = &devices[known..];
        if known > 0 && late.iter().any(|device| device.name.contains([',', ':'])) {
            // With the new names, items may end elsewhere.
            let now = pairs(&devices, &self.map)?;
            let before = self.mappings.iter().map(|mapping| (mapping.old.as_str(), mapping.new.as_deref()));
            if !before.eq(now) {
                return Err(self.ambiguous(&late[0].name));
            }
        }
        for device in late.iter().filter(|device| !device.name.is_empty()) {
            for mapping in self.mappings.iter_mut().filter(|mapping| mapping.old == device.name) {
                match mapping.found {
                    Found::Nothing => mapping.found = Found::Name,
                    Found::Name => {}
                    Found::Number(_) => return Err(self.ambiguous(&device.name)),
                }
            }
        }
        for mapping in self.mappings.iter_mut().filter(|mapping| mapping.found == Found::Nothing) {
            let number = mapping.old.parse().ok().filter(|&index: &usize| index < devices.len());
            mapping.found = number.map_or(Found::Nothing, Found::Number);
        }
        for (index, device) in devices.iter().enumerate().skip(known) {
            let mut mentions = self.mappings.iter().filter(|mapping| mapping.is_of(index, device));
            let mapping = mentions.next();
            if mentions.next().is_some() {
                let name = if device.name.is_empty() { index.to_string() } else { device.name.clone() };
                return Err(Error::Request(format!("remap: `{}` lists the device `{name}` twice", self.map)));
            }
            let name = match mapping {
                None if self.others == Others::Dropped => None,
                Some(DeviceMapping { new: Some(new), .. }) => Some(new.clone()),
                _ => Some(device.name.clone()),
            };
            let target = name.map(|name| self.device_named(&name, device.sectors));
            self.targets.push(target);
        }
        Ok(())
    }

    /// The output device for an input device with this output name and size. Devices are joined if the user gave them
    /// one name, not if they merely have the same one.
    fn device_named(&mut self, name: &str, sectors: Option<u64>) -> DeviceId {
        // Fits: there are no more output devices than input devices.
        let mut id = DeviceId(self.metadata.devices.len() as u16);
        if self.expected.take_if(|expected| expected == name).is_some() {
            id = DeviceId(0);
            self.metadata.devices[0].sectors = sectors;
        } else if let Some(&joined) = self.given.get(name) {
            let joined = &mut self.metadata.devices[usize::from(joined.0)];
            joined.sectors = joined.sectors.zip(sectors).map(|(one, other)| one.max(other));
        } else {
            self.metadata.devices.push(Device { name: name.to_owned(), sectors });
        }
        if self.mappings.iter().any(|mapping| mapping.new.as_deref() == Some(name)) {
            return *self.given.entry(name.to_owned()).or_insert(id);
        }
        id
    }

    fn ambiguous(&self, name: &str) -> Error {
        Error::Request(format!(
            "remap: the device `{name}` appears late in the load and changes the meaning of `{}`, which was read as other \
             names or numbers; convert the load first (iosonar convert IN x.load.parquet): then all devices are known \
             from the start",
            self.map
        ))
    }

    fn refuse_missing(&self) -> Result<()> {
        let missing = self.mappings.iter().find(|mapping| mapping.found == Found::Nothing);
        missing.map_or(Ok(()), |mapping| Err(no_such(&self.rows.metadata().devices, &mapping.old)))
    }
}

impl Source for Remapped {
    fn next(&mut self) -> Result<Option<Request>> {
        loop {
            let next = self.rows.next()?;
            if self.rows.metadata().devices.len() > self.targets.len() {
                self.learn_devices()?;
            }
            self.metadata.follow_except_devices(self.rows.metadata());
            let Some(request) = next else {
                self.refuse_missing()?;
                return Ok(None);
            };
            match self.targets.get(usize::from(request.device.0)) {
                Some(Some(device)) => return Ok(Some(Request { device: *device, ..request })),
                _ => self.dropped = true,
            }
        }
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        self.rows.has_all_devices()
    }

    fn has_dropped(&self) -> bool {
        self.dropped
    }

    fn progress(&self) -> Option<f64> {
        self.rows.progress()
    }
}

/// Parses `OLD:NEW,OLD,…`.
fn pairs<'a>(devices: &[Device], map: &'a str) -> Result<Vec<(&'a str, Option<&'a str>)>> {
    let mut pairs = Vec::new();
    let mut rest = map;
    loop {
        let start = rest;
        let old = item(devices, rest, &[',', ':']);
        rest = &rest[old.len()..];
        let mut new = None;
        if let Some(after) = rest.strip_prefix(':') {
            let name = item(devices, after, &[',']);
            (new, rest) = (Some(name), &after[name.len()..]);
        }
        if old.is_empty() || new == Some("") {
            let pair = &start[..start.len() - rest.len()];
            return Err(Error::Request(format!("remap: `{pair}` is not of the form OLD:NEW")));
        }
        pairs.push((old, new));
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Ok(pairs),
        }
    }
}

/// The first item of the text: the longest device name followed by one of `ends`, else everything before the first of
/// `ends`. If other devices have names such as `7,1`, text of that form is a name before its device appears.
fn item<'a>(devices: &[Device], text: &'a str, ends: &[char]) -> &'a str {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(ends);
    let names = devices.iter().map(|device| device.name.as_str()).filter(|name| !name.is_empty());
    let longest = names.clone().filter(|name| text.strip_prefix(name).is_some_and(is_end)).map(str::len).max();
    let late = || {
        let (major, rest) = digits(text)?;
        let (minor, rest) = digits(rest.strip_prefix(',')?)?;
        let is_number = |text: &str| text.parse().is_ok_and(|number: usize| number < devices.len());
        let is_name = is_end(rest) && !(is_number(major) && is_number(minor));
        let of_that_form = |name: &str| digits(name).is_some_and(|(_, rest)| rest.starts_with(','));
        (is_name && names.clone().any(of_that_form)).then(|| text.len() - rest.len())
    };
    &text[..longest.or_else(late).or_else(|| text.find(ends)).unwrap_or(text.len())]
}

/// The leading digits of a text, and the rest.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn no_such(devices: &[Device], name: &str) -> Error {
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
}
