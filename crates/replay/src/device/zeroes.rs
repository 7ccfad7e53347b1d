//! Whether memory is all zero, and memory aligned for direct I/O: what samples and sweeps have in common.

/// What direct I/O on any device may be aligned to.
const ALIGNMENT: usize = 4096;

/// Whether all bytes are zero. Of data that is not, it mostly looks at the beginning only.
pub fn all_zero(bytes: &[u8]) -> bool {
    let mut pieces = bytes.chunks_exact(64);
    // Without a branch for each byte, so that the compiler compares many at once.
    pieces.by_ref().all(|piece| piece.iter().fold(0, |any, byte| any | byte) == 0)
        && pieces.remainder().iter().all(|&byte| byte == 0)
}

/// Memory that begins at a page.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
    bytes: usize,
}

impl Aligned {
    /// So many zeroes.
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, from, bytes }
    }

    /// All of it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_byte_is_seen_wherever_it_is() {
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
    fn memory_begins_at_a_page() {
        let mut memory = Aligned::new(100);
        assert_eq!((memory.bytes_mut().as_ptr() as usize % ALIGNMENT, memory.bytes_mut().len()), (0, 100));
    }
}
