//! The keys of a description: the parser accepts these, and the schema and `iosonar formats --keys` list them.

use super::field::Role;
use crate::params::{Key, Takes};

/// The keys of the whole description.
pub const DESCRIPTION: &[Key] = &[
    Key::new("title", Takes::Text, "What the trace is, in a few words"),
    Key::new(
        "separator",
        Takes::Text,
        "What separates columns: one character, tab, or blanks for any number of blanks; if missing, the first of , ; tab | \
         with which a line has enough columns, else blanks",
    ),
    Key::new(
        "skip",
        Takes::Number,
        "Non-empty lines to skip before the rows; a heading that names the columns is found without it",
    ),
    Key::new("ignore", Takes::Texts, "Beginnings of lines that are not rows, such as comments"),
    Key::new("thousands", Takes::Text, "The character between groups of digits, such as the comma in 1,234"),
    Key::new("decimal", Takes::Text, "The decimal sign, if it is not a point"),
    Key::new(
        "pattern",
        Takes::Text,
        "For lines that are not columns: a regular expression (syntax of the Rust crate regex, ASCII) that matches from the \
         beginning of a line, with groups that have names of fields: (?<offset>[0-9]+)",
    ),
    Key::new("others", Takes::Text, "Lines that the pattern does not match: bad (the default), or ignore"),
    Key::new("record", Takes::Number, "For binary files: the size of a record in bytes"),
    Key::new("byte_order", Takes::Text, "In records: the byte order of numbers, little (the default) or big"),
    Key::new(
        "recognise",
        Takes::Text,
        "How a file is recognised without --from: heading (the default if columns have names), rows, or never (the default)",
    ),
    Key::new(
        "request_time",
        Takes::Text,
        "What `at` is: queued (the default), when the request was made, or issued, when it went to the device",
    ),
    Key::new(
        "at",
        Takes::Table(AT),
        "When the request was made; it may be missing if `completed` and `latency` are there",
    ),
    Key::new("completed", Takes::Table(TIME), "When it completed, on the clock of `at`: gives the latency or the time"),
    Key::new("latency", Takes::Table(TIME), "From issue to completion; blank or - if unknown"),
    Key::new("queued", Takes::Table(TIME), "From queueing to issue; blank or - if unknown"),
    Key::new("op", Takes::Table(OP), "The operation"),
    Key::new("offset", Takes::Table(SIZE), "The position on the device"),
    Key::new("size", Takes::Table(SIZE), "The length"),
    Key::new("device", Takes::Table(DEVICE), "The device"),
    Key::new(
        "minor",
        Takes::Table(PLACE),
        "A second column of the device's name: 8 and 0 become 8,0; a and 1 become a.1",
    ),
    Key::new("pid", Takes::Table(PLACE), "The process ID; left out if it is not a number"),
    Key::new("comm", Takes::Table(PLACE), "The name of the process"),
    Key::new("fua", Takes::Table(PLACE), "Forced unit access: true, yes or 1"),
    Key::new("preflush", Takes::Table(PLACE), "A flush before the data: true, yes or 1"),
    Key::new("only", Takes::Table(ONLY), "Takes only rows that have one of `words` in this column; others are counted"),
];

macro_rules! place {
    ($($more:expr),* $(,)?) => {
        &[
            Key::new(
                "column",
                Takes::Texts,
                "Its column: a number from 1 (negative: from the end), a name in the heading, or a list of possible names; a \
                 unit in brackets after a name is not part of it",
            ),
            Key::new("byte", Takes::Number, "In records: where it begins, from 0"),
            Key::new("width", Takes::Number, "In records: its size, 1 to 8 bytes"),
            Key::new("signed", Takes::Flag, "In records: whether the number may be negative"),
            Key::new("optional", Takes::Flag, "Whether the heading may lack it"),
            $($more),*
        ]
    };
}

const FACTOR: Key = Key::new("factor", Takes::Number, "A decimal number that times are multiplied by");

const TIME: &[Key] = place![
    Key::new(
        "unit",
        Takes::Text,
        "s (the default), ms, us, ns, ps, 100ns, min, h or d; or heading, if it is in brackets there"
    ),
    FACTOR,
];

const AT: &[Key] = place![
    Key::new(
        "unit",
        Takes::Text,
        "As for other times; also date (2024-01-31 12:34:56.789, with Z or +01:00, else UTC), or clock (12:34:56.789)",
    ),
    FACTOR,
    Key::new("date", Takes::Text, "The form of dates, as for strftime: %d/%b/%Y %H:%M:%S%.f"),
    Key::new(
        "origin",
        Takes::Text,
        "What times count from: start (of the trace), boot (any moment: the first request becomes zero), 1970, 1601, or before \
         (the line before); if missing, 1970 for dates and for times of 1990 and later, else start",
    ),
];

const SIZE: &[Key] = place![
    Key::new(
        "unit",
        Takes::Text,
        "bytes (the default), sectors (of 512 bytes), KiB, or the bytes of a block: 4k; or heading"
    ),
    Key::new("base", Takes::Number, "16 for hexadecimal numbers without 0x"),
    Key::new("always", Takes::Text, "For size: the same for all requests, 4k"),
];

const OP: &[Key] = place![
    Key::new(
        "map",
        Takes::Names,
        "What words mean, R = \"read\": read, write, flush, discard, write_zeroes or skip; * is any other word. If missing: \
         read, write, r, w and the like in any case, and the letters of the block layer (WS, FWFS, D)",
    ),
    Key::new("mask", Takes::Number, "For numbers: the bits that the words of `map` compare"),
    Key::new("base", Takes::Number, "16 for hexadecimal numbers without 0x"),
    Key::new("always", Takes::Text, "The same for all requests"),
];

const DEVICE: &[Key] = place![
    Key::new(
        "spelling",
        Takes::Text,
        "name (the default); number; major:minor, which becomes 8,0; or dev_t, the kernel's number major << 20 | minor",
    ),
    Key::new("always", Takes::Text, "The same for all requests"),
];

const ONLY: &[Key] = place![Key::new("words", Takes::Texts, "The words of the rows to take").required()];

const PLACE: &[Key] = place![];

/// The keys that all fields have.
pub const fn of_all_fields() -> &'static [Key] {
    PLACE
}

/// The keys of a field.
pub fn of_field(role: Role) -> &'static [Key] {
    let key = DESCRIPTION.iter().find(|key| key.name == role.name());
    match key.map(|key| key.takes) {
        Some(Takes::Table(keys)) => keys,
        _ => PLACE,
    }
}
