//! All checks, in the order of the output: one file and one line for each.

use super::found::Found;
use super::host::Host;
use super::{
    clock, ebpf, governor, idle_states, interrupts, io_uring, locked_memory, neighbours, polling, privileges,
    processors, quota, schedulers,
};

/// A check: its name and what it reads.
pub struct Check {
    pub name: &'static str,
    pub run: fn(&Host) -> Found,
}

pub const CHECKS: [Check; 13] = [
    Check { name: "io_uring", run: io_uring::check },
    Check { name: "eBPF", run: ebpf::check },
    Check { name: "privileges", run: privileges::check },
    Check { name: "locked memory", run: locked_memory::check },
    Check { name: "processors", run: processors::check },
    Check { name: "CPU quota", run: quota::check },
    Check { name: "neighbours", run: neighbours::check },
    Check { name: "interrupts", run: interrupts::check },
    Check { name: "clock source", run: clock::check },
    Check { name: "idle states", run: idle_states::check },
    Check { name: "halt polling", run: polling::check },
    Check { name: "governor", run: governor::check },
    Check { name: "schedulers", run: schedulers::check },
];
