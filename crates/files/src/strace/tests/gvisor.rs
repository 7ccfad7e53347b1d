//! Logs of gVisor.

use super::*;
use crate::{AT_FDCWD, CallKind, Name, Recorder};

/// Written by hand from the definition: two threads, whose calls overlap.
const LOG: &str = "\
I0102 15:04:04.000000       1 main.go:230] Args: [runsc-sandbox --strace boot]
D0102 15:04:04.500000       1 config.go:585] Config.Strace (--strace): true
I0102 15:04:05.000000       1 strace.go:572] [   1:   1] sh E openat(AT_FDCWD /app, 0x55c0 data, O_RDWR|O_CREAT|0x0, 0o644)
I0102 15:04:05.000040       1 strace.go:610] [   1:   1] sh X openat(AT_FDCWD /app, 0x55c0 data, O_RDWR|O_CREAT|0x0, 0o644) = 3 (0x3) (35µs)
I0102 15:04:05.000100       1 strace.go:572] [   1:   2] sh E fsync(0x3 /app/data)
I0102 15:04:05.000200       1 strace.go:572] [   1:   1] sh E pwritev(0x3 /app/data, 0x7f {base=0x1, len=512, \"a\"...}, {base=0x2, len=3, \"b\"}, 0x2, 0x1000)
I0102 15:04:05.000210       1 strace.go:610] [   1:   1] sh X pwritev(0x3 /app/data, ..., 0x2, 0x1000) = 515 (0x203) (8.5µs)
I0102 15:04:05.000300       1 strace.go:572] [   1:   1] sh E futex(0x1, FUTEX_WAIT, 0x0, null, 0x0, 0x0)
I0102 15:04:05.003100       1 strace.go:610] [   1:   2] sh X fsync(0x3 /app/data) = 0 (0x0) (3ms)
I0102 15:04:05.004000       1 strace.go:572] [   1:   2] sh E unlink(0x55c1 /no, such)
I0102 15:04:05.004010       1 strace.go:610] [   1:   2] sh X unlink(0x55c1 /no, such) = -1 errno=2 (no such file or directory) (6µs)
I0102 15:04:05.005000       1 strace.go:572] [   1:   2] sh E exit_group(0x0)
";

#[test]
fn a_log_of_gvisor_has_the_calls_in_order_of_begin() {
    assert!(crate::strace::is_gvisor(LOG.as_bytes()));
    let (calls, metadata) = read(LOG);
    assert_eq!(metadata.counts.bad_lines, 0, "{:?}", metadata.warnings);
    assert_eq!((metadata.recorder, metadata.source.format.as_str()), (Recorder::Gvisor, "gvisor"));
    let expected =
        ["0 35 1 openat 3", "100 3000 2 fsync 0", "200 8 1 pwritev 515", "4000 6 2 unlink -1", "5000 - 2 exit_group ?"];
    assert_eq!(brief(&calls), expected);
    let [open, sync, write, unlink, _] = &calls[..] else { panic!("{calls:?}") };
    let name = |path: &Option<Name>| path.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!((open.fd, name(&open.fd_path).as_str(), name(&open.path).as_str()), (Some(AT_FDCWD), "/app", "data"));
    assert_eq!((open.mode, open.flags), (Some(0o644), (libc::O_RDWR | libc::O_CREAT) as u64));
    assert_eq!((sync.fd, name(&sync.fd_path).as_str()), (Some(3), "/app/data"));
    assert_eq!((write.offset, write.length, write.kind), (Some(4096), Some(515), CallKind::Pwritev));
    assert_eq!((name(&unlink.path).as_str(), unlink.errno), ("/no, such", libc::ENOENT));
}

/// All lines cut at all places.
#[test]
fn no_part_of_a_log_of_gvisor_is_too_odd() {
    for line in LOG.lines() {
        for end in (0..line.len()).filter(|&end| line.is_char_boundary(end)) {
            let text = format!("{LOG}{}\n{}\n", &line[..end], &line[end..]);
            assert!(try_read(text.as_bytes(), None).is_ok(), "{text}");
        }
    }
}
