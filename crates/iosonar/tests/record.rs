//! `iosonar record` on real devices: recordings are compared with the I/O of the test and with the kernel's
//! tracepoints. Times are only asserted to be present.

use crate::recording;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out};
use iosonar_trace::{Flags, Metadata, Op, Request};

use crate::recording::{Direct, Recording, Zram, iosonar, run};

const MIB: u64 = 1 << 20;

/// The compared part of a request; the rest depends on the machine.
fn shape(request: &Request) -> (Op, u64, u64) {
    (request.op, request.sector.0, request.sectors.0)
}

fn shapes(requests: &[Request]) -> Vec<(Op, u64, u64)> {
    requests.iter().map(shape).collect()
}

/// Asserts that no event was lost, and that the footer counts the rows without a completion. (A few may have none: some
/// kernels run no eBPF program while they interrupt certain protected processes.)
fn assert_completions_are_counted(rows: &[Request], footer: &Metadata) {
    assert_eq!(footer.counts.lost_events, 0);
    let without = rows.iter().filter(|row| row.latency.is_none()).count();
    assert_eq!(footer.counts.unmatched, without as u64);
    assert!(without <= rows.len() / 2, "{without} of {} have no latency", rows.len());
    assert!(rows.iter().filter_map(|row| row.latency).all(|latency| latency.0 > 0));
}

/// Does reads, writes, a flush and discards; returns what a recording must contain.
fn exercise(path: &Path) -> Vec<(Op, u64, u64)> {
    let device = Direct::open(path);
    device.write(0, 4096);
    device.write(100 * 4096, 65536);
    device.read(100 * 4096, 8192);
    device.flush();
    run("blkdiscard", &["--force", "--offset", "1048576", "--length", "131072", &path.to_string_lossy()]);
    run("blkdiscard", &["--force", "--zeroout", "--offset", "2097152", "--length", "65536", &path.to_string_lossy()]);
    device.read(0, 4096);
    vec![
        (Op::Write, 0, 8),
        (Op::Write, 800, 128),
        (Op::Read, 800, 16),
        (Op::Flush, 0, 0),
        (Op::Discard, 2048, 256),
        (Op::WriteZeroes, 4096, 128),
        (Op::Read, 0, 8),
    ]
}

/// The rows of the test's own requests. Other processes read devices, too (udev); and if a device rejects write-zeroes,
/// the kernel writes zeroes as data.
fn own(rows: Vec<Request>) -> Vec<Request> {
    let thread = recording::thread_name();
    let is_own = |row: &Request| match row.comm.as_str() {
        "blkdiscard" => matches!(row.op, Op::Discard | Op::WriteZeroes),
        name => name == thread,
    };
    rows.into_iter().filter(is_own).collect()
}

#[test]
fn at_level_q_requests_are_recorded_as_submitted() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 * MIB);
    let recording = Recording::start(&["--device", &device.path().to_string_lossy()]);
    let expected = exercise(device.path());
    let (rows, footer) = recording.stop();

    let name = device.path().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(footer.devices.len(), 1);
    assert_eq!((footer.devices[0].name.as_str(), footer.devices[0].sectors), (name.as_str(), Some(131_072)));
    assert_completions_are_counted(&rows, &footer);
    assert!(footer.epoch_unix_ns.is_some() && footer.complete);
    // The zero of the recording, not of the rows, which may be shifted later.
    assert!(
        footer.warnings[0].contains("ns of CLOCK_MONOTONIC;") && !footer.warnings[0].contains("at_ns"),
        "{footer:?}"
    );
    assert!(rows.is_sorted_by_key(|row| row.at), "rows are in order of time");

    let rows = own(rows);
    assert_eq!(shapes(&rows), expected);
    for row in &rows {
        assert_eq!(row.queued.is_some(), row.op != Op::Flush, "{row:?}");
        if matches!(row.op, Op::Read | Op::Write) {
            assert_eq!(row.pid, Some(std::process::id()));
        }
    }
    assert!(rows[0].flags.has(Flags::SYNC), "direct writes are waited for: {:?}", rows[0].flags);
    let sync_at_most = Flags(rows[3].flags.0 & !Flags::SYNC.0);
    assert_eq!(sync_at_most, Flags::NONE, "as in traces of other programs, a flush has no other flags");
}

#[test]
fn at_level_d_requests_are_recorded_as_issued_to_the_driver() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 * MIB);
    let path = device.path();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let limit = |of: &str| {
        let file = format!("/sys/block/{name}/queue/{of}");
        fs::read_to_string(file).unwrap().trim().parse::<u64>().unwrap()
    };
    let split_at = limit("max_sectors_kb") * 2;
    let recording = Recording::start(&["--level", "D", "--device", &path.to_string_lossy()]);
    let direct = Direct::open(path);
    direct.read(0, 8 * MIB as usize);
    direct.write(16 * MIB, 512);
    direct.flush();
    let (rows, footer) = recording.stop();

    assert_completions_are_counted(&rows, &footer);
    let reads: Vec<_> =
        rows.iter().filter(|row| row.op == Op::Read && row.comm.as_str() == recording::thread_name()).collect();
    assert!(reads.len() as u64 >= 16_384 / split_at, "one request of 8 MiB cannot be: {} reads", reads.len());
    let mut end = 0;
    let mut by_sector = reads.clone();
    by_sector.sort_by_key(|row| row.sector);
    for read in by_sector {
        assert_eq!(read.sector.0, end, "the pieces are adjacent");
        assert!(read.sectors.0 <= split_at);
        assert!(read.queued.is_some() && read.pid == Some(std::process::id()));
        end = read.end().0;
    }
    assert_eq!(end, 16_384);
    assert!(rows.iter().any(|row| shape(row) == (Op::Write, 32_768, 1)));
    assert!(rows.iter().any(|row| shape(row) == (Op::Flush, 0, 0)), "the flush reached the device: {rows:?}");
}

#[test]
fn at_level_d_requests_are_those_of_the_kernels_tracepoint() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 * MIB);
    let tracing = recording::Tracing::of("block_rq_issue", device.path());
    let recording = Recording::start(&["--level", "D", "--device", &device.path().to_string_lossy()]);
    let before = tracing.lines().len();
    // A file system submits requests of many kinds, from several processes.
    run("mkfs.ext4", &["-q", &device.path().to_string_lossy()]);
    {
        let directory = tempfile::tempdir().expect("a directory");
        let mount = Mount::new(directory.path(), [device.path()]);
        for i in 0..20 {
            fs::write(mount.path().join(format!("file{i}")), vec![i as u8; 50_000 * (i + 1)]).unwrap();
        }
        run("sync", &[]);
    }
    let traced: Vec<(String, u64, u64)> = tracing.lines().split_off(before);
    let (rows, footer) = recording.stop();
    assert_eq!(footer.counts.lost_events, 0);
    let mut count: BTreeMap<(char, u64, u64), i64> = BTreeMap::new();
    for row in &rows {
        let letter = match row.op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Flush => 'F',
            Op::Discard => 'D',
            // The tracepoint has no letter for write-zeroes.
            Op::WriteZeroes => 'N',
        };
        *count.entry((letter, row.sector.0, row.sectors.0)).or_default() += 1;
    }
    for (rwbs, sector, sectors) in &traced {
        // A flush without data is `FF`; a write after a flush is `FW`.
        let mut letters = rwbs.chars();
        let first = letters.next().unwrap();
        let letter = if first == 'F' && *sectors > 0 { letters.next().unwrap() } else { first };
        *count.entry((letter, *sector, *sectors)).or_default() -= 1;
    }
    assert!(traced.len() > 20, "only {} requests at the tracepoint", traced.len());
    count.retain(|_, difference| *difference != 0);
    assert!(count.is_empty(), "recorded more (+) or less (-) often than traced: {count:?}");
}

#[test]
fn a_bio_based_device_is_recorded_by_bios() {
    if left_out(Need::Zram) || left_out(Need::Bpf) {
        return;
    }
    for level in ["Q", "D"] {
        let device = Zram::new(16 * MIB);
        let recording = Recording::start(&["--level", level, "--device", &device.path().to_string_lossy()]);
        let direct = Direct::open(device.path());
        direct.write(0, 4096);
        direct.write(8192, 65536);
        direct.read(8192, 4096);
        let (rows, footer) = recording.stop();
        assert_completions_are_counted(&rows, &footer);
        let rows = own(rows);
        assert_eq!(shapes(&rows), [(Op::Write, 0, 8), (Op::Write, 16, 128), (Op::Read, 16, 8)]);
        assert!(rows.iter().all(|row| row.queued.is_none()), "{rows:?}");
    }
}

#[test]
fn a_partition_counts_from_its_start_and_excludes_others() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 * MIB);
    let disk = device.path().to_string_lossy().into_owned();
    run("addpart", &[&disk, "1", "2048", "8192"]);
    run("addpart", &[&disk, "2", "16384", "8192"]);
    let (first, second) = (format!("{disk}p1"), format!("{disk}p2"));
    for level in ["Q", "D"] {
        let recording = Recording::start(&["--level", level, "--device", &second]);
        for path in [&first, &second] {
            let direct = Direct::open(Path::new(path));
            direct.write(4096, 8192);
        }
        // The same sector, counted on the whole disk.
        Direct::open(Path::new(&disk)).read(16384 * 512 + 512, 512);
        let (rows, footer) = recording.stop();
        assert_eq!(footer.devices[0].sectors, Some(8192));
        assert_eq!(shapes(&own(rows)), [(Op::Write, 8, 16), (Op::Read, 1, 1)], "level {level}");
    }
    // More events than the smallest ring holds while it is not drained.
    let recording = Recording::start(&["--buffer", "1M", "--device", &second]);
    recording.signal("STOP");
    let direct = Direct::open(Path::new(&first));
    for i in 0..15_000 {
        direct.read(i % 64 * 4096, 4096);
    }
    drop(direct);
    recording.signal("CONT");
    let (rows, footer) = recording.stop();
    assert_eq!((own(rows), footer.counts.lost_events), (vec![], 0), "requests of other partitions take no room");
    let refused = iosonar(&["record", "--device", &disk, "--device", &first, "--output", "/dev/shm/refused.load"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is a partition of"), "{refused:?}");
    run("delpart", &[&disk, "1"]);
    run("delpart", &[&disk, "2"]);
}

#[test]
fn several_devices_are_recorded_separately() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let devices = [LoopDevice::new(16 * MIB), LoopDevice::new(16 * MIB), LoopDevice::new(16 * MIB)];
    let [one, other, unseen] = devices.each_ref().map(|device| device.path().to_string_lossy().into_owned());
    let recording = Recording::start(&["--device", &one, &other]);
    for path in [&other, &unseen, &one] {
        Direct::open(Path::new(path)).write(0, 512);
    }
    let (rows, footer) = recording.stop();
    assert_eq!(footer.devices.len(), 2);
    assert_eq!(own(rows).iter().map(|row| row.device.0).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn an_output_on_a_recorded_disk_is_refused() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(64 * MIB);
    let disk = device.path().to_string_lossy().into_owned();
    run("mkfs.ext4", &["-q", &disk]);
    let directory = tempfile::tempdir().expect("a directory");
    let mount = Mount::new(directory.path(), [device.path()]);
    let output = mount.path().join("own.load.parquet");
    let refused = iosonar(&["record", "--device", &disk, "--duration", "1", "--output", &output.to_string_lossy()]);
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("is to be recorded"), "{message}");
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 1, "only lost+found");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(16 * MIB);
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let code = |name: &str, command: &str| {
        let output = directory.path().join(name).to_string_lossy().into_owned();
        let device = device.path().to_string_lossy();
        iosonar(&["record", "--device", &device, "--output", &output, "--", "sh", "-c", command]).status.code()
    };
    assert_eq!(code("a.load", "exit 0"), Some(0));
    assert_eq!(code("b.load", "exit 7"), Some(7));
    assert_eq!(code("c.load", "kill -TERM $$"), Some(128 + 15));
    assert_eq!(code("a.load", "exit 0"), Some(1), "a recording is not overwritten");
    assert!(directory.path().join("b.load").exists(), "a command that fails is recorded as well");
}

#[test]
fn the_end_of_the_command_is_seen_even_with_sigchld_ignored() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(16 * MIB);
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = Command::new("timeout")
        .args(["--kill-after", "1", "60", "env", "--ignore-signal=CHLD"])
        .args([env!("CARGO_BIN_EXE_iosonar"), "record", "--device"])
        .arg(device.path())
        .arg("--output")
        .arg(directory.path().join("a.load"))
        .args(["--", "sh", "-c", "exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn ctrl_c_ends_the_recording_and_keeps_all_of_it() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(16 * MIB);
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = directory.path().join("a.load");
    iosonar_testing::default_signals();
    let mut child = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["record", "--device"])
        .arg(device.path())
        .arg("--output")
        .arg(&output)
        .spawn()
        .unwrap();
    iosonar_testing::wait_until("it records", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        has_thread(child.id(), "writer")
    });
    let direct = Direct::open(device.path());
    for i in 0..20 {
        direct.write(i * 4096, 4096);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    run("kill", &["-INT", &child.id().to_string()]);
    assert_eq!(iosonar_testing::ended(&mut child).code(), Some(0));
    let (rows, footer) = recording::read_load(&output);
    assert!(!rows.is_empty());
    assert_eq!(footer.counts.lost_events, 0);
}

/// Whether a process has a thread of this name. The recorder creates the one that writes when it begins to record.
fn has_thread(process: u32, name: &str) -> bool {
    let mut threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.any(|thread| {
        thread.is_ok_and(|thread| fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim() == name))
    })
}

#[test]
fn sigterm_ends_the_command_and_keeps_the_recording() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(16 * MIB);
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (output, started) = (directory.path().join("a.load"), directory.path().join("started"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_iosonar"))
        .args(["record", "--device"])
        .arg(device.path())
        .arg("--output")
        .arg(&output)
        .args(["--", "sh", "-c"])
        .arg(format!("touch {}; exec sleep 1000", started.display()))
        .spawn()
        .unwrap();
    iosonar_testing::wait_until("the command runs", || started.exists());
    run("kill", &["-TERM", &child.id().to_string()]);
    assert_eq!(iosonar_testing::ended(&mut child).code(), Some(128 + 15), "as the command");
    assert!(output.exists());
}

#[test]
fn lost_events_are_counted() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(16 * MIB);
    let recording = Recording::start(&["--buffer", "1M", "--device", &device.path().to_string_lossy()]);
    let direct = Direct::open(device.path());
    // The smallest ring holds 14563 events of 72 bytes; it is not drained now, and each request makes three.
    recording.signal("STOP");
    for i in 0..6000 {
        direct.write(i % 64 * 4096, 4096);
    }
    recording.signal("CONT");
    let (rows, footer) = recording.stop();
    let events = footer.counts.lost_events + 3 * rows.len() as u64;
    assert!(footer.counts.lost_events > 0 && events >= 17_900, "{:?} of 18000", footer.counts);
    assert!(footer.warnings.iter().any(|warning| warning.contains("lost")), "{:?}", footer.warnings);
}

#[test]
fn events_in_the_ring_at_the_end_are_recorded() {
    if left_out(Need::Loop) || left_out(Need::Bpf) {
        return;
    }
    let device = LoopDevice::new(16 * MIB);
    let mut recording = Recording::start(&["--buffer", "32M", "--device", &device.path().to_string_lossy()]);
    let direct = Direct::open(device.path());
    // Three events each, more than are drained at once.
    recording.signal("STOP");
    for i in 0..70_000 {
        direct.read(i % 64 * 4096, 4096);
    }
    recording.end_command();
    recording.signal("CONT");
    let (rows, footer) = recording.stop();
    assert_eq!(footer.counts.lost_events, 0);
    assert!(rows.len() >= 70_000, "{} of 70000", rows.len());
}

#[test]
fn a_path_that_is_no_block_device_is_refused_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image");
    fs::write(&file, "").unwrap();
    let refused = iosonar(&["record", "--device", &file.to_string_lossy(), "--duration", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("this is a regular file"), "{refused:?}");
}
