//! Requests of the same sizes and positions.

use super::devices::{Devices, Region};
use super::sizes::{Sizes, bytes_text};
use super::writer::Table;

/// Requests of the same sizes and positions.
#[derive(Clone, Debug)]
pub struct Group {
    /// Operations with their weights.
    pub operations: Vec<(&'static str, f64)>,
    pub sizes: Sizes,
    pub positions: String,
    pub align: u64,
    pub region: Region,
    /// Whether a size is drawn after the position, until it fits.
    pub redraws: bool,
}

impl Group {
    pub fn weight(&self) -> f64 {
        self.operations.iter().map(|(_, weight)| weight).sum()
    }

    pub fn write(&self, table: &mut Table, devices: &Devices) {
        match &self.operations[..] {
            [(operation, _)] => table.text("op", operation),
            several => {
                let parts: Vec<String> =
                    several.iter().map(|(operation, weight)| format!("{operation}={weight}")).collect();
                table.text("mix", &parts.join(","));
            }
        }
        table.text("sizes", &self.sizes.text());
        if self.redraws {
            table.plain("redraw_sizes", true);
        }
        table.text("positions", &self.positions);
        if self.align != 4096 {
            table.text("align", &bytes_text(self.align));
        }
        if !devices.is_one() {
            table.text("device", devices.name(self.region.device));
        }
        if let Some(region) = self.region.text(devices) {
            table.text("region", &region);
        }
    }
}

/// Steps of which each transaction is one, in proportion to the weights of the groups.
pub fn weighted(groups: &[Group], devices: &Devices) -> Vec<Table> {
    let tables = groups.iter().map(|group| {
        let mut step = Table::default();
        group.write(&mut step, devices);
        step.plain("weight", group.weight());
        step
    });
    tables.collect()
}
