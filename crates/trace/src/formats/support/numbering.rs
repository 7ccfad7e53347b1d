//! The names that devices get in a format that can't take every name: their own where it can, and no two alike. Whoever
//! took one device for another would mix up their requests, and their latencies.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

use crate::model::metadata::Device;

/// What the format calls each device of a load.
pub struct Names<Name> {
    /// The name as the format has it, if it can have it.
    own: fn(&str) -> Option<Name>,
    /// One of the names for devices without such a name.
    made_up: fn(usize) -> Name,
    given: Vec<Given<Name>>,
    taken: HashSet<Name>,
}

struct Given<Name> {
    was: String,
    is: Name,
    is_used: bool,
}

/// Changed names that a message lists; further ones are only counted.
const MAX_DESCRIBED: usize = 8;

impl<Name: Clone + Eq + Hash + Display> Names<Name> {
    /// Of those devices, which are known by now.
    pub fn new(own: fn(&str) -> Option<Name>, made_up: fn(usize) -> Name, known: &[Device]) -> Self {
        let mut names = Self { own, made_up, given: Vec::new(), taken: HashSet::new() };
        names.learn(known);
        names
    }

    /// Further devices. A name that was given away already is not theirs any more.
    pub fn learn(&mut self, new: &[Device]) {
        // All names that are some device's own come first, so that none of them is made up for another one.
        let own = |device: &Device| (self.own)(&device.name).filter(|name| self.taken.insert(name.clone()));
        let own: Vec<Option<Name>> = new.iter().map(own).collect();
        for (device, own) in new.iter().zip(own) {
            let is = own.unwrap_or_else(|| self.make_up());
            self.given.push(Given { was: device.name.clone(), is, is_used: false });
        }
    }

    /// The first name that nobody has, from the device's own place on.
    fn make_up(&mut self) -> Name {
        let mut place = self.given.len();
        loop {
            let name = (self.made_up)(place);
            if self.taken.insert(name.clone()) {
                return name;
            }
            place += 1;
        }
    }

    /// How many devices are known.
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// The name of a device that requests are for.
    pub fn of(&mut self, device: usize) -> &Name {
        self.get(device);
        let given = &mut self.given[device];
        given.is_used = true;
        &given.is
    }

    /// The name of a device, whether there are requests for it or not. One that nobody told of has none of its own.
    pub fn get(&mut self, device: usize) -> &Name {
        while self.given.len() <= device {
            self.learn(&[Device::default()]);
        }
        &self.given[device].is
    }

    /// A sentence that begins with `beginning` and lists the devices whose name was changed; `None` if there are none.
    pub fn describe_renamed(&self, beginning: &str) -> Option<String> {
        self.describe(beginning, |given| !given.was.is_empty())
    }

    /// Like [`Names::describe_renamed`], but also lists devices without a name: for formats in which the generated name
    /// may be that of a real device.
    pub fn describe_all(&self, beginning: &str) -> Option<String> {
        self.describe(beginning, |_| true)
    }

    fn describe(&self, beginning: &str, counts: fn(&Given<Name>) -> bool) -> Option<String> {
        let is_lost = |given: &&Given<Name>| given.is_used && counts(given) && given.is.to_string() != given.was;
        let lost = || self.given.iter().filter(is_lost);
        let one = |given: &Given<Name>| match given.was.as_str() {
            "" => format!("one without a name is {}", given.is),
            was => format!("{was} is {}", given.is),
        };
        let mut told: Vec<String> = lost().take(MAX_DESCRIBED).map(one).collect();
        let more = lost().count() - told.len();
        if more > 0 {
            told.push(format!("and so on for {more} more"));
        }
        (!told.is_empty()).then(|| format!("{beginning}: {}", told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::support::check::{about, load, written};
    use crate::model::request::{DeviceId, Op, Request};
    use crate::model::units::{Nanos, Sector, Sectors};

    fn requests(devices: &[u16]) -> Vec<Request> {
        let at = |(place, &device): (usize, &u16)| Request {
            device: DeviceId(device),
            pid: Some(1),
            ..Request::new(Nanos(1000 + place as i64 * 1000), Op::Read, Sector(place as u64 * 8), Sectors(8))
        };
        devices.iter().enumerate().map(at).collect()
    }

    /// The names that a load's rows have when it was written and read again, and what the writer said of names.
    fn names(format: &str, devices: &[&str]) -> (Vec<String>, Vec<String>) {
        let order: Vec<u16> = (0..devices.len() as u16).collect();
        let (file, said) = written(format, &requests(&order), &about(devices));
        let (rows, read) = load(format, &file);
        let names = rows.iter().map(|row| read.devices[usize::from(row.device.0)].name.clone()).collect();
        (names, said.into_iter().filter(|said| said.contains(" is ")).collect())
    }

    #[test]
    fn no_device_is_taken_for_another() {
        for (format, devices, expected, said) in [
            ("blkparse", ["sda", "259,0"], ["259,1", "259,0"], "sda is 259,1"),
            ("blktrace", ["sda", "259,0"], ["259,1", "259,0"], "sda is 259,1"),
            ("blktrace", ["259,1", "sda"], ["259,1", "259,2"], "sda is 259,2"),
            ("blktrace", ["8,0", "8,0"], ["8,0", "259,1"], "8,0 is 259,1"),
            ("fio-iolog", ["sda", "sda"], ["sda", "device1"], "sda is device1"),
            ("fio-iolog", ["my disk", "device0"], ["device1", "device0"], "my disk is device1"),
            ("spc", ["5", "3"], ["5", "3"], ""),
            ("spc", ["sda", "0"], ["1", "0"], "sda is 1"),
            ("spc", ["07", "18446744073709551616"], ["7", "1"], "07 is 7, 18446744073709551616 is 1"),
        ] {
            let (read, told) = names(format, &devices);
            assert_eq!(read, expected, "{format} {devices:?}");
            assert!(said.is_empty() == told.is_empty() && told.iter().all(|t| t.ends_with(said)), "{format}: {told:?}");
        }
    }

    #[test]
    fn a_device_without_a_name_has_none_to_lose() {
        for (format, is_told) in [("blkparse", true), ("blktrace", true), ("fio-iolog", false), ("spc", false)] {
            assert_eq!(names(format, &[""]).1.len(), usize::from(is_told), "{format}");
        }
    }

    #[test]
    fn what_appears_late_gets_another_name_if_its_own_is_given_away() {
        let folder = tempfile::tempdir().unwrap();
        for (format, late, expected) in [
            ("blkparse", "259,0", ["259,0", "259,1"]),
            ("blktrace", "259,0", ["259,0", "259,1"]),
            ("fio-iolog", "device0", ["device0", "device1"]),
            ("spc", "0", ["0", "1"]),
        ] {
            let path = folder.path().join(format);
            let of_format = crate::formats::by_name(format).unwrap();
            let mut writer = crate::create_load_as(&path, of_format, &about(&["s a"])).unwrap();
            let rows = requests(&[0, 1]);
            writer.write(&rows[0]).unwrap();
            writer.learn_devices(&about(&[late]).devices);
            writer.write(&rows[1]).unwrap();
            let said = writer.finish(&about(&["s a", late])).unwrap().warnings;
            let (rows, read) = load(format, &std::fs::read(path).unwrap());
            let names: Vec<_> = rows.iter().map(|row| &read.devices[usize::from(row.device.0)].name).collect();
            assert_eq!(names, expected, "{format}");
            let told = format!("{late} is {}", expected[1]);
            assert!(said.iter().any(|said| said.ends_with(&told)), "{format}: {said:?}");
        }
    }

    #[test]
    fn names_that_many_devices_lost_are_not_all_told() {
        let devices: Vec<Device> =
            (0..10).map(|number| Device { name: format!("sd {number}"), sectors: None }).collect();
        let mut names = Names::new(|name| name.parse::<u64>().ok(), |place| place as u64, &devices);
        assert_eq!(names.describe_renamed("x"), None, "none has a request");
        (0..10).for_each(|number| assert_eq!(*names.of(number), number as u64));
        let told = names.describe_renamed("x").unwrap();
        assert!(told.starts_with("x: sd 0 is 0, sd 1 is 1, "), "{told}");
        assert!(told.ends_with(", sd 7 is 7, and so on for 2 more"), "{told}");
    }
}
