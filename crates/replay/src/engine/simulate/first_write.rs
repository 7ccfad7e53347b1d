//! A slow first write: the first write to each chunk takes an additional time, as where space is allocated at the first
//! write. Rewrites do not. A discard of a whole chunk frees it.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Key, Section, Takes};

use super::law::{Arrival, Law, Passage};
use super::values::{Size, Time};
use super::written::Written;

/// Settings of slow first writes.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstWriteSettings {
    /// The unit of allocation.
    pub chunk: Size,
    /// The additional time for each chunk that is written for the first time.
    pub extra: Time,
}

impl FirstWriteSettings {
    pub const KEYS: &[Key] = &[
        Key::new("chunk", Takes::Number, "The unit of allocation").required(),
        Key::new("extra", Takes::Number, "The additional time for each chunk that is written for the first time")
            .required(),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        Ok(Self { chunk: section.required("chunk", Size::parse)?, extra: section.required("extra", Time::parse)? })
    }
}

/// Adds the time of first writes.
#[derive(Debug)]
pub struct FirstWrite {
    extra: Time,
    written: Written,
}

impl FirstWrite {
    /// On an empty device of this size.
    pub fn new(settings: &FirstWriteSettings, size: u64) -> Self {
        Self { extra: settings.extra, written: Written::new(size, settings.chunk.0) }
    }
}

impl Law for FirstWrite {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        let chunks = self.written.follow(request);
        passage.extra = passage.extra + Nanos(self.extra.0.0.saturating_mul(i64::from(chunks)));
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Op;

    use super::super::testing::{arrival, pass};
    use super::*;

    #[test]
    fn the_first_write_of_each_chunk_takes_longer() {
        let settings = FirstWriteSettings { chunk: Size(8192), extra: Time(Nanos(100)) };
        let mut law = FirstWrite::new(&settings, 1 << 20);
        let mut extra = |op, block| pass(&mut law, &arrival(0, op, block)).extra.0;
        assert_eq!(
            (extra(Op::Read, 0), extra(Op::Write, 0), extra(Op::Write, 1), extra(Op::Write, 2)),
            (0, 100, 0, 100)
        );
        let long = Arrival { length: 32_768, ..arrival(0, Op::Write, 0) };
        assert_eq!(pass(&mut law, &long).extra.0, 200, "two of its four chunks are new");
    }
}
