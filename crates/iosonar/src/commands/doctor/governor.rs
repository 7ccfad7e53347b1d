//! The frequency governor: a processor that was idle begins slowly.

use iosonar_pacing::host::machine;

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

const CPUS: &str = "/sys/devices/system/cpu";
const BEST: &str = "performance";

pub fn check(host: &Host) -> Found {
    let Some(governors) = machine::governors(&host.path(CPUS)) else {
        return Found::unknown("the kernel sets no frequency, as in most virtual machines");
    };
    if governors == BEST {
        return Found::good(governors);
    }
    let file = |cpu: &str| host.path(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor"));
    let files = host.names(CPUS).into_iter().map(|cpu| file(&cpu)).filter(|file| file.exists());
    let settings = files.map(|file| (file, BEST.to_owned())).collect();
    Found::improvable(
        governors,
        Change::new(
            Effect::ManyMicroseconds,
            "keep processors at their highest frequency",
            format!("echo {BEST} | sudo tee {CPUS}/cpu*/cpufreq/scaling_governor"),
            Trial::Settings(settings),
        ),
    )
}
