//! Never-written areas: a read of them is answered at once, without the medium. A discard of a whole chunk makes it
//! unwritten again.

use iosonar_trace::Op;
use iosonar_trace::params::{Key, Section, Takes};

use super::law::{Arrival, Law, Passage};
use super::values::{Size, Time};
use super::written::Written;

/// Settings of never-written areas.
#[derive(Clone, Debug, PartialEq)]
pub struct UnwrittenSettings {
    /// The unit that a write fills.
    pub chunk: Size,
    /// The time of a read of unwritten chunks.
    pub time: Time,
}

impl UnwrittenSettings {
    pub const KEYS: &[Key] = &[
        Key::new("chunk", Takes::Number, "The unit that a write fills").required(),
        Key::new("time", Takes::Number, "The time of a read of unwritten chunks").required(),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        Ok(Self { chunk: section.required("chunk", Size::parse)?, time: section.required("time", Time::parse)? })
    }
}

/// Answers reads of never-written areas.
#[derive(Debug)]
pub struct Unwritten {
    time: Time,
    written: Written,
}

impl Unwritten {
    /// On an empty device of this size.
    pub fn new(settings: &UnwrittenSettings, size: u64) -> Self {
        Self { time: settings.time, written: Written::new(size, settings.chunk.0) }
    }
}

impl Law for Unwritten {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        if request.op == Op::Read && self.written.is_unwritten(request) {
            passage.answer = Some(self.time.0);
        }
        self.written.follow(request);
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Nanos;

    use super::super::testing::{arrival, pass};
    use super::*;

    #[test]
    fn only_reads_of_written_chunks_use_the_medium() {
        let settings = UnwrittenSettings { chunk: Size(8192), time: Time(Nanos(7)) };
        let mut law = Unwritten::new(&settings, 1 << 20);
        let mut answer = |op, block| pass(&mut law, &arrival(0, op, block)).answer;
        assert_eq!(answer(Op::Read, 0), Some(Nanos(7)));
        assert_eq!((answer(Op::Write, 1), answer(Op::Read, 0), answer(Op::Read, 2)), (None, None, Some(Nanos(7))));
        // Half a chunk stays written.
        assert_eq!((answer(Op::Discard, 0), answer(Op::Read, 0)), (None, None));
        let whole = Arrival { length: 8192, ..arrival(0, Op::Discard, 0) };
        pass(&mut law, &whole);
        assert_eq!(pass(&mut law, &arrival(0, Op::Read, 1)).answer, Some(Nanos(7)));
    }
}
