//! The programs of a loaded object.

use std::error::Error;
use std::os::fd::{AsFd, AsRawFd};

use aya::programs::perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent};
use aya::programs::{BtfTracePoint, PerfEvent, Program};
use aya::util::online_cpus;
use aya::{Btf, Ebpf};

/// Attaches a function of the object to a tracepoint.
///
/// # Errors
/// If the kernel refuses the program.
pub fn attach(programs: &mut Ebpf, (function, tracepoint): (&str, &str), btf: &Btf) -> Result<(), Box<dyn Error>> {
    let program = programs.program_mut(function).expect("built into the object");
    let program: &mut BtfTracePoint = program.try_into()?;
    program.load(tracepoint, btf)?;
    program.attach()?;
    Ok(())
}

/// Attaches a function of the object to each occurrence of a software event of perf, on all processors.
///
/// # Errors
/// If the kernel refuses the program.
pub fn attach_to_software_event(
    programs: &mut Ebpf,
    function: &str,
    event: SoftwareEvent,
) -> Result<(), Box<dyn Error>> {
    let program = programs.program_mut(function).expect("built into the object");
    let program: &mut PerfEvent = program.try_into()?;
    program.load()?;
    for cpu in online_cpus().map_err(|(_, error)| error)? {
        let scope = PerfEventScope::AllProcessesOneCpu { cpu };
        program.attach(PerfEventConfig::Software(event), scope, SamplePolicy::Period(1), false)?;
    }
    Ok(())
}

/// Times that the kernel skipped a program because another one was running on that processor.
pub fn recursion_misses(programs: &Ebpf) -> u64 {
    programs.programs().filter_map(|(_, program)| misses_of(program)).sum()
}

/// The kernel's counter in the `fdinfo` of the program's file descriptor (since Linux 5.12).
fn misses_of(program: &Program) -> Option<u64> {
    let fd = program.fd().ok()?.as_fd().as_raw_fd();
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    info.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}
