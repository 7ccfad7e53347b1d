//! The same requests at a growing rate.

use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, PerRow, Step};
use super::{Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "ramped",
        about: "Keeps the requests and their order, at a rate that grows steadily: max(1, slope·t) per second",
        details: "`iosonar limit` evaluates a replay of the result: how many of these requests per second a device\n\
                  can serve. Drops the start date.",
        params: &[ParamSpec {
            name: "slope",
            takes: ParamType::Positive,
            default: ParamDefault::Required,
            help: "growth of the rate, in requests per second each second",
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
            // These are no longer times of the trace.
            Ok(Counted::with_metadata(ramp, |metadata| metadata.epoch_unix_ns = None))
        }))
    },
};

/// The time of a request in seconds: where the integral of max(1, slope·t) reaches its number. The integral is t up to
/// t = 1/slope, and 1/slope + (slope·t² − 1/slope)/2 from there on.
fn time_of(number: u64, slope: f64) -> f64 {
    let number = number as f64;
    if number <= 1.0 / slope { number } else { (2.0 * number / slope - 1.0 / (slope * slope)).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_larger_of_one_and_slope_times_t() {
        for slope in [0.1, 1.0, 7.0, 100.0] {
            for number in 1..20_000 {
                let (before, after) = (time_of(number - 1, slope), time_of(number, slope));
                // The mean rate over one interval is between the rates at its ends.
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
