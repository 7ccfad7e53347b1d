//! Which chunks of a simulated device have been written.

use iosonar_trace::Op;

use super::law::Arrival;

/// A bit for each chunk.
#[derive(Debug)]
pub struct Written {
    chunk: u64,
    chunks: u64,
    bits: Vec<u64>,
}

impl Written {
    /// The highest number of chunks: 128 MiB of bits.
    pub const MAX_CHUNKS: u64 = 1 << 30;

    /// Nothing is written on a device of this size.
    pub fn new(size: u64, chunk: u64) -> Self {
        let chunks = size.div_ceil(chunk);
        Self { chunk, chunks, bits: vec![0; chunks.div_ceil(64) as usize] }
    }

    /// Whether all chunks of a request are unwritten.
    pub fn is_unwritten(&self, request: &Arrival) -> bool {
        request.chunks(self.chunk, self.chunks).all(|chunk| self.bits[(chunk / 64) as usize] >> (chunk % 64) & 1 == 0)
    }

    /// Follows a write or discard. Returns how many chunks it wrote for the first time.
    pub fn follow(&mut self, request: &Arrival) -> u32 {
        let mut first = 0;
        if !request.writes() && request.op != Op::Discard {
            return first;
        }
        for chunk in request.chunks(self.chunk, self.chunks) {
            let (word, bit) = (&mut self.bits[(chunk / 64) as usize], 1 << (chunk % 64));
            if request.writes() {
                first += u32::from(*word & bit == 0);
                *word |= bit;
            } else if is_whole(request, chunk, self.chunk) {
                *word &= !bit;
            }
        }
        first
    }
}

/// A discard frees whole chunks only.
fn is_whole(request: &Arrival, chunk: u64, size: u64) -> bool {
    chunk * size >= request.offset && (chunk + 1) * size <= request.offset + request.length
}
