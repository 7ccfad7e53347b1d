//! What stands at the start of every sector that a verified run writes, and what a sector that was read turns out to be.
//!
//! ```text
//!  byte  0  magic            8   "iosnVFY" 1
//!        8  checksum         4   CRC-32 of bytes 12 to 511: header and data
//!       12  target           2   index of the run's target
//!       14  zero             2
//!       16  run              8   a random number, the same in the whole run
//!       24  sequence number  8   the request's place among all of the run, from 1
//!       32  request          8   its number in the load
//!       40  sector           8   where this sector belongs on the target
//!       48  offset           4   this sector's place in the request, in sectors
//!       52  length           4   the request's length, in sectors
//!       56  iteration        4   complete iterations of the load before this one
//!       60  zero             4
//!       64  data           448
//! ```
//!
//! All numbers are little-endian. Requests that overlap are issued in the order of their sequence numbers.

use iosonar_trace::SECTOR_BYTES;

use crate::pipeline::io::PreparedIo;

/// Bytes of a sector that the header takes from the data.
pub const HEADER_BYTES: usize = 64;

const SECTOR: usize = SECTOR_BYTES as usize;
const MAGIC: [u8; 8] = *b"iosnVFY\x01";
/// Stands in the memory that a read is to fill. It is never written to a target.
const UNREAD: [u8; 8] = *b"iosnNOT\x01";
/// Flipped bits up to which the run's number in a damaged header still counts as its own.
const NEARLY: u32 = 4;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The run that wrote it.
    pub run: u64,
    /// Which of its targets it was meant for.
    pub target: u16,
    /// Which of its requests wrote it.
    pub sequence_number: u64,
    /// That request's number in the load.
    pub request: u64,
    /// The sector that it was meant for.
    pub sector: u64,
    /// The sector's place in the request, in sectors.
    pub offset: u32,
    /// The length of the request, in sectors.
    pub length: u32,
    /// Complete iterations of the load before this one.
    pub iteration: u32,
}

/// What a sector that was read turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Written by this run, and whole. Not necessarily where it belongs.
    Own(Header),
    /// Written by this run, but not as it is now: bits flipped, or a part of it is of another write. The sequence number that
    /// it names, for what it is worth.
    Damaged(u64),
    /// Nothing but zeros.
    Zeros,
    /// Nothing of this run.
    Foreign,
    /// What stood in the memory before: the target said that it had read, but it brought nothing.
    Unread,
}

/// Puts headers over the start of each sector of a write's data, which is complete but for them.
pub fn write_header(bytes: &mut [u8], run: u64, planned: &PreparedIo) {
    let mut header = Header {
        run,
        target: planned.target,
        sequence_number: planned.sequence_number,
        request: planned.request,
        sector: planned.sector.0,
        offset: 0,
        length: planned.sectors.0 as u32,
        iteration: planned.iteration,
    };
    for sector in bytes.chunks_exact_mut(SECTOR) {
        header.put(sector);
        header.sector += 1;
        header.offset += 1;
    }
}

/// Marks memory that a read is to fill, so that one which brings nothing is seen.
pub fn poison(bytes: &mut [u8], run: u64) {
    for sector in bytes.chunks_exact_mut(SECTOR) {
        sector[..8].copy_from_slice(&UNREAD);
        sector[16..24].copy_from_slice(&run.to_le_bytes());
    }
}

impl Header {
    fn put(&self, sector: &mut [u8]) {
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

    fn get(sector: &[u8]) -> Self {
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

/// Looks at a sector that was read from `at` on that target, in the run `run`.
pub fn inspect(sector: &[u8], run: u64, target: u16, at: u64) -> Found {
    let magic = &sector[..8];
    if magic == [0; 8] && sector.iter().all(|&b| b == 0) {
        return Found::Zeros;
    }
    let header = Header::get(sector);
    if magic == UNREAD && header.run == run {
        return Found::Unread;
    }
    let (is_marked, is_own) = (magic == MAGIC, header.run == run);
    let belongs = (header.sector, header.target) == (at, target);
    if is_marked && is_own {
        let checksum = u32::from_le_bytes(sector[8..12].try_into().expect("four bytes"));
        let is_whole = crc32fast::hash(&sector[12..]) == checksum;
        return if is_whole { Found::Own(header) } else { Found::Damaged(header.sequence_number) };
    }
    // One of the marks may be what was damaged. Headers of earlier runs have another run's number altogether.
    let is_nearly_own = (header.run ^ run).count_ones() <= NEARLY;
    if is_nearly_own && (is_marked || belongs) { Found::Damaged(header.sequence_number) } else { Found::Foreign }
}

/// A number for a run that no other has.
pub fn new_run() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds this from the system's randomness.
    RandomState::new().hash_one(crate::schedule::clock::wall().0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verify::tests::load::write;

    const RUN: u64 = 0x1234_5678_9abc_def0;

    fn stamped(sector: u64, sectors: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..sectors * 512).map(|i| (i * 7) as u8).collect();
        write_header(&mut bytes, RUN, &write(77, sector, sectors));
        bytes
    }

    #[test]
    fn every_sector_says_where_it_belongs() {
        let bytes = stamped(1000, 8);
        for (i, sector) in bytes.chunks(512).enumerate() {
            let Found::Own(header) = inspect(sector, RUN, 0, 1000 + i as u64) else { panic!("sector {i}") };
            assert_eq!((header.sector, header.offset, header.length), (1000 + i as u64, i as u32, 8));
            assert_eq!((header.sequence_number, header.run, header.target), (77, RUN, 0));
        }
        assert_eq!(bytes[64..512], (64..512).map(|i| (i * 7) as u8).collect::<Vec<_>>(), "the data is left alone");
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let sector = &stamped(0x0102, 3)[512..1024];
        assert_eq!(&sector[..8], b"iosnVFY\x01");
        assert_eq!(sector[8..12], crc32fast::hash(&sector[12..512]).to_le_bytes());
        assert_eq!((sector[24], sector[40], sector[41], sector[48], sector[52]), (77, 3, 1, 1, 3));
    }

    #[test]
    fn another_runs_sectors_are_foreign_even_where_they_are_damaged() {
        let mut bytes = stamped(8, 1);
        assert_eq!(inspect(&bytes, RUN ^ 0xffff_ffff, 0, 8), Found::Foreign);
        bytes[300] ^= 1;
        assert_eq!(inspect(&bytes, RUN ^ 0xffff_ffff, 0, 8), Found::Foreign);
        assert_eq!(inspect(&[0; 512], RUN, 0, 8), Found::Zeros);
        assert_eq!(inspect(&[0xaa; 512], RUN, 0, 8), Found::Foreign);
    }

    #[test]
    fn memory_that_no_read_filled_is_recognised() {
        let mut bytes = stamped(8, 2);
        poison(&mut bytes, RUN);
        assert!(bytes.chunks(512).all(|sector| inspect(sector, RUN, 0, 8) == Found::Unread));
    }

    proptest! {
        #[test]
        fn no_flipped_bit_goes_unseen(bit in 0usize..4096) {
            let mut bytes = stamped(8, 1);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(matches!(inspect(&bytes, RUN, 0, 8), Found::Damaged(_)), "{:?}", inspect(&bytes, RUN, 0, 8));
        }

        #[test]
        fn no_sector_of_two_writes_counts_as_whole(at in 1usize..511, swap in any::<bool>()) {
            let (mut old, mut new) = (stamped(8, 1), stamped(8, 1));
            write_header(&mut new, RUN, &write(78, 8, 1));
            if swap {
                std::mem::swap(&mut old, &mut new);
            }
            let mut mixed = old.clone();
            mixed[at..].copy_from_slice(&new[at..]);
            // Where both are the same in one part, the mixture is one of them.
            let is_one = mixed == old || mixed == new;
            let found = inspect(&mixed, RUN, 0, 8);
            prop_assert!(is_one || matches!(found, Found::Damaged(_)), "{:?}", found);
        }
    }
}
