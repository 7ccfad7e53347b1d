//! Faster, slower.

use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, PerRow, Step};
use super::factor::Factor;
use super::{Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "scale",
        about: "Stretches or compresses time",
        details: "A natural load that was compressed is no natural load any more: what was far apart in time, and so\n\
                  independent, comes together. The date is left out, unless the load is known to begin at time zero.",
        params: &[ParamSpec {
            name: "time",
            takes: ParamType::Positive,
            unset: ParamDefault::Refused,
            help: "by what all times are multiplied: 0.5 is twice as fast",
        }],
        example: "scale time=0.5",
    },
    needs: Needs::Rows,
    length: kept,
    build: |settings| {
        let factor = settings.number("time");
        let exact = Factor::of(factor);
        Ok(Box::new(move |rows| {
            let begins_at_zero = rows.is_surveyed() && rows.metadata().span.first_ns == 0;
            let scaled = PerRow::new(rows, move |mut request| {
                let Some(at) = exact.rounded(request.at.0) else { return Step::Outside("scale", "time=") };
                request.at = Nanos(at);
                Step::Emit(request)
            });
            Ok(Counted::with_metadata(scaled, |metadata| {
                // Of what does not begin at zero it would tell a beginning that is not true.
                metadata.epoch_unix_ns = metadata.epoch_unix_ns.filter(|_| begins_at_zero || factor == 1.0);
            }))
        }))
    },
};
