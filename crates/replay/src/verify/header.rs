//! Headers of the sectors that a verified run writes, and the classification of sectors that were read.
//!
//! ```text
//!  byte  0  magic            8   "iosnVFY" 1
//!        8  checksum         4   CRC-32 of bytes 12 to 511: header and data
//!       12  target           2   index of the run's target
//!       14  zero             2
//!       16  run              8   the run's random number
//!       24  sequence number  8   position among all requests of the run, from 1
//!       32  request          8   number in the load
//!       40  sector           8   position on the target
//!       48  offset           4   index of this sector in the request
//!       52  length           4   the request's length, in sectors
//!       56  iteration        4   complete iterations of the load before this one
//!       60  zero             4
//!       64  data           448
//! ```
//!
//! All numbers are little-endian. Requests that overlap are issued in the order of their sequence numbers.

use iosonar_trace::SECTOR_BYTES;

use crate::io::PreparedIo;

/// Size of the header, at the start of the sector.
pub const HEADER_BYTES: usize = 64;

const SECTOR: usize = SECTOR_BYTES as usize;
const MAGIC: [u8; 8] = *b"iosnVFY\x01";
/// Marks a read buffer before the read. Never written to a target.
const UNREAD: [u8; 8] = *b"iosnNOT\x01";
/// Maximum number of flipped bits in the run's number of a damaged header.
const MAX_FLIPPED_BITS: u32 = 4;

/// A sector header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The run that wrote the sector.
    pub run: u64,
    /// The target it was written to.
    pub target: u16,
    /// The request that wrote it.
    pub sequence_number: u64,
    /// The number of that request in the load.
    pub request: u64,
    /// The sector it was written to.
    pub sector: u64,
    /// Index of the sector in the request.
    pub offset: u32,
    /// The length of the request, in sectors.
    pub length: u32,
    /// Complete iterations of the load before this one.
    pub iteration: u32,
}

/// What a sector contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Data of this run, undamaged, but not necessarily in its place.
    Written(Header),
    /// Data of this run, damaged: bits flipped, or mixed with another write. Contains the sequence number in its header,
    /// which may be wrong.
    Damaged(u64),
    /// Nothing but zeros.
    Zeros,
    /// Anything else.
    Foreign,
    /// The mark of [`poison`]: the target reported a successful read, but returned no data.
    Unread,
}

/// Overwrites the start of each sector of a write's data with its header.
pub fn write_header(bytes: &mut [u8], run: u64, io: &PreparedIo) {
    let mut header = Header {
        run,
        target: io.target,
        sequence_number: io.sequence_number,
        request: io.request,
        sector: io.sector.0,
        offset: 0,
        length: io.sectors.0 as u32,
        iteration: io.iteration,
    };
    for sector in bytes.chunks_exact_mut(SECTOR) {
        header.encode(sector);
        header.sector += 1;
        header.offset += 1;
    }
}

/// Marks a read buffer, to detect a read that returns no data.
pub fn poison(bytes: &mut [u8], run: u64) {
    for sector in bytes.chunks_exact_mut(SECTOR) {
        sector[..8].copy_from_slice(&UNREAD);
        sector[16..24].copy_from_slice(&run.to_le_bytes());
    }
}

impl Header {
    fn encode(&self, sector: &mut [u8]) {
        sector[..8].copy_from_slice(&MAGIC);
        sector[12..14].copy_from_slice(&self.target.to_le_bytes());
        sector[14..16].fill(0);
        sector[16..24].copy_from_slice(&self.run.to_le_bytes());
        sector[24..32].copy_from_slice(&self.sequence_number.to_le_bytes());
        sector[32..40].copy_from_slice(&self.request.to_le_bytes());
        sector[40..48].copy_from_slice(&self.sector.to_le_bytes());
        sector[48..52].copy_from_slice(&self.offset.to_le_bytes());
        sector[52..56].copy_from_slice(&self.length.to_le_bytes());
        sector[56..60].copy_from_slice(&self.iteration.to_le_bytes());
        sector[60..64].fill(0);
        let checksum = crc32fast::hash(&sector[12..]);
        sector[8..12].copy_from_slice(&checksum.to_le_bytes());
    }

    fn decode(sector: &[u8]) -> Self {
        let long = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
        Self {
            run: long(16),
            target: u16::from_le_bytes([sector[12], sector[13]]),
            sequence_number: long(24),
            request: long(32),
            sector: long(40),
            offset: word(48),
            length: word(52),
            iteration: word(56),
        }
    }
}

/// Classifies a sector that was read from sector `at` of a target.
pub fn inspect(sector: &[u8], run: u64, target: u16, at: u64) -> Found {
    let magic = &sector[..8];
    if magic == [0; 8] && sector.iter().all(|&b| b == 0) {
        return Found::Zeros;
    }
    let header = Header::decode(sector);
    if magic == UNREAD && header.run == run {
        return Found::Unread;
    }
    let (has_magic, is_this_run) = (magic == MAGIC, header.run == run);
    let is_in_place = (header.sector, header.target) == (at, target);
    if has_magic && is_this_run {
        let checksum = u32::from_le_bytes(sector[8..12].try_into().expect("four bytes"));
        let is_whole = crc32fast::hash(&sector[12..]) == checksum;
        return if is_whole { Found::Written(header) } else { Found::Damaged(header.sequence_number) };
    }
    // The magic number or the position may be damaged. Headers of earlier runs have an entirely different run number.
    let is_similar_run = (header.run ^ run).count_ones() <= MAX_FLIPPED_BITS;
    if is_similar_run && (has_magic || is_in_place) { Found::Damaged(header.sequence_number) } else { Found::Foreign }
}

/// A random number that identifies a run.
pub fn new_run() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds this from the system's randomness.
    RandomState::new().hash_one(iosonar_pacing::clock::wall().0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verify::tests::load::write;

    const RUN: u64 = 0x1234_5678_9abc_def0;

    fn with_headers(sector: u64, sectors: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..sectors * 512).map(|i| (i * 7) as u8).collect();
        write_header(&mut bytes, RUN, &write(77, sector, sectors));
        bytes
    }

    #[test]
    fn each_header_has_the_position_of_its_sector() {
        let bytes = with_headers(1000, 8);
        for (i, sector) in bytes.chunks(512).enumerate() {
            let Found::Written(header) = inspect(sector, RUN, 0, 1000 + i as u64) else { panic!("sector {i}") };
            assert_eq!((header.sector, header.offset, header.length), (1000 + i as u64, i as u32, 8));
            assert_eq!((header.sequence_number, header.run, header.target), (77, RUN, 0));
        }
        assert_eq!(bytes[64..512], (64..512).map(|i| (i * 7) as u8).collect::<Vec<_>>(), "the data is left alone");
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let sector = &with_headers(0x0102, 3)[512..1024];
        assert_eq!(&sector[..8], b"iosnVFY\x01");
        assert_eq!(sector[8..12], crc32fast::hash(&sector[12..512]).to_le_bytes());
        assert_eq!((sector[24], sector[40], sector[41], sector[48], sector[52]), (77, 3, 1, 1, 3));
    }

    #[test]
    fn sectors_of_other_runs_are_foreign_even_if_damaged() {
        let mut bytes = with_headers(8, 1);
        assert_eq!(inspect(&bytes, RUN ^ 0xffff_ffff, 0, 8), Found::Foreign);
        bytes[300] ^= 1;
        assert_eq!(inspect(&bytes, RUN ^ 0xffff_ffff, 0, 8), Found::Foreign);
        assert_eq!(inspect(&[0; 512], RUN, 0, 8), Found::Zeros);
        assert_eq!(inspect(&[0xaa; 512], RUN, 0, 8), Found::Foreign);
    }

    #[test]
    fn a_poisoned_buffer_is_recognised() {
        let mut bytes = with_headers(8, 2);
        poison(&mut bytes, RUN);
        assert!(bytes.chunks(512).all(|sector| inspect(sector, RUN, 0, 8) == Found::Unread));
    }

    proptest! {
        #[test]
        fn no_flipped_bit_goes_unseen(bit in 0usize..4096) {
            let mut bytes = with_headers(8, 1);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(matches!(inspect(&bytes, RUN, 0, 8), Found::Damaged(_)), "{:?}", inspect(&bytes, RUN, 0, 8));
        }

        #[test]
        fn no_sector_of_two_writes_counts_as_whole(at in 1usize..511, swap in any::<bool>()) {
            let (mut old, mut new) = (with_headers(8, 1), with_headers(8, 1));
            write_header(&mut new, RUN, &write(78, 8, 1));
            if swap {
                std::mem::swap(&mut old, &mut new);
            }
            let mut mixed = old.clone();
            mixed[at..].copy_from_slice(&new[at..]);
            // If old and new data agree in one part, the mixture equals one of them.
            let is_one = mixed == old || mixed == new;
            let found = inspect(&mixed, RUN, 0, 8);
            prop_assert!(is_one || matches!(found, Found::Damaged(_)), "{:?}", found);
        }
    }
}
