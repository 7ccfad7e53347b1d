//! Counts the events of a trace that are not requests of a load, and reports them at its end.

use crate::model::metadata::Metadata;
use crate::model::rwbs::NotARequest;
use crate::text::human;

/// Counts of events; a driver command has several events, as a request has.
#[derive(Default)]
pub struct LeftOut {
    /// Requests remapped from one device to another.
    pub remaps: u64,
    driver_commands: u64,
    zone_operations: u64,
}

impl LeftOut {
    /// Counts an event that is not a request.
    ///
    /// # Errors
    /// If its operation is unknown: that is a bad line, not a known omission.
    pub fn count(&mut self, operation: NotARequest) -> Result<(), &'static str> {
        match operation {
            NotARequest::DriverCommand => self.driver_commands += 1,
            NotARequest::ZoneManagement => self.zone_operations += 1,
            NotARequest::Unknown => return Err("an unknown operation"),
        }
        Ok(())
    }

    /// Adds a warning for each count, and resets the counts.
    pub fn add_warnings(&mut self, about: &mut Metadata) {
        let Self { remaps, driver_commands, zone_operations } = std::mem::take(self);
        for (count, what) in [
            (remaps, "requests remapped from one device to another"),
            (driver_commands, "events left out that are driver commands"),
            (zone_operations, "events left out that are zone operations without data (reset, open, …)"),
        ] {
            if count > 0 {
                about.warning(format!("{what}: {}", human::count(count)));
            }
        }
    }
}
