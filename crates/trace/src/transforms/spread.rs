//! Spreads positions over a larger region.

use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, PerRow, Step, place};
use super::factor::Factor;
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "spread",
        about: "Spreads the positions s over a larger region: ⌊s·factor / align⌋·align + s mod align + offset",
        details: "The offset within a block of `align` stays, but requests that begin at different sectors of one\n\
                  block may end up in different blocks. With a factor below 1, different positions may coincide.",
        params: &[
            ParamSpec {
                name: "factor",
                takes: ParamType::Positive,
                default: ParamDefault::Value("2.0"),
                help: "how much larger",
            },
            ParamSpec {
                name: "align",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("4k"),
                help: "block size; its multiples stay multiples",
            },
            ParamSpec {
                name: "offset",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("0"),
                help: "added to every position",
            },
        ],
        example: "spread factor=4",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (factor, align) = (Factor::of(settings.number("factor")), settings.sectors("align").0);
    let offset = settings.sectors("offset").0;
    if align == 0 {
        return Err("align must be at least one sector".into());
    }
    Ok(Box::new(move |rows| {
        Ok(Counted::on_devices_of_any_size(PerRow::new(rows, move |mut request| {
            if request.is_empty() {
                return Step::Emit(request);
            }
            let sector = request.sector.0;
            // Saturates at the highest number, which `place` refuses.
            let blocks = factor.floor(sector, align);
            let spread = blocks.checked_mul(align).and_then(|start| start.checked_add(sector % align));
            if place(spread, request.sectors).is_none() {
                return Step::Outside("spread", "factor=");
            }
            let Some(sector) = place(spread.and_then(|sector| sector.checked_add(offset)), request.sectors) else {
                return Step::Outside("spread", "offset=");
            };
            request.sector = sector;
            Step::Emit(request)
        })))
    }))
}
