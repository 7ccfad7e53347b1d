//! Zipf's law: the n-th most frequent number occurs in proportion to 1 / n^exponent.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::kind::{Distribution, Kind};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "zipf",
        about: "Zipf: whole numbers from 1, each less frequent than the one before",
        details: "P(X = n) is in proportion to 1/n^exponent, n from 1 to `numbers`, drawn exactly by rejection-inversion (Hörmann and\n\
                  Derflinger, 1996). The mean is H(exponent-1)/H(exponent), H(s) = 1 + 1/2^s + ... + 1/numbers^s.",
        params: &[
            ParamSpec {
                name: "numbers",
                takes: ParamType::Count,
                default: ParamDefault::Value("1000"),
                help: "largest number",
            },
            ParamSpec {
                name: "exponent",
                takes: ParamType::Positive,
                default: ParamDefault::Value("1.1"),
                help: "skew; 0.5 is low, 1.5 high",
            },
        ],
        example: "zipf numbers=1M exponent=1.2",
    },
    build: |settings| Ok(Box::new(from_settings(settings)?)),
};

fn from_settings(settings: &Settings) -> Result<Zipf, String> {
    Zipf::new(settings.count("numbers"), settings.number("exponent"))
}

/// Hörmann and Derflinger's names: H is an integral of the density x^−exponent, and its inverse.
#[derive(Clone, Copy)]
pub(crate) struct Zipf {
    numbers: f64,
    exponent: f64,
    /// H(3/2) − 1, where numbers begin, and H(numbers + 1/2), where they end.
    start: f64,
    end: f64,
    /// Up to this distance from its centre, a number is accepted without evaluating the density.
    squeeze: f64,
}

impl Zipf {
    /// # Errors
    /// If there are no numbers or too many for a float, or the exponent is out of range.
    pub fn new(numbers: u64, exponent: f64) -> Result<Self, String> {
        // Up to this, all whole numbers and their halves are floats.
        if !(1..=1 << 52).contains(&numbers) {
            return Err(format!("zipf: the number of numbers must be from 1 to {}", 1_u64 << 52));
        }
        if !(1e-6..=100.0).contains(&exponent) {
            return Err("zipf: set `exponent` from 0.000001 to 100".into());
        }
        let mut law = Self { numbers: numbers as f64, exponent, start: 0.0, end: 0.0, squeeze: 0.0 };
        law.start = law.integral(1.5) - 1.0;
        law.end = law.integral(law.numbers + 0.5);
        law.squeeze = 2.0 - law.inverse(law.integral(2.5) - libm::pow(2.0, -exponent));
        Ok(law)
    }

    /// A number from 1 on.
    pub fn number(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.end + (math::unit(rng)) * (self.start - self.end);
            let x = self.inverse(u);
            let n = x.round().clamp(1.0, self.numbers);
            if n - x <= self.squeeze || u >= self.integral(n + 0.5) - libm::pow(n, -self.exponent) {
                return n as u64;
            }
        }
    }

    /// H(x) = (x^(1−exponent) − 1) / (1 − exponent), or ln x at exponent 1, without cancellation near it.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.exponent) * log;
        if power == 0.0 { log } else { log * (libm::expm1(power) / power) }
    }

    fn inverse(&self, y: f64) -> f64 {
        // Rounding may cross the pole of the inverse.
        let power = ((1.0 - self.exponent) * y).max(-1.0);
        if power == 0.0 { libm::exp(y) } else { libm::exp(y * (libm::log1p(power) / power)) }
    }

    /// 1 + 1/2^s + … + 1/n^s: a sum, continued by the Euler–Maclaurin formula.
    pub fn harmonic(n: f64, s: f64) -> f64 {
        const SUMMED: u32 = 1000;
        let summed = n.min(f64::from(SUMMED));
        let sum: f64 = (1..=summed as u32).rev().map(|k| libm::pow(f64::from(k), -s)).sum();
        if n <= summed {
            return sum;
        }
        let log = libm::log(n / summed);
        let power = (1.0 - s) * log;
        let scale = libm::pow(summed, 1.0 - s);
        let integral = scale * if power == 0.0 { log } else { log * (libm::expm1(power) / power) };
        let ends = (libm::pow(n, -s) - libm::pow(summed, -s)) / 2.0;
        let slopes = s / 12.0 * (libm::pow(summed, -s - 1.0) - libm::pow(n, -s - 1.0));
        sum + integral + ends + slopes
    }
}

impl Distribution for Zipf {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.number(rng) as f64
    }

    fn mean(&self) -> f64 {
        Self::harmonic(self.numbers, self.exponent - 1.0) / Self::harmonic(self.numbers, self.exponent)
    }

    fn below(&self, x: f64) -> f64 {
        if x < 1.0 {
            return 0.0;
        }
        Self::harmonic(x.floor().min(self.numbers), self.exponent) / Self::harmonic(self.numbers, self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_a_plain_sum() {
        for (numbers, exponent) in [(1, 1.1), (1000, 1.1), (100_000, 1.0), (30_000, 0.5), (5000, 2.0), (3000, 3.0)] {
            let sum = |s: f64| (1..=numbers).rev().map(|k| libm::pow(k as f64, -s)).sum::<f64>();
            let (mean, plain) = (Zipf::new(numbers, exponent).unwrap().mean(), sum(exponent - 1.0) / sum(exponent));
            assert!((mean / plain - 1.0).abs() < 1e-12, "{numbers} {exponent}: {mean}, {plain}");
        }
    }

    #[test]
    fn extreme_parameters_give_numbers_within_the_range() {
        let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(1);
        for numbers in [1, 2, 1 << 52] {
            for exponent in [1e-6, 0.5, 1.0, 1.0 + 1e-12, 3.0, 100.0] {
                let law = Zipf::new(numbers, exponent).unwrap();
                assert!((0..1000).all(|_| (1..=numbers).contains(&law.number(&mut rng))), "{numbers} {exponent}");
            }
        }
        assert!(Zipf::new(0, 1.0).is_err() && Zipf::new(1 << 53, 1.0).is_err() && Zipf::new(10, 200.0).is_err());
    }
}
