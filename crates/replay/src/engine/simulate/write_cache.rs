//! A write-back cache: writes are answered by the cache while it has room, and it is destaged at a constant rate. A write
//! to a full cache waits until enough is destaged: with writes at a rate above that of destaging, the cliff comes after
//! size × rate / (rate − destage rate) bytes.
//!
//! Destaging does not slow the medium. Reads are not served from it: a read cache in front holds what was written.

use iosonar_trace::params::{Key, Section, Takes};
use iosonar_trace::{Flags, Nanos, Op};

use super::law::{Arrival, Law, Passage};
use super::values::{Size, Speed, Time};

/// Settings of a write-back cache.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteCacheSettings {
    pub size: Size,
    /// The time of a write to it.
    pub time: Time,
    /// Bytes per second of a write to it, in addition; unlimited unless set.
    pub speed: Option<Speed>,
    /// Bytes per second from the cache to the medium.
    pub destage: Speed,
    /// Whether it survives a loss of power. If so, a flush or FUA write is answered as a write. If not, a flush waits until
    /// the cache is empty, and a FUA write goes to the medium.
    pub battery: bool,
}

impl WriteCacheSettings {
    pub const KEYS: &[Key] = &[
        Key::new("size", Takes::Number, "Its size").required(),
        Key::new("time", Takes::Number, "The time of a write to it").required(),
        Key::new("speed", Takes::Number, "Bytes per second of a write to it, in addition (default: unlimited)"),
        Key::new("destage", Takes::Number, "Bytes per second from the cache to the medium").required(),
        Key::new(
            "battery",
            Takes::Flag,
            "Whether it survives a loss of power: flushes and FUA writes are answered as writes (default false)",
        ),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        Ok(Self {
            size: section.required("size", Size::parse)?,
            time: section.required("time", Time::parse)?,
            speed: section.parsed("speed", Speed::parse)?,
            destage: section.required("destage", Speed::parse)?,
            battery: section.flag("battery")?.unwrap_or(false),
        })
    }
}

/// A cache of dirty data.
#[derive(Debug)]
pub struct WriteCache {
    settings: WriteCacheSettings,
    /// When all dirty data will be destaged.
    empty_at: Nanos,
}

impl WriteCache {
    /// An empty cache.
    pub fn new(settings: &WriteCacheSettings) -> Self {
        Self { settings: settings.clone(), empty_at: Nanos(i64::MIN / 2) }
    }
}

impl Law for WriteCache {
    fn apply(&mut self, request: &Arrival, passage: &mut Passage) {
        let WriteCacheSettings { size, time, speed, destage, battery } = self.settings;
        match request.op {
            Op::Flush if battery => passage.answer = Some(time.0),
            Op::Flush => passage.answer = Some((self.empty_at - passage.start).max(time.0)),
            Op::Write if battery || !request.flags.has(Flags::FUA) => {
                let room_at = self.empty_at - destage.time(size.0.saturating_sub(request.length));
                passage.start = passage.start.max(room_at);
                self.empty_at = self.empty_at.max(passage.start) + destage.time(request.length);
                passage.answer = Some(time.0 + speed.map_or(Nanos::ZERO, |speed| speed.time(request.length)));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{arrival, pass};
    use super::*;

    fn cache(battery: bool) -> WriteCache {
        // Destages a block each 4096 ns, and holds two.
        let (size, destage) = (Size(8192), Speed(1e9));
        WriteCache::new(&WriteCacheSettings { size, time: Time(Nanos(10)), speed: None, destage, battery })
    }

    #[test]
    fn a_full_cache_takes_writes_at_the_rate_of_destaging() {
        let mut cache = cache(false);
        let starts: Vec<_> = (0..5).map(|_| pass(&mut cache, &arrival(0, Op::Write, 0)).start.0).collect();
        assert_eq!(starts, [0, 0, 4096, 8192, 12_288]);
        assert_eq!(pass(&mut cache, &arrival(100, Op::Read, 0)).answer, None);
    }

    #[test]
    fn a_flush_waits_for_destaging_unless_there_is_a_battery() {
        for (battery, flush, fua) in [(false, 8192 - 50, None), (true, 10, Some(Nanos(10)))] {
            let mut cache = cache(battery);
            for _ in 0..2 {
                pass(&mut cache, &arrival(0, Op::Write, 0));
            }
            assert_eq!(pass(&mut cache, &arrival(50, Op::Flush, 0)).answer, Some(Nanos(flush)));
            let durable = Arrival { flags: Flags::FUA, ..arrival(50, Op::Write, 0) };
            assert_eq!(pass(&mut cache, &durable).answer, fua);
        }
    }
}
