//! Gzip as a sequence of members. Written, each is a piece that is packed at once: what any gunzip reads as one file, in a
//! fraction of the time that a stream takes. Read, zeros behind the last one are padding, as tapes and some tools leave it.

use std::io::{self, BufRead, Read, Write};

use flate2::bufread::GzDecoder;
use libdeflater::{CompressionLvl, Compressor};

/// Bytes of a member. What is alike in two of them is not found: smaller ones would make the file larger.
const MEMBER: usize = 1 << 20;
/// Of 12. Higher ones take twice the time for less than a tenth of the size.
const LEVEL: i32 = 4;

/// A writer that packs.
pub struct Members<W> {
    out: W,
    compressor: Compressor,
    text: Vec<u8>,
    packed: Vec<u8>,
    is_begun: bool,
}

impl<W: Write> Members<W> {
    /// Packs into `out`.
    pub fn new(out: W) -> Self {
        let level = CompressionLvl::new(LEVEL).expect("one of its levels");
        let mut compressor = Compressor::new(level);
        let packed = vec![0; compressor.gzip_compress_bound(MEMBER)];
        Self { out, compressor, text: Vec::with_capacity(MEMBER), packed, is_begun: false }
    }

    /// Where it packs into.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Packs what is left. Of nothing at all, too, there is a member: an empty file would not be one of gzip.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.text.is_empty() || !self.is_begun {
            self.pack()?;
        }
        Ok(self.out)
    }

    fn pack(&mut self) -> io::Result<()> {
        let length = self.compressor.gzip_compress(&self.text, &mut self.packed).map_err(io::Error::other)?;
        self.out.write_all(&self.packed[..length])?;
        self.text.clear();
        self.is_begun = true;
        Ok(())
    }
}

impl<W: Write> Write for Members<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() == MEMBER {
            self.pack()?;
        }
        let taken = bytes.len().min(MEMBER - self.text.len());
        self.text.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            self.pack()?;
        }
        self.out.flush()
    }
}

/// A reader that unpacks all members of a file.
pub struct Unpacked<R> {
    place: Place<R>,
}

enum Place<R> {
    Member(Box<GzDecoder<R>>),
    Behind(R),
    /// Nothing more is to come.
    End,
}

impl<R: BufRead> Unpacked<R> {
    /// Unpacks `packed`, which begins with a member.
    pub fn new(packed: R) -> Self {
        Self { place: Place::Behind(packed) }
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.place {
                Place::Member(member) => match member.read(buffer)? {
                    0 => {}
                    length => return Ok(length),
                },
                Place::Behind(packed) => match packed.fill_buf()?.first() {
                    None => return Ok(0),
                    Some(0) => {
                        only_zeros(packed)?;
                        return Ok(0);
                    }
                    Some(0x1f) => {}
                    // Appended, or the beginning of a member that was overwritten: nobody knows what is missing.
                    Some(_) => {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "what follows its last member is no gzip",
                        ));
                    }
                },
                Place::End => return Ok(0),
            }
            self.place = match std::mem::replace(&mut self.place, Place::End) {
                Place::Member(member) => Place::Behind(member.into_inner()),
                Place::Behind(packed) => Place::Member(Box::new(GzDecoder::new(packed))),
                Place::End => Place::End,
            };
        }
    }
}

/// Reads zeros up to the end.
fn only_zeros(packed: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = packed.fill_buf()?;
        let length = bytes.len();
        if bytes.iter().any(|&byte| byte != 0) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "something else follows the last member"));
        }
        if length == 0 {
            return Ok(());
        }
        packed.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::MultiGzDecoder;
    use proptest::prelude::*;

    use super::*;

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let (mut all, mut ours) = (Vec::new(), Vec::new());
        MultiGzDecoder::new(packed).read_to_end(&mut all).unwrap();
        Unpacked::new(packed).read_to_end(&mut ours).unwrap();
        assert!(ours == all);
        all
    }

    #[test]
    fn nothing_is_a_file_of_gzip_too() {
        let packed = Members::new(Vec::new()).finish().unwrap();
        assert!(!packed.is_empty() && unpacked(&packed).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn what_was_written_is_read(pieces in prop::collection::vec((0u8.., 0..MEMBER), 0..6)) {
            let mut members = Members::new(Vec::new());
            let mut whole = Vec::new();
            for (number, (byte, length)) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..length).map(|i| byte.wrapping_mul((i % 251) as u8)).collect();
                members.write_all(&piece).unwrap();
                if number == 2 {
                    members.flush().unwrap();
                }
                whole.extend(piece);
            }
            prop_assert_eq!(unpacked(&members.finish().unwrap()), whole);
        }
    }
}
