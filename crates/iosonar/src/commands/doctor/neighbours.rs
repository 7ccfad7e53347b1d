//! Other programs, and other virtual machines of the host, that take processors from the loop.

use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::isolation::IsolationPart;

use super::found::{Change, Effect, Found, State, Trial};
use super::host::Host;
use crate::human;

/// From this share of stolen time on, the host is too busy for delays below a millisecond.
const NOTABLE_STOLEN_PCT: f64 = 1.0;
/// Fewer other threads leave the loop a processor most of the time.
const FEW: f64 = 0.5;

pub fn check(host: &Host) -> Found {
    if !host.is_own() {
        return Found::unknown("only this machine's neighbours can be sampled");
    }
    Contention::sample().map_or_else(|| Found::unknown("/proc/stat cannot be read"), |sampled| judge(&sampled))
}

/// Whether they leave the loop no processor of its own now, so that small effects cannot be measured.
pub fn are_busy() -> bool {
    Contention::sample().is_some_and(|sampled| is_too_busy(&sampled))
}

pub fn is_too_busy(sampled: &Contention) -> bool {
    sampled.ready >= sampled.processors as f64 - FEW || sampled.stolen_pct >= NOTABLE_STOLEN_PCT
}

/// What these numbers mean.
pub fn judge(sampled: &Contention) -> Found {
    let &Contention { processors, ready, stolen_pct } = sampled;
    let mut what = format!(
        "{} runnable threads of other programs on {}",
        human::rate(ready),
        human::counted(processors as u64, "processor")
    );
    let mut changes = Vec::new();
    if ready >= FEW {
        changes.push(Change::new(
            Effect::Milliseconds,
            "stop other programs; this lists them",
            "top -b -n 1 -o %CPU | head -n 15",
            Trial::Not("iosonar stops no programs"),
        ));
        changes.push(Change::new(
            Effect::Milliseconds,
            "give the issuing loop priority over other programs, if they cannot be stopped",
            "sudo \"$(command -v iosonar)\" replay --isolate=priority …",
            Trial::Isolate(IsolationPart::Priority),
        ));
    }
    if stolen_pct >= NOTABLE_STOLEN_PCT {
        what += &format!("; the hypervisor steals {} of the time", human::percent(stolen_pct / 100.0));
        changes.push(Change::without_command(Effect::Milliseconds, "use a machine with dedicated processors"));
    }
    let state = if changes.is_empty() { State::Good } else { State::Improvable };
    Found { state, what, changes }
}
