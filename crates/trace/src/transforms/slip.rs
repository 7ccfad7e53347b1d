//! Positions that shift slowly.

use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, PerRow, Step, place};
use super::{Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "slip",
        about: "Shifts positions slowly: every so many requests by one more step",
        details: "The request that completes a step is the first one that is shifted.",
        params: &[
            ParamSpec {
                name: "every",
                takes: ParamType::Count,
                default: ParamDefault::Value("32768"),
                help: "requests per step",
            },
            ParamSpec {
                name: "increase",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("128k"),
                help: "size of a step",
            },
        ],
        example: "slip every=32768 increase=128k",
    },
    needs: Needs::Rows,
    length: kept,
    build: |settings| {
        let (every, increase) = (settings.count("every"), settings.sectors("increase").0);
        if every == 0 {
            return Err("every must be at least 1".into());
        }
        Ok(Box::new(move |rows| {
            let mut number = 0_u64;
            Ok(Counted::on_devices_of_any_size(PerRow::new(rows, move |mut request| {
                number += 1;
                if request.is_empty() {
                    return Step::Emit(request);
                }
                let step = (number / every).checked_mul(increase);
                let slipped = step.and_then(|step| step.checked_add(request.sector.0));
                let Some(sector) = place(slipped, request.sectors) else { return Step::Outside("slip", "increase=") };
                request.sector = sector;
                Step::Emit(request)
            })))
        }))
    },
};
