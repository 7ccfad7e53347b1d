//! Devices of a program, and regions of them.

use super::sizes::bytes_text;

/// Whether a file is a whole device, whose size is not that of the job: on Linux, or on Windows (`\\.\PhysicalDrive1`, `E:`).
pub fn is_raw_device(name: &str) -> bool {
    let is_drive = |name: &str| matches!(name.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    name.starts_with("/dev/") || name.starts_with(r"\\.\") || is_drive(name)
}

/// A position: bytes, or a percentage of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    Bytes(u64),
    Percent(f64),
}

impl Extent {
    pub const START: Self = Self::Bytes(0);

    pub fn text(self) -> String {
        match self {
            Self::Bytes(bytes) => bytes_text(bytes),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }

    /// This far behind another.
    pub fn after(self, from: Self) -> Option<Self> {
        match (from, self) {
            (Self::START, to) => Some(to),
            (Self::Bytes(from), Self::Bytes(length)) => Some(Self::Bytes(from.saturating_add(length))),
            // A size of 10 % is a share of what is behind the offset.
            (Self::Percent(from), Self::Percent(length)) => Some(Self::Percent(from + (100.0 - from) * length / 100.0)),
            _ => None,
        }
    }
}

/// A part of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Its number in [`Devices`].
    pub device: usize,
    pub from: Extent,
    /// `None`: to the end.
    pub to: Option<Extent>,
}

impl Region {
    /// As in a program; `None` for the whole device.
    pub fn text(&self, devices: &Devices) -> Option<String> {
        match (self.from, self.to) {
            (Extent::START, None) => None,
            (Extent::START, Some(Extent::Bytes(end))) if devices.0[self.device].size == Some(end) => None,
            (Extent::START, Some(to)) => Some(to.text()),
            (from, to) => Some(format!("{}..{}", from.text(), to.map(Extent::text).unwrap_or_default())),
        }
    }

    /// Its length in bytes, if that is known.
    pub fn bytes(&self) -> Option<u64> {
        match (self.from, self.to) {
            (Extent::Bytes(from), Some(Extent::Bytes(to))) => Some(to - from),
            _ => None,
        }
    }

    /// So many bytes of it, at this distance from its beginning; all of it if that is a percentage.
    pub fn inner(self, at: u64, bytes: u64) -> Self {
        match self.from {
            Extent::Bytes(from) => {
                Self { from: Extent::Bytes(from + at), to: Some(Extent::Bytes(from + at + bytes)), ..self }
            }
            Extent::Percent(_) => self,
        }
    }

    /// A part of it, from one share to another (0 to 1), in multiples of `unit` bytes. `None` if its size is not known.
    pub fn part(&self, from: f64, to: f64, unit: u64) -> Option<Self> {
        let is_end = to > 1.0 - 1e-9;
        if let Some(bytes) = self.bytes() {
            let Extent::Bytes(first) = self.from else { return None };
            let at = |share: f64| Extent::Bytes(first + (bytes as f64 * share) as u64 / unit * unit);
            return Some(Self { from: at(from), to: if is_end { self.to } else { Some(at(to)) }, ..*self });
        }
        let (start, end) = match (self.from, self.to) {
            (Extent::START, None) => (0.0, 100.0),
            (Extent::START, Some(Extent::Percent(end))) => (0.0, end),
            (Extent::Percent(start), None) => (start, 100.0),
            (Extent::Percent(start), Some(Extent::Percent(end))) => (start, end),
            _ => return None,
        };
        // Shares as people write them: 4.8 %, not 4.800000000000001 %.
        let at = |share: f64| Extent::Percent(((start + (end - start) * share) * 1e9).round() / 1e9);
        let from = if from == 0.0 { self.from } else { at(from) };
        Some(Self { from, to: if is_end { self.to } else { Some(at(to)) }, ..*self })
    }
}

#[derive(Debug, Default)]
pub struct Devices(Vec<Device>);

#[derive(Debug)]
struct Device {
    /// What tells it from others.
    identity: String,
    name: String,
    /// In bytes; `None`: a share of the target.
    size: Option<u64>,
}

impl Devices {
    /// The number of a device that has at least this many bytes, or an unknown number of them.
    pub fn number(&mut self, identity: &str, name: &str, bytes: Option<u64>) -> usize {
        if let Some(number) = self.0.iter().position(|device| device.identity == identity) {
            let size = &mut self.0[number].size;
            *size = size.zip(bytes).map(|(one, other)| one.max(other));
            return number;
        }
        let names = |name: &str| self.0.iter().any(|device| device.name == name);
        let mut unique = name.replace('$', "_");
        for number in 2.. {
            if !names(&unique) {
                break;
            }
            unique = format!("{}-{number}", name.replace('$', "_"));
        }
        self.0.push(Device { identity: identity.to_owned(), name: unique, size: bytes });
        self.0.len() - 1
    }

    pub fn name(&self, number: usize) -> &str {
        &self.0[number].name
    }

    pub fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Each with its size, as in a program. One device of unknown size is the whole target.
    pub fn texts(&self) -> Vec<(String, String)> {
        let shares = self.0.iter().filter(|device| device.size.is_none()).count();
        if shares == 1 && self.is_one() {
            return Vec::new();
        }
        // Beside devices of known sizes, the others leave a part of the target for them.
        let parts = shares + usize::from(shares < self.0.len());
        let share = format!("{}%", 100.0 / parts as f64);
        let texts =
            self.0.iter().map(|device| (device.name.clone(), device.size.map_or_else(|| share.clone(), bytes_text)));
        texts.collect()
    }
}
