//! Read/write asymmetry: the service times of reads and of writes are multiplied by factors.

use iosonar_trace::Op;
use iosonar_trace::params::{Key, Section, Takes};

use super::law::{Arrival, Law, Passage};
use super::values::Factor;

/// Settings of the asymmetry.
#[derive(Clone, Debug, PartialEq)]
pub struct AsymmetrySettings {
    /// Factor of reads; 1 unless set.
    pub read: Option<Factor>,
    /// Factor of writes; 1 unless set.
    pub write: Option<Factor>,
}

impl AsymmetrySettings {
    pub const KEYS: &[Key] = &[
        Key::new("read", Takes::Number, "Factor of the service time of reads (default 1)"),
        Key::new("write", Takes::Number, "Factor of the service time of writes and write-zeroes (default 1)"),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let factor = |key| section.parsed(key, Factor::parse);
        Ok(Self { read: factor("read")?, write: factor("write")? })
    }
}

/// Multiplies service times.
#[derive(Debug)]
pub struct Asymmetry {
    read: f64,
    write: f64,
}

impl Asymmetry {
    /// From its settings.
    pub fn new(settings: &AsymmetrySettings) -> Self {
        let factor = |factor: Option<Factor>| factor.map_or(1.0, |factor| factor.0);
        Self { read: factor(settings.read), write: factor(settings.write) }
    }
}

impl Law for Asymmetry {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        if request.op == Op::Read {
            passage.factor *= self.read;
        } else if request.writes() {
            passage.factor *= self.write;
        }
    }
}
