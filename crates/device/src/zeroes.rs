//! Detection of zeros, and memory aligned for direct I/O.

/// Sufficient alignment for direct I/O on any device.
const ALIGNMENT: usize = 4096;

/// Whether all bytes are zero.
pub fn all_zero(bytes: &[u8]) -> bool {
    let mut pieces = bytes.chunks_exact(64);
    // No branch per byte, so that the compiler vectorizes.
    pieces.by_ref().all(|piece| piece.iter().fold(0, |any, byte| any | byte) == 0)
        && pieces.remainder().iter().all(|&byte| byte == 0)
}

/// Page-aligned memory.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
    bytes: usize,
}

impl Aligned {
    /// Allocates zeroed memory.
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, from, bytes }
    }

    /// The aligned part of the memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonzero_byte_is_found_at_any_position() {
        for length in [1, 63, 64, 65, 200] {
            let mut bytes = vec![0; length];
            assert!(all_zero(&bytes), "{length} zeroes");
            for at in 0..length {
                bytes[at] = 1;
                assert!(!all_zero(&bytes), "byte {at} of {length}");
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn memory_is_page_aligned() {
        let mut memory = Aligned::new(100);
        assert_eq!((memory.bytes_mut().as_ptr() as usize % ALIGNMENT, memory.bytes_mut().len()), (0, 100));
    }
}
