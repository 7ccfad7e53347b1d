//! The machine that a run was made on: what can affect a measurement.

use super::stated::stated;

stated! {
    /// The machine that a run was made on. Null means that it has no such value.
    Machine {
        /// Release of the kernel.
        kernel: String,
        /// Its build.
        kernel_version: String,
        /// Its boot parameters.
        kernel_command_line: String,
        /// Host name.
        hostname: String,
        /// Model of the processor.
        processor: String,
        /// Processors that the replay may use.
        cpus: usize,
        /// All that are online, as the kernel lists them.
        cpus_online: String,
        /// Isolated ones.
        cpus_isolated: String,
        /// Memory.
        memory_kib: u64,
        /// Frequency governors of the processors, each once.
        governor: String,
        /// The cpuidle driver.
        idle_driver: String,
        /// The cpuidle governor.
        idle_governor: String,
        /// The idle states of a processor, from the shallowest to the deepest.
        idle_states: Vec<IdleState>,
        /// `always`, `madvise` or `never`.
        transparent_hugepages: String,
        /// The kernel's clock.
        clock_source: String,
        /// Soft limits of the replay process.
        limits: ProcessLimits,
        /// Hypervisor or container; `none` for none.
        virtualisation: String,
        /// When the run began, as classic results tell it: without a time zone, and so no moment in time.
        started_local: String,
    }
}

stated! {
    /// An idle state of a processor.
    IdleState {
        /// Its name.
        name: String,
        /// How long waking from it takes, in µs.
        wakes_in_us: u64,
        /// Whether it is switched off.
        disabled: bool,
    }
}

stated! {
    /// Soft limits of a process. Null is none.
    ProcessLimits {
        /// Memory that it may lock.
        locked_memory_bytes: u64,
        /// Files that it may have open.
        open_files: u64,
    }
}
