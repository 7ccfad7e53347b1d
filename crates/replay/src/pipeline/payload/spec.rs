//! What the data of writes shall be, as the options say it.

use std::fmt;
use std::str::FromStr;

use iosonar_trace::human;
use serde::Serialize;

use super::blocks::{BLOCK_BYTES, Filler};
use super::pattern::Pattern;
use super::percent::Percent;
use super::written::Written;
use crate::error::{Error, Result};

/// What the data of writes is. Kept in the run's footer as it is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DataSpec {
    /// Zeros.
    Zero,
    /// The same few bytes over and over.
    Pattern {
        /// These.
        hex: Pattern,
    },
    /// Fresh random bytes, or blocks that are random in part.
    Random {
        /// How much of each block is random.
        random_pct: Percent,
        /// What the rest of each block is.
        filler: Filler,
        /// How many of all blocks repeat an earlier one.
        dedupe_pct: Percent,
    },
}

/// What `--data` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// `zero`
    Zero,
    /// `random`
    #[default]
    Random,
    /// `pattern=HEX`
    Pattern(Pattern),
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            None if text == "zero" => Ok(Self::Zero),
            None if text == "random" => Ok(Self::Random),
            Some(("pattern", hex)) => hex.parse().map(Self::Pattern),
            _ => Err("give zero, random or pattern=HEX, for example pattern=deadbeef".into()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zero"),
            Self::Random => f.write_str("random"),
            Self::Pattern(hex) => write!(f, "pattern={hex}"),
        }
    }
}

/// The options as they were given; what was not given is `None`.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `--data`
    pub kind: Kind,
    /// `--compressible`
    pub compressible: Option<Percent>,
    /// `--dedupe`
    pub dedupe: Option<Percent>,
    /// `--fill-random`
    pub fill_random: Option<Percent>,
}

impl Asked {
    /// What they mean together. Options that contradict each other are refused.
    pub fn spec(self) -> Result<DataSpec> {
        let shares =
            [("--compressible", self.compressible), ("--dedupe", self.dedupe), ("--fill-random", self.fill_random)];
        if let Some((name, _)) = shares.iter().find(|(_, share)| share.is_some())
            && self.kind != Kind::Random
        {
            return refuse(format!(
                "{name} is a share of random data, and --data {} has none; leave one out",
                self.kind
            ));
        }
        let (random_pct, filler) = match (self.compressible, self.fill_random) {
            (Some(_), Some(_)) => {
                return refuse(
                    "--compressible and --fill-random both say how much of each block is random (the rest is \
                     0xdeadbeef with the first, zeros with the second); leave one out"
                        .into(),
                );
            }
            (Some(compressible), None) => (compressible.rest(), Filler::Deadbeef),
            (None, Some(random)) => (random, Filler::Zero),
            (None, None) => (Percent::ALL, Filler::Deadbeef),
        };
        let dedupe_pct = self.dedupe.unwrap_or(Percent::NONE);
        if dedupe_pct == Percent::ALL {
            return refuse("--dedupe goes up to 99: something must be written that can be repeated".into());
        }
        match self.kind {
            Kind::Zero => Ok(DataSpec::Zero),
            Kind::Pattern(hex) => Ok(DataSpec::Pattern { hex }),
            Kind::Random if filler == Filler::Zero && random_pct == Percent::NONE => match self.dedupe {
                Some(_) => refuse(
                    "--fill-random 0 writes zeros alone, of which every block is equal; leave out --dedupe".into(),
                ),
                None => Ok(DataSpec::Zero),
            },
            Kind::Random => Ok(DataSpec::Random { random_pct, filler, dedupe_pct }),
        }
    }
}

fn refuse<T>(text: String) -> Result<T> {
    Err(Error::Usage(text))
}

impl Default for DataSpec {
    /// Random throughout.
    fn default() -> Self {
        Self::Random { random_pct: Percent::ALL, filler: Filler::Deadbeef, dedupe_pct: Percent::NONE }
    }
}

impl DataSpec {
    /// Why results on this data may be too good, if they may.
    pub fn doubt(&self) -> Option<String> {
        let what = match self {
            Self::Zero => "zeros were written",
            Self::Pattern { .. } => "the same pattern was written everywhere",
            Self::Random { .. } => return None,
        };
        Some(format!(
            "{what}: many storages store nothing of such data, and look faster than they are; --data random writes what \
             they can't save"
        ))
    }

    /// By how much what was written falls short of the duplicates asked for, if it does.
    pub fn shortfall(&self, written: &Written) -> Option<String> {
        let Self::Random { dedupe_pct, .. } = *self else { return None };
        let found = written.duplicates as f64 * BLOCK_BYTES as f64 / written.bytes.max(1) as f64 * 100.0;
        (written.bytes > 0 && found < f64::from(dedupe_pct.get()) - 2.0).then(|| {
            format!(
                "{} of what was written is duplicates, not {dedupe_pct}: only whole blocks of 4 KiB can be, and \
                 {} of {} blocks were written in part",
                human::percent(found / 100.0),
                human::count(written.partial_blocks),
                human::count(written.partial_blocks + written.blocks)
            )
        })
    }
}

impl fmt::Display for DataSpec {
    /// For people: what is written, in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zeros"),
            Self::Pattern { hex } => {
                let hex = hex.to_string();
                if hex.len() > 16 { write!(f, "the pattern {}…", &hex[..16]) } else { write!(f, "the pattern {hex}") }
            }
            Self::Random { random_pct, filler, dedupe_pct } => {
                match filler {
                    _ if *random_pct == Percent::ALL => f.write_str("random data")?,
                    Filler::Deadbeef => write!(f, "data that compresses by {}", random_pct.rest())?,
                    Filler::Zero => write!(f, "blocks that are random by {random_pct}, the rest zeros")?,
                }
                if *dedupe_pct > Percent::NONE {
                    write!(f, ", {dedupe_pct} of the blocks duplicates")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: &str, shares: [Option<u8>; 3]) -> Asked {
        let [compressible, dedupe, fill_random] = shares.map(|share| share.and_then(Percent::new));
        Asked { kind: kind.parse().unwrap(), compressible, dedupe, fill_random }
    }

    #[test]
    fn what_contradicts_itself_is_refused_and_says_why() {
        for (kind, shares, word) in [
            ("zero", [Some(50), None, None], "--compressible is a share"),
            ("zero", [None, Some(50), None], "--dedupe is a share"),
            ("pattern=00", [None, None, Some(1)], "--data pattern=00 has none"),
            ("random", [Some(50), None, Some(50)], "--compressible and --fill-random both"),
            ("random", [None, Some(100), None], "up to 99"),
            ("random", [None, Some(10), Some(0)], "every block is equal"),
        ] {
            let said = asked(kind, shares).spec().unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
        for wrong in ["zeros", "pattern", "pattern=", "pattern=1", "random=1", ""] {
            assert!(wrong.parse::<Kind>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_footer_says_what_was_asked_for() {
        let json = |kind, shares| serde_json::to_string(&asked(kind, shares).spec().unwrap()).unwrap();
        let random = |random, filler, dedupe| {
            format!(r#"{{"kind":"random","random_pct":{random},"filler":"{filler}","dedupe_pct":{dedupe}}}"#)
        };
        assert_eq!(json("random", [None; 3]), random(100, "deadbeef", 0));
        assert_eq!(json("random", [Some(30), Some(20), None]), random(70, "deadbeef", 20));
        assert_eq!(json("random", [None, None, Some(30)]), random(30, "zero", 0));
        assert_eq!(json("random", [None, None, Some(0)]), r#"{"kind":"zero"}"#);
        assert_eq!(json("pattern=0xCAFE", [None; 3]), r#"{"kind":"pattern","hex":"cafe"}"#);
    }

    #[test]
    fn people_are_told_in_words() {
        let told = |kind, shares| asked(kind, shares).spec().unwrap().to_string();
        assert_eq!(told("random", [None; 3]), "random data");
        assert_eq!(
            told("random", [Some(30), Some(20), None]),
            "data that compresses by 30 %, 20 % of the blocks duplicates"
        );
        assert_eq!(told("random", [None, None, Some(30)]), "blocks that are random by 30 %, the rest zeros");
        assert_eq!(told("pattern=cafe", [None; 3]), "the pattern cafe");
    }
}
