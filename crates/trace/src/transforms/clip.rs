//! A region of the device.

use crate::model::request::Request;
use crate::model::units::{Sector, Sectors};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, PerRow, Step};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "clip",
        about: "Keeps the requests that touch a region of the device, and cuts them at its borders",
        details: "Keeps requests without a position, such as flushes.",
        params: &[
            ParamSpec {
                name: "from",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("0"),
                help: "start of the region",
            },
            ParamSpec {
                name: "to",
                takes: ParamType::Sectors,
                default: ParamDefault::Described("no end"),
                help: "end of the region",
            },
            ParamSpec {
                name: "crossing",
                takes: ParamType::Word(&["cut", "drop"]),
                default: ParamDefault::Value("cut"),
                help: "cut or drop requests that cross a border",
            },
            ParamSpec {
                name: "base",
                takes: ParamType::Word(&["keep", "zero"]),
                default: ParamDefault::Value("keep"),
                help: "keep the positions, or count them from the start of the region",
            },
        ],
        example: "clip from=10G to=20G base=zero",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let from = settings.sectors("from").0;
    let to = settings.optional_sectors("to").map_or(u64::MAX, |to| to.0);
    if to <= from {
        return Err("to must be greater than from".into());
    }
    let base = if settings.text("base") == "zero" { from } else { 0 };
    let drop_crossing = settings.text("crossing") == "drop";
    Ok(Box::new(move |rows| {
        let step = move |request: Request| {
            if request.is_empty() {
                return Step::Emit(request);
            }
            let (start, end) = (request.sector.0.max(from), request.end().0.min(to));
            let is_crossing = (start, end) != (request.sector.0, request.end().0);
            if start >= end || is_crossing && drop_crossing {
                return Step::Skip;
            }
            Step::Emit(Request { sector: Sector(start - base), sectors: Sectors(end - start), ..request })
        };
        Ok(Counted::on_changed_devices(PerRow::new(rows, step), move |device| {
            device.sectors = device.sectors.map(|sectors| sectors.min(to).saturating_sub(base));
        }))
    }))
}
