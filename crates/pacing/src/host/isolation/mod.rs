//! Isolates the issuing loop from the rest of the machine (`--isolate`), and undoes that at the end of the run.
//!
//! | part | effect | undone by |
//! |---|---|---|
//! | processors | a dedicated processor for the loop; other threads of the program run on the others | the end of the threads |
//! | workers | unbound kernel workers (those of loop devices among them) run on the other processors | the backup |
//! | interrupts | movable interrupts are served by the other processors | the backup |
//! | priority | nice −20 and exact timers for the loop | the end of the thread |
//! | | a high priority for its session, if the kernel groups programs by session | the backup |
//! | awake | idle processors do not sleep, so that waking a thread there needs no interrupt | closing the file |
//! | polling | idle processors of a virtual machine poll before they halt | the backup |
//!
//! Settings that outlive the program are saved in a [`SettingsBackup`] before they are changed. If a run is killed, the next
//! command restores them.

mod processors;
pub(crate) mod settings_backup;

use std::fs::File;
use std::io::{self, Write};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use self::processors::{Processors, request_short_time_slice, session_priority};
pub use crate::host::isolation::settings_backup::{SettingsBackup, restore_for, restore_leftovers};
use crate::{Error, Result};

/// A part of the isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum IsolationPart {
    /// A dedicated processor for the loop
    Processors,
    /// No kernel workers (workqueues) on it
    Workers,
    /// No interrupts on it
    Interrupts,
    /// Nice -20 and minimal timer slack
    Priority,
    /// No idle states (C-states): idle processors poll
    Awake,
    /// In a virtual machine, idle processors poll for 200 µs before they halt (only if named)
    Polling,
}

impl IsolationPart {
    /// Whether it takes a processor that a single thread has.
    pub fn is_for_one_thread(self) -> bool {
        matches!(self, Self::Processors | Self::Workers | Self::Interrupts)
    }
}

/// How long the haltpoll governor lets an idle virtual processor poll before it halts, in nanoseconds: see the kernel's
/// `Documentation/virt/guest-halt-polling.rst`.
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
/// The kernel's default. Some hosts set 0 to get idle processors back at once.
const POLLING_NS: u64 = 200_000;

/// The applied isolation. Dropping it undoes all changes.
#[derive(Debug)]
pub struct Isolation {
    parts: Vec<IsolationPart>,
    processors: Processors,
    backup: SettingsBackup,
    /// `/dev/cpu_dma_latency`: the request holds while the file is open.
    latency_request: Option<File>,
    changes: Vec<String>,
}

impl Isolation {
    /// Applies the parts. A part that fails is reported in [`changes`](Self::changes). An error if there is only one processor,
    /// or if old settings cannot be saved.
    pub fn apply(parts: &[IsolationPart]) -> Result<Self> {
        let processors = Processors::choose()?;
        let backup = SettingsBackup::create().map_err(|error| {
            let needs_root = error.kind() == io::ErrorKind::PermissionDenied;
            Error::system(if needs_root { "--isolate needs root" } else { "cannot apply --isolate" }, error)
        })?;
        let mut isolation =
            Self { parts: parts.to_vec(), processors, backup, latency_request: None, changes: Vec::new() };
        for part in parts {
            let change =
                isolation.apply_part(*part).unwrap_or_else(|error| format!("{}: failed ({error})", name(*part)));
            isolation.changes.push(change);
        }
        Ok(isolation)
    }

    /// What was changed, one sentence for each part.
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// Moves the calling thread, which runs the loop, to its processor and priority.
    pub fn enter(&self) {
        if self.parts.contains(&IsolationPart::Processors) {
            self.processors.bind_to_dedicated();
        }
        if self.parts.contains(&IsolationPart::Priority) {
            processors::raise_priority();
        }
    }

    fn apply_part(&mut self, part: IsolationPart) -> io::Result<String> {
        let dedicated = self.processors.dedicated;
        match part {
            IsolationPart::Processors => {
                self.processors.bind_to_others();
                Ok(format!(
                    "processors: {dedicated} is dedicated to the issuing loop, other threads of iosonar run on the others"
                ))
            }
            IsolationPart::Workers => {
                let mask = processors::mask_of(&self.processors.others);
                self.backup.set("/sys/devices/virtual/workqueue/cpumask", &mask)?;
                Ok(format!("workers: unbound kernel workers do not run on processor {dedicated}"))
            }
            IsolationPart::Interrupts => {
                let moved = self.move_interrupts();
                Ok(format!("interrupts: moved {moved} to the other processors"))
            }
            IsolationPart::Priority => {
                // If the kernel groups threads by session, a nice value counts only within the session.
                let session = processors::session_priority().map(|(file, before)| {
                    self.backup.replace(&file, before, "-20").map(|()| ", and its session has priority over others")
                });
                let session = session.transpose()?.unwrap_or_default();
                Ok(format!("priority: the issuing loop runs at nice -20 with exact timers{session}"))
            }
            IsolationPart::Awake => {
                let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
                file.write_all(&0i32.to_ne_bytes())?;
                self.latency_request = Some(file);
                Ok("awake: idle processors poll instead of sleeping, which takes power".into())
            }
            IsolationPart::Polling => {
                // The parameter exists once the module is loaded, even if another governor is in use.
                let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_governor")?;
                if governor.trim() != "haltpoll" {
                    let why = format!("the idle governor is {}, not haltpoll", governor.trim());
                    return Err(io::Error::other(why));
                }
                self.backup.set(HALT_POLL, &POLLING_NS.to_string())?;
                Ok(format!("polling: idle processors poll for up to {} µs before they halt", POLLING_NS / 1000))
            }
        }
    }

    /// Moves interrupts off the dedicated processor, and returns how many. Some cannot be moved.
    fn move_interrupts(&mut self) -> usize {
        let mask = processors::mask_of(&self.processors.others);
        let dedicated = self.processors.dedicated;
        let directories = std::fs::read_dir("/proc/irq").into_iter().flatten().flatten();
        directories
            .filter(|directory| processors::contains(&directory.path().join("effective_affinity_list"), dedicated))
            .filter(|directory| {
                self.backup.set(&directory.path().join("smp_affinity").to_string_lossy(), &mask).is_ok()
            })
            .count()
    }
}

/// Whether this process can isolate the loop on this machine now.
pub fn is_available() -> bool {
    Processors::choose().is_ok() && SettingsBackup::create().map(|mut backup| backup.restore()).is_ok()
}

impl Drop for Isolation {
    fn drop(&mut self) {
        if self.parts.contains(&IsolationPart::Processors) {
            self.processors.bind_to_all();
        }
        self.backup.restore();
    }
}

fn name(part: IsolationPart) -> &'static str {
    match part {
        IsolationPart::Processors => "processors",
        IsolationPart::Workers => "workers",
        IsolationPart::Interrupts => "interrupts",
        IsolationPart::Priority => "priority",
        IsolationPart::Awake => "awake",
        IsolationPart::Polling => "polling",
    }
}
