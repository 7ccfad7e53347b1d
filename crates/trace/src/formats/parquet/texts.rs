//! The most frequent texts of a column, so that equal ones are converted and allocated once.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Entries of the cache; each has its place by its hash.
const ENTRIES: usize = 1 << 10;

/// Longer texts are not kept.
const MAX_KEPT: usize = 4096;

/// A cache from bytes to a value that is made of them.
pub struct Texts<Value> {
    entries: Vec<Option<(Box<[u8]>, Value)>>,
}

impl<Value: Clone> Texts<Value> {
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The value of a text, which `make` makes if it is not in the cache.
    pub fn get(&mut self, text: &[u8], make: impl FnOnce(&[u8]) -> Value) -> Value {
        if text.len() > MAX_KEPT {
            return make(text);
        }
        if self.entries.is_empty() {
            self.entries.resize_with(ENTRIES, || None);
        }
        let mut hasher = SipHasher13::new();
        hasher.write(text);
        let entry = &mut self.entries[hasher.finish() as usize % ENTRIES];
        match entry {
            Some((key, value)) if **key == *text => value.clone(),
            _ => {
                let value = make(text);
                *entry = Some((text.into(), value.clone()));
                value
            }
        }
    }
}
