//! The flags with which vdbench opens a device.

use super::definitions::Definition;

/// Flags with which each write reaches the medium: on Linux, vdbench 5.04 opens with `O_DSYNC` for all of them.
const SYNCHRONOUS: &[&str] = &["o_sync", "o_dsync", "o_rsync"];
/// Flags that a program does not need: its requests go to the device without a page cache.
const WITHOUT_EFFECT: &[&str] =
    &["o_direct", "directio", "directio_off", "f_nocache", "clear_cache", "clearcache", "fsync"];

/// Whether each write reaches the medium before it completes. Without writes the flags have no effect.
pub fn is_synchronous(storage: &Definition, has_writes: bool) -> Result<bool, String> {
    let flags = storage.unread("openflags").unwrap_or_default();
    if let Some(flag) = flags.iter().find(|flag| !is_in(flag, SYNCHRONOUS) && !is_in(flag, WITHOUT_EFFECT)) {
        let known = [SYNCHRONOUS, WITHOUT_EFFECT].concat().join(", ");
        return Err(storage.error("openflags", &format!("{flag} is not known; known are {known}")));
    }
    let is_synchronous = has_writes && any_synchronous(flags);
    if is_synchronous {
        let _ = storage.values("openflags");
    }
    Ok(is_synchronous)
}

pub fn any_synchronous(flags: &[String]) -> bool {
    flags.iter().any(|flag| is_in(flag, SYNCHRONOUS))
}

fn is_in(flag: &str, names: &[&str]) -> bool {
    names.iter().any(|name| flag.eq_ignore_ascii_case(name))
}
