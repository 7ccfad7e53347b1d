//! Multiplies all times by a factor.

use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, PerRow, Step};
use super::factor::Factor;
use super::{Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "scale",
        about: "Stretches or compresses time",
        details: "A compressed load is no longer natural: requests that were far apart move together. Drops the\n\
                  start date unless the load is known to begin at time zero.",
        params: &[ParamSpec {
            name: "time",
            takes: ParamType::Positive,
            default: ParamDefault::Required,
            help: "factor for all times: 0.5 is twice as fast",
        }],
        example: "scale time=0.5",
    },
    needs: Needs::Rows,
    length: kept,
    build: |settings| {
        let factor = settings.number("time");
        let exact = Factor::of(factor);
        Ok(Box::new(move |rows| {
            let begins_at_zero = rows.has_totals() && rows.metadata().span.first_ns == 0;
            let scaled = PerRow::new(rows, move |mut request| {
                let Some(at) = exact.rounded(request.at.0) else { return Step::Outside("scale", "time=") };
                request.at = Nanos(at);
                Step::Emit(request)
            });
            Ok(Counted::with_metadata(scaled, |metadata| {
                // If the first request is not at zero, its wall-clock time moves by an unknown amount.
                metadata.epoch_unix_ns = metadata.epoch_unix_ns.filter(|_| begins_at_zero || factor == 1.0);
            }))
        }))
    },
};
