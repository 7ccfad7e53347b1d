//! `iosonar files replay` of recorded programs: the tree after the replay is that after the program, on file systems that can
//! share ranges and on others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iosonar_testing::{LoopDevice, Mount, Need, left_out};

/// Calls that change what later calls see.
const PROGRAM: &str = r#"
import ctypes, fcntl, os, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)

def make(name, flags=os.O_RDWR, mode=0o666):
    return os.open(name, flags | os.O_CREAT, mode)

def filled(name, size):
    fd = make(name)
    os.write(fd, os.urandom(size))
    return fd

os.umask(0o027)
a = filled("append", 10)
os.lseek(a, 0, os.SEEK_SET)
fcntl.fcntl(a, fcntl.F_SETFL, os.O_APPEND)
os.write(a, b"12345")
fcntl.fcntl(a, fcntl.F_SETFL, 0)
os.lseek(a, 2, os.SEEK_SET)
os.write(a, b"x")
shared = filled("shared", 100)
os.lseek(shared, 0, os.SEEK_SET)
if not os.fork():
    fcntl.fcntl(os.dup(shared), fcntl.F_SETFL, os.O_APPEND)
    os._exit(0)
os.wait()
os.write(shared, b"at the end")
subprocess.run("dd if=in of=direct bs=4096 oflag=direct status=none; cp --reflink=auto -r tree copy", shell=True, check=True)

clone = make("clone")
source = os.open("in", os.O_RDWR)
try:
    fcntl.ioctl(clone, 0x40049409, source)
    fcntl.ioctl(clone, 0x4020940D, struct.pack("qQQQ", source, 4096, 4096, 65536))
    fcntl.ioctl(source, 0xC0189436, bytearray(struct.pack("QQHHIqQQiI", 0, 4096, 1, 0, 0, clone, 0, 0, 0, 0)))
except OSError as error:
    print(error)

for number, (mode, offset, length) in enumerate([(1, 0, 1 << 20), (3, 4096, 8192), (8, 4096, 4096), (0x20, 4096, 8192),
                                                  (0x10, 60000, 9000), (0x11, 60000, 90000), (0, 65536, 65536)]):
    fd = filled(f"fallocate{number}", 65536)
    print(mode, libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))
truncated = filled("truncated", 5000)
os.truncate("truncated", 3000)
os.ftruncate(truncated, 4000)

for name in ("left", "right"):
    os.close(filled(name, len(name)))
assert libc.renameat2(-100, b"left", -100, b"right", 2) == 0
unnamed = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
os.write(unnamed, b"named")
assert libc.linkat(unnamed, b"", -100, b"named", 0x1000) == 0
read, write = os.pipe()
os.write(write, b"through a pipe")
spliced = make("spliced")
os.splice(read, spliced, 100)
os.sendfile(write, source, 100, 50)
os.splice(read, spliced, 100, offset_dst=1000)
copied = make("copied")
os.copy_file_range(source, copied, 3000, 10, 20)
os.sendfile(copied, source, 0, 100)
os.pwritev(copied, [b"abc", b"defg"], 9000)
os.writev(copied, [b"hij", b"k"])
os.setxattr("copied", "user.iosonar", b"1")
os.chmod("copied", 0o4751)
how = struct.pack("QQQ", os.O_CREAT | os.O_RDWR, 0o666, 0x10)
below = os.open("tree", os.O_DIRECTORY)
os.write(libc.syscall(437, below, b"/../rooted", how, 24), b"below the tree")
beyond = struct.pack("QQQ", os.O_CREAT | os.O_RDWR, 0o666, 8)
assert libc.syscall(437, below, b"../beyond", beyond, 24) == -1
os.mkdir("made")
os.mkfifo("made/fifo")
"#;

fn iosonar(arguments: &[&OsStr], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.arg("files").args(arguments).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

/// Runs it to its end, which must have this exit code.
fn run(words: &[&str], directory: &Path, code: i32) -> String {
    let output = iosonar(&words.iter().map(OsStr::new).collect::<Vec<_>>(), directory);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (shown(&output.stdout), shown(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{words:?}\n{stdout}\n{stderr}");
    stdout + &stderr
}

/// Kind and permissions, size and links of each path below a directory.
fn tree(directory: &Path) -> BTreeMap<PathBuf, (u32, u64, u64)> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let status = fs::symlink_metadata(&path).unwrap();
            let size = if status.is_dir() { 0 } else { status.size() };
            found.insert(path.strip_prefix(directory).unwrap().to_owned(), (status.mode(), size, status.nlink()));
            if status.is_dir() {
                directories.push(path);
            }
        }
    }
    found
}

fn methods() -> Vec<&'static str> {
    let mut methods = Vec::new();
    if !left_out(Need::Bpf) {
        methods.push("ebpf");
    }
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok() {
        methods.push("strace");
    }
    methods
}

fn compare(make: &[&str]) {
    if left_out(Need::Loop) {
        return;
    }
    iosonar_testing::default_signals();
    let device = LoopDevice::new(512 << 20);
    let made = Command::new(make[0]).args(&make[1..]).arg(device.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let directory = tempfile::tempdir().unwrap();
    let mount = Mount::new(directory.path().join("disk"), [device.path()]);
    let disk = mount.path();
    for method in methods() {
        let work = disk.join(method);
        fs::create_dir_all(work.join("tree/sub")).unwrap();
        fs::write(work.join("in"), vec![7; 70_000]).unwrap();
        fs::write(work.join("tree/file"), vec![7; 23_893]).unwrap();
        fs::write(work.join("tree/sub/file"), vec![7; 4096]).unwrap();
        fs::write(disk.join("program.py"), PROGRAM).unwrap();
        let trace = format!("../{method}.calls.parquet");
        let words = ["record", "--with", method, "--tree", ".", "--output", &trace, "--", "python3", "../program.py"];
        run(&words, &work, 0);
        // What the program does elsewhere is no part of the comparison.
        let top = Path::new("/").join(disk.components().nth(1).unwrap());
        let others = fs::read_dir("/").unwrap().map(|entry| entry.unwrap().path()).filter(|path| *path != top);
        let others: String = others.map(|path| format!("{}\n", path.display())).collect();
        fs::write(disk.join("ignored"), others).unwrap();
        let root = format!("root-{method}");
        let trace = format!("{method}.calls.parquet");
        let common = [trace.as_str(), "--root", &root, "--ignore", "ignored", "--special-files"];
        run(&[&["prepare"][..], &common].concat(), disk, 0);
        let result = format!("{method}.calls-run.parquet");
        let replay = [&["replay"][..], &common, &["--timing", "asap", "--output", &result]].concat();
        let printed = run(&replay, disk, 0);
        let below = work.canonicalize().unwrap();
        let replayed = disk.join(&root).join(below.strip_prefix("/").unwrap());
        assert_eq!(tree(&replayed), tree(&work), "{make:?} {method}\n{printed}");
    }
}

#[test]
fn a_tree_on_ext4_is_that_after_the_program() {
    compare(&["mkfs.ext4", "-q"]);
}

#[test]
fn a_tree_on_xfs_with_shared_ranges_is_that_after_the_program() {
    compare(&["mkfs.xfs", "-q", "-m", "reflink=1"]);
}
