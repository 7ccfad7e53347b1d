//! The same places at a growing rate.

use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, PerRow, Step};
use super::{Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "ramped",
        about: "The same requests in the same order, at a rate that grows steadily: max(1, slope·t) per second",
        details: "Replayed, it tells how many of these requests per second a storage can do: `iosonar limit` evaluates it.\n\
                  The date is left out.",
        params: &[ParamSpec {
            name: "slope",
            takes: ParamType::Positive,
            unset: ParamDefault::Refused,
            help: "by how many requests per second the rate grows each second",
        }],
        example: "ramped slope=10",
    },
    needs: Needs::Rows,
    length: kept,
    build: |settings| {
        let slope = settings.number("slope");
        Ok(Box::new(move |rows| {
            let mut number = 0_u64;
            let ramp = PerRow::new(rows, move |mut request| {
                request.at = Nanos::from_secs(time_of(number, slope));
                number += 1;
                Step::Emit(request)
            });
            // These are no times of the trace any more.
            Ok(Counted::with_metadata(ramp, |metadata| metadata.epoch_unix_ns = None))
        }))
    },
};

/// When the request of that number comes, in seconds: when the integral of max(1, slope·t) reaches the number. Up to
/// t = 1/slope that is t; from there on it is 1/slope + (slope·t² − 1/slope)/2.
fn time_of(number: u64, slope: f64) -> f64 {
    let number = number as f64;
    if number <= 1.0 / slope { number } else { (2.0 * number / slope - 1.0 / (slope * slope)).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_what_was_asked_for() {
        for slope in [0.1, 1.0, 7.0, 100.0] {
            for number in 1..20_000 {
                let (before, after) = (time_of(number - 1, slope), time_of(number, slope));
                // Over one request the rate lies between that at its beginning and that at its end.
                let (low, high) = ((slope * before).max(1.0), (slope * after).max(1.0));
                let rate = 1.0 / (after - before);
                assert!(
                    rate > low * (1.0 - 1e-6) && rate < high * (1.0 + 1e-6),
                    "{slope} {number}: {low} {rate} {high}"
                );
            }
        }
    }
}
