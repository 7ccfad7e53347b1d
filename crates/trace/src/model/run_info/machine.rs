//! The machine that a run was made on: properties that can affect a measurement.

use super::field::fields;

fields! {
    /// The machine that a run was made on. Null means that the machine has no such value.
    Machine {
        /// Kernel release.
        kernel: String,
        /// Kernel build.
        kernel_version: String,
        /// Boot parameters.
        kernel_command_line: String,
        /// Host name.
        hostname: String,
        /// Processor model.
        processor: String,
        /// Processors that the replay may use.
        cpus: usize,
        /// Online processors, in the kernel's list format.
        cpus_online: String,
        /// Isolated processors, in the kernel's list format.
        cpus_isolated: String,
        /// Size of the memory.
        memory_kib: u64,
        /// Frequency governors of the processors, each once.
        governor: String,
        /// The cpuidle driver.
        idle_driver: String,
        /// The cpuidle governor.
        idle_governor: String,
        /// Idle states of a processor, from the shallowest to the deepest.
        idle_states: Vec<IdleState>,
        /// `always`, `madvise` or `never`.
        transparent_hugepages: String,
        /// The kernel's clock source.
        clock_source: String,
        /// Soft limits of the replay process.
        limits: ProcessLimits,
        /// Hypervisor or container; `none` for none.
        virtualisation: String,
        /// Start of the run in local time, as classic results have it: without a time zone.
        started_local: String,
        /// Its end, likewise.
        ended_local: String,
    }
}

fields! {
    /// An idle state of a processor.
    IdleState {
        /// The state's name in sysfs.
        name: String,
        /// Exit latency, in µs.
        wakes_in_us: u64,
        /// Whether it is disabled.
        disabled: bool,
    }
}

fields! {
    /// Soft limits of a process. Null means unlimited.
    ProcessLimits {
        /// Locked memory (`RLIMIT_MEMLOCK`).
        locked_memory_bytes: u64,
        /// Open files (`RLIMIT_NOFILE`).
        open_files: u64,
    }
}
