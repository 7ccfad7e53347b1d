//! A mean of rounds with its confidence interval.

/// A mean, and its interval of 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The ends of the interval.
    pub interval: [f64; 2],
}

impl Estimate {
    /// Of independent values, by Student's distribution.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = student(n - 1.0) * (variance / n).sqrt();
        Self { mean, interval: [mean - half, mean + half] }
    }

    /// Of factors: the geometric mean.
    pub fn of_factors(factors: &[f64]) -> Self {
        let logarithms: Vec<f64> = factors.iter().map(|factor| factor.ln()).collect();
        let Self { mean, interval } = Self::of(&logarithms);
        Self { mean: mean.exp(), interval: interval.map(f64::exp) }
    }
}

/// The quantile 0.975 of Student's distribution, by the expansion in Abramowitz and Stegun, 26.7.5: within 0.3 % from 4
/// degrees of freedom on.
fn student(freedom: f64) -> f64 {
    let z: f64 = 1.959_963_985;
    let terms = [
        z,
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| sum / freedom + term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_published_tables() {
        for (freedom, quantile) in [(4.0, 2.776), (5.0, 2.571), (9.0, 2.262), (30.0, 2.042), (1e9, 1.960)] {
            assert!((student(freedom) / quantile - 1.0_f64).abs() < 0.003, "{freedom}: {}", student(freedom));
        }
        // Mean 3, standard deviation 1.5811, of five values.
        let Estimate { mean, interval: [low, high] } = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(mean == 3.0 && (low - 1.037).abs() < 0.01 && (high - 4.963).abs() < 0.01, "{low} {high}");
        let Estimate { mean, interval } = Estimate::of_factors(&[2.0, 8.0, 4.0, 4.0, 4.0]);
        assert!((mean - 4.0).abs() < 1e-9 && interval[0] < 4.0 && interval[1] > 4.0);
    }
}
