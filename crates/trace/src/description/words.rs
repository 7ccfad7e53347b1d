//! What words of a trace mean: operations, and which rows to take.

use super::field::Raw;
use super::units::Base;
use crate::model::request::{Flags, Op};
use crate::model::rwbs::{self, NotARequest};

/// A word of a description, which is compared as text or as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    text: Box<[u8]>,
    number: Option<i128>,
}

impl Word {
    /// A word; it may be a number.
    pub fn new(text: &str) -> Self {
        let number = Base::Ten.whole(text.as_bytes()).map(i128::from).or_else(|| text.parse().ok());
        Self { text: text.as_bytes().into(), number }
    }

    /// Whether a row has this word, in any case.
    #[inline]
    pub fn is(&self, raw: Raw<'_>) -> bool {
        match raw {
            Raw::Text(text) => self.text.eq_ignore_ascii_case(text),
            Raw::Number(number) => self.number == Some(number),
            Raw::Missing => false,
        }
    }
}

/// How the operation is written.
#[derive(Clone, Debug)]
pub enum Operations {
    /// The same for all requests.
    Always(Op),
    /// By words; those in no list are unknown.
    Map(Map),
    /// In English, or in the letters of the block layer.
    Usual,
}

/// The words of operations.
#[derive(Clone, Debug, Default)]
pub struct Map {
    pub words: Vec<(Word, Meaning)>,
    /// What all other words mean.
    pub others: Option<Meaning>,
    /// Numbers are compared in these bits.
    pub mask: Option<u64>,
    pub base: Base,
}

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Op(Op, Flags),
    /// The row is left out and counted.
    Skip,
}

impl Meaning {
    /// `read`, `write`, `flush`, `discard`, `write_zeroes` or `skip`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match (text, Op::from_name(text)) {
            ("skip", _) => Ok(Self::Skip),
            (_, Some(op)) => Ok(Self::Op(op, Flags::NONE)),
            _ => {
                let known = Op::ALL.iter().map(|op| op.name()).chain(["skip"]);
                Err(format!("`{text}` is no operation; {}", crate::params::did_you_mean(text, known)))
            }
        }
    }
}

const UNKNOWN: &str = "the operation is none of the words that the description has for it";

impl Operations {
    /// The operation of a row of so many bytes.
    #[inline]
    pub fn of(&self, raw: Raw<'_>, bytes: u64) -> Result<Meaning, &'static str> {
        match self {
            Self::Always(op) => Ok(Meaning::Op(*op, Flags::NONE)),
            Self::Map(map) => map.of(raw),
            Self::Usual => match raw {
                Raw::Text(text) => usual(text, bytes),
                _ => Err("no operation"),
            },
        }
    }
}

impl Map {
    #[inline]
    fn of(&self, raw: Raw<'_>) -> Result<Meaning, &'static str> {
        let raw = match (raw, self.mask) {
            (Raw::Missing, _) => return Err("no operation"),
            (Raw::Text(text), Some(mask)) => {
                let number = self.base.whole(text).ok_or("the operation is not a whole number")?;
                Raw::Number((number & mask).into())
            }
            (Raw::Number(number), Some(mask)) => Raw::Number(number & i128::from(mask)),
            (raw, None) => raw,
        };
        let found = self.words.iter().find(|(word, _)| word.is(raw)).map(|(_, meaning)| *meaning);
        found.or(self.others).ok_or(UNKNOWN)
    }
}

/// Words in which tools write operations; others may be the letters of the block layer.
const USUAL: &[(&[&[u8]], Op)] = &[
    (&[b"r", b"read", b"rd", b"reads"], Op::Read),
    (&[b"w", b"write", b"wr", b"writes"], Op::Write),
    (&[b"f", b"flush", b"sync"], Op::Flush),
    (&[b"d", b"discard", b"trim", b"unmap"], Op::Discard),
    (&[b"write_zeroes", b"write-zeroes", b"writezeroes", b"wz"], Op::WriteZeroes),
];

fn usual(text: &[u8], bytes: u64) -> Result<Meaning, &'static str> {
    for (words, op) in USUAL {
        if words.iter().any(|word| word.eq_ignore_ascii_case(text)) {
            return Ok(Meaning::Op(*op, Flags::NONE));
        }
    }
    let are_letters = text.len() <= 8 && text.iter().all(u8::is_ascii_uppercase);
    match rwbs::parse(text, bytes.div_ceil(512)) {
        Ok((op, flags)) if are_letters => Ok(Meaning::Op(op, flags)),
        Err(NotARequest::DriverCommand | NotARequest::ZoneManagement) if are_letters => Ok(Meaning::Skip),
        _ => Err("the operation is neither a word such as read or write nor the letters of the block layer (R, WS); \
                  describe it with a map"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_words_and_letters_need_no_map() {
        let of = |text: &str, bytes| Operations::Usual.of(Raw::Text(text.as_bytes()), bytes);
        for (text, op) in [("Read", Op::Read), ("w", Op::Write), ("TRIM", Op::Discard), ("Flush", Op::Flush)] {
            assert_eq!(of(text, 4096), Ok(Meaning::Op(op, Flags::NONE)), "{text}");
        }
        assert_eq!(of("WFS", 4096), Ok(Meaning::Op(Op::Write, Flags::FUA.with(Flags::SYNC))));
        assert_eq!(of("N", 0), Ok(Meaning::Skip));
        for wrong in ["0", "", "Rename", "X", "WRITTEN_ALL"] {
            assert!(of(wrong, 4096).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_map_compares_words_or_bits() {
        let words = |text: &str, meaning| (Word::new(text), meaning);
        let (read, write) = (Meaning::Op(Op::Read, Flags::NONE), Meaning::Op(Op::Write, Flags::NONE));
        let map =
            Map { words: vec![words("1", read), words("0", write)], mask: Some(1), base: Base::Sixteen, others: None };
        assert_eq!(map.of(Raw::Text(b"1f")), Ok(read));
        assert_eq!(map.of(Raw::Number(4)), Ok(write));
        assert_eq!(map.of(Raw::Text(b"x")), Err("the operation is not a whole number"));
        let map = Map { words: vec![words("GET", read), words("-1", write)], others: None, ..Map::default() };
        assert_eq!((map.of(Raw::Text(b"get")), map.of(Raw::Text(b"SET"))), (Ok(read), Err(UNKNOWN)));
        assert_eq!(map.of(Raw::Number(-1)), Ok(write));
        let map = Map { others: Some(Meaning::Skip), ..map };
        assert_eq!(map.of(Raw::Text(b"SET")), Ok(Meaning::Skip));
    }
}
