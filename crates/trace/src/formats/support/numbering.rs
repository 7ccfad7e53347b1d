//! Names of devices in an output format that does not allow every name. A device keeps its name if the format allows it.
//! Names are unique, so that the requests of two devices never mix.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

use super::kernel_numbers;
use crate::model::metadata::Device;

/// The name of each device of a load in the output format.
pub struct Names<Name> {
    /// Converts the name of a device, if the format allows it.
    convert: fn(&str) -> Option<Name>,
    /// Generates a name for a device whose name is not allowed or already taken.
    generate: fn(usize) -> Name,
    devices: Vec<Assigned<Name>>,
    taken: HashSet<Name>,
}

struct Assigned<Name> {
    original: String,
    name: Name,
    /// Whether there are requests for the device.
    is_used: bool,
}

/// The number of renamed devices that are listed.
const MAX_LISTED: usize = 8;

impl<Name: Clone + Eq + Hash + Display> Names<Name> {
    /// Names for the devices known so far.
    pub fn new(convert: fn(&str) -> Option<Name>, generate: fn(usize) -> Name, known: &[Device]) -> Self {
        let mut names = Self { convert, generate, devices: Vec::new(), taken: HashSet::new() };
        names.add(known);
        names
    }

    /// Adds the devices beyond those that are known.
    pub fn learn(&mut self, known: &[Device]) {
        self.add(known.get(self.len()..).unwrap_or_default());
    }

    /// Adds devices. One whose name is already taken gets a generated name.
    fn add(&mut self, new: &[Device]) {
        // Converts all names first, so that none of them is generated for another device.
        let convert = |device: &Device| (self.convert)(&device.name).filter(|name| self.taken.insert(name.clone()));
        let converted: Vec<Option<Name>> = new.iter().map(convert).collect();
        for (device, converted) in new.iter().zip(converted) {
            let name = converted.unwrap_or_else(|| self.generate());
            self.devices.push(Assigned { original: device.name.clone(), name, is_used: false });
        }
    }

    /// The first name not taken, counting from the number of the device.
    fn generate(&mut self) -> Name {
        let mut number = self.devices.len();
        loop {
            let name = (self.generate)(number);
            if self.taken.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    /// The number of known devices.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// The name of a device for a request, which marks the device as used.
    pub fn used(&mut self, device: usize) -> &Name {
        self.get(device);
        let assigned = &mut self.devices[device];
        assigned.is_used = true;
        &assigned.name
    }

    /// The name of a device. One that was never added has no original name.
    pub fn get(&mut self, device: usize) -> &Name {
        while self.devices.len() <= device {
            self.add(&[Device::default()]);
        }
        &self.devices[device].name
    }

    /// A sentence that begins with `reason` and lists the used devices whose names changed.
    pub fn describe_renamed(&self, reason: &str) -> Option<String> {
        self.list(reason, |device| !device.original.is_empty())
    }

    /// The same, with unnamed devices: for formats where a generated name may be that of a real device.
    pub fn describe_all(&self, reason: &str) -> Option<String> {
        self.list(reason, |_| true)
    }

    fn list(&self, reason: &str, counts: fn(&Assigned<Name>) -> bool) -> Option<String> {
        // A name and its number in the kernel are the same.
        let is_same = |device: &Assigned<Name>| {
            let name = device.name.to_string();
            name == device.original || kernel_numbers::text_of(&device.original) == Some(name)
        };
        let is_listed = |device: &&Assigned<Name>| device.is_used && counts(device) && !is_same(device);
        let renamed = || self.devices.iter().filter(is_listed);
        let one = |device: &Assigned<Name>| match device.original.as_str() {
            "" => format!("an unnamed device became {}", device.name),
            original => format!("{original} became {}", device.name),
        };
        let mut listed: Vec<String> = renamed().take(MAX_LISTED).map(one).collect();
        let more = renamed().count() - listed.len();
        if more > 0 {
            listed.push(format!("and {more} more"));
        }
        (!listed.is_empty()).then(|| format!("{reason}: {}", listed.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::support::check::{about, load, written};
    use crate::model::request::{DeviceId, Op, Request};
    use crate::model::units::{Nanos, Sector, Sectors};

    fn requests(devices: &[u16]) -> Vec<Request> {
        let at = |(index, &device): (usize, &u16)| Request {
            device: DeviceId(device),
            pid: Some(1),
            ..Request::new(Nanos(1000 + index as i64 * 1000), Op::Read, Sector(index as u64 * 8), Sectors(8))
        };
        devices.iter().enumerate().map(at).collect()
    }

    /// The devices of the rows of a load after writing and reading it, and the writer's messages about renamed devices.
    fn names(format: &str, devices: &[&str]) -> (Vec<String>, Vec<String>) {
        let order: Vec<u16> = (0..devices.len() as u16).collect();
        let (file, said) = written(format, &requests(&order), &about(devices));
        let (rows, read) = load(format, &file);
        let names = rows.iter().map(|row| read.devices[usize::from(row.device.0)].name.clone()).collect();
        (names, said.into_iter().filter(|said| said.contains(" became ")).collect())
    }

    #[test]
    fn names_of_devices_stay_unique() {
        for (format, devices, expected, renamed) in [
            ("blkparse", ["vda", "259,0"], ["259,1", "259,0"], "vda became 259,1"),
            ("blktrace", ["vda", "259,0"], ["259,1", "259,0"], "vda became 259,1"),
            ("blktrace", ["259,1", "vda"], ["259,1", "259,2"], "vda became 259,2"),
            ("blkparse", ["loop0", "sda1"], ["7,0", "8,1"], ""),
            ("blktrace", ["loop0", "/dev/sda1"], ["7,0", "8,1"], ""),
            ("blktrace", ["8,0", "8,0"], ["8,0", "259,1"], "8,0 became 259,1"),
            ("fio-iolog", ["sda", "sda"], ["sda", "device1"], "sda became device1"),
            ("fio-iolog", ["my disk", "device0"], ["device1", "device0"], "my disk became device1"),
            ("spc", ["5", "3"], ["5", "3"], ""),
            ("spc", ["sda", "0"], ["1", "0"], "sda became 1"),
            ("spc", ["07", "18446744073709551616"], ["7", "1"], "07 became 7, 18446744073709551616 became 1"),
        ] {
            let (read, said) = names(format, &devices);
            assert_eq!(read, expected, "{format} {devices:?}");
            assert_eq!(said.is_empty(), renamed.is_empty(), "{format}: {said:?}");
            assert!(said.iter().all(|said| said.ends_with(renamed)), "{format}: {said:?}");
        }
    }

    #[test]
    fn only_formats_with_device_numbers_report_unnamed_devices() {
        for (format, is_reported) in [("blkparse", true), ("blktrace", true), ("fio-iolog", false), ("spc", false)] {
            assert_eq!(names(format, &[""]).1.len(), usize::from(is_reported), "{format}");
        }
    }

    #[test]
    fn a_late_device_gets_another_name_if_its_own_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        for (format, late, expected) in [
            ("blkparse", "259,0", ["259,0", "259,1"]),
            ("blktrace", "259,0", ["259,0", "259,1"]),
            ("fio-iolog", "device0", ["device0", "device1"]),
            ("spc", "0", ["0", "1"]),
        ] {
            let path = directory.path().join(format);
            let of_format = crate::formats::by_name(format).unwrap();
            let mut writer = crate::create_load_as(&path, of_format, &about(&["s a"])).unwrap();
            let rows = requests(&[0, 1]);
            writer.write(&rows[0]).unwrap();
            writer.learn(&about(&["s a", late]));
            writer.write(&rows[1]).unwrap();
            let said = writer.finish(&about(&["s a", late])).unwrap().warnings;
            let (rows, read) = load(format, &std::fs::read(path).unwrap());
            let names: Vec<_> = rows.iter().map(|row| &read.devices[usize::from(row.device.0)].name).collect();
            assert_eq!(names, expected, "{format}");
            let renamed = format!("{late} became {}", expected[1]);
            assert!(said.iter().any(|said| said.ends_with(&renamed)), "{format}: {said:?}");
        }
    }

    #[test]
    fn at_most_eight_renamed_devices_are_listed() {
        let devices: Vec<Device> =
            (0..10).map(|number| Device { name: format!("sd {number}"), sectors: None }).collect();
        let mut names = Names::new(|name| name.parse::<u64>().ok(), |number| number as u64, &devices);
        assert_eq!(names.describe_renamed("x"), None, "none has a request");
        (0..10).for_each(|number| assert_eq!(*names.used(number), number as u64));
        let renamed = names.describe_renamed("x").unwrap();
        assert!(renamed.starts_with("x: sd 0 became 0, sd 1 became 1, "), "{renamed}");
        assert!(renamed.ends_with(", sd 7 became 7, and 2 more"), "{renamed}");
    }
}
