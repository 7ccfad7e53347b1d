//! Idle states: a processor that sleeps deeply takes long to wake up, for the loop and for the device's interrupt.

use iosonar_pacing::host::isolation::IsolationPart;
use iosonar_pacing::host::machine;

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

/// An idle state that takes longer makes a sleeping loop late.
const NOTABLE_US: u64 = 10;

pub fn check(host: &Host) -> Found {
    let Some(states) = machine::idle_states(&host.path("/sys/devices/system/cpu/cpu0/cpuidle")) else {
        return Found::unknown("the kernel shows none, as in most virtual machines: the host decides");
    };
    let enabled = states.iter().filter(|state| state.disabled.value() != Some(true));
    let deepest = enabled.max_by_key(|state| state.wakes_in_us.value().unwrap_or_default());
    let Some(deepest) = deepest else { return Found::good("all disabled") };
    let (name, wakes) = (deepest.name.text().unwrap_or("?"), deepest.wakes_in_us.value().unwrap_or_default());
    let what = format!("the deepest is {name}, which takes {wakes} µs to wake up");
    if wakes < NOTABLE_US {
        return Found::good(what);
    }
    Found::improvable(
        what,
        Change::new(
            Effect::ManyMicroseconds,
            "keep idle processors awake during the replay",
            "sudo \"$(command -v iosonar)\" replay --isolate=awake …",
            Trial::Isolate(IsolationPart::Awake),
        ),
    )
}
