//! Numbers the devices of a trace.

use std::collections::HashMap;

use crate::model::metadata::{Device, Metadata};
use crate::model::request::DeviceId;

/// The devices of a trace, numbered in the order in which they appear.
#[derive(Default)]
pub struct Devices {
    numbers: HashMap<Box<[u8]>, DeviceId>,
    last: Option<(Box<[u8]>, DeviceId)>,
}

impl Devices {
    /// Whether this is the device of the previous call.
    pub fn is_last(&self, name: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| **last == *name)
    }

    /// The number of the device of that name; `None` for the 65537th device.
    pub fn number(&mut self, name: &[u8], about: &mut Metadata) -> Option<DeviceId> {
        if let Some((last, number)) = &self.last
            && **last == *name
        {
            return Some(*number);
        }
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let number = DeviceId(u16::try_from(self.numbers.len()).ok()?);
                if number == DeviceId(0) {
                    // Metadata starts with one unnamed device, which is none of the trace.
                    about.devices.clear();
                }
                let text = String::from_utf8_lossy(name).into_owned();
                about.devices.push(Device { name: text, sectors: None });
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.last = Some((name.into(), number));
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metadata::Kind;

    #[test]
    fn devices_are_numbered_as_they_appear() {
        let mut metadata = Metadata::new(Kind::Load, "given");
        let mut devices = Devices::default();
        let numbers: Vec<_> =
            [&b"b"[..], b"a", b"b"].iter().map(|name| devices.number(name, &mut metadata).unwrap().0).collect();
        assert_eq!(numbers, [0, 1, 0]);
        let names: Vec<_> = metadata.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        for i in 2..=65_535_u32 {
            assert!(devices.number(&i.to_le_bytes(), &mut metadata).is_some());
        }
        assert!(devices.number(b"one more", &mut metadata).is_none());
    }
}
