//! Signal actions as in a program started by an interactive shell.
#![allow(unsafe_code, reason = "signal dispositions are set by a system call")]

/// Gives SIGHUP, SIGINT and SIGTERM their default action, in this program and those it starts from now on. A shell without
/// job control starts background commands, such as a test run, with SIGINT ignored, and `nohup` ignores SIGHUP. iosonar then
/// ignores them, too, and a test that sends these signals would hang.
pub fn default_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the default action involves no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
