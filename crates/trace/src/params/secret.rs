//! The key of a transform that hides something: from the parameter `key`, or random.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use siphasher::sip::SipHasher24;

use super::Settings;

/// The key. Equal secrets give equal keys.
///
/// # Errors
/// If the secret is empty, for example from an unset shell variable.
pub fn key(settings: &Settings) -> Result<(u64, u64), String> {
    match settings.optional_text("key") {
        Some(text) if text.trim().is_empty() => {
            Err("the key is empty: set a secret, or omit key= for a random one".into())
        }
        Some(text) => {
            let half = |which| {
                let mut hasher = SipHasher24::new_with_keys(0, which);
                hasher.write(text.as_bytes());
                hasher.finish()
            };
            Ok((half(0), half(1)))
        }
        // The standard library seeds its hash tables from the system's random number generator.
        None => Ok((RandomState::new().hash_one(0), RandomState::new().hash_one(1))),
    }
}
