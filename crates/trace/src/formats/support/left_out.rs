//! What traces of events tell of that is no request of a load, counted while it is read and said at the end.

use crate::model::metadata::Metadata;
use crate::model::rwbs::NotARequest;
use crate::text::human;

/// The counts, in events: a command has several as well.
#[derive(Default)]
pub struct LeftOut {
    /// Requests that were handed from one device to another.
    pub remaps: u64,
    driver_commands: u64,
    zone_operations: u64,
}

impl LeftOut {
    /// Counts an event that is none of a request.
    ///
    /// # Errors
    /// If it is of no known operation: nobody should believe that it was left out on purpose.
    pub fn count(&mut self, what: NotARequest) -> Result<(), &'static str> {
        match what {
            NotARequest::DriverCommand => self.driver_commands += 1,
            NotARequest::ZoneManagement => self.zone_operations += 1,
            NotARequest::Unknown => return Err("an unknown operation"),
        }
        Ok(())
    }

    /// Adds a notice for each count, and resets the counts.
    pub fn add_notices(&mut self, about: &mut Metadata) {
        let Self { remaps, driver_commands, zone_operations } = std::mem::take(self);
        for (count, what) in [
            (remaps, "requests that were handed from one device to another (remapped)"),
            (driver_commands, "left out, events of commands to the driver, which are no requests"),
            (zone_operations, "left out, events of resets, openings and the like of zones, which move no data"),
        ] {
            if count > 0 {
                about.notice(format!("{what}: {}", human::count(count)));
            }
        }
    }
}
