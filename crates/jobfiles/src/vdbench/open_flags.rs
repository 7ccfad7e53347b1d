//! The flags with which vdbench opens a device.

use super::definitions::Definition;

/// Flags with which each write reaches the medium: on Linux, vdbench 5.04 opens with `O_DSYNC` for all of them.
const SYNCHRONOUS: &[&str] = &["o_sync", "o_dsync", "o_rsync"];
/// Flags that a program does not need: its requests go to the device without a page cache.
const WITHOUT_EFFECT: &[&str] =
    &["o_direct", "directio", "directio_off", "f_nocache", "clear_cache", "clearcache", "fsync"];

/// Whether each write reaches the medium before it completes.
pub fn is_synchronous(storage: &Definition) -> Result<bool, String> {
    let flags = storage.values("openflags").unwrap_or_default();
    let is_in = |flag: &String, names: &[&str]| names.iter().any(|name| flag.eq_ignore_ascii_case(name));
    if let Some(flag) = flags.iter().find(|flag| !is_in(flag, SYNCHRONOUS) && !is_in(flag, WITHOUT_EFFECT)) {
        let known = [SYNCHRONOUS, WITHOUT_EFFECT].concat().join(", ");
        return Err(storage.error("openflags", &format!("{flag} is not known; known are {known}")));
    }
    Ok(flags.iter().any(|flag| is_in(flag, SYNCHRONOUS)))
}
