//! Options for the data of writes.

use std::fmt;
use std::str::FromStr;

use iosonar_trace::params::parse_sectors;

use super::{BLOCK_BYTES, DataSpec, Filler, Pattern, Percent};
use crate::Error;
use crate::args_as;

/// The data of writes, as given on the command line.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Data of writes: random (new for each request), zero, or pattern=HEX, 1 to 512 bytes, such as pattern=deadbeef
    #[arg(long, value_name = "WHAT", default_value = "random")]
    pub data: DataKind,
    /// Make this share of each 4 KiB compressible (0xdeadbeef repeated, as many storage systems skip zeros), the rest random
    #[arg(long, value_name = "PERCENT", conflicts_with = "fill_random")]
    pub compressible: Option<Percent>,
    /// Make this share of the 4 KiB blocks duplicates of blocks written earlier in this run
    #[arg(long, value_name = "PERCENT")]
    pub dedupe: Option<Percent>,
    /// Make this share of each 4 KiB random, the rest zeros, as blkreplay does
    #[arg(long, value_name = "PERCENT")]
    pub fill_random: Option<Percent>,
    /// Let these shares hold in blocks of this size instead of 4 KiB [default: 4k]
    #[arg(long, value_name = "LENGTH", value_parser = parse_block, allow_hyphen_values = true)]
    pub data_block: Option<u64>,
}

/// The largest block.
const MAX_BLOCK: u64 = 1 << 20;

fn parse_block(text: &str) -> Result<u64, String> {
    let bytes = parse_sectors(text)?.bytes();
    match (1..=MAX_BLOCK).contains(&bytes) {
        true => Ok(bytes),
        false => Err("give a size from 512 to 1M".into()),
    }
}

/// The value of `--data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// `zero`
    Zero,
    /// `random`
    Random,
    /// `pattern=HEX`
    Pattern(Pattern),
}

impl FromStr for DataKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "zero" => Ok(Self::Zero),
            None if text == "random" => Ok(Self::Random),
            Some(("pattern", hex)) => hex.parse().map(Self::Pattern),
            _ => Err("give zero, random or pattern=HEX, for example pattern=deadbeef".into()),
        }
    }
}

impl fmt::Display for DataKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zero"),
            Self::Random => f.write_str("random"),
            Self::Pattern(hex) => write!(f, "pattern={hex}"),
        }
    }
}

args_as!(DataArgs => DataSpec);

impl TryFrom<DataArgs> for DataSpec {
    type Error = Error;

    fn try_from(DataArgs { data, compressible, dedupe, fill_random, data_block }: DataArgs) -> Result<Self, Error> {
        let shares = [("--compressible", compressible), ("--dedupe", dedupe), ("--fill-random", fill_random)];
        if data_block.is_some() && shares.iter().all(|(_, share)| share.is_none()) {
            return refuse(
                "--data-block is the block of --compressible, --dedupe or --fill-random; give one of them".into(),
            );
        }
        if let Some((name, _)) = shares.iter().find(|(_, share)| share.is_some())
            && data != DataKind::Random
        {
            return refuse(format!("{name} is a share of random data, but --data {data} has none; omit one of them"));
        }
        // Clap refuses both together.
        let (random_pct, filler) = match (compressible, fill_random) {
            (Some(compressible), _) => (compressible.rest(), Filler::Deadbeef),
            (None, Some(random)) => (random, Filler::Zero),
            (None, None) => (Percent::ALL, Filler::Deadbeef),
        };
        let dedupe_pct = dedupe.unwrap_or(Percent::NONE);
        if dedupe_pct == Percent::ALL {
            return refuse("--dedupe must be at most 99: some blocks must be originals".into());
        }
        match data {
            DataKind::Zero => Ok(Self::Zero),
            DataKind::Pattern(hex) => Ok(Self::Pattern { hex }),
            DataKind::Random if filler == Filler::Zero && random_pct == Percent::NONE => match dedupe {
                Some(_) => refuse("--fill-random 0 writes only zeros, so all blocks are equal; omit --dedupe".into()),
                None => Ok(Self::Zero),
            },
            DataKind::Random => {
                let block_bytes = data_block.unwrap_or(BLOCK_BYTES as u64);
                Ok(Self::Random { random_pct, filler, dedupe_pct, block_bytes })
            }
        }
    }
}

/// As in the text of a program: `compressible=60 dedupe=20 block=64k`, `zero`, `pattern=deadbeef`.
impl FromStr for DataSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut args =
            DataArgs { data: DataKind::Random, compressible: None, dedupe: None, fill_random: None, data_block: None };
        for word in text.split_whitespace() {
            let located = |why: String| format!("`{word}`: {why}");
            match word.split_once('=') {
                Some(("compressible", share)) => args.compressible = Some(share.parse().map_err(located)?),
                Some(("dedupe", share)) => args.dedupe = Some(share.parse().map_err(located)?),
                Some(("block", bytes)) => args.data_block = Some(parse_block(bytes).map_err(located)?),
                _ => {
                    let words = "random, zero, pattern=HEX, compressible=PERCENT, dedupe=PERCENT or block=LENGTH";
                    args.data = word.parse().map_err(|_| format!("`{word}` is unknown; say {words}"))?;
                }
            }
        }
        // The words of a text are those of the options.
        Self::try_from(args)
            .map_err(|error| error.to_string().replace("--data-", "").replace("--data ", "").replace("--", ""))
    }
}

fn refuse(text: String) -> Result<DataSpec, Error> {
    Err(Error::Usage(text))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn parsed(words: &str) -> Result<DataSpec, clap::Error> {
        let command = DataSpec::augment_args(Command::new("replay").no_binary_name(true));
        DataSpec::from_arg_matches(&command.try_get_matches_from(words.split_whitespace())?)
    }

    fn spec(words: &str) -> DataSpec {
        parsed(words).unwrap()
    }

    #[test]
    fn contradictory_options_are_refused_with_the_reason() {
        for (words, why) in [
            ("--data zero --compressible 50", "--compressible is a share"),
            ("--data zero --dedupe 50", "--dedupe is a share"),
            ("--data pattern=00 --fill-random 1", "--data pattern=00 has none"),
            ("--compressible 50 --fill-random 50", "cannot be used with"),
            ("--dedupe 100", "at most 99"),
            ("--dedupe 10 --fill-random 0", "all blocks are equal"),
        ] {
            let message = parsed(words).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
        for wrong in ["zeros", "pattern", "pattern=", "pattern=1", "random=1", ""] {
            assert!(wrong.parse::<DataKind>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_footer_has_the_resulting_data() {
        let json = |words| serde_json::to_string(&spec(words)).unwrap();
        let random = |random, filler, dedupe| {
            format!(r#"{{"kind":"random","random_pct":{random},"filler":"{filler}","dedupe_pct":{dedupe}}}"#)
        };
        assert_eq!(json(""), random(100, "deadbeef", 0));
        assert_eq!(json("--compressible 30 --dedupe 20"), random(70, "deadbeef", 20));
        assert_eq!(json("--fill-random 30"), random(30, "zero", 0));
        assert_eq!(json("--fill-random 0"), r#"{"kind":"zero"}"#);
        assert_eq!(
            json("--dedupe 20 --data-block 64k"),
            random(100, "deadbeef", 20).replace('}', r#","block_bytes":65536}"#)
        );
        assert_eq!(json("--data pattern=0xCAFE"), r#"{"kind":"pattern","hex":"cafe"}"#);
    }

    #[test]
    fn a_text_says_what_the_options_say() {
        for (text, words) in [
            ("", ""),
            ("random", ""),
            ("zero", "--data zero"),
            ("pattern=0xCAFE", "--data pattern=cafe"),
            ("compressible=60 dedupe=20%", "--compressible 60 --dedupe 20"),
            ("random dedupe=5 block=64k", "--dedupe 5 --data-block 64k"),
        ] {
            assert_eq!(text.parse::<DataSpec>().unwrap(), spec(words), "{text}");
        }
        for (text, why) in [
            ("zeros", "`zeros` is unknown; say random, zero,"),
            ("compressible=101", "`compressible=101`: give a whole percentage"),
            ("block=2M dedupe=1", "from 512 to 1M"),
            ("block=4k", "block is the block of compressible"),
            ("zero dedupe=5", "dedupe is a share of random data, but zero has none"),
        ] {
            let error = text.parse::<DataSpec>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn only_fresh_random_data_is_the_default() {
        assert!(spec("").is_fresh_random());
        for words in ["--compressible 30", "--dedupe 20", "--fill-random 30", "--data zero", "--data pattern=cafe"] {
            assert!(!spec(words).is_fresh_random(), "{words}");
        }
    }

    #[test]
    fn data_is_described_in_words() {
        assert_eq!(spec("").to_string(), "random data");
        assert_eq!(
            spec("--compressible 30 --dedupe 20").to_string(),
            "data that compresses by 30 %, 20 % of the blocks duplicates"
        );
        assert_eq!(
            spec("--dedupe 20 --data-block 64k").to_string(),
            "random data, 20 % of the blocks duplicates, in blocks of 64 KiB"
        );
        assert_eq!(spec("--fill-random 30").to_string(), "blocks that are random by 30 %, the rest zeros");
        assert_eq!(spec("--data pattern=cafe").to_string(), "the pattern cafe");
    }
}
