//! Traces and roots that someone made to do harm: memory and time stay bounded, and nothing outside of the root is touched.
//! `acceptance_files_hostile` has more descriptors and threads, and longer names.

use crate::hostile;
use crate::replaying;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::hostile::{Bench, text};
use rustix::fs::{CWD, RenameFlags, renameat_with};

#[test]
fn closing_many_descriptors_takes_no_quadratic_time() {
    hostile::many_descriptors(10_000);
}

#[test]
fn many_threads_in_flight_take_no_quadratic_time() {
    hostile::many_threads_in_flight(10_000);
}

#[test]
fn origins_of_many_threads_take_a_limited_search() {
    hostile::many_threads_of_unknown_origin(15_000);
}

#[test]
fn reused_thread_ids_take_no_quadratic_time() {
    hostile::threads_that_take_over_numbers(20_000);
}

#[test]
fn a_name_that_does_not_end_takes_no_memory() {
    hostile::endless_name(64);
}

#[test]
fn descriptors_many_processes_inherit_do_not_fill_the_memory() {
    let bench = Bench::new();
    let mut text = String::new();
    for at in 0..1000 {
        _ = writeln!(text, "100 1795464429.{at:09} openat(AT_FDCWD, \"/f\", O_RDONLY) = {} <0.0000001>", at + 3);
    }
    for at in 0..12_000 {
        _ = writeln!(text, "{} 1795464430.{at:09} fork() = {} <0.0000001>", 100 + at, 101 + at);
    }
    fs::write(bench.path("t.strace"), text).unwrap();
    let printed = bench.expect(&[0, 3], &["files", "check", "t.strace", "--root", "root", "--verbose"]);
    assert!(printed.contains("more than 8 million were inherited at once"), "{printed}");
}

#[test]
fn numbers_at_the_ends_of_their_range_are_understood_or_refused() {
    const LARGEST: &str = "9223372036854775807";
    let bench = Bench::new();
    let mut calls: Vec<String> = [
        "openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 2147483647",
        "pwrite64(2147483647, \"\"..., 1, MAX) = 1",
        "openat(AT_FDCWD, \"/b\", O_RDWR|O_CREAT, 0644) = 2147483648",
        "openat(AT_FDCWD, \"/c\", O_RDWR|O_CREAT, 0644) = -5",
        "openat(AT_FDCWD, \"/c\", O_RDWR|O_CREAT, 0644) = -2147483648",
        "openat(AT_FDCWD, \"/c\", O_RDWR|O_CREAT, 0644) = 99999999999999999999",
        "openat(AT_FDCWD, \"/d\", O_RDWR|O_CREAT, 0644) = 3",
        "openat(AT_FDCWD, \"/e\", O_RDWR|O_CREAT, 0644) = 3",
        "dup2(3, 2147483647) = 2147483647",
        "dup2(3, -1) = -1",
        "dup2(-1, 3) = 3",
        "dup2(3, 4294967295) = 4294967295",
        "dup2(3, 3) = 3",
        "pread64(3, \"\"..., MAX, MAX) = MAX",
        "pread64(3, \"\"..., 18446744073709551615, 18446744073709551615) = MAX",
        "lseek(3, MAX, SEEK_SET) = MAX",
        "read(3, \"\"..., MAX) = MAX",
        "read(3, \"\"..., MAX) = MAX",
        "write(3, \"\"..., MAX) = MAX",
        "ftruncate(3, MAX) = 0",
        "truncate(\"/t\", MAX) = 0",
        "fallocate(3, 0, MAX, MAX) = 0",
        "copy_file_range(3, [MAX], 3, NULL, MAX, 0) = MAX",
        "sendfile(3, 3, [MAX], MAX) = MAX",
        "close_range(4294967295, 0, 0) = 0",
        "close_range(0, 4294967295, 0) = 0",
    ]
    .map(|call| format!("{} <0.000001>", call.replace("MAX", LARGEST)))
    .into();
    calls.push("sync() = 0 <9223372036.854775807>".into());
    bench.calls(calls.iter().map(String::as_str));
    let mut text = fs::read_to_string(bench.path("t.strace")).unwrap();
    for time in
        ["9223372036.854775807", "99999999999999999999.5", "1795464429.000000000", "1795464428.0", "1795464430.0"]
    {
        for thread in ["7", "4294967295", "4294967296", "-1", "0"] {
            _ = writeln!(text, "{thread} {time} sync() = 0 <0.000001>");
        }
    }
    fs::write(bench.path("t.strace"), text).unwrap();
    bench.all_commands(&[0, 4]);
    bench.expect(&[0], &["convert", "t.calls.parquet", "again.calls.parquet"]);
}

#[test]
fn a_file_of_almost_2_to_the_63_bytes_does_not_fill_the_disk() {
    let bench = Bench::new();
    bench.calls([
        "openat(AT_FDCWD, \"/huge\", O_RDONLY) = 3 <0.000001>",
        "pread64(3, \"\"..., 7, 9223372036854775800) = 7 <0.000001>",
    ]);
    let prepared = bench.run(&["files", "prepare", "t.strace", "--root", "root"]);
    let printed = text(&prepared);
    assert!(prepared.status.code() == Some(1) && printed.contains("nothing was changed"), "{printed}");
    assert!(printed.contains("--sparse"), "{printed}");
    // Without data, the file takes no space, or its size is an error of the file system.
    bench.expect(&[0, 1], &["files", "prepare", "t.strace", "--root", "root", "--sparse"]);
    let huge = fs::metadata(bench.path("root/huge"));
    assert!(huge.is_ok_and(|file| file.blocks() == 0) || !bench.path("root/huge").exists());
}

/// Paths that leave the root, are longer than the kernel takes, or are no paths.
fn bad_paths() -> Vec<String> {
    let mut paths: Vec<String> = [
        "",
        ".",
        "..",
        "/",
        "//",
        "/..",
        "../..",
        "/../../etc/passwd",
        "/a/../../../outside/secret",
        "/a/./..//../b",
        "/d/..",
        "/d/x\\0y",
        "/d/\\n\\377",
        "/proc/../etc/shadow",
        "/dev/../etc/shadow",
        "/d/l/../../../outside",
    ]
    .map(str::to_owned)
    .into();
    paths.push(format!("/d/{}", "x".repeat(255)));
    paths.push(format!("/d/{}", "y".repeat(256)));
    paths.push(format!("/d/{}", "z".repeat(5000)));
    paths.push("/a".repeat(2100));
    paths.push("/..".repeat(1300) + "/outside/secret");
    paths
}

/// Calls on bad paths, on links to them, and from them.
fn calls_on_bad_paths() -> Vec<String> {
    let mut calls = Vec::new();
    for (at, path) in bad_paths().iter().enumerate() {
        for call in [
            format!("openat(AT_FDCWD, \"{path}\", O_RDWR|O_CREAT, 0644) = {}", at + 10),
            format!("write({}, \"\"..., 5) = 5", at + 10),
            format!("mkdir(\"{path}\", 0777) = 0"),
            format!("unlink(\"{path}\") = 0"),
            format!("symlink(\"{path}\", \"/d/l{at}\") = 0"),
            format!("symlink(\"../outside\", \"{path}\") = 0"),
            format!("openat(AT_FDCWD, \"/d/l{at}/secret\", O_RDWR|O_CREAT|O_TRUNC, 0644) = {}", at + 50),
            format!("rename(\"{path}\", \"/d/r{at}\") = 0"),
            format!("rename(\"/d/r{at}\", \"{path}\") = 0"),
            format!("link(\"{path}\", \"/d/k{at}\") = 0"),
            format!("truncate(\"{path}\", 5) = 0"),
            format!("chmod(\"{path}\", 0777) = 0"),
            format!("chdir(\"{path}\") = 0"),
            format!("openat(AT_FDCWD, \"../q{at}\", O_RDWR|O_CREAT, 0644) = {}", at + 90),
            format!("mknod(\"{path}\", S_IFCHR|0666, makedev(0x1, 0x3)) = 0"),
            format!("rmdir(\"{path}\") = 0"),
        ] {
            calls.push(call + " <0.000000500>");
        }
    }
    calls
}

#[test]
fn odd_paths_are_bad_lines_or_stay_below_the_root() {
    let bench = Bench::new();
    let outside = Outside::new(&bench);
    let calls = calls_on_bad_paths();
    bench.calls(calls.iter().map(String::as_str));
    let trace = "t.calls.parquet";
    bench.expect(&[0], &["convert", "t.strace", trace]);
    let printed = bench.expect(&[0], &["info", trace]);
    assert!(printed.contains("a path has a NUL byte"), "{printed}");
    bench.expect(&[3], &["files", "check", trace, "--root", "root"]);
    bench.expect(&[0, 1], &["files", "prepare", trace, "--root", "root"]);
    let replay = ["files", "replay", trace, "--root", "root", "--output", "r.calls-run.parquet"];
    bench.expect(&[4], &[&replay[..], &["--unprepared"]].concat());
    outside.assert_untouched();
}

/// A directory beside the root that must stay as it is.
struct Outside {
    directory: PathBuf,
    before: Vec<(PathBuf, u64, i64, u32)>,
}

impl Outside {
    fn new(bench: &Bench) -> Self {
        let directory = bench.path("outside");
        fs::create_dir(&directory).unwrap();
        fs::create_dir(directory.join("inner")).unwrap();
        for name in ["secret", "inner/secret", "f0", "f1", "f2"] {
            fs::write(directory.join(name), "untouched").unwrap();
        }
        // The user that replays could change it all.
        for name in ["", "inner", "secret", "inner/secret", "f0", "f1", "f2"] {
            fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        let before = Self::look(&directory);
        Self { directory, before }
    }

    fn look(directory: &Path) -> Vec<(PathBuf, u64, i64, u32)> {
        let mut found = Vec::new();
        let mut directories = vec![directory.to_path_buf()];
        while let Some(directory) = directories.pop() {
            let status = fs::symlink_metadata(&directory).unwrap();
            found.push((directory.clone(), status.len(), status.ctime_nsec(), status.mode()));
            if status.is_dir() {
                directories.extend(fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        found.sort();
        found
    }

    fn assert_untouched(&self) {
        assert_eq!(Self::look(&self.directory), self.before);
        for name in ["secret", "inner/secret"] {
            assert_eq!(fs::read_to_string(self.directory.join(name)).unwrap(), "untouched");
        }
    }
}

/// Calls that make, change and remove files in `/d`, whose opens may find a directory or a link there.
fn calls_in_a_directory() -> Vec<String> {
    let mut calls = vec!["mkdir(\"/d\", 0777) = -1 EEXIST (File exists) <0.000000500>".to_owned()];
    for round in 0..300 {
        let fd = 10 + round;
        for call in [
            format!("openat(AT_FDCWD, \"/d/f{}\", O_RDWR|O_CREAT|O_TRUNC, 0644) = {fd}", round % 3),
            format!("write({fd}, \"\"..., 5) = 5"),
            format!("openat(AT_FDCWD, \"/d/new{round}\", O_RDWR|O_CREAT|O_EXCL, 0644) = {}", fd + 1000),
            format!("mkdir(\"/d/m{round}\", 0777) = 0"),
            "truncate(\"/d/secret\", 3) = 0".to_owned(),
            "chmod(\"/d/secret\", 0600) = 0".to_owned(),
            "utimensat(AT_FDCWD, \"/d/inner/secret\", NULL, 0) = 0".to_owned(),
            "setxattr(\"/d/secret\", \"user.x\", \"\"..., 1, 0) = 0".to_owned(),
            format!("rename(\"/d/inner/../secret\", \"/d/s{round}\") = 0"),
            format!("link(\"/d/s{round}\", \"/d/k{round}\") = 0"),
            format!("symlink(\"../outside\", \"/d/l{round}\") = 0"),
            format!("unlink(\"/d/l{round}/secret\") = -1 ENOENT (No such file or directory)"),
            "unlink(\"/d/inner/secret\") = 0".to_owned(),
            "rmdir(\"/d/inner\") = 0".to_owned(),
        ] {
            calls.push(call + " <0.000000500>");
        }
    }
    calls
}

/// Exchanges the directory `root/d` with symbolic links to the directory outside and back, as fast as it can, while `body` runs.
fn while_swapping(bench: &Bench, body: impl FnOnce()) {
    let (root, stop) = (bench.path("root"), AtomicBool::new(false));
    fs::create_dir(root.join("d")).unwrap();
    fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o777)).unwrap();
    symlink(bench.path("outside"), root.join("absolute")).unwrap();
    symlink("../outside", root.join("relative")).unwrap();
    let exchanged = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for link in ["absolute", "absolute", "relative", "relative"] {
                    let done = renameat_with(CWD, root.join("d"), CWD, root.join(link), RenameFlags::EXCHANGE);
                    exchanged.fetch_add(u64::from(done.is_ok()), Ordering::Relaxed);
                }
            }
        });
        body();
        stop.store(true, Ordering::Relaxed);
    });
    assert!(exchanged.into_inner() > 1000);
}

fn attack(bench: &Bench, before: &[&str], program: &Path) {
    let outside = Outside::new(bench);
    let calls = calls_in_a_directory();
    bench.calls(calls.iter().map(String::as_str));
    bench.expect(&[0], &["convert", "t.strace", "t.calls.parquet"]);
    for name in ["", "root"] {
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    while_swapping(bench, || {
        for round in 0..6 {
            let run = |arguments: &[&str]| {
                let output = bench.run_with(before, program, arguments);
                assert!(output.status.code().is_some_and(|code| code < 10), "{}", text(&output));
            };
            run(&["files", "check", "t.calls.parquet", "--root", "root"]);
            run(&["files", "prepare", "t.calls.parquet", "--root", "root"]);
            let order = ["conservative", "resource"][round % 2];
            let replay = ["files", "replay", "t.calls.parquet", "--root", "root", "--order", order, "--timing", "asap"];
            run(&[&replay[..], &["--output", "r.calls-run.parquet", "--overwrite", "--unprepared"]].concat());
        }
    });
    outside.assert_untouched();
}

#[test]
fn a_directory_that_becomes_a_link_in_a_replay_leads_nowhere() {
    let bench = Bench::new();
    attack(&bench, &[], env!("CARGO_BIN_EXE_iosonar").as_ref());
}

#[test]
fn it_leads_nowhere_for_an_ordinary_user_either() {
    if iosonar_testing::left_out(iosonar_testing::Need::Root) {
        return;
    }
    let bench = Bench::new();
    // The user cannot read the directory of the build.
    let program = bench.path("iosonar");
    // Copied by another process: a child that another test starts meanwhile would inherit a copy open for writing.
    replaying::run("cp", &[env!("CARGO_BIN_EXE_iosonar").as_ref(), program.as_os_str()]);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    attack(&bench, &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], &program);
}

#[test]
fn links_in_circles_end() {
    let bench = Bench::new();
    symlink("b", bench.path("root/a")).unwrap();
    symlink("a", bench.path("root/b")).unwrap();
    symlink(".", bench.path("root/self")).unwrap();
    bench.calls([
        "openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3 <0.000001>",
        "openat(AT_FDCWD, \"/self/self/self/a/x\", O_RDWR|O_CREAT, 0644) = 4 <0.000001>",
        "symlink(\"v\", \"/u\") = 0 <0.000001>",
        "symlink(\"u/w\", \"/v\") = 0 <0.000001>",
        "openat(AT_FDCWD, \"/u/../v/x\", O_RDWR) = 5 <0.000001>",
        "mkdir(\"/u/v/u\", 0777) = 0 <0.000001>",
    ]);
    bench.expect(&[0, 3], &["files", "check", "t.strace", "--root", "root"]);
    bench.expect(&[0, 1], &["files", "prepare", "t.strace", "--root", "root"]);
    let replay = ["files", "replay", "t.strace", "--root", "root", "--output", "r.calls-run.parquet"];
    bench.expect(&[0, 4], &[&replay[..], &["--unprepared"]].concat());
}

#[test]
fn a_file_with_names_elsewhere_is_not_made_longer() {
    let bench = Bench::new();
    let outside = Outside::new(&bench);
    fs::hard_link(bench.path("outside/secret"), bench.path("root/f")).unwrap();
    let before = fs::metadata(bench.path("outside/secret")).unwrap();
    bench.calls(["openat(AT_FDCWD, \"/f\", O_RDONLY) = 3 <0.000001>", "pread64(3, \"\"..., 10, 100) = 10 <0.000001>"]);
    let printed = bench.expect(&[1], &["files", "prepare", "t.strace", "--root", "root"]);
    assert!(printed.contains("has 2 names"), "{printed}");
    assert_eq!((before.len(), before.ctime_nsec()), {
        let after = fs::metadata(outside.directory.join("secret")).unwrap();
        (after.len(), after.ctime_nsec())
    });
}

#[test]
fn odd_forms_of_calls_have_the_results_of_the_original() {
    let bench = Bench::new();
    bench.calls([
        "openat(AT_FDCWD, \"/f\", O_RDWR|O_CREAT|O_EXCL, 0644) = 3 <0.0000005>",
        "pwritev2(3, [{iov_base=\"\"..., iov_len=3}], 1, -1, 0) = 3 <0.0000005>",
        "lseek(3, 0, SEEK_CUR) = 3 <0.0000005>",
        "lseek(3, 0, SEEK_SET) = 0 <0.0000005>",
        "preadv2(3, [{iov_base=\"\"..., iov_len=2}], 1, -1, 0) = 2 <0.0000005>",
        "preadv2(3, [{iov_base=\"\"..., iov_len=2}], 1, -1, 0) = 1 <0.0000005>",
        // The descriptor remains the file's when the name goes.
        "rename(\"/f\", \"/g\") = 0 <0.0000005>",
        "utimensat(3, NULL, NULL, 0) = 0 <0.0000005>",
        "newfstatat(3, \"\", {...}, AT_EMPTY_PATH) = 0 <0.0000005>",
        "unlink(\"/g\") = 0 <0.0000005>",
        "utimensat(3, NULL, NULL, 0) = 0 <0.0000005>",
        // The flag alone does not make it a call on the descriptor.
        "openat(AT_FDCWD, \"/\", O_RDONLY|O_DIRECTORY) = 4 <0.0000005>",
        "newfstatat(4, \"none\", 0x7f, AT_EMPTY_PATH) = -1 ENOENT (No such file or directory) <0.0000005>",
        "openat(AT_FDCWD, \"/\", O_RDWR|O_TMPFILE, 0644) = 5 <0.0000005>",
        "linkat(AT_FDCWD, \"/proc/self/fd/5\", AT_FDCWD, \"/h\", AT_SYMLINK_FOLLOW) = 0 <0.0000005>",
        "newfstatat(AT_FDCWD, \"/h\", {...}, 0) = 0 <0.0000005>",
        // It would make a file if it were repeated.
        "openat(AT_FDCWD, \"/i\", O_RDWR|O_CREAT, 0644) = -1 EMFILE (Too many open files) <0.0000005>",
        "newfstatat(AT_FDCWD, \"/i\", 0x7f, 0) = -1 ENOENT (No such file or directory) <0.0000005>",
    ]);
    bench.expect(&[0], &["files", "prepare", "t.strace", "--root", "root"]);
    bench.expect(&[0], &["files", "replay", "t.strace", "--root", "root", "--output", "r.calls-run.parquet"]);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_with_a_message() {
    let bench = Bench::new();
    bench.calls(
        (0..3000).map(|at| format!("mkdir(\"/d{at}\", 0777) = 0 <0.{at:09}>")).collect::<Vec<_>>().iter().map(|s| &**s),
    );
    let output = bench.run_with(
        &["prlimit", "--fsize=4096"],
        env!("CARGO_BIN_EXE_iosonar").as_ref(),
        &["convert", "t.strace", "t.calls.parquet"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", output.status);
    assert!(text(&output).contains("t.calls.parquet: File too large"), "{}", text(&output));
    assert!(!bench.path("t.calls.parquet").exists());
}

#[test]
fn a_process_that_strace_must_not_trace_is_an_error() {
    let has_strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    if iosonar_testing::left_out(iosonar_testing::Need::Root) || !has_strace {
        return;
    }
    let bench = Bench::new();
    let program = bench.path("iosonar");
    replaying::run("cp", &[env!("CARGO_BIN_EXE_iosonar").as_ref(), program.as_os_str()]);
    for path in [bench.path(""), program.clone()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut of_root = Command::new("sleep").arg("60").spawn().unwrap();
    let output = bench.run_with(
        &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        &program,
        &["files", "record", "--with", "strace", "--pid", &of_root.id().to_string(), "--output", "t.calls.parquet"],
    );
    of_root.kill().unwrap();
    iosonar_testing::ended(&mut of_root);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("strace did not attach to process"), "{}", text(&output));
    assert!(!bench.path("t.calls.parquet").exists());
}
