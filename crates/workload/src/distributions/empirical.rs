//! A measured distribution, by its quantiles or its histogram.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, parse_duration, parse_share};
use rand::RngExt;

use super::kind::{Distribution, Kind};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "empirical",
        about: "A measured distribution, by its quantiles",
        details: "Between two quantiles all numbers are equally likely; drawn by inversion (Devroye, II.2). The first share is 0, the\n\
                  last is 1. Two shares with one number give it a probability of its own.",
        params: &[ParamSpec {
            name: "quantiles",
            takes: ParamType::List,
            default: ParamDefault::Required,
            help: "shares with their numbers, rising: 0:100us,50%:1ms,99%:10ms,100%:1s",
        }],
        example: "empirical quantiles=0:100us,50%:1ms,99%:10ms,100%:1s",
    },
    build: |settings| Ok(Box::new(from_settings(settings)?)),
};

fn from_settings(settings: &Settings) -> Result<Empirical, String> {
    let points = settings.list("quantiles").iter().map(|text| {
        let (share, number) = text
            .split_once(':')
            .ok_or_else(|| format!("empirical: `{text}` is not a share with its number; use 50%:1ms, for example"))?;
        let number = parse_duration(number).map_err(|why| format!("empirical: {why}"))?;
        Ok((parse_share(share.trim()).map_err(|why| format!("empirical: {why}"))?, number.as_secs()))
    });
    Empirical::of_quantiles(points.collect::<Result<_, String>>()?)
}

/// A distribution by points of its distribution function.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    /// Shares and the numbers that have at most this share below them; both rise, the shares from 0 to 1.
    points: Vec<(f64, f64)>,
}

impl Empirical {
    /// From quantiles: shares, from 0 to 1, and their numbers.
    ///
    /// # Errors
    /// If shares or numbers do not rise, or the shares do not begin at 0 and end at 1.
    pub fn of_quantiles(points: Vec<(f64, f64)>) -> Result<Self, String> {
        let [(first, _), .., (last, _)] = points[..] else {
            return Err("empirical: give at least two quantiles, those of 0 and 1".into());
        };
        if first != 0.0 || last != 1.0 {
            return Err("empirical: the first share must be 0, and the last 1".into());
        }
        if points.iter().any(|(_, number)| !number.is_finite()) {
            return Err("empirical: a number is not finite".into());
        }
        if points.windows(2).any(|pair| pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1) {
            return Err("empirical: shares and numbers must rise".into());
        }
        Ok(Self { points })
    }

    /// The largest number that can be drawn.
    pub fn largest(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, number)| *number)
    }

    /// From a histogram: the edges of its bins, rising, and the count of each bin. Within a bin all numbers are equally
    /// likely.
    ///
    /// # Errors
    /// If there is not one edge more than counts, edges do not rise, or all counts are 0.
    pub fn of_histogram(edges: &[f64], counts: &[u64]) -> Result<Self, String> {
        let total: u64 = counts.iter().sum();
        if edges.len() != counts.len() + 1 || total == 0 {
            return Err("empirical: a histogram needs one edge more than bins, and at least one number".into());
        }
        if edges.windows(2).any(|pair| pair[1] <= pair[0]) {
            return Err("empirical: the edges of a histogram must rise".into());
        }
        let mut segments = Vec::new();
        let mut upto = 0_u64;
        for (pair, count) in edges.windows(2).zip(counts) {
            if *count > 0 {
                segments.push((upto as f64 / total as f64, pair[0], pair[1]));
                upto += count;
            }
        }
        // An empty bin is a step of the number at one share: points with equal shares are allowed here alone.
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (index, (share, from, to)) in segments.iter().enumerate() {
            if points.last().is_none_or(|(_, number)| number != from) {
                points.push((*share, *from));
            }
            let end = segments.get(index + 1).map_or(1.0, |(share, ..)| *share);
            points.push((end, *to));
        }
        Ok(Self { points })
    }
}

/// The number at a place between two, as a share of their distance.
fn between(from: f64, to: f64, place: f64) -> f64 {
    from + (to - from) * place
}

impl Distribution for Empirical {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let share = rng.random::<f64>();
        // The first point above the share; the first point of all has share 0, the last has 1.
        let index = self.points.partition_point(|(upto, _)| *upto <= share).clamp(1, self.points.len() - 1);
        let ((below, from), (upto, to)) = (self.points[index - 1], self.points[index]);
        between(from, to, (share - below) / (upto - below))
    }

    fn mean(&self) -> f64 {
        self.points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * f64::midpoint(pair[0].1, pair[1].1)).sum()
    }

    fn below(&self, x: f64) -> f64 {
        let index = self.points.partition_point(|(_, number)| *number <= x);
        let Some(next) = self.points.get(index) else { return 1.0 };
        let Some((share, number)) = index.checked_sub(1).map(|before| self.points[before]) else { return 0.0 };
        between(share, next.0, (x - number) / (next.1 - number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_the_distribution_function_of_its_bins() {
        let law = Empirical::of_histogram(&[0.0, 1.0, 2.0, 4.0], &[1, 0, 3]).unwrap();
        let below = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0].map(|x| law.below(x));
        assert_eq!(below, [0.0, 0.0, 0.125, 0.25, 0.25, 0.25, 0.625, 1.0, 1.0]);
        assert_eq!(law.mean(), 0.25 * 0.5 + 0.75 * 3.0);
        let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(1);
        assert!((0..1000).map(|_| law.draw(&mut rng)).all(|x| (0.0..1.0).contains(&x) || (2.0..4.0).contains(&x)));
        assert_eq!(Empirical::of_histogram(&[0.0, 1.0, 2.0], &[0, 2]).unwrap().below(1.5), 0.5);
        assert!(Empirical::of_histogram(&[0.0, 1.0], &[0]).is_err());
        assert!(Empirical::of_histogram(&[0.0, 1.0], &[1, 2]).is_err());
        assert!(Empirical::of_histogram(&[1.0, 1.0], &[1]).is_err());
    }

    #[test]
    fn a_step_has_a_probability_of_its_own() {
        let law = Empirical::of_quantiles(vec![(0.0, 1.0), (0.25, 2.0), (0.75, 2.0), (1.0, 3.0)]).unwrap();
        assert_eq!([1.5, 2.0, 2.5].map(|x| law.below(x)), [0.125, 0.75, 0.875]);
    }

    #[test]
    fn quantiles_that_do_not_rise_are_refused() {
        for points in [&[][..], &[(0.0, 1.0)], &[(0.1, 1.0), (1.0, 2.0)], &[(0.0, 1.0), (0.9, 2.0)]] {
            assert!(Empirical::of_quantiles(points.to_vec()).is_err(), "{points:?}");
        }
        assert!(Empirical::of_quantiles(vec![(0.0, 1.0), (0.5, 0.5), (1.0, 2.0)]).is_err());
        assert!(Empirical::of_quantiles(vec![(0.0, 1.0), (0.0, 1.5), (1.0, 2.0)]).is_err());
    }
}
