//! How much memory may be locked: a loop whose pages are swapped out is late by the time of a read.

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;
use super::privileges::{self, Capability};
use crate::human;

/// A replay with the usual buffers needs less.
const ENOUGH: u64 = 512 << 20;

pub fn check(host: &Host) -> Found {
    if privileges::lacking(host, &[Capability::IpcLock]).is_empty() {
        return Found::good("no limit, by CAP_IPC_LOCK");
    }
    let Some(limit) = limit(host) else { return Found::unknown("/proc/self/limits cannot be read") };
    match limit.parse::<u64>() {
        Err(_) => Found::good("no limit"),
        Ok(bytes) if bytes >= ENOUGH => Found::good(format!("up to {}", human::block(bytes))),
        Ok(bytes) => Found::improvable(
            format!("only {} may be locked, so the issuing loop can be swapped out", human::block(bytes)),
            Change::new(
                Effect::Milliseconds,
                "raise the limit on locked memory in the shell that starts the replay",
                format!("sudo prlimit --pid $$ --memlock={ENOUGH}:{ENOUGH}"),
                Trial::Not("it matters only when memory is short"),
            ),
        ),
    }
}

/// The soft limit: a number of bytes, or `unlimited`.
fn limit(host: &Host) -> Option<String> {
    let text = host.read("/proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next().map(str::to_owned)
}
