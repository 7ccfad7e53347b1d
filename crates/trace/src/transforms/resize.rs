//! Larger or smaller requests.

use crate::units::Sectors;
use crate::words::{Form, Param, Settings, Takes, Unset};

use super::counted::{Counted, PerRow, Step, place};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Form {
        name: "resize",
        about: "Multiplies the lengths of requests, and keeps them within bounds",
        details: "Lengths are rounded down, but never to nothing. Requests without length, as flushes, stay as they are.",
        params: &[
            Param { name: "factor", takes: Takes::Positive, unset: Unset::Default("2.0"), help: "how much longer" },
            Param {
                name: "min",
                takes: Takes::Sectors,
                unset: Unset::Default("0"),
                help: "no request that has a length is shorter",
            },
            Param { name: "max", takes: Takes::Sectors, unset: Unset::Default("65536"), help: "no request is longer" },
        ],
        example: "resize factor=1 max=128k",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let factor = settings.number("factor");
    let (min, max) = (settings.sectors("min").0, settings.sectors("max").0);
    if max < min.max(1) {
        return Err("max must be at least one sector, and not below min".into());
    }
    Ok(Box::new(move |rows| {
        Ok(Counted::on_devices_of_any_size(PerRow::new(rows, move |mut request| {
            if request.sectors.0 > 0 {
                let sectors = (request.sectors.0 as f64 * factor).floor() as u64;
                request.sectors = Sectors(sectors.clamp(min.max(1), max));
                if place(Some(request.sector.0), request.sectors).is_none() {
                    return Step::Outside("resize", "factor= or min=");
                }
            }
            Step::Emit(request)
        })))
    }))
}
