//! Other devices.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::model::metadata::{Device, Metadata};
use crate::model::request::{DeviceId, Request};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, did_you_mean};

use super::counted::{Counted, Source, follow};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "remap",
        about: "Renames devices, joins several into one, or leaves some out",
        details: "A device is named as in the load, or by its number there, from 0. A name may hold commas and colons, as\n\
                  7,1 does, and stands for all devices that have it. Devices that are given the same name become one, on\n\
                  which their requests overlap; `adjacent` puts them side by side instead. A device may appear late in a trace; that one never appears is told at the\n\
                  end then.",
        params: &[
            ParamSpec {
                name: "map",
                takes: ParamType::List,
                unset: ParamDefault::Refused,
                help: "OLD:NEW, or OLD alone to keep it",
            },
            ParamSpec {
                name: "others",
                takes: ParamType::Word(&["keep", "drop"]),
                unset: ParamDefault::Default("keep"),
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
    let others = if settings.text("others") == "drop" { Others::Dropped } else { Others::Kept };
    Ok(Box::new(move |rows| Ok(Counted::on_same_devices(Remapped::new(rows, &map, others)?))))
}

/// What happens to devices that are not mentioned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Kept,
    Dropped,
}

/// A load on other devices. A long trace may name devices that nobody knew of at its beginning: each is looked up when
/// it appears, and what was mentioned but never appeared is an error at the end.
struct Remapped {
    rows: Rows,
    map: String,
    mentioned: Vec<Mention>,
    others: Others,
    /// For each device of the load that was seen, where it goes.
    targets: Vec<Option<DeviceId>>,
    /// Where the devices of a name that was given to some go: to one.
    given: HashMap<String, DeviceId>,
    /// The name of the only device, which has not appeared yet.
    expected: Option<String>,
    dropped: bool,
    /// That of the load, on the new devices.
    metadata: Metadata,
}

/// `OLD:NEW`, or `OLD` alone.
struct Mention {
    old: String,
    new: Option<String>,
    found: Found,
}

/// What `OLD` turned out to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// The name of every device that has it.
    Name,
    /// The number of one.
    Number(usize),
}

impl Mention {
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
        let mention = |(old, new): (&str, Option<&str>)| Mention {
            old: old.to_owned(),
            new: new.map(str::to_owned),
            found: Found::Nothing,
        };
        let mentioned = pairs(&rows.metadata().devices, map)?.into_iter().map(mention).collect();
        let mut remapped = Self {
            rows,
            map: map.to_owned(),
            mentioned,
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
            // A load has a device from its beginning: the first of those that are still to come.
            let late = remapped.mentioned.iter().find(|mention| mention.found == Found::Nothing);
            let name = late.map(|late| late.new.clone().unwrap_or_else(|| late.old.clone())).unwrap_or_default();
            remapped.metadata.devices.push(Device { name: name.clone(), sectors: None });
            remapped.expected = Some(name);
        }
        Ok(remapped)
    }

    /// Finds out what becomes of the devices that were not seen before.
    fn learn_devices(&mut self) -> Result<()> {
        let devices = self.rows.metadata().devices.clone();
        let known = self.targets.len();
        let late = &devices[known..];
        if known > 0 && late.iter().any(|device| device.name.contains([',', ':'])) {
            // Where an item ends depends on the names.
            let now = pairs(&devices, &self.map)?;
            let before = self.mentioned.iter().map(|mention| (mention.old.as_str(), mention.new.as_deref()));
            if !before.eq(now) {
                return Err(self.ambiguous(&late[0].name));
            }
        }
        for device in late.iter().filter(|device| !device.name.is_empty()) {
            for mention in self.mentioned.iter_mut().filter(|mention| mention.old == device.name) {
                match mention.found {
                    Found::Nothing => mention.found = Found::Name,
                    Found::Name => {}
                    Found::Number(_) => return Err(self.ambiguous(&device.name)),
                }
            }
        }
        for mention in self.mentioned.iter_mut().filter(|mention| mention.found == Found::Nothing) {
            let number = mention.old.parse().ok().filter(|&index: &usize| index < devices.len());
            mention.found = number.map_or(Found::Nothing, Found::Number);
        }
        for (index, device) in devices.iter().enumerate().skip(known) {
            let mut mentions = self.mentioned.iter().filter(|mention| mention.is_of(index, device));
            let mention = mentions.next();
            if mentions.next().is_some() {
                let name = if device.name.is_empty() { index.to_string() } else { device.name.clone() };
                return Err(Error::Request(format!("remap: the device `{name}` stands twice in `{}`", self.map)));
            }
            let name = match mention {
                None if self.others == Others::Dropped => None,
                Some(Mention { new: Some(new), .. }) => Some(new.clone()),
                _ => Some(device.name.clone()),
            };
            let target = name.map(|name| self.device_named(&name, device.sectors));
            self.targets.push(target);
        }
        Ok(())
    }

    /// The device of that name, which is at least so large. Those that are given one name become one; others stay what
    /// they are, whatever they are called.
    fn device_named(&mut self, name: &str, sectors: Option<u64>) -> DeviceId {
        // No more than the load has, and so many have numbers.
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
        if self.mentioned.iter().any(|mention| mention.new.as_deref() == Some(name)) {
            return *self.given.entry(name.to_owned()).or_insert(id);
        }
        id
    }

    fn ambiguous(&self, name: &str) -> Error {
        Error::Request(format!(
            "remap: the device `{name}` appears so late in the load that `{}` was understood without it, as other names \
             or numbers; convert the load first (iosonar convert IN x.load.parquet), and all devices are known from \
             the start",
            self.map
        ))
    }

    fn refuse_missing(&self) -> Result<()> {
        let missing = self.mentioned.iter().find(|mention| mention.found == Found::Nothing);
        missing.map_or(Ok(()), |mention| Err(no_such(&self.rows.metadata().devices, &mention.old)))
    }
}

impl Source for Remapped {
    fn next(&mut self) -> Result<Option<Request>> {
        loop {
            let next = self.rows.next()?;
            if self.rows.metadata().devices.len() > self.targets.len() {
                self.learn_devices()?;
            }
            follow(&mut self.metadata, self.rows.metadata());
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

/// The devices that `OLD:NEW,OLD,…` mentions, and their new names.
fn pairs<'a>(devices: &[Device], map: &'a str) -> Result<Vec<(&'a str, Option<&'a str>)>> {
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
        pairs.push((old, new));
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None => return Ok(pairs),
        }
    }
}

/// What the text begins with: the longest name of a device that ends where an item can end, else all up to there. Names
/// such as `7,1` hold what ends an item; among others of that form they are known before they appear.
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

/// The digits that a text begins with, and what follows.
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
