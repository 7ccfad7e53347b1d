//! A Poisson process: independent arrivals.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::{Arrivals, Kind};
use crate::Rng;
use crate::distributions::exponential;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "poisson",
        about: "Independent arrivals: exponentially distributed inter-arrival times",
        details: "",
        params: &[ParamSpec {
            name: "rate",
            takes: ParamType::Rate,
            default: ParamDefault::Value("100"),
            help: "mean requests per second",
        }],
        example: "poisson rate=500",
    },
    build: |settings| Ok(Box::new(Poisson { rate: settings.number("rate"), now: 0.0 })),
};

struct Poisson {
    rate: f64,
    /// In seconds.
    now: f64,
}

impl Arrivals for Poisson {
    fn next(&mut self, rng: &mut Rng) -> Nanos {
        self.now += exponential(rng) / self.rate;
        Nanos::from_secs(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn inter_arrival_times_are_exponentially_distributed() {
        let times = first("poisson rate=1k", 200_000, 7);
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
        let longer = gaps.iter().filter(|g| **g > 0.001).count() as f64 / n;
        // Five standard errors each: of a mean σ/√n; of a variance σ²·√(8/n), the fourth central moment being 9σ⁴.
        assert!((mean / 1e-3 - 1.0).abs() < 5.0 / n.sqrt(), "mean {mean}");
        assert!((variance / 1e-6 - 1.0).abs() < 5.0 * (8.0 / n).sqrt(), "variance {variance}");
        assert!((longer - (-1.0_f64).exp()).abs() < 5.0 * (0.25 / n).sqrt(), "P(gap > mean) {longer}");
    }
}
