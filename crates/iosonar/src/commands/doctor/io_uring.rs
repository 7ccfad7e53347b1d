//! Whether io_uring can be set up: without it a pool of threads submits requests, which is less accurate.

use iosonar_replay::engine::method::RingOptions;
use iosonar_replay::engine::uring;

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";
/// Entries of the ring that is tried.
const SLOTS: usize = 64;

pub fn check(host: &Host) -> Found {
    let disabled = host.read(DISABLED).filter(|value| value != "0");
    let error = if host.is_own() { uring::ring(SLOTS, RingOptions::default()).err() } else { None };
    match (error, disabled) {
        (None, None) => Found::good("works"),
        // For others than root.
        (None, Some(value)) if host.is_own() => {
            Found::good(format!("works for this user; kernel.io_uring_disabled is {value}"))
        }
        (error, Some(value)) => {
            let why = error.map(|error| format!(": {error}")).unwrap_or_default();
            let change = Change::new(
                Effect::Feature,
                "for replays by io_uring instead of threads, permit it",
                "sudo sysctl -w kernel.io_uring_disabled=0",
                Trial::Not("no delay depends on it before a request is submitted"),
            );
            Found::missing(format!("not permitted: kernel.io_uring_disabled is {value}{why}"), change)
        }
        (Some(error), None) => {
            let change = Change::without_command(
                Effect::Feature,
                "for replays by io_uring instead of threads, let this process set it up",
            );
            Found::missing(uring::with_advice(&error).to_string(), change)
        }
    }
}
