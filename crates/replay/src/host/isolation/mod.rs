//! What can be arranged on the machine so that nothing takes the loop's processor away, and how it is undone.
//!
//! | part | what is done | undone by |
//! |---|---|---|
//! | processors | the loop gets a processor of its own, the program's other threads the others | the end of the threads |
//! | workers | the kernel's unbound workers (a loop device's among them) keep off it | the ledger |
//! | interrupts | those that may be moved are served by the others | the ledger |
//! | priority | the loop's nice value becomes −20, its timers exact | the end of the thread |
//! | | its session comes before others, where the kernel groups programs by sessions | the ledger |
//! | awake | idle processors are kept from sleeping, so that waking a worker costs no interrupt | closing the file |
//! | polling | idle processors of a virtual machine wait for work before they sleep | the ledger |
//!
//! What outlives the program is written into a [`ledger`] before it is changed; a killed run's is worked off by the next
//! command.

mod processors;
pub(crate) mod settings_backup;

use std::fs::File;
use std::io::{self, Write};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use self::processors::{Processors, session_priority, wake_up_first};
use crate::error::{Error, Result};
use crate::host::isolation::settings_backup::SettingsBackup;
pub use crate::host::isolation::settings_backup::{undo_of, undo_what_was_left};

/// One thing to arrange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Part {
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

/// How long the kernel's governor for virtual machines lets an idle processor poll before it is given back to the host,
/// in nanoseconds: see the kernel's `Documentation/virt/guest-halt-polling.rst`.
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
/// What the kernel takes by itself where nobody says otherwise; hosts that count on quickly returned processors say 0.
const POLLING_NS: u64 = 200_000;

/// What was arranged. Dropping it undoes that.
#[derive(Debug)]
pub struct Isolation {
    parts: Vec<Part>,
    processors: Processors,
    ledger: SettingsBackup,
    _awake: Option<File>,
    said: Vec<String>,
}

impl Isolation {
    /// Arranges the parts asked for. One that the machine does not allow is left, and said; without a second processor
    /// nothing can be arranged, which is an error.
    pub fn arrange(parts: &[Part]) -> Result<Self> {
        let processors = Processors::choose()?;
        let ledger = SettingsBackup::create().map_err(|e| Error::system("--isolate cannot arrange the machine", e))?;
        let mut made = Self { parts: parts.to_vec(), processors, ledger, _awake: None, said: Vec::new() };
        for part in parts {
            match made.one(*part) {
                Ok(said) => made.said.push(said),
                Err(error) => made.said.push(format!("{}: not done ({error})", name(*part))),
            }
        }
        Ok(made)
    }

    /// What was done, a sentence for each part.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// Called by the loop's thread, about itself.
    pub fn enter(&self) {
        if self.parts.contains(&Part::Processors) {
            self.processors.take_own();
        }
        if self.parts.contains(&Part::Priority) {
            processors::come_first();
        }
    }

    fn one(&mut self, part: Part) -> io::Result<String> {
        let own = self.processors.own;
        match part {
            Part::Processors => {
                self.processors.leave_own();
                Ok(format!("processors: {own} is the loop's alone, other threads of this program run on the others"))
            }
            Part::Workers => {
                let mask = processors::mask_of(&self.processors.others);
                self.ledger.set("/sys/devices/virtual/workqueue/cpumask", &mask)?;
                Ok(format!("workers: the kernel's unbound workers keep off processor {own}"))
            }
            Part::Interrupts => {
                let moved = self.move_interrupts();
                Ok(format!("interrupts: {moved} are served by the other processors"))
            }
            Part::Priority => {
                // By itself a nice value counts only among the threads of one session, where the kernel groups them so.
                let session = processors::session_priority().map(|(file, before)| {
                    self.ledger.replace(&file, before, "-20").map(|()| ", its session before all others")
                });
                let session = session.transpose()?.unwrap_or_default();
                Ok(format!("priority: the loop runs at nice -20 and with exact timers{session}"))
            }
            Part::Awake => {
                let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
                file.write_all(&0i32.to_ne_bytes())?;
                self._awake = Some(file);
                Ok("awake: idle processors poll instead of sleeping, which takes power".into())
            }
            Part::Polling => {
                // The file is there as soon as the module is, whether or not its governor is the one in use.
                let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_governor")?;
                if governor.trim() != "haltpoll" {
                    let why = format!("the processors' idle governor is {}, not haltpoll", governor.trim());
                    return Err(io::Error::other(why));
                }
                self.ledger.set(HALT_POLL, &POLLING_NS.to_string())?;
                Ok(format!("polling: idle processors poll for up to {} µs before they sleep", POLLING_NS / 1000))
            }
        }
    }

    /// Some cannot be moved, by their nature; those stay.
    fn move_interrupts(&mut self) -> usize {
        let mask = processors::mask_of(&self.processors.others);
        let folders = std::fs::read_dir("/proc/irq").into_iter().flatten().flatten();
        folders
            .filter(|folder| processors::serves(&folder.path().join("effective_affinity_list"), self.processors.own))
            .filter(|folder| self.ledger.set(&folder.path().join("smp_affinity").to_string_lossy(), &mask).is_ok())
            .count()
    }
}

/// Whether the machine can be arranged here and now.
pub fn is_allowed() -> bool {
    Processors::choose().is_ok() && SettingsBackup::create().map(|mut ledger| ledger.undo()).is_ok()
}

impl Drop for Isolation {
    fn drop(&mut self) {
        if self.parts.contains(&Part::Processors) {
            self.processors.give_back();
        }
        self.ledger.undo();
    }
}

fn name(part: Part) -> &'static str {
    match part {
        Part::Processors => "processors",
        Part::Workers => "workers",
        Part::Interrupts => "interrupts",
        Part::Priority => "priority",
        Part::Awake => "awake",
        Part::Polling => "polling",
    }
}
