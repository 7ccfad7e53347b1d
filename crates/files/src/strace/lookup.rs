//! A table from names to values that does not change.

/// Names with their values. Looking up a name neither allocates nor copies.
pub struct Lookup<V> {
    /// A power of two, at least twice as many as there are names.
    slots: Box<[Slot<V>]>,
}

/// A name with its value; `None` if it is free.
type Slot<V> = Option<(&'static [u8], V)>;

impl<V: Copy> Lookup<V> {
    /// A table of these names.
    pub fn new(names: impl Iterator<Item = (&'static str, V)>) -> Self {
        let names: Vec<_> = names.collect();
        let mut slots = vec![None; (names.len() * 2).next_power_of_two().max(2)].into_boxed_slice();
        let mask = slots.len() - 1;
        for (name, value) in names {
            let mut at = hash(name.as_bytes()) & mask;
            while slots[at].is_some_and(|(other, _)| other != name.as_bytes()) {
                at = (at + 1) & mask;
            }
            slots[at] = Some((name.as_bytes(), value));
        }
        Self { slots }
    }

    pub fn get(&self, name: &[u8]) -> Option<V> {
        let mask = self.slots.len() - 1;
        let mut at = hash(name) & mask;
        while let Some((other, value)) = self.slots[at] {
            if other == name {
                return Some(value);
            }
            at = (at + 1) & mask;
        }
        None
    }
}

/// FNV-1a, eight bytes at a time, with a final mix of the upper bits.
pub fn hash(bytes: &[u8]) -> usize {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        hash = (hash ^ u64::from_le_bytes(*eight)).wrapping_mul(PRIME);
        hash ^= hash >> 29;
    }
    let last = rest.iter().fold(0, |last, &byte| last << 8 | u64::from(byte));
    hash = (hash ^ last).wrapping_mul(PRIME);
    (hash ^ hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_no_other() {
        let names = ["", "a", "b", "O_RDONLY", "O_RDWR", "O_RDONLY|O_CLOEXEC"];
        let table = Lookup::new(names.iter().enumerate().map(|(number, &name)| (name, number)));
        for (number, name) in names.iter().enumerate() {
            assert_eq!(table.get(name.as_bytes()), Some(number));
        }
        assert_eq!(table.get(b"O_"), None);
    }
}
