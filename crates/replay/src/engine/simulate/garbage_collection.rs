//! Garbage collection: after `after` written bytes, and then after every `every` further ones, the medium starts nothing
//! for the time `lasts`. Requests in service are not affected, and caches answer meanwhile.

use iosonar_trace::params::{Key, Section, Takes};
use iosonar_trace::{Nanos, Op};

use super::law::{Arrival, Law, Passage};
use super::values::{Period, Size};

/// Settings of garbage collection.
#[derive(Clone, Debug, PartialEq)]
pub struct GarbageCollectionSettings {
    /// Bytes written before the first one.
    pub after: Size,
    /// Bytes written from one to the next; as `after` unless set.
    pub every: Option<Size>,
    pub lasts: Period,
}

impl GarbageCollectionSettings {
    pub const KEYS: &[Key] = &[
        Key::new("after", Takes::Number, "Bytes written before the first one").required(),
        Key::new("every", Takes::Number, "Bytes written from one to the next (default: as after)"),
        Key::new("lasts", Takes::Number, "Its duration").required(),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let (after, every) = (section.required("after", Size::parse)?, section.parsed("every", Size::parse)?);
        Ok(Self { after, every, lasts: section.required("lasts", Period::parse)? })
    }
}

/// Pauses the medium.
#[derive(Debug)]
pub struct GarbageCollection {
    every: u64,
    lasts: Nanos,
    /// Bytes until the next one.
    left: u64,
    ends: Nanos,
}

impl GarbageCollection {
    /// Before the first write.
    pub fn new(settings: &GarbageCollectionSettings) -> Self {
        let every = settings.every.unwrap_or(settings.after).0;
        Self { every, lasts: settings.lasts.0, left: settings.after.0, ends: Nanos(i64::MIN) }
    }
}

impl Law for GarbageCollection {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        if passage.answer.is_none() {
            passage.start = passage.start.max(self.ends);
        }
        if request.op != Op::Write {
            return;
        }
        // The write that reaches the threshold is the last one before the pause.
        let mut length = request.length;
        while length >= self.left {
            length -= self.left;
            self.left = self.every;
            self.ends = self.ends.max(passage.start) + self.lasts;
        }
        self.left -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{arrival, pass};
    use super::*;

    #[test]
    fn the_medium_pauses_after_so_many_written_bytes() {
        let (after, every, lasts) = (Size(8192), Some(Size(4 * 4096)), Period(Nanos(1000)));
        let mut law = GarbageCollection::new(&GarbageCollectionSettings { after, every, lasts });
        let mut start = |at, op| pass(&mut law, &arrival(at, op, 0)).start.0;
        assert_eq!([start(0, Op::Write), start(1, Op::Read), start(2, Op::Write), start(3, Op::Read)], [0, 1, 2, 1002]);
        assert_eq!([5000, 5001, 5002, 5003, 5004].map(|at| start(at, Op::Write)), [5000, 5001, 5002, 5003, 6003]);
    }
}
