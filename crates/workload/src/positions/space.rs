//! The places of a device at which requests may start.

use iosonar_trace::{Sector, Sectors};

/// The places at which a request may start: multiples of the alignment.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub(super) span: u64,
    pub(super) align: u64,
    /// Those from which even the largest request fits.
    pub(super) places: u64,
    /// How many places the largest request takes.
    pub(super) largest: u64,
}

impl Space {
    /// Of a device of that span.
    ///
    /// # Errors
    /// If a request is larger than the device.
    pub fn new(span: Sectors, align: Sectors, largest: Sectors) -> Result<Self, String> {
        let Some(room) = span.0.checked_sub(largest.0) else {
            return Err(format!(
                "requests of {} sectors are larger than the span of {} sectors they are to go to",
                largest.0, span.0
            ));
        };
        let taken = largest.0.div_ceil(align.0).max(1);
        Ok(Self { span: span.0, align: align.0, places: room / align.0 + 1, largest: taken })
    }

    /// From how many places a request fits that is no larger than the largest one.
    pub(super) fn places_for(self, sectors: Sectors) -> u64 {
        self.span.saturating_sub(sectors.0) / self.align + 1
    }

    pub(super) fn sector(self, place: u64) -> Sector {
        Sector(place * self.align)
    }

    /// How many places a request takes.
    pub(super) fn taken(self, sectors: Sectors) -> u64 {
        sectors.0.div_ceil(self.align).max(1)
    }
}
