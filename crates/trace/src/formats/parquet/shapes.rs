//! Checks the structures of a file, its footer and the headers of its pages, before the library reads them.
//!
//! The library trusts the number of elements of a list. For lists of unknown fields, which it skips, it neither needs a byte
//! per boolean nor warnings the end of the file: a few bytes keep it busy for hours. This check parses the bytes first, as
//! the library would, and rejects lists with more elements than there are bytes.
//!
//! The encoding is Thrift's compact protocol, <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>;
//! the structures are those of <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::io::{self, ErrorKind, Read};

/// The expected type of a field. The library reads a known field as this type, even if the field states another type.
#[derive(Clone, Copy)]
enum Shape {
    /// True or false, which is part of the stated type.
    Flag,
    Byte,
    /// An integer or an enumeration.
    Number,
    Double,
    /// Text or other bytes, with their length.
    Bytes,
    List(&'static Shape),
    /// A structure or a union, with the numbers of its known fields. Other fields have their stated type.
    Struct(&'static [(i16, Shape)]),
    /// The stated type.
    Unknown,
}

use Shape::{Byte, Bytes, Double, Flag, List, Number, Struct, Unknown};

const NUMBERS: Shape = List(&Number);

const TIME: Shape = Struct(&[(1, Flag), (2, Struct(&[(1, Struct(&[])), (2, Struct(&[])), (3, Struct(&[]))]))]);

const LOGICAL_TYPE: Shape = Struct(&[
    (5, Struct(&[(1, Number), (2, Number)])),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Flag)])),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Bytes)])),
    (18, Struct(&[(1, Bytes), (2, Number)])),
]);

const SCHEMA_ELEMENT: Shape = Struct(&[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Bytes),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, Number),
    (9, Number),
    (10, LOGICAL_TYPE),
]);

const STATISTICS: Shape = Struct(&[
    (1, Bytes),
    (2, Bytes),
    (3, Number),
    (4, Number),
    (5, Bytes),
    (6, Bytes),
    (7, Flag),
    (8, Flag),
    (9, Number),
]);

const BOUNDING_BOX: Shape =
    Struct(&[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)]);

const COLUMN_METADATA: Shape = Struct(&[
    (1, Number),
    (2, NUMBERS),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (9, Number),
    (10, Number),
    (11, Number),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, Number), (2, Number), (3, Number)]))),
    (14, Number),
    (15, Number),
    (16, Struct(&[(1, Number), (2, NUMBERS), (3, NUMBERS)])),
    (17, Struct(&[(1, BOUNDING_BOX), (2, NUMBERS)])),
]);

const COLUMN: Shape =
    Struct(&[(1, Bytes), (2, Number), (3, COLUMN_METADATA), (4, Number), (5, Number), (6, Number), (7, Number)]);

const SORTING_COLUMN: Shape = Struct(&[(1, Number), (2, Flag), (3, Flag)]);

const ROW_GROUP: Shape =
    Struct(&[(1, List(&COLUMN)), (2, Number), (3, Number), (4, List(&SORTING_COLUMN)), (5, Number), (7, Number)]);

const FILE: Shape = Struct(&[
    (1, Number),
    (2, List(&SCHEMA_ELEMENT)),
    (3, Number),
    (4, List(&ROW_GROUP)),
    (5, List(&Struct(&[(1, Bytes), (2, Bytes)]))),
    (6, Bytes),
    (7, List(&Struct(&[(1, Struct(&[])), (2, Struct(&[])), (3, Struct(&[]))]))),
]);

/// The statistics in headers of pages (field 5 of a data page, field 8 of a data page v2) are unknown: the library skips
/// them.
const PAGE: Shape = Struct(&[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Number),
    (5, Struct(&[(1, Number), (2, Number), (3, Number), (4, Number)])),
    (6, Struct(&[])),
    (7, Struct(&[(1, Number), (2, Number), (3, Flag)])),
    (8, Struct(&[(1, Number), (2, Number), (3, Number), (4, Number), (5, Number), (6, Number), (7, Flag)])),
]);

/// The most elements of all lists in the header of a page, which has no lists in the current format.
const MAX_PAGE_HEADER_ELEMENTS: u64 = 1024;

/// The deepest nesting of structures. The library stops at 64 unknown ones.
const MAX_DEPTH: u32 = 80;

/// Checks the footer, of `length` bytes.
pub fn check_footer(bytes: impl Read, length: u64) -> io::Result<()> {
    Checker { bytes: bytes.take(length), elements_left: length }.value(STRUCT, FILE, MAX_DEPTH)
}

/// Checks the header of a page.
pub fn check_page_header(bytes: impl Read) -> io::Result<()> {
    Checker { bytes, elements_left: MAX_PAGE_HEADER_ELEMENTS }.value(STRUCT, PAGE, MAX_DEPTH)
}

// Types of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

struct Checker<Bytes> {
    bytes: Bytes,
    /// The number of elements that further lists may have.
    elements_left: u64,
}

impl<Source: Read> Checker<Source> {
    fn value(&mut self, kind: u8, shape: Shape, depth: u32) -> io::Result<()> {
        let has_expected_type = match shape {
            Flag => matches!(kind, TRUE | FALSE),
            Byte => kind == BYTE,
            Number => matches!(kind, I16..=I64),
            Double => kind == DOUBLE,
            Bytes => kind == BINARY,
            List(_) => matches!(kind, LIST | SET),
            Struct(_) => kind == STRUCT,
            Unknown => true,
        };
        if !has_expected_type {
            return damaged("a field has the wrong type");
        }
        let Some(depth) = depth.checked_sub(1) else { return damaged("structures are nested too deeply") };
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.skip(1),
            I16..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.skip(8),
            BINARY => {
                let length = self.varint()?;
                self.skip(length)
            }
            LIST | SET => self.list(if let List(&element) = shape { element } else { Unknown }, depth),
            MAP => self.map(depth),
            STRUCT => self.fields(if let Struct(fields) = shape { fields } else { &[] }, depth),
            UUID => self.skip(16),
            _ => damaged("a field has a type that does not exist"),
        }
    }

    fn fields(&mut self, known: &[(i16, Shape)], depth: u32) -> io::Result<()> {
        let mut last = 0_i16;
        loop {
            let head = self.byte()?;
            let (step, kind) = (head >> 4, head & 0xf);
            if kind == 0 {
                return Ok(());
            }
            let number = match step {
                // Zigzag: 0, -1, 1, -2, ...
                0 => self.varint().map(|n| Some((n >> 1) as i16 ^ -((n & 1) as i16)))?,
                step => last.checked_add(step.into()),
            };
            // Beyond the highest number, fields stay unknown.
            last = number.unwrap_or(i16::MAX);
            let shape = known.iter().find(|field| field.0 == last).map_or(Unknown, |field| field.1);
            self.value(kind, shape, depth)?;
        }
    }

    fn list(&mut self, shape: Shape, depth: u32) -> io::Result<()> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(());
        }
        let length = match head >> 4 {
            15 => self.varint()?,
            short => short.into(),
        };
        self.claim(length)?;
        (0..length).try_for_each(|_| self.value(head & 0xf, shape, depth))
    }

    fn map(&mut self, depth: u32) -> io::Result<()> {
        let length = self.varint()?;
        if length == 0 {
            return Ok(());
        }
        self.claim(length)?;
        let kinds = self.byte()?;
        (0..length).try_for_each(|_| {
            self.value(kinds >> 4, Unknown, depth)?;
            self.value(kinds & 0xf, Unknown, depth)
        })
    }

    fn claim(&mut self, elements: u64) -> io::Result<()> {
        match self.elements_left.checked_sub(elements) {
            Some(left) => {
                self.elements_left = left;
                Ok(())
            }
            None => damaged("a list has more elements than there are bytes"),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// A number in groups of seven bits (LEB128). Too many groups wrap around, as in the library.
    fn varint(&mut self) -> io::Result<u64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.wrapping_add(7);
        }
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.bytes.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }
}

fn damaged(what: &str) -> io::Result<()> {
    Err(io::Error::new(ErrorKind::InvalidData, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footer(bytes: &[u8]) -> Result<(), String> {
        check_footer(bytes, bytes.len() as u64).map_err(|e| e.to_string())
    }

    /// A field of this type with an unknown number.
    fn unknown(kind: u8, value: &[u8]) -> Vec<u8> {
        [&[kind, 200, 1], value, &[0]].concat()
    }

    /// 2^31 - 1.
    const MANY: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x07];

    #[test]
    fn lists_have_no_more_elements_than_bytes() {
        assert_eq!(footer(&unknown(LIST, &[0x35, 1, 2, 3])), Ok(()));
        for element in [TRUE, FALSE, DOUBLE, UUID, STRUCT, LIST] {
            let list = unknown(LIST, &[&[0xf0 | element], &MANY[..]].concat());
            assert!(footer(&list).unwrap_err().contains("more elements"), "{element}");
            assert!(check_page_header(&list[..]).unwrap_err().to_string().contains("more elements"), "{element}");
        }
        let map = unknown(MAP, &[&MANY[..], &[0x11]].concat());
        assert!(footer(&map).unwrap_err().contains("more elements"));
        // Few elements per list, but more than bytes in total.
        let lists = unknown(LIST, &[0x49, 0x51, 0x51, 0x51, 0x51]);
        assert!(footer(&lists).unwrap_err().contains("more elements"));
    }

    #[test]
    fn a_known_field_must_have_its_type() {
        // The library would read a number of one byte there, and continue inside of the list.
        let list = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert_eq!(footer(&list).unwrap_err(), "a field has the wrong type");
        assert_eq!(footer(&[0x15, 2, 0]), Ok(()));
    }

    #[test]
    fn nesting_of_structures_is_limited() {
        let deep = [[0xfc; 100].as_slice(), &[0; 101]].concat();
        assert!(footer(&deep).unwrap_err().contains("nested too deeply"));
    }
}
