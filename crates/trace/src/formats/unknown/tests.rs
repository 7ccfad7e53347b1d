//! Beginnings of files that people have at hand.

use std::io::Write;

use crate::formats::of_content;
use crate::formats::support::check::input;

fn problem(content: &[u8]) -> String {
    of_content(&input(content)).err().expect("not a trace").to_string()
}

#[test]
fn a_file_of_another_kind_is_named_with_what_to_do() {
    let mut wrong = Vec::new();
    let histogram = ["1000, 0, 4096", &", 0".repeat(1856), "\n"].concat();
    for (content, said) in [
        (
            &b"0.000000    supervise      1950    xvda1     W 13092560   4096      0.74\n"[..],
            "rows of biosnoop without their heading; read them with --from biosnoop",
        ),
        (
            b"0.000000    a b    1950    xvda1     W 13092560   4096      0.10   0.74\n",
            "rows of biosnoop -Q without their heading; put it in front",
        ),
        (
            b"  8,0    3        1     0.000000000   697  D   R 36 (12 00 00 00 24 00) [smartctl]\n",
            "only driver commands",
        ),
        (b"smartctl 9 [000] 1.0: block:block_rq_issue: 8,0 R 36 (12 00) 0 + 0 [smartctl]\n", "only driver commands"),
        (
            b"swapper 0 [000] 1.000001: sched:sched_switch: prev_comm=a prev_pid=1\n",
            "without events of the block layer",
        ),
        (b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:2\n", "without events of the block layer"),
        (b"% time     seconds  usecs/call     calls    errors syscall\n------ -----------\n", "`strace -c`"),
        (b"openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3\nclose(3) = 0\n", "strace text"),
        (b"500, 1234, 0, 0, 0\n1000, 1300, 0, 0, 0\n", "log_avg_msec=0 and log_offset=1"),
        (b"500, 1234, 0, 0\n1000, 1300, 1, 0\n", "log_avg_msec=0 and log_offset=1"),
        (histogram.as_bytes(), "a histogram log of fio"),
        (b"a: (g=0): rw=read, bs=(R) 4096B-4096B\nfio-3.33\n", "the summary of fio"),
        (b"{\n  \"fio version\" : \"fio-3.33\",\n", "the summary of fio"),
        (b"[global]\nioengine=libaio\n", "a job file of fio"),
        (b"sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1\n", "of vdbench"),
        (
            b"Linux 6.1.0 (host)  01/01/2026  _x86_64_  (2 CPU)\n\navg-cpu:  %user   %nice %system %iowait\n",
            "of iostat",
        ),
        (b"Device             tps    kB_read/s\nsda  1.0 2.0\n", "of iostat"),
        (b"=== sda ===\n  CPU  0:                 1234 events,       58 KiB data\n", "in the files NAME.blktrace.*"),
        (b"==================== All Devices ====================\n\n", "btt"),
        (b"8,0 R 4096 12345 fio extra\n8,0 R 4096 12345 fio extra\n", "other columns (-f, -F)"),
        (b"     usecs               : count     distribution\n         0 -> 1 : 1 |*|\n", "a histogram"),
        (b"TIME(ms)     COMM             PID    LAT(ms)\n611          bash 4179 10\n", "biosnoop.bt"),
        (
            b"Tracing block I/O. Ctrl-C to end.\nCOMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n\
              fio 7 R 8,0 8 4096 0.50\n",
            "iosnoop without times",
        ),
        (
            b"TIME(ms)     DISK             COMM             PID    LAT(ms)\n611          nvme0n1 bash 4179 10\n",
            "biosnoop.bt",
        ),
        (b"PERFILE2\x68\0\0\0", "perf script -i FILE"),
        (b"\x17\x08\x44tracing6\0", "trace-cmd report -i FILE"),
        (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "network packets"),
        (b"\x7fELF\x02\x01", "a program"),
        (b"<!DOCTYPE html>\n<html>\n", "a web page"),
        (b"hello world\nthis is text\n", "it begins with `hello world`"),
        (b"\x01\x02\xff\xfe\x05 binary", "it begins with the bytes 01 02 ff fe"),
    ] {
        let problem = problem(content);
        let begins = String::from_utf8_lossy(&content[..content.len().min(60)]).into_owned();
        if !problem.contains(said) {
            wrong.push((begins, problem));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_file_that_is_compressed_twice_is_named_as_such() {
    let gzip = |content: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    };
    let problem = problem(&gzip(&gzip(b"0 ; 1 ; 8 ; R\n")));
    assert!(problem.contains("gzip twice"), "{problem}");
}

#[test]
fn the_list_of_formats_has_those_of_calls() {
    let problem = problem(b"nothing\n");
    assert!(["parquet", "vscsi", "strace", "--from"].iter().all(|name| problem.contains(name)), "{problem}");
}
