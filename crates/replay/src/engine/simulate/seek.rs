//! The service time of a disk: seek by distance, rotation, and the track-to-track minimum.
//!
//! A request that begins where the last one of the same server ended takes neither seek nor rotation. Any other takes
//! shortest + (longest − shortest) × √(distance / size), and a uniformly random part of a rotation. The transfer of the
//! data is the key `transfer` of the device. Requests are served in the order of their arrival.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Key, Section, Takes};

use super::values::{Factor, Time};
use crate::engine::service::{mix, uniform};

/// Settings of the seek.
#[derive(Clone, Debug, PartialEq)]
pub struct SeekSettings {
    pub shortest: Time,
    /// The seek over the whole device.
    pub longest: Time,
    /// Rotations per minute.
    pub rpm: Factor,
}

impl SeekSettings {
    pub const KEYS: &[Key] = &[
        Key::new("shortest", Takes::Number, "The shortest seek").required(),
        Key::new("longest", Takes::Number, "The seek over the whole device").required(),
        Key::new("rpm", Takes::Number, "Rotations per minute").required(),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let (shortest, longest) =
            (section.required("shortest", Time::parse)?, section.required("longest", Time::parse)?);
        if longest.0 < shortest.0 {
            return Err(section.error("longest", "shorter than shortest; exchange them"));
        }
        Ok(Self { shortest, longest, rpm: section.required("rpm", Factor::parse)? })
    }
}

/// Computes service times of a disk.
#[derive(Debug)]
pub struct Seek {
    shortest: f64,
    longest: f64,
    /// Nanoseconds.
    rotation: f64,
    size: f64,
    seed: u64,
}

impl Seek {
    /// On a disk of this size.
    pub fn new(settings: &SeekSettings, size: u64, seed: u64) -> Self {
        let (shortest, longest) = (settings.shortest.0.0 as f64, settings.longest.0.0 as f64);
        Self { shortest, longest, rotation: 60e9 / settings.rpm.0, size: size as f64, seed }
    }

    /// The service time of a request at `offset`, with the head at `head`.
    pub fn time(&self, key: u64, head: u64, offset: u64) -> Nanos {
        if head == offset {
            return Nanos::ZERO;
        }
        let distance = (head.abs_diff(offset) as f64 / self.size).min(1.0);
        let seek = self.shortest + (self.longest - self.shortest) * distance.sqrt();
        Nanos((seek + self.rotation * uniform(mix(self.seed ^ mix(key)))).round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_grows_with_the_root_of_its_distance() {
        let settings =
            SeekSettings { shortest: Time(Nanos(1_000_000)), longest: Time(Nanos(9_000_000)), rpm: Factor(6e10) };
        let seek = Seek::new(&settings, 1 << 20, 1);
        assert_eq!(seek.time(1, 4096, 4096), Nanos::ZERO);
        // A rotation takes 1 ns.
        for (distance, expected) in [(1 << 20, 9_000_000), (1 << 18, 5_000_000)] {
            assert!(seek.time(2, 0, distance).0.abs_diff(expected) <= 1);
        }
    }
}
