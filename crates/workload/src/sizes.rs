//! How large requests are: one size, or several with weights.

use std::fmt;
use std::str::FromStr;

use iosonar_trace::Sectors;
use iosonar_trace::params::parse_sectors;
use rand::RngExt;

use crate::Rng;

/// Sizes and their weights: `4k`, or `4k:70,64k:30`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Each size with the cumulative weight, its own included.
    steps: Vec<(Sectors, f64)>,
    text: String,
}

impl Sizes {
    /// The largest size.
    pub fn largest(&self) -> Sectors {
        self.steps.iter().map(|(size, _)| *size).max().unwrap_or_default()
    }

    pub(crate) fn pick(&self, rng: &mut Rng) -> Sectors {
        let [.., (last, total)] = self.steps[..] else { return Sectors(0) };
        if self.steps.len() == 1 {
            return last;
        }
        let point = rng.random::<f64>() * total;
        self.steps.iter().find(|(_, upto)| point < *upto).map_or(last, |(size, _)| *size)
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        let mut total = 0.0;
        for part in text.split(',') {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            let size = parse_sectors(size)?;
            let weight: f64 = weight.trim().trim_end_matches('%').parse().unwrap_or(f64::NAN);
            if size.0 == 0 || !(weight > 0.0 && weight.is_finite()) {
                return Err(format!("`{part}` is not a size with a weight; use 4k:70,64k:30, for example"));
            }
            total += weight;
            steps.push((size, total));
        }
        Ok(Self { steps, text: text.to_owned() })
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn sizes_are_drawn_in_proportion_to_their_weights() {
        let sizes: Sizes = "4k:70,64k:25,1M:5".parse().unwrap();
        assert_eq!(sizes.largest(), Sectors(2048));
        let mut rng = Rng::seed_from_u64(1);
        let drawn = 100_000;
        let mut counts = [0; 3];
        for _ in 0..drawn {
            let size = sizes.pick(&mut rng).0;
            counts[[8, 128, 2048].iter().position(|s| *s == size).unwrap()] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.70, 0.25, 0.05]) {
            // Five standard deviations of a binomial count.
            let deviation = (drawn as f64 * share * (1.0 - share)).sqrt();
            assert!((f64::from(count) - drawn as f64 * share).abs() < 5.0 * deviation, "{counts:?}");
        }
    }

    #[test]
    fn invalid_sizes_and_weights_are_refused() {
        for wrong in ["", "4k:", "4k:-1", "0:1", "4k,,8k", "100B", "4k:nan", "4k:inf"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
