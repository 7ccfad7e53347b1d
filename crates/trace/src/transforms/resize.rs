//! Multiplies request lengths.

use crate::model::units::Sectors;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, PerRow, Step, place};
use super::factor::Factor;
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "resize",
        about: "Multiplies the lengths of requests and keeps them within bounds",
        details: "Rounds down, but to at least one sector. Requests without a length stay as they are.",
        params: &[
            ParamSpec {
                name: "factor",
                takes: ParamType::Positive,
                default: ParamDefault::Value("2.0"),
                help: "factor for all lengths",
            },
            ParamSpec {
                name: "min",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("0"),
                help: "shortest length of a request that has one",
            },
            ParamSpec {
                name: "max",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("32M"),
                help: "longest length",
            },
        ],
        example: "resize factor=1 max=128k",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let factor = Factor::of(settings.number("factor"));
    let (min, max) = (settings.sectors("min").0, settings.sectors("max").0);
    if max < min.max(1) {
        return Err(format!("max (default 65536 sectors) must be at least one sector, and not less than min ({min})"));
    }
    Ok(Box::new(move |rows| {
        Ok(Counted::on_devices_of_any_size(PerRow::new(rows, move |mut request| {
            if !request.is_empty() {
                let sectors = factor.floor(request.sectors.0, 1);
                request.sectors = Sectors(sectors.clamp(min.max(1), max));
                if place(Some(request.sector.0), request.sectors).is_none() {
                    return Step::Outside("resize", "factor= or min=");
                }
            }
            Step::Emit(request)
        })))
    }))
}
