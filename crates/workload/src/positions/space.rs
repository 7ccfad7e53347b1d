//! The positions of a device at which requests may start.

use iosonar_trace::{Sector, Sectors, human};

/// Draws a size of at most this length; `None` if all sizes are longer.
pub(crate) type Draw<'a> = dyn FnMut(Sectors) -> Option<Sectors> + 'a;

/// The slots at which requests may start: multiples of the alignment.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub(super) span: u64,
    pub(super) align: u64,
    /// Slots from which the largest request fits.
    pub(super) slots: u64,
    /// Slots that the largest request covers.
    pub(super) largest: u64,
    /// Sectors of the smallest request.
    pub(super) smallest: u64,
}

impl Space {
    /// The slots of a device of this size.
    ///
    /// # Errors
    /// If a request is larger than the device.
    pub fn new(span: Sectors, align: Sectors, largest: Sectors) -> Result<Self, String> {
        let Some(room) = span.0.checked_sub(largest.0) else {
            let (largest, span) = (human::block(largest.bytes()), human::block(span.bytes()));
            return Err(format!("requests of {largest} are larger than the span of {span}"));
        };
        let taken = largest.0.div_ceil(align.0).max(1);
        Ok(Self { span: span.0, align: align.0, slots: room / align.0 + 1, largest: taken, smallest: largest.0 })
    }

    /// The same for requests of which some are smaller.
    pub fn with_smallest(self, smallest: Sectors) -> Self {
        Self { smallest: smallest.0, ..self }
    }

    /// Slots from which the smallest request fits, whole ones if it is smaller than a slot.
    pub(super) fn slots_for_smallest(self) -> u64 {
        let slots =
            if self.align >= self.smallest { self.span / self.align } else { self.slots_for(Sectors(self.smallest)) };
        slots.max(1)
    }

    /// Sectors from a slot to the end.
    pub(super) fn room(self, slot: u64) -> Sectors {
        Sectors(self.span.saturating_sub(slot * self.align))
    }

    /// Slots from which a request of this length fits.
    pub(super) fn slots_for(self, sectors: Sectors) -> u64 {
        self.span.saturating_sub(sectors.0) / self.align + 1
    }

    /// A slot with the size of a request from there, if one fits.
    pub(super) fn following(self, slot: u64, draw: &mut Draw<'_>) -> Option<(u64, Sectors)> {
        draw(self.room(slot)).map(|sectors| (slot, sectors))
    }

    /// The same from the beginning, where all sizes fit or the smallest does.
    pub(super) fn first(self, draw: &mut Draw<'_>) -> (u64, Sectors) {
        self.following(0, draw).unwrap_or_default()
    }

    pub(super) fn sector(self, slot: u64) -> Sector {
        Sector(slot * self.align)
    }

    /// Slots that a request covers.
    pub(super) fn slots_of(self, sectors: Sectors) -> u64 {
        sectors.0.div_ceil(self.align).max(1)
    }
}
