//! Halt polling: an idle processor of a virtual machine that halts at once is woken up by the host, which takes long.

use iosonar_pacing::host::isolation::IsolationPart;

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

pub fn check(host: &Host) -> Found {
    match (host.read(GOVERNOR).as_deref(), host.read(HALT_POLL).and_then(|ns| ns.parse::<u64>().ok())) {
        (Some("haltpoll"), Some(0)) => Found::improvable(
            "idle processors halt at once",
            Change::new(
                Effect::FewMicroseconds,
                "let idle processors poll before they halt",
                "sudo \"$(command -v iosonar)\" replay --isolate=polling …",
                Trial::Isolate(IsolationPart::Polling),
            ),
        ),
        (Some("haltpoll"), Some(ns)) => Found::good(format!("idle processors poll for up to {} µs", ns / 1000)),
        (Some(other), _) => Found::good(format!("not used: the idle governor is {other}")),
        (None, _) => Found::good("not used"),
    }
}
