//! Which operations requests have: shares of reads, writes, flushes and others.

use std::fmt;
use std::str::FromStr;

use iosonar_trace::{Flags, Op};
use rand::RngExt;

use crate::Rng;

/// The names in a mix, with their operations.
const OPERATIONS: [(&str, Op, Flags); 5] = [
    ("read", Op::Read, Flags::NONE),
    ("write", Op::Write, Flags::NONE),
    ("flush", Op::Flush, Flags::NONE),
    ("fua", Op::Write, Flags::FUA),
    ("discard", Op::Discard, Flags::NONE),
];

/// Operations and their weights: `read=70,write=25,flush=5`. `fua` is a write with forced unit access.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Each operation with the cumulative weight, its own included.
    steps: Vec<(Op, Flags, f64)>,
    /// The share of reads, if it was made by [`Mix::of_reads`].
    reads: Option<f64>,
    text: String,
}

impl Mix {
    /// A share of reads, from 0 to 1; the rest are writes.
    pub fn of_reads(share: f64) -> Self {
        let steps = vec![(Op::Read, Flags::NONE, share), (Op::Write, Flags::NONE, 1.0)];
        Self { steps, reads: Some(share), text: format!("read={share},write={}", 1.0 - share) }
    }

    /// The share of requests with this operation and these flags.
    pub fn share(&self, op: Op, flags: Flags) -> f64 {
        let mut before = 0.0;
        let mut weight = 0.0;
        for (of, with, upto) in &self.steps {
            if (*of, *with) == (op, flags) {
                weight = upto - before;
            }
            before = *upto;
        }
        weight / before
    }

    /// Whether some requests have this operation.
    pub fn has(&self, op: Op) -> bool {
        self.steps.iter().any(|(of, flags, _)| *of == op && self.share(op, *flags) > 0.0)
    }

    /// The options of `iosonar generate` for this mix.
    pub(crate) fn option(&self) -> String {
        self.reads.map_or_else(|| format!("--mix {}", self.text), |share| format!("--reads {share}"))
    }

    pub(crate) fn pick(&self, rng: &mut Rng) -> (Op, Flags) {
        let [.., (op, flags, total)] = self.steps[..] else { return (Op::Read, Flags::NONE) };
        let point = rng.random::<f64>() * total;
        self.steps.iter().find(|(.., upto)| point < *upto).map_or((op, flags), |(op, flags, _)| (*op, *flags))
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut steps: Vec<(Op, Flags, f64)> = Vec::new();
        let mut total = 0.0;
        for part in text.split(',') {
            let wrong =
                || format!("`{part}` is not an operation with a weight; use read=70,write=25,flush=5, for example");
            let (name, weight) = part.split_once('=').ok_or_else(wrong)?;
            let weight: f64 = weight.trim().trim_end_matches('%').parse().map_err(|_| wrong())?;
            let Some((_, op, flags)) = OPERATIONS.iter().find(|(known, ..)| *known == name.trim()) else {
                let names: Vec<&str> = OPERATIONS.iter().map(|(name, ..)| *name).collect();
                return Err(format!("unknown operation `{}`; use {}", name.trim(), names.join(", ")));
            };
            if !(weight > 0.0 && weight.is_finite()) {
                return Err(wrong());
            }
            if steps.iter().any(|(known, with, _)| (known, with) == (op, flags)) {
                return Err(format!("`{}` is in the mix twice", name.trim()));
            }
            total += weight;
            steps.push((*op, *flags, total));
        }
        Ok(Self { steps, reads: None, text: text.replace(char::is_whitespace, "") })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn operations_are_drawn_in_proportion_to_their_weights() {
        let mix: Mix = "read=60%, write=20,fua=10,flush=6,discard=4".parse().unwrap();
        let (mut rng, drawn) = (Rng::seed_from_u64(1), 100_000);
        let picked: Vec<_> = (0..drawn).map(|_| mix.pick(&mut rng)).collect();
        for ((_, op, flags), share) in OPERATIONS.into_iter().zip([0.60, 0.20, 0.06, 0.10, 0.04]) {
            let count = picked.iter().filter(|pick| **pick == (op, flags)).count() as f64;
            // Five standard deviations of a binomial count.
            let deviation = (f64::from(drawn) * share * (1.0 - share)).sqrt();
            assert!((count - f64::from(drawn) * share).abs() < 5.0 * deviation, "{op:?} {flags:?}: {count}");
            assert!((mix.share(op, flags) - share).abs() < 1e-12);
        }
    }

    #[test]
    fn a_share_of_reads_is_a_mix_of_reads_and_writes() {
        let (mut rng, mut same) = (Rng::seed_from_u64(1), Rng::seed_from_u64(1));
        let (by_share, by_text) = (Mix::of_reads(0.25), "read=25,write=75".parse::<Mix>().unwrap());
        assert!((0..1000).all(|_| by_share.pick(&mut rng) == by_text.pick(&mut same)));
        assert!((0..1000).all(|_| Mix::of_reads(1.0).pick(&mut rng).0 == Op::Read));
        assert!((0..1000).all(|_| Mix::of_reads(0.0).pick(&mut rng).0 == Op::Write));
        assert_eq!([by_share.option(), by_text.option()], ["--reads 0.25", "--mix read=25,write=75"]);
    }

    #[test]
    fn unknown_operations_and_invalid_weights_are_refused() {
        for wrong in ["", "read", "read=", "read=0", "read=-1", "erase=5", "read=50,read=50", "read=nan", "read=inf"] {
            assert!(wrong.parse::<Mix>().is_err(), "{wrong}");
        }
        assert!("erase=5".parse::<Mix>().unwrap_err().contains("read, write, flush, fua, discard"));
    }
}
