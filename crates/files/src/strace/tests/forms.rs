//! Forms of lines and arguments, as strace 4.6 to 6.1 write them.

use iosonar_trace::Nanos;

use super::{brief, one, read, try_read};
use crate::{AT_FDCWD, Call, CallKind, Name};

/// The arguments of a call, as one line.
fn arguments(call: &Call) -> String {
    let mut text = call.kind.name().to_owned();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!(" {name}={value}");
        }
    };
    add("fd", call.fd.map(|fd| fd.to_string()));
    add("fd2", call.fd2.map(|fd| fd.to_string()));
    add("fd_path", call.fd_path.as_ref().map(Name::to_string));
    add("path", call.path.as_ref().map(Name::to_string));
    add("path2", call.path2.as_ref().map(Name::to_string));
    add("offset", call.offset.map(|offset| offset.to_string()));
    add("offset2", call.offset2.map(|offset| offset.to_string()));
    add("length", call.length.map(|length| length.to_string()));
    add("flags", (call.flags != 0).then(|| format!("{:#x}", call.flags)));
    add("mode", call.mode.map(|mode| format!("{mode:#o}")));
    add("errno", (call.errno != 0).then(|| call.errno.to_string()));
    text
}

#[test]
fn a_line_of_the_usual_recording() {
    let call = one(
        r#"25227 1795464429.393367 openat(AT_FDCWD, "/tmp/a \"q\n\1\303\277", O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC, 0640) = 3 <0.000096>"#,
    );
    let expected = Call {
        duration: Some(Nanos(96_000)),
        fd: Some(AT_FDCWD),
        path: Some("/tmp/a \"q\n\u{1}\u{ff}".into()),
        flags: 0o2_001_102,
        mode: Some(0o640),
        result: Some(3),
        ..Call::new(Nanos(0), 25227, CallKind::Openat)
    };
    assert_eq!(call, expected);
}

#[test]
fn the_same_call_in_every_form() {
    for line in [
        r#"openat(AT_FDCWD, "/etc/a", O_WRONLY|O_CLOEXEC) = 3"#,
        r#"7 openat(AT_FDCWD, "/etc/a", O_WRONLY|O_CLOEXEC) = 3 <0.000060>"#,
        r#"7 20:07:17.917186 openat(AT_FDCWD, "/etc/a", O_WRONLY|O_CLOEXEC)          = 3 <0.000060>"#,
        r#"[pid     7] 20:07:17 openat(AT_FDCWD, "/etc/a", O_WRONLY|O_CLOEXEC) = 3"#,
        r#"7<program> 1795464487.510232 openat(-100, "/etc/a", 0x80001) = 3 <0.000070>"#,
        r#"7 1795464487.510232 openat(-100 /* AT_FDCWD */, "/etc/a", 0x80001 /* O_WRONLY|O_CLOEXEC */) = 3"#,
        r#"7 1795464487.510232 openat(0xffffff9c, "\x2f\x65\x74\x63\x2f\x61", O_WRONLY|0x80000) = 3"#,
        r#"7 1795464487.510232 [00007f2b4d1b7fd4] openat(AT_FDCWD, "/etc/a", O_CLOEXEC|O_WRONLY) = 3</etc/a>"#,
        r#"7 1795464487.510232 [ 257] openat(AT_FDCWD, "/etc/a", O_WRONLY|O_CLOEXEC) = 3</etc/a>(deleted) <0.1>"#,
        r#"7 1795464487.510232 (+     0.001188) openat(AT_FDCWD, "/\145tc/a", O_WRONLY|O_CLOEXEC) = 3"#,
    ] {
        let call = one(line);
        assert_eq!(arguments(&call), "openat fd=-100 path=/etc/a flags=0x80001", "{line}");
        assert_eq!(call.result, Some(3));
    }
}

#[test]
fn each_call_keeps_its_arguments() {
    for (line, expected) in [
        (r#"open("/a", O_RDONLY) = 3"#, "open path=/a"),
        (r#"creat("/a", 0644) = 3"#, "creat path=/a mode=0o644"),
        (
            r#"openat2(4, "b", {flags=O_RDWR|O_CREAT|0x800000, mode=0644, resolve=RESOLVE_BENEATH}, 24) = 5"#,
            "openat2 fd=4 path=b offset=8 flags=0x800042 mode=0o644",
        ),
        ("close(3) = 0", "close fd=3"),
        (
            r#"bind(3<socket:[9]>, {sa_family=AF_UNIX, sun_path="/run/a"}, 110) = 0"#,
            "bind fd=3 fd_path=socket:[9] path=/run/a",
        ),
        (r#"bind(3, {sa_family=AF_FILE, path="a"}, 110) = 0"#, "bind fd=3 path=a"),
        (r#"bind(3, {sa_family=AF_UNIX, sun_path=@"a"}, 5) = 0"#, "bind fd=3"),
        (r#"bind(3, {sa_family=AF_INET, sin_port=htons(0)}, 16) = 0"#, "bind fd=3"),
        ("close_range(3, 4294967295, CLOSE_RANGE_CLOEXEC) = 0", "close_range fd=3 fd2=2147483647 flags=0x4"),
        (r#"read(3, ""..., 5042) = 5041"#, "read fd=3 length=5042"),
        (r#"read(3</a b>, "", 1)  = 0"#, "read fd=3 fd_path=/a b length=1"),
        (r#"read(0</dev/null<char 1:3>>, "", 1) = 0"#, "read fd=0 fd_path=/dev/null length=1"),
        (r#"read(3<pipe:[3858929]>, "", 1) = 0"#, "read fd=3 fd_path=pipe:[3858929] length=1"),
        (r#"write(3</a \"q\n>(deleted), ""..., 4) = 4"#, "write fd=3 fd_path=/a \"q\n length=4"),
        (
            r#"sendto(3<TCP:[1.1.1.1:1->2.2.2.2:2]>, "a, b)", 5, MSG_NOSIGNAL, NULL, 0) = 5"#,
            "sendto fd=3 fd_path=TCP:[1.1.1.1:1->2.2.2.2:2] length=5 flags=0x4000",
        ),
        ("read(999, 0x7fa142c260f0, 3) = -1 EBADF (Bad file descriptor)", "read fd=999 length=3 errno=9"),
        (r#"pwrite64(3, "a\"b\\c\n", 6, 5) = 6"#, "pwrite64 fd=3 offset=5 length=6"),
        (r#"pread(3, ""..., 6, 5000000000) = 6"#, "pread64 fd=3 offset=5000000000 length=6"),
        (
            r#"writev(3, [{iov_base="abc", iov_len=3}, {iov_base="\"}{]["..., iov_len=50}], 2) = 53"#,
            "writev fd=3 length=53",
        ),
        (r#"writev(3, [{"abc", 3}, {"x"..., 5}], 2) = 8"#, "writev fd=3 length=8"),
        ("writev(3, [...], 3) = 53", "writev fd=3"),
        (r#"preadv2(3, [{iov_base="", iov_len=8}], 1, 7, RWF_HIPRI) = 8"#, "preadv2 fd=3 offset=7 length=8 flags=0x1"),
        ("lseek(3, -1, SEEK_END) = 9999", "lseek fd=3 offset=-1 flags=0x2"),
        ("sendfile(6, 3, [0] => [50], 50) = 50", "sendfile fd=6 fd2=3 offset=0 length=50"),
        ("sendfile(6, 3, NULL, 50) = 50", "sendfile fd=6 fd2=3 length=50"),
        ("copy_file_range(3, [7], 4, NULL, 10, 0) = 10", "copy_file_range fd=3 fd2=4 offset=7 length=10"),
        ("copy_file_range(3, NULL, 4, [9], 10, 0) = 10", "copy_file_range fd=3 fd2=4 offset2=9 length=10"),
        (
            "fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 100) = 0",
            "fallocate fd=3 offset=0 length=100 flags=0x3",
        ),
        ("ftruncate(3, 3) = 0", "ftruncate fd=3 length=3"),
        ("_llseek(3, 5000000000, [5000000000], SEEK_SET) = 0", "lseek fd=3 offset=5000000000"),
        ("ioctl(4</to>, BTRFS_IOC_CLONE or FICLONE, 3</from>) = 0", "ioctl fd=4 fd2=3 fd_path=/to flags=0x40049409"),
        (
            "ioctl(4, FICLONERANGE, {src_fd=3, src_offset=1, src_length=2, dest_offset=3}) = 0",
            "ioctl fd=4 fd2=3 offset=3 offset2=1 length=2 flags=0x4020940d",
        ),
        (
            "ioctl(3, FIDEDUPERANGE, {src_offset=1, src_length=2, dest_count=1, info=[{dest_fd=4, dest_offset=5}]} => \
             {info=[{bytes_deduped=2, status=0}]}) = 0",
            "ioctl fd=3 fd2=4 offset=1 offset2=5 length=2 flags=0xc0189436",
        ),
        ("ioctl(3, _IOC(_IOC_WRITE, 0x58, 0x2a, 0x30), 0x7ffc) = 0", "ioctl fd=3 flags=0x4030582a"),
        ("fcntl(3, F_SETFL, O_RDWR|O_APPEND) = 0", "fcntl fd=3 fd2=1026 flags=0x4"),
        (r#"setxattrat(AT_FDCWD, "a", 0, "user.x", {value="", size=1, flags=0}, 16) = 0"#, "setxattrat fd=-100 path=a"),
        ("syscall_0x1cf(0xffffffffffffff9c, 0x7ffc, 0, 0x7ffd, 0x7ffe, 0x10) = 0", "setxattrat fd=-100"),
        (
            r#"openat(dfd=AT_FDCWD, filename="/a=b", flags=O_RDWR|O_CREAT, mode=0644) = 3"#,
            "openat fd=-100 path=/a=b flags=0x42 mode=0o644",
        ),
        (r#"writev(fd=3, vec=[{iov_base="a", iov_len=3}], vlen=1) = 3"#, "writev fd=3 length=3"),
        (
            r#"quotactl(2147485440 /* QCMD(0x800007 /* Q_GETQUOTA */, 0 /* USRQUOTA */) */, "/dev/sda1", 0, 0x7f) = 0"#,
            "quotactl",
        ),
        (
            r#"newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=2438, ...}, AT_EMPTY_PATH) = 0"#,
            "newfstatat fd=3 path= flags=0x1000 mode=0o100644",
        ),
        (
            r#"newfstatat(AT_FDCWD, "/nope", 0x7fff, 0) = -1 ENOENT (No such file or directory)"#,
            "newfstatat fd=-100 path=/nope errno=2",
        ),
        (
            r#"statx(AT_FDCWD, "/a", AT_STATX_SYNC_AS_STAT|AT_NO_AUTOMOUNT, STATX_ALL, {stx_mask=STATX_ALL}) = 0"#,
            "statx fd=-100 path=/a flags=0x800",
        ),
        (r#"access("/a", R_OK|W_OK) = 0"#, "access path=/a flags=0x6"),
        (r#"faccessat2(AT_FDCWD, "/a", R_OK, AT_EACCESS) = 0"#, "faccessat2 fd=-100 path=/a flags=0x204"),
        (r#"openat(AT_FDCWD, 0x7ffc, O_RDONLY) = -1 EFAULT (Bad address)"#, "openat fd=-100 errno=14"),
        (r#"symlink("target x", "/a/l") = 0"#, "symlink path=target x path2=/a/l"),
        (r#"symlinkat("target", 5, "l") = 0"#, "symlinkat fd2=5 path=target path2=l"),
        (r#"renameat2(3, "a", 4, "b", RENAME_EXCHANGE) = 0"#, "renameat2 fd=3 fd2=4 path=a path2=b flags=0x2"),
        (r#"unlinkat(AT_FDCWD</cwd>, "o", AT_REMOVEDIR) = 0"#, "unlinkat fd=-100 fd_path=/cwd path=o flags=0x200"),
        (r#"mknod("/p", S_IFIFO|0666) = 0"#, "mknod path=/p mode=0o10666"),
        (r#"getcwd("/a", 4096) = 3"#, "getcwd path=/a length=4096"),
        (
            r#"utimensat(11, "h", [{tv_sec=1, tv_nsec=0} /* 1970-01-01T00:00:01+0000 */, UTIME_OMIT], 0) = 0"#,
            "utimensat fd=11 path=h",
        ),
        ("utimensat(11, NULL, NULL, 0) = 0", "utimensat fd=11"),
        ("dup2(3</a>, 0</dev/null>) = 0</a>", "dup2 fd=3 fd2=0 fd_path=/a"),
        ("dup3(3, 4, O_CLOEXEC) = 4", "dup3 fd=3 fd2=4 flags=0x80000"),
        ("fcntl(3, F_DUPFD_CLOEXEC, 50) = 50", "fcntl fd=3 fd2=50 flags=0x406"),
        ("fcntl(3, F_SETFD, FD_CLOEXEC) = 0", "fcntl fd=3 fd2=1 flags=0x2"),
        ("fcntl(255, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE)", "fcntl fd=255 flags=0x3"),
        ("fcntl(3, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = 0", "fcntl fd=3 flags=0x6"),
        ("ioctl(3, TCGETS, 0x7fff) = -1 ENOTTY (Inappropriate ioctl for device)", "ioctl fd=3 flags=0x5401 errno=25"),
        ("ioctl(3, SOMETHING_NEW, 0x7fff) = 0", "ioctl fd=3"),
        ("pipe([3, 4]) = 0", "pipe fd=3 fd2=4"),
        ("pipe2([3<pipe:[1]>, 4<pipe:[1]>], O_CLOEXEC) = 0", "pipe2 fd=3 fd2=4 flags=0x80000"),
        ("pipe2([...], 0) = 0", "pipe2"),
        ("socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0, [7, 8]) = 0", "socketpair fd=7 fd2=8 flags=0x80001"),
        ("clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|SIGCHLD, child_tidptr=0x7) = 9", "clone flags=0x511"),
        (
            "clone(child_stack=0, flags=0x1200000 /* CLONE_CHILD_SETTID */|17 /* SIGCHLD */) = 9",
            "clone flags=0x1200011",
        ),
        ("clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[9]}, 88) = 9", "clone3 flags=0x10100"),
        ("vfork() = 9", "vfork"),
        (r#"execve("/bin/sh", ["sh", "-c", ") = 0"], 0x7ffc /* 35 vars */) = 0"#, "execve path=/bin/sh"),
        (
            "mmap(NULL, 25160, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3, 0x1000) = 0x7fa1",
            "mmap fd=3 offset=4096 length=25160 flags=0x802 mode=0o1",
        ),
        ("umask(022) = 002", "umask mode=0o22"),
        (
            "recvmsg(3, {msg_name=NULL, msg_iov=[{iov_base=\"\", iov_len=9}], msg_iovlen=1}, 0) = 1",
            "recvmsg fd=3 length=9",
        ),
        ("exit_group(0) = ?", "exit_group"),
        ("sync() = 0", "sync"),
    ] {
        assert_eq!(arguments(&one(line)), expected, "{line}");
    }
}

#[test]
fn readlink_has_its_target_if_all_of_it_is_shown() {
    let target = |line: &str| one(line).path2.map(|target| target.to_string());
    assert_eq!(target(r#"1 readlink("/l", "a\"b", 4096) = 3"#).as_deref(), Some("a\"b"));
    assert_eq!(target(r#"1 readlinkat(3, "l", "\x2f\x61", 4096) = 2"#).as_deref(), Some("/a"));
    for line in [
        r#"1 readlink("/l", "ab"..., 4096) = 3"#,
        r#"1 readlink("/l", "abc", 3) = 3"#,
        r#"1 readlink("/l", 0x7ffd, 4096) = -1 EINVAL (Invalid argument)"#,
        r#"1 readlink("/l", ""..., 4096) = 3"#,
    ] {
        assert_eq!(target(line), None, "{line}");
    }
}

#[test]
fn calls_of_other_kinds_are_counted_by_name() {
    let (calls, about) =
        read("brk(NULL) = 0x55\nbrk(0x66) = 0x66\nfutex(0x7, FUTEX_WAIT, 1, NULL <unfinished ...>\nsync() = 0\n");
    assert_eq!(calls.len(), 1);
    let others: Vec<_> = about.counts.other_calls.into_iter().collect();
    assert_eq!(others, [("brk".to_owned(), 2), ("futex".to_owned(), 1)]);
    assert_eq!(about.counts.bad_lines, 0);
}

#[test]
fn mappings_without_a_file_are_other_calls() {
    let (calls, about) = read(
        "7 mmap(NULL, 8, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fa1\n7 mmap(NULL, 8, PROT_NONE <unfinished ...>\n\
         8 sync() = 0\n7 <... mmap resumed>, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fa1\n",
    );
    assert_eq!((calls.len(), about.counts.bad_lines, about.counts.other_calls["mmap"]), (1, 0, 2));
}

#[test]
fn bad_lines_are_counted_and_the_first_ones_named() {
    let text = "sync() = 0\nhello\nread(x, \"\", 1) = 1\nread(3, \"\", 1) = 1 <y>\nclose(3) = 0\n".to_owned()
        + &"?\n".repeat(50);
    let (calls, about) = read(&text);
    assert_eq!((calls.len(), about.counts.bad_lines), (2, 53));
    assert_eq!(about.warnings[0], "line 2: neither a call nor a message of strace: hello");
    assert_eq!(about.warnings[1], "line 3: a descriptor is not a number: read(x, \"\", 1) = 1");
    assert_eq!(about.warnings[2], "line 4: the duration is not a number: read(3, \"\", 1) = 1 <y>");
    assert_eq!(about.warnings.iter().filter(|warning| warning.starts_with("line")).count(), 10);
    assert_eq!(about.warnings.last().unwrap(), "53 lines were not understood");
    assert!(about.complete);
}

#[test]
fn unknown_flags_are_left_out_and_named() {
    let (calls, about) = read("open(\"/a\", O_RDWR|O_NEWEST) = 3\n");
    assert_eq!(calls[0].flags, 2);
    assert!(about.warnings.contains(&"flags without a known value were left out: O_NEWEST".to_owned()));
}

#[test]
fn a_last_line_that_was_cut_is_no_bad_line() {
    let (calls, about) = read("1 1795464429.5 sync() = 0 <0.1>\n1 1795464429.7 read(3, \"");
    assert_eq!((calls.len(), about.counts.bad_lines, about.complete), (1, 0, false));
    assert!(about.warnings[0].starts_with("the last line is incomplete"));
}

#[test]
fn relative_times_are_refused() {
    let error = try_read(b"7      0.000000 sync() = 0\n", None).unwrap_err().to_string();
    assert!(error.contains("strace -r") && error.contains("record with strace -f -ttt -T"), "{error}");
}

#[test]
fn times_of_the_day_pass_midnight() {
    let (calls, about) = read("23:59:59.5 sync() = 0 <0.1>\n00:00:00.25 sync() = 0 <0.1>\n00:00:01 sync() = 0 <0.1>\n");
    assert_eq!(brief(&calls), ["0 100000 0 sync 0", "750000 100000 0 sync 0", "1500000 100000 0 sync 0"]);
    assert_eq!(about.epoch_unix_ns, None);
    assert!(about.warnings[0].contains("the date is unknown"));
}

#[test]
fn without_times_lines_are_a_microsecond_apart() {
    let (calls, about) = read("sync() = 0\n--- SIGCHLD {} ---\nclose(3) = 0\nclose(4) = 0 <0.000005>\nclose(5) = 0\n");
    assert_eq!(brief(&calls), ["0 0 0 sync 0", "1 0 0 close 0", "2 5 0 close 0", "8 0 0 close 0"]);
    assert!(about.warnings[0].contains("no times") && about.warnings[1].contains("3 calls have no duration"));
}

#[test]
fn a_clock_that_goes_back_does_not_move_calls_back() {
    let (calls, about) =
        read("1795464429.5 sync() = 0 <0.1>\n1795464428.5 sync() = 0 <0.1>\n1795464428.6 sync() = 0 <0.1>\n");
    assert_eq!(brief(&calls), ["0 100000 0 sync 0", "0 100000 0 sync 0", "100000 100000 0 sync 0"]);
    assert_eq!(about.epoch_unix_ns, Some(1_795_464_429_500_000_000));
    assert!(about.warnings[0].contains("the clock went back 1 time, by 1.000000000 s"), "{:?}", about.warnings);
}

#[test]
fn what_strace_writes_beside_calls_is_left_out_and_counted() {
    let (calls, about) = read(
        "\u{1b}[1mclose\u{1b}[0m(3) = 0\n > /lib/libc.so.6(close+0x2b) [0x10c21b]\n > [vdso]() [0x1]\n\
         1 read(3,  <unfinished #1 ...>\n1 <... read resumed #1>\"\", 5) = 5\n\
         % time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.000286          11        26         1 close\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.000286                    26         1 total\n",
    );
    assert_eq!((calls.len(), about.counts.bad_lines), (2, 0), "{:?}", about.warnings);
    for warning in [
        "2 stack frames of strace -k: left out",
        "5 lines of a table of totals (strace -C): left out",
        "1 line had colours (strace --color), which were taken away",
    ] {
        assert!(about.warnings.iter().any(|found| found == warning), "no {warning:?} in {:?}", about.warnings);
    }
}
