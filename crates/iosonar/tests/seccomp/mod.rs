//! Runs a program without io_uring, as in many containers: a seccomp filter in the child process only.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `BPF_LD | BPF_W | BPF_ABS`, `BPF_JMP | BPF_JEQ | BPF_K`, `BPF_RET | BPF_K` of linux/filter.h.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Makes `io_uring_setup` fail with `EPERM` in the program.
pub fn deny_io_uring(command: &mut Command) {
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The system call number is the first field of `struct seccomp_data`.
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let set = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: both calls read only their arguments; the program outlives the second.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(set) };
}
