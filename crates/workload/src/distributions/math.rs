//! Functions of `libm` and draws by them: the same bits on every machine. The functions of `f64`, and so those of
//! `num-traits` and `rand_distr` as soon as any crate of the program asks for its feature `std`, are the platform's.

use rand::RngExt;

use crate::Rng;

/// A number above 0 and up to 1, so that its logarithm is finite.
pub(crate) fn unit(rng: &mut Rng) -> f64 {
    1.0 - rng.random::<f64>()
}

/// Exponentially distributed with mean 1: −ln U (Devroye, "Non-Uniform Random Variate Generation", 1986, II.2).
pub fn exponential(rng: &mut Rng) -> f64 {
    -libm::log(unit(rng))
}

/// Normally distributed with mean 0 and deviation 1 (Box and Muller, "A Note on the Generation of Random Normal
/// Deviates", 1958).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * libm::cos(std::f64::consts::TAU * rng.random::<f64>())
}

/// The distribution function of the normal distribution with mean 0 and deviation 1.
pub(crate) fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The regularised incomplete gamma function P(a, x): a series below a + 1, Lentz's continued fraction from there
/// (Press et al., "Numerical Recipes", 3rd ed., 6.2).
pub(crate) fn gamma_below(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let factor = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return factor * sum;
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / away_from_zero(an * d + b, TINY);
        c = away_from_zero(b + an / c, TINY);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    1.0 - factor * fraction
}

fn away_from_zero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}

/// The number between `low` and `high` at which a rising function reaches zero.
pub(crate) fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    // A float has fewer bits than this, so that the interval ends as two neighbours.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_incomplete_gamma_function_has_its_known_values() {
        // P(1, x) = 1 − e^−x; P(1/2, x) = erf √x; P(a, a) and others from tables of SciPy's gammainc.
        for x in [0.01, 0.5, 1.0, 3.0, 20.0] {
            assert!((gamma_below(1.0, x) + libm::expm1(-x)).abs() < 1e-14, "{x}");
            assert!((gamma_below(0.5, x) - libm::erf(x.sqrt())).abs() < 1e-14, "{x}");
        }
        assert_eq!(gamma_below(0.3, 0.0), 0.0);
    }
}
