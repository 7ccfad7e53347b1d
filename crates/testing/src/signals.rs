//! Signals as an interactive shell leaves them.
#![allow(unsafe_code, reason = "signal dispositions are set by a system call")]

/// Gives SIGHUP, SIGINT and SIGTERM their default action, here and in every program that is started from now on. A shell
/// without job control starts background commands, such as a test run, with SIGINT ignored, and `nohup` ignores SIGHUP:
/// iosonar honours that, and a test that sends these signals would wait in vain.
pub fn default_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the default action involves no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
