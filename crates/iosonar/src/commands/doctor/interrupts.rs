//! Whether interrupts of devices and kernel workers can be kept off the processor of the loop.

use iosonar_pacing::host::isolation::{IsolationPart, Processors};

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

pub fn check(host: &Host) -> Found {
    let numbers = || host.names("/proc/irq").into_iter().filter(|name| name.parse::<u32>().is_ok());
    let all = numbers().count();
    if all == 0 {
        return Found::unknown("/proc/irq lists no interrupts");
    }
    let chosen = if host.is_own() { Processors::choose() } else { Ok(Processors::of(0, 1)) };
    let Ok(processors) = chosen else { return Found::unknown("one processor serves all interrupts") };
    let own = processors.dedicated;
    let here = numbers()
        .filter(|name| {
            host.read(&format!("/proc/irq/{name}/effective_affinity_list")).is_some_and(|list| list == own.to_string())
        })
        .count();
    if here == 0 {
        return Found::good(format!("processor {own} serves none of {all}"));
    }
    Found::improvable(
        format!("processor {own} serves {here} of {all}"),
        Change::new(
            Effect::FewMicroseconds,
            "keep interrupts and kernel workers off the issuing loop's processor",
            "sudo \"$(command -v iosonar)\" replay --isolate=processors,workers,interrupts …",
            Trial::Isolate(IsolationPart::Interrupts),
        ),
    )
}
