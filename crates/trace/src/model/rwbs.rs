//! `RWBS`: the letters for operation and flags in traces of Linux' block layer.
//!
//! `[F] op [F] [A] [S] [M]`: preflush, the operation (`R` read, `W` write, `D` discard, `N` none, `F` flush, `Z…` zones),
//! forced unit access, read-ahead, sync, metadata. A zone append (`ZA`) writes data; the other zone operations (`ZR` reset,
//! `ZRA` reset all, `ZF` finish, `ZO` open, `ZC` close) move none. From `blk_fill_rwbs` in the kernel and `fill_rwbs` in
//! blktrace. For write-zeroes, the kernel's tracepoints have `N` with a length (seen on Linux 6.18), newer ones `WZ`;
//! blktrace has `W`. This module writes `WZ`.

use crate::model::request::{Flags, Op};

const FLUSHES: Flags = Flags::PREFLUSH.with(Flags::FUA);

/// Commands to a device that a load does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotARequest {
    /// A command to the driver.
    DriverCommand,
    /// Zone management, such as the reset or the opening of a zone.
    ZoneManagement,
    /// An unknown operation.
    Unknown,
}

/// Parses the letters of a request of `sectors` sectors.
///
/// # Errors
/// If the command is not a request of a load.
pub fn parse(letters: &[u8], sectors: u64) -> Result<(Op, Flags), NotARequest> {
    // The most frequent ones first.
    match letters {
        b"R" => return Ok((Op::Read, Flags::NONE)),
        b"W" => return Ok((Op::Write, Flags::NONE)),
        b"WS" => return Ok((Op::Write, Flags::SYNC)),
        _ => {}
    }
    let (preflush, rest) = match letters {
        [b'F', rest @ ..] if matches!(rest.first(), Some(b'R' | b'W' | b'D' | b'N' | b'F' | b'Z')) => {
            (Flags::PREFLUSH, rest)
        }
        _ => (Flags::NONE, letters),
    };
    let (letter, modifiers) = match rest {
        [b'Z', b'A', modifiers @ ..] => (b'W', modifiers),
        [letter, modifiers @ ..] => (*letter, modifiers),
        [] => return Err(NotARequest::Unknown),
    };
    let mut flags = preflush;
    for modifier in modifiers {
        flags = flags.with(match modifier {
            b'F' => Flags::FUA,
            b'A' => Flags::READAHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            // Secure erase, atomic writes and future flags do not change the operation.
            _ => Flags::NONE,
        });
    }
    let has_flush = flags.has(Flags::PREFLUSH);
    let op = match letter {
        b'R' => Op::Read,
        // A flush without data is queued as an empty write with preflush.
        b'W' | b'N' if sectors == 0 && has_flush => Op::Flush,
        b'W' if modifiers.contains(&b'Z') => Op::WriteZeroes,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        b'F' => Op::Flush,
        // Commands to the driver have no length or no position. (Kernels without `ZA` write zone appends like this, too.)
        b'N' if sectors > 0 => Op::WriteZeroes,
        b'N' => return Err(NotARequest::DriverCommand),
        b'Z' => return Err(NotARequest::ZoneManagement),
        _ => return Err(NotARequest::Unknown),
    };
    // A flush has neither of these flags in a load, even if it was queued with them.
    let flags = if op == Op::Flush { Flags(flags.0 & !FLUSHES.0) } else { flags };
    Ok((op, flags))
}

/// Whether the letters are those of a zone append.
pub fn is_append(letters: &[u8]) -> bool {
    letters.strip_prefix(b"F").unwrap_or(letters).starts_with(b"ZA")
}

/// The letters of an operation with flags.
pub fn letters(op: Op, flags: Flags) -> String {
    let mut text = String::with_capacity(6);
    if flags.has(Flags::PREFLUSH) {
        text.push('F');
    }
    text.push_str(match op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Flush => "F",
        Op::Discard => "D",
        Op::WriteZeroes => "WZ",
    });
    for (flag, letter) in [(Flags::FUA, 'F'), (Flags::READAHEAD, 'A'), (Flags::SYNC, 'S'), (Flags::META, 'M')] {
        if flags.has(flag) {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_real_traces_are_parsed() {
        for (text, sectors, op, flags) in [
            ("R", 8, Op::Read, Flags::NONE),
            ("RA", 8, Op::Read, Flags::READAHEAD),
            ("RAHM", 8, Op::Read, Flags::READAHEAD.with(Flags::META)),
            ("WS", 8, Op::Write, Flags::SYNC),
            ("WFS", 8, Op::Write, Flags::FUA.with(Flags::SYNC)),
            ("FWFSM", 8, Op::Write, Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).with(Flags::META)),
            ("FWS", 0, Op::Flush, Flags::SYNC),
            ("FF", 0, Op::Flush, Flags::NONE),
            ("FN", 0, Op::Flush, Flags::NONE),
            ("F", 0, Op::Flush, Flags::NONE),
            ("D", 8, Op::Discard, Flags::NONE),
            ("DE", 8, Op::Discard, Flags::NONE),
            ("WZS", 8, Op::WriteZeroes, Flags::SYNC),
            ("NS", 8, Op::WriteZeroes, Flags::SYNC),
            ("ZA", 8, Op::Write, Flags::NONE),
            ("ZAFS", 8, Op::Write, Flags::FUA.with(Flags::SYNC)),
            ("FZAS", 8, Op::Write, Flags::PREFLUSH.with(Flags::SYNC)),
        ] {
            assert_eq!(parse(text.as_bytes(), sectors), Ok((op, flags)), "{text}");
        }
        for (text, what) in [
            ("", NotARequest::Unknown),
            ("X", NotARequest::Unknown),
            ("N", NotARequest::DriverCommand),
            ("NS", NotARequest::DriverCommand),
            ("ZR", NotARequest::ZoneManagement),
            ("ZRAS", NotARequest::ZoneManagement),
            ("ZFS", NotARequest::ZoneManagement),
        ] {
            assert_eq!(parse(text.as_bytes(), 0), Err(what), "{text}");
        }
    }

    #[test]
    fn zone_appends_are_recognised() {
        let appends = ["ZA", "ZAFS", "FZAS", "ZRAS", "W", "FWAS", "FF"].map(|letters| is_append(letters.as_bytes()));
        assert_eq!(appends, [true, true, true, false, false, false, false]);
    }

    #[test]
    fn written_letters_are_parsed_back() {
        for op in Op::ALL {
            for bits in 0..32 {
                let flags = Flags(bits);
                if op == Op::Flush && flags.0 & FLUSHES.0 != 0 {
                    continue;
                }
                let sectors = if op == Op::Flush { 0 } else { 8 };
                assert_eq!(parse(letters(op, flags).as_bytes(), sectors), Ok((op, flags)), "{}", letters(op, flags));
            }
        }
    }
}
