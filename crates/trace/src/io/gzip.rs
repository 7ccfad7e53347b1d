//! Gzip files as sequences of members. The writer compresses each member in one call, which takes a fraction of the time of
//! a stream; any gunzip reads the sequence as one file. The reader takes zeros after the last member for padding, as tapes
//! and some tools add it.

use std::io::{self, BufRead, Read, Write};

use flate2::bufread::GzDecoder;
use libdeflater::{CompressionLvl, Compressor};

/// Uncompressed bytes of a member. The compressor finds no matches across members, so smaller ones make the file larger.
const MEMBER: usize = 1 << 20;
/// Of 12. Higher levels take twice the time and save less than a tenth of the size.
const LEVEL: i32 = 4;

/// A writer that compresses into members.
pub struct GzipWriter<W> {
    out: W,
    compressor: Compressor,
    /// Content of the next member.
    content: Vec<u8>,
    /// Buffer for a compressed member.
    compressed: Vec<u8>,
    has_member: bool,
}

impl<W: Write> GzipWriter<W> {
    /// Compresses into `out`.
    pub fn new(out: W) -> Self {
        let level = CompressionLvl::new(LEVEL).expect("one of its levels");
        let mut compressor = Compressor::new(level);
        let compressed = vec![0; compressor.gzip_compress_bound(MEMBER)];
        Self { out, compressor, content: Vec::with_capacity(MEMBER), compressed, has_member: false }
    }

    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes the last member. Empty content becomes one member, because an empty file is not gzip.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.content.is_empty() || !self.has_member {
            self.write_member()?;
        }
        Ok(self.out)
    }

    fn write_member(&mut self) -> io::Result<()> {
        let length = self.compressor.gzip_compress(&self.content, &mut self.compressed).map_err(io::Error::other)?;
        self.out.write_all(&self.compressed[..length])?;
        self.content.clear();
        self.has_member = true;
        Ok(())
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.content.len() == MEMBER {
            self.write_member()?;
        }
        let length = bytes.len().min(MEMBER - self.content.len());
        self.content.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.content.is_empty() {
            self.write_member()?;
        }
        self.out.flush()
    }
}

/// A reader that decompresses all members of a file.
pub struct GzipReader<R> {
    position: Position<R>,
}

enum Position<R> {
    InMember(Box<GzDecoder<R>>),
    /// Between members, or after the last.
    Between(R),
    End,
}

impl<R: BufRead> GzipReader<R> {
    /// Decompresses `compressed`, which begins with a member.
    pub fn new(compressed: R) -> Self {
        Self { position: Position::Between(compressed) }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.position {
                Position::InMember(member) => match member.read(buffer)? {
                    0 => {}
                    length => return Ok(length),
                },
                Position::Between(compressed) => match compressed.fill_buf()?.first() {
                    None => return Ok(0),
                    Some(0) => {
                        skip_zeros(compressed)?;
                        return Ok(0);
                    }
                    Some(0x1f) => {}
                    // Appended data, or the overwritten start of a member: an unknown amount of content is missing.
                    Some(_) => {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "its last member is followed by data that is not gzip",
                        ));
                    }
                },
                Position::End => return Ok(0),
            }
            self.position = match std::mem::replace(&mut self.position, Position::End) {
                Position::InMember(member) => Position::Between(member.into_inner()),
                Position::Between(compressed) => Position::InMember(Box::new(GzDecoder::new(compressed))),
                Position::End => Position::End,
            };
        }
    }
}

/// Reads zeros up to the end of the file.
fn skip_zeros(compressed: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = compressed.fill_buf()?;
        let length = bytes.len();
        if bytes.iter().any(|&byte| byte != 0) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "zeros and then other data follow the last member"));
        }
        if length == 0 {
            return Ok(());
        }
        compressed.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use flate2::read::MultiGzDecoder;
    use proptest::prelude::*;

    use super::*;

    /// Decompresses with both decoders.
    fn decompressed(compressed: &[u8]) -> Vec<u8> {
        let (mut expected, mut ours) = (Vec::new(), Vec::new());
        MultiGzDecoder::new(compressed).read_to_end(&mut expected).unwrap();
        GzipReader::new(compressed).read_to_end(&mut ours).unwrap();
        assert!(ours == expected);
        ours
    }

    #[test]
    fn empty_content_is_a_valid_gzip_file() {
        let compressed = GzipWriter::new(Vec::new()).finish().unwrap();
        assert!(!compressed.is_empty() && decompressed(&compressed).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn written_content_is_read_back(pieces in prop::collection::vec((0u8.., 0..MEMBER), 0..6)) {
            let mut writer = GzipWriter::new(Vec::new());
            let mut whole = Vec::new();
            for (number, (byte, length)) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..length).map(|i| byte.wrapping_mul((i % 251) as u8)).collect();
                writer.write_all(&piece).unwrap();
                if number == 2 {
                    writer.flush().unwrap();
                }
                whole.extend(piece);
            }
            prop_assert_eq!(decompressed(&writer.finish().unwrap()), whole);
        }
    }
}
