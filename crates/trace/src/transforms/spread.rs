//! A larger region.

use crate::units::Sector;
use crate::words::{Form, Param, Settings, Takes, Unset};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Form {
        name: "spread",
        about: "Spreads the positions s over a larger region: ⌊s·factor / align⌋·align + s mod align + offset",
        details: "Seeks get longer; the working set does not grow. Below a factor of 1 different places may fall together.",
        params: &[
            Param { name: "factor", takes: Takes::Positive, unset: Unset::Default("2.0"), help: "how much larger" },
            Param {
                name: "align",
                takes: Takes::Sectors,
                unset: Unset::Default("8"),
                help: "blocks that stay together",
            },
            Param { name: "offset", takes: Takes::Sectors, unset: Unset::Default("0"), help: "added to each position" },
        ],
        example: "spread factor=4",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (factor, align) = (settings.number("factor"), settings.sectors("align").0);
    let offset = settings.sectors("offset").0;
    if align == 0 {
        return Err("align must be at least one sector".into());
    }
    Ok(Box::new(move |rows| {
        Ok(Counted::on_devices_of_any_size(PerRow::new(rows, move |mut request| {
            let sector = request.sector.0;
            let blocks = (sector as f64 * factor / align as f64).floor() as u64;
            request.sector = Sector(blocks.saturating_mul(align).saturating_add(sector % align).saturating_add(offset));
            Step::Emit(request)
        })))
    }))
}
