//! How large requests are: one size, several with weights, or lognormally distributed.

use std::fmt;
use std::str::FromStr;

use iosonar_trace::Sectors;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, parse_sectors, split};
use rand::RngExt;

use crate::Rng;
use crate::distributions::{SIGMA, bisect, normal_below};

/// Sizes that follow a law, for the help.
pub static LOGNORMAL: Definition = Definition {
    name: "lognormal",
    about: "Lognormally distributed sizes",
    details: "Multiples of `granularity`, each with the probability that the distribution has within half a granularity, divided\n\
              by the sum of all. The mean is exactly `mean`.",
    params: &[
        ParamSpec { name: "mean", takes: ParamType::Sectors, default: ParamDefault::Value("16k"), help: "mean size" },
        SIGMA,
        ParamSpec {
            name: "granularity",
            takes: ParamType::Sectors,
            default: ParamDefault::Value("4k"),
            help: "sizes are multiples of this",
        },
        ParamSpec {
            name: "smallest",
            takes: ParamType::Sectors,
            default: ParamDefault::Described("the granularity"),
            help: "smallest size",
        },
        ParamSpec {
            name: "largest",
            takes: ParamType::Sectors,
            default: ParamDefault::Value("1M"),
            help: "largest size",
        },
    ],
    example: "lognormal mean=16k sigma=1.5 largest=256k",
};

/// Sizes and their weights: `4k`, `4k:70,64k:30`, or `lognormal mean=16k sigma=1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Each size with the cumulative weight, its own included.
    steps: Vec<(Sectors, f64)>,
    text: String,
}

impl Sizes {
    /// The largest size that can be drawn.
    pub fn largest(&self) -> Sectors {
        self.steps.iter().map(|(size, _)| *size).max().unwrap_or_default()
    }

    /// The mean size, in sectors.
    pub fn mean(&self) -> f64 {
        let mut before = 0.0;
        let mut sum = 0.0;
        for (size, upto) in &self.steps {
            sum += size.0 as f64 * (upto - before);
            before = *upto;
        }
        sum / before
    }

    /// The share of requests that are at most this large.
    pub fn below(&self, sectors: Sectors) -> f64 {
        let mut before = 0.0;
        let mut weight = 0.0;
        for (size, upto) in &self.steps {
            weight += if *size <= sectors { upto - before } else { 0.0 };
            before = *upto;
        }
        weight / before
    }

    /// The value of the option `--size` for a shell.
    pub(crate) fn option(&self) -> String {
        if self.text.contains(' ') { format!("'{}'", self.text) } else { self.text.clone() }
    }

    pub(crate) fn pick(&self, rng: &mut Rng) -> Sectors {
        let [.., (last, total)] = self.steps[..] else { return Sectors(0) };
        if self.steps.len() == 1 {
            return last;
        }
        let point = rng.random::<f64>() * total;
        let index = self.steps.partition_point(|(_, upto)| *upto <= point);
        self.steps.get(index).map_or(last, |(size, _)| *size)
    }

    /// A size of at most this length: that of a draw, or the first after it that is short enough; if all of these are longer,
    /// another is drawn. `None` if all sizes are longer.
    pub(crate) fn pick_within(&self, most: Sectors, rng: &mut Rng) -> Option<Sectors> {
        let last = self.steps.iter().rposition(|(size, _)| *size <= most)?;
        // Draws beyond the last such size are those that are drawn again.
        let point = if self.steps.len() == 1 { 0.0 } else { rng.random::<f64>() * self.steps[last].1 };
        let drawn = self.steps.partition_point(|(_, upto)| *upto <= point).min(last);
        self.steps[drawn..].iter().map(|(size, _)| *size).find(|size| *size <= most)
    }

    /// The largest size of at most this length.
    pub(crate) fn largest_within(&self, most: Sectors) -> Option<Sectors> {
        self.steps.iter().map(|(size, _)| *size).filter(|size| *size <= most).max()
    }

    /// The smallest size.
    pub(crate) fn smallest(&self) -> Sectors {
        self.steps.iter().map(|(size, _)| *size).min().unwrap_or_default()
    }

    fn lognormal(settings: &Settings) -> Result<Self, String> {
        let granularity = settings.sectors("granularity").0;
        let mean = settings.sectors("mean").0;
        let smallest = settings.optional_sectors("smallest").map_or(granularity, |smallest| smallest.0);
        let largest = settings.sectors("largest").0;
        if granularity == 0 || !smallest.is_multiple_of(granularity) || !largest.is_multiple_of(granularity) {
            return Err("lognormal: `smallest` and `largest` must be multiples of `granularity`".into());
        }
        if !(1..mean).contains(&smallest) || mean >= largest {
            return Err("lognormal: `mean` must be above `smallest` and below `largest`".into());
        }
        let sizes = (largest - smallest) / granularity + 1;
        if sizes > MAX_SIZES {
            return Err(format!(
                "lognormal: {sizes} sizes are too many; use a larger `granularity` (at most {MAX_SIZES})"
            ));
        }
        let sigma = settings.number("sigma");
        let sizes: Vec<u64> = (0..sizes).map(|n| smallest + n * granularity).collect();
        // Logarithms of the edges around each size, from the smallest size less half a granularity.
        let half = granularity as f64 / 2.0;
        let edges: Vec<f64> = [smallest as f64 - half]
            .into_iter()
            .chain(sizes.iter().map(|size| *size as f64 + half))
            .map(libm::log)
            .collect();
        let weights = |mu: f64| -> Vec<f64> { edges.windows(2).map(|edge| mass(edge, mu, sigma)).collect() };
        let mean_of = |mu: f64| {
            let weights = weights(mu);
            let sum: f64 = weights.iter().zip(&sizes).map(|(weight, size)| weight * *size as f64).sum();
            sum / weights.iter().sum::<f64>()
        };
        // Beyond a few deviations, no mass is left between the edges.
        let [low, .., high] = edges[..] else { return Err("lognormal: there are no sizes".into()) };
        let mu = bisect(low - 20.0 * sigma, high + 20.0 * sigma, |mu| mean_of(mu) - mean as f64);
        if (mean_of(mu) / mean as f64 - 1.0).abs() > 1e-9 {
            return Err("lognormal: no such distribution has this mean between these sizes; use another `sigma`".into());
        }
        let mut total = 0.0;
        let steps = weights(mu).into_iter().zip(&sizes).map(|(weight, size)| {
            total += weight;
            (Sectors(*size), total)
        });
        let steps = steps.collect();
        let all = settings.all().map(|(name, value)| format!(" {name}={}", value.replace(char::is_whitespace, "")));
        Ok(Self { steps, text: format!("lognormal{}", all.collect::<String>()) })
    }
}

/// A table of more takes a second to solve for.
const MAX_SIZES: u64 = 8192;

/// The probability of a normal distribution between two edges, computed on the side where it does not cancel.
fn mass(edge: &[f64], mu: f64, sigma: f64) -> f64 {
    let (from, to) = ((edge[0] - mu) / sigma, (edge[1] - mu) / sigma);
    if from > 0.0 { normal_below(-from) - normal_below(-to) } else { normal_below(to) - normal_below(from) }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with(LOGNORMAL.name) {
            let [phrase] = &split(text)?[..] else { return Err("name one distribution of sizes".into()) };
            if phrase.name == LOGNORMAL.name {
                return Self::lognormal(&Settings::new(&LOGNORMAL, &phrase.settings)?);
            }
        }
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
        // Numbers with units may contain spaces, which a shell would split.
        Ok(Self { steps, text: text.replace(char::is_whitespace, "") })
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
    fn lognormal_sizes_have_the_exact_mean_within_their_bounds() {
        for text in [
            "lognormal",
            "lognormal mean=64k sigma=2 granularity=512B smallest=4k largest=1M",
            "lognormal mean=5k sigma=0.5 largest=8k",
            "lognormal mean=200k sigma=0.1 granularity=8k",
        ] {
            let sizes: Sizes = text.parse().unwrap();
            let settings = Settings::new(&LOGNORMAL, &split(text).unwrap()[0].settings).unwrap();
            let (mean, largest) = (settings.sectors("mean").0 as f64, settings.sectors("largest"));
            assert!((sizes.mean() / mean - 1.0).abs() < 1e-9, "{text}: {}", sizes.mean());
            assert!((sizes.below(largest) - 1.0).abs() < 1e-12);
            assert_eq!(sizes.to_string().parse::<Sizes>().unwrap().steps, sizes.steps);
            let mut rng = Rng::seed_from_u64(1);
            let granularity = settings.sectors("granularity").0;
            let mut sum = 0.0;
            for size in (0..20_000).map(|_| sizes.pick(&mut rng)) {
                assert!(size <= largest && size.0 % granularity == 0 && size.0 > 0);
                sum += size.0 as f64;
            }
            assert!((sum / 20_000.0 / mean - 1.0).abs() < 0.1, "{text}: {sum}");
        }
        for wrong in [
            "lognormal mean=2M",
            "lognormal mean=4k",
            "lognormal largest=5k",
            "lognormal granularity=0",
            "lognormal granularity=512B largest=1G",
            "lognormals",
            "lognormal | lognormal",
        ] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_drawn_again() {
        let mut rng = Rng::seed_from_u64(1);
        let mut count = |text: &str, most: u64| {
            let sizes: Sizes = text.parse().unwrap();
            let mut counts = std::collections::BTreeMap::<Option<u64>, u32>::new();
            for _ in 0..10_000 {
                *counts.entry(sizes.pick_within(Sectors(most), &mut rng).map(|size| size.0)).or_default() += 1;
            }
            counts.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(count("4k:70,64k:30", 127), [(Some(8), 10_000)]);
        assert_eq!(count("4k:70,64k:30", 7), [(None, 10_000)]);
        // In the place of a size that is too long comes the next one of the list, as in fio.
        let [(Some(8), small), (Some(16), medium)] = count("64k:50,4k:25,8k:25", 100)[..] else { panic!() };
        assert!(small.abs_diff(3 * medium) < 700, "{small} {medium}");
    }

    #[test]
    fn invalid_sizes_and_weights_are_refused() {
        for wrong in ["", "4k:", "4k:-1", "0:1", "4k,,8k", "100B", "4k:nan", "4k:inf"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
