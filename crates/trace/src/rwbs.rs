//! The letters by which Linux' block layer says what a request does: `RWBS` in its traces.
//!
//! `[F] op [F] [A] [S] [M]`: a flush in front, the operation (`R` read, `W` write, `D` discard, `N` none, `F` flush, `Z…`
//! zones), forced unit access, read-ahead, sync, metadata. From `blk_fill_rwbs` in the kernel and `fill_rwbs` in blktrace.
//! Neither tells writing zeros from writing (seen on Linux 6.18); what is written here says `WZ` for it.

use crate::request::{Flags, Op};

const FLUSHES: Flags = Flags::PREFLUSH.with(Flags::FUA);

/// What the letters say; `None` for what is no request of ours (zone management, driver commands).
pub fn parse(letters: &[u8], sectors: u64) -> Option<(Op, Flags)> {
    let (preflush, rest) = match letters {
        [b'F', rest @ ..] if matches!(rest.first(), Some(b'R' | b'W' | b'D' | b'N' | b'F')) => (Flags::PREFLUSH, rest),
        _ => (Flags::NONE, letters),
    };
    let (&letter, modifiers) = rest.split_first()?;
    let mut flags = preflush;
    for modifier in modifiers {
        flags = flags.with(match modifier {
            b'F' => Flags::FUA,
            b'A' => Flags::READAHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            // Secure erase, atomic writes and what may come: the operation is the same.
            _ => Flags::NONE,
        });
    }
    let has_flush = flags.has(Flags::PREFLUSH);
    let op = match letter {
        b'R' => Op::Read,
        // A flush without data is asked for as a write of nothing.
        b'W' | b'N' if sectors == 0 && has_flush => Op::Flush,
        b'W' if modifiers.contains(&b'Z') => Op::WriteZeroes,
        b'W' => Op::Write,
        b'D' => Op::Discard,
        b'F' => Op::Flush,
        _ => return None,
    };
    // A flush is nothing but that, however it was asked for.
    let flags = if op == Op::Flush { Flags(flags.0 & !FLUSHES.0) } else { flags };
    Some((op, flags))
}

/// The letters for a request.
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
    fn letters_of_real_traces() {
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
        ] {
            assert_eq!(parse(text.as_bytes(), sectors), Some((op, flags)), "{text}");
        }
        for none in ["", "N", "ZR", "X"] {
            assert_eq!(parse(none.as_bytes(), 0), None, "{none}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for op in Op::ALL {
            for bits in 0..32 {
                let flags = Flags(bits);
                if op == Op::Flush && flags.0 & FLUSHES.0 != 0 {
                    continue;
                }
                let sectors = if op == Op::Flush { 0 } else { 8 };
                assert_eq!(parse(letters(op, flags).as_bytes(), sectors), Some((op, flags)), "{}", letters(op, flags));
            }
        }
    }
}
