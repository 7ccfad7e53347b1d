//! Lines of several programs, and the requests read from them.

use crate::events::Action;
use crate::formats::format::Options;
use crate::formats::support::check::{load, load_with, recognised_as};
use crate::model::request::{Flags, Op};
use crate::model::units::Nanos;

/// Output of perf on Linux 6.18.
const PERF: &[u8] = b"\
             fio 18719 [001]  3632.974325:   block:block_bio_queue: 7,0 R 31616 + 24 [fio]
             fio 18719 [001]  3632.974335:    block:block_rq_issue: 7,0 R 12288 () 31616 + 24 0x2,0,4 [fio]
             fio 18719 [001]  3632.974406:   block:block_bio_queue: 7,0 WS 388120 + 32 [fio]
             fio 18719 [001]  3632.974408:    block:block_rq_issue: 7,0 WS 16384 () 388120 + 32 0x2,0,4 [fio]
     ksoftirqd/1    22 [001]  3632.974454: block:block_rq_complete: 7,0 R () 31616 + 24 0x2,0,4 [0]
     ksoftirqd/1    22 [001]  3632.974460: block:block_rq_complete: 7,0 WS () 388120 + 32 0x2,0,4 [0]
             fio 18719 [001]  3633.770315:   block:block_bio_queue: 7,0 FWS 0 + 0 [fio]
 kworker/1:1H-kb    44 [001]  3633.770330:    block:block_rq_issue: 7,0 FF 0 () 0 + 0 0x0,0,0 [kworker/1:1H]
     ksoftirqd/1    22 [001]  3633.770356: block:block_rq_complete: 7,0 FF () 18446744073709551615 + 0 0x0,0,0 [0]
   opt cgu.08 18747 [001]  3633.800000:   block:block_bio_queue: 254,0 RA 26302400 + 8 [opt cgu.08]
";

#[test]
fn output_of_perf_script_is_read() {
    let (rows, about) = load("tracepoints", PERF);
    assert_eq!(recognised_as(PERF), "tracepoints");
    assert_eq!(rows.len(), 4, "{:?}", about.warnings);
    assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0, rows[0].sectors.0), (0, Op::Read, 31_616, 24));
    assert_eq!((rows[0].queued, rows[0].latency), (Some(Nanos(10_000)), Some(Nanos(119_000))));
    assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(18_719), "fio"));
    assert_eq!((rows[1].flags, rows[1].latency), (Flags::SYNC, Some(Nanos(52_000))));
    assert_eq!((rows[2].op, rows[2].latency), (Op::Flush, Some(Nanos(26_000))));
    assert_eq!((rows[3].comm.as_str(), rows[3].device.0), ("opt cgu.08", 1));
    assert_eq!(about.counts.unmatched, 1);
    assert_eq!(about.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["7,0", "254,0"]);
}

#[test]
fn the_sum_of_lost_events_saturates() {
    let lost = format!("CPU:1 [LOST {} EVENTS]\nCPU:1 [LOST 17 EVENTS]\n", u64::MAX);
    assert_eq!(load("tracepoints", &[PERF, lost.as_bytes()].concat()).1.counts.lost_events, u64::MAX);
}

#[test]
fn requests_are_taken_from_the_chosen_action() {
    let (rows, _) = load_with("tracepoints", PERF, &Options { action: Some(Action::Issue), ..Options::default() });
    assert_eq!(rows.len(), 3);
    assert_eq!((rows[2].comm.as_str(), rows[0].queued), ("kworker/1:1H-kb", Some(Nanos(10_000))));
}

#[test]
fn output_of_trace_cmd_and_ftrace_is_read() {
    let text = b"\
cpus=2
             fio-18719 [001]  3632.974325: block_bio_queue:      8,0 WS 100 + 8 [fio]
CPU:1 [LOST 17 EVENTS]
      my-app-1-200   [001] d..2.  3632.974326: block_bio_queue: 8,0 R 200 + 8 [my-app-1]
          <idle>-0     [001]  3632.974454: block_rq_complete:    8,0 WS () 100 + 8 [0]
            tool-7   [000] .....  3632.974500: sched_switch: prev_comm=x
";
    let (rows, about) = load("tracepoints", text);
    assert_eq!(rows.len(), 2, "{:?}", about.warnings);
    assert_eq!((rows[0].pid, rows[0].comm.as_str(), rows[0].latency), (Some(18_719), "fio", Some(Nanos(129_000))));
    assert_eq!((rows[1].pid, rows[1].comm.as_str()), (Some(200), "my-app-1"));
    assert_eq!((about.counts.lost_events, about.counts.bad_lines), (17, 0));
}

#[test]
fn events_overwritten_in_the_ring_are_reported() {
    let heading = b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 140080/250280   #P:8\n";
    let (_, about) = load("tracepoints", &[heading, PERF].concat());
    assert_eq!((about.counts.lost_events, about.counts.bad_lines), (0, 0));
    assert!(about.warnings.iter().any(|warning| warning.contains("ring was full")), "{:?}", about.warnings);
    let whole = b"# entries-in-buffer/entries-written: 10/10   #P:8\n";
    let (_, about) = load("tracepoints", &[whole, PERF].concat());
    assert!(!about.warnings.iter().any(|warning| warning.contains("ring was full")), "{:?}", about.warnings);
}

#[test]
fn cpu_and_flags_may_be_one_word() {
    let text = b"\
    test-2991    0.....   119.255974: block_rq_issue: 8,0 R 4096 () 8 + 8 [test]
my app.2-2992    1dNh21   119.255984: block_rq_issue: 8,0 R 4096 () 16 + 8 [test]
";
    let (rows, _) = load("tracepoints", text);
    let found: Vec<_> = rows.iter().map(|row| (row.pid, row.comm.as_str())).collect();
    assert_eq!(found, [(Some(2991), "test"), (Some(2992), "my app.2")]);
}

#[test]
fn write_zeroes_are_not_driver_commands() {
    // Output of Linux 6.18.
    let text = b"\
      blkdiscard-3211    [000] ..... 81719.542141: block_bio_queue: 7,0 NS 0 + 128 [blkdiscard]
    kworker/0:1H-54      [000] ..... 81719.542159: block_rq_issue: 7,0 NS 65536 () 0 + 128 be,0,4 [kworker/0:1H]
     ksoftirqd/1-22      [001] ..s.. 81719.542728: block_rq_complete: 7,0 NS () 0 + 128 be,0,4 [0]
";
    let (rows, _) = load("tracepoints", text);
    assert_eq!((rows.len(), rows[0].op, rows[0].sectors.0), (1, Op::WriteZeroes, 128));
    assert_eq!((rows[0].queued, rows[0].latency), (Some(Nanos(18_000)), Some(Nanos(569_000))));
}

#[test]
fn a_trace_of_completions_only_is_reported() {
    let completions =
        PERF.split_inclusive(|&byte| byte == b'\n').filter(|line| line.windows(8).any(|w| w == b"complete"));
    let (rows, about) = load("tracepoints", &completions.collect::<Vec<_>>().concat());
    assert!(rows.is_empty() && about.warnings[0].contains("completions only"), "{:?}", about.warnings);
}

#[test]
fn ftrace_may_print_the_thread_group_after_the_thread() {
    let text = b"\
# tracer: nop
             fio-18719 (  18700) [001] ...1  3632.974325: block_bio_queue:      8,0 WS 100 + 8 [fio]
        (sd-pam)-18720   (-----) [001] ...1  3632.974326: block_bio_queue:      8,0 WS 200 + 8 [fio]
          <idle>-0     (-------) [001] ...1  3632.974454: block_rq_complete:    8,0 WS () 100 + 8 [0]
";
    let (rows, about) = load("tracepoints", text);
    assert_eq!(about.counts.bad_lines, 0, "{:?}", about.warnings);
    assert_eq!((rows[0].pid, rows[0].comm.as_str()), (Some(18_719), "fio"));
    assert_eq!((rows[1].pid, rows[1].comm.as_str()), (Some(18_720), "(sd-pam)"));
}

#[test]
fn appends_are_writes_and_other_zone_operations_are_counted() {
    let text = b"\
  smartctl   1 [000] 1.000000: block:block_rq_issue: 8,0 N 512 (85 08 0e 00 d0 00) 0 + 0 [smartctl]
  smartctl   1 [000] 1.000010: block:block_rq_complete: 8,0 N (85 08 0e 00 d0 00) 18446744073709551615 + 1 [0]
  smartctl   1 [000] 1.000020: block:block_rq_issue: 8,0 R 36 (12 00 00 00 24 00) 0 + 0 [smartctl]
  smartctl   1 [000] 1.000030: block:block_rq_complete: 8,0 R (12 00 00 00 24 00) 18446744073709551615 + 0 [0]
  a   1 [000] 1.100000: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [a]
  a   1 [000] 1.200000: block:block_rq_issue: 8,0 ZAS 4096 () 800 + 8 [a]
  a   1 [000] 1.300000: block:block_rq_issue: 8,0 ZR 0 () 524288 + 0 [a]
  a   1 [000] 1.400000: block:block_rq_issue: 8,0 ZRA 0 () 18446744073709551615 + 0 [a]
  a   1 [000] 1.500000: block:block_rq_issue: 8,0 R 0 () 96 + 0 [a]
";
    let (rows, about) = load("tracepoints", text);
    let found: Vec<_> = rows.iter().map(|row| (row.op, row.sector.0, row.sectors.0)).collect();
    assert_eq!(found, [(Op::Read, 8, 8), (Op::Write, 800, 8), (Op::Read, 96, 0)]);
    assert_eq!((recognised_as(text), about.counts.bad_lines), ("tracepoints", 0));
    for said in ["that are driver commands: 4", "zone operations without data (reset, open, …): 2"] {
        assert!(about.warnings.iter().any(|warning| warning.ends_with(said)), "{:?}", about.warnings);
    }
}

/// bpftrace prints the buffer of one CPU after that of another.
#[test]
fn completions_before_their_issue_in_the_file_are_matched() {
    let text = b"\
fio-1 [000] 10.000000000: block_bio_queue: 7,0 R 100 + 8 [fio]
fio-1 [000] 10.000001000: block_rq_issue: 7,0 R 4096 () 100 + 8 [fio]
ksoftirqd/1-22 [001] 11.000100000: block_rq_complete: 7,0 R () 100 + 8 [0]
fio-1 [000] 10.000050000: block_rq_complete: 7,0 R () 100 + 8 [0]
fio-1 [000] 11.000000000: block_bio_queue: 7,0 R 100 + 8 [fio]
fio-1 [000] 11.000001000: block_rq_issue: 7,0 R 4096 () 100 + 8 [fio]
";
    for action in [Action::Queue, Action::Issue] {
        let (rows, about) = load_with("tracepoints", text, &Options { action: Some(action), ..Options::default() });
        let latencies: Vec<_> = rows.iter().map(|row| row.latency).collect();
        assert_eq!(latencies, [Some(Nanos(49_000)), Some(Nanos(99_000))]);
        assert_eq!((about.counts.unmatched, about.counts.time_jumps, about.counts.bad_lines), (0, 0, 0));
    }
}

#[test]
fn losses_reported_by_bpftrace_and_perf_are_counted() {
    let lost = b"\
Lost 385 events
            perf  4711 [001]  3632.974500: PERF_RECORD_LOST lost 15
            perf  4711 [001]  3632.974501: PERF_RECORD_LOST_SAMPLES lost 2
We lost 7 sockets
            echo  4711 [001]  3632.974502: sched:sched_waking: comm=lost 9
";
    let (rows, about) = load("tracepoints", &[PERF, lost].concat());
    assert_eq!((rows.len(), about.counts.lost_events, about.counts.bad_lines), (4, 400, 0));
    // These losses are only in the total.
    let at_the_end = b"perf  4711 [001]  3632.974501: PERF_RECORD_LOST_SAMPLES lost 17\n";
    let (_, about) = load("tracepoints", &[PERF, lost, at_the_end].concat());
    assert_eq!(about.counts.lost_events, 385 + 2 + 17);
}

#[test]
fn after_lost_events_a_completion_is_of_the_youngest_request() {
    let text = b"\
fio-1 [000] 10.000000000: block_rq_issue: 7,0 R 4096 () 100 + 8 [fio]
Lost 1 events
fio-1 [000] 10.000300000: block_rq_issue: 7,0 R 4096 () 100 + 8 [fio]
fio-1 [000] 10.000301000: block_rq_complete: 7,0 R () 100 + 8 [0]
";
    let (rows, about) = load("tracepoints", text);
    assert_eq!(rows.iter().map(|row| row.latency).collect::<Vec<_>>(), [None, Some(Nanos(1000))]);
    assert_eq!((about.counts.lost_events, about.counts.unmatched), (1, 1));
}

#[test]
fn devices_without_events_of_the_chosen_action_are_reported() {
    let text = b"\
dd 1 [000] 1.000000: block:block_bio_queue: 253,0 W 0 + 8 [dd]
dd 1 [000] 1.000001: block:block_bio_complete: 253,0 W 0 + 8 [0]
dd 1 [000] 1.000002: block:block_bio_queue: 253,0 W 8 + 8 [dd]
dd 1 [000] 1.000003: block:block_bio_complete: 253,0 W 8 + 8 [0]
dd 1 [000] 2.000000: block:block_bio_queue: 8,0 W 0 + 8 [dd]
dd 1 [000] 2.000001: block:block_rq_issue: 8,0 W 4096 () 0 + 8 [dd]
dd 1 [000] 2.000009: block:block_rq_complete: 8,0 W () 0 + 8 [0]
";
    let issued =
        |text: &[u8]| load_with("tracepoints", text, &Options { action: Some(Action::Issue), ..Options::default() });
    let (rows, about) = issued(text);
    let said = about.warnings.last().unwrap();
    assert!(rows.len() == 1 && said.starts_with("some devices") && said.contains("253,0 (2 Q); --action Q"), "{said}");
    let zram = text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.windows(5).any(|word| word == b"253,0"));
    let (rows, about) = issued(&zram.collect::<Vec<_>>().concat());
    let said = about.warnings.last().unwrap();
    assert!(rows.is_empty() && said.starts_with("there are no events D") && said.contains("--action Q"), "{said}");
    // Without a chosen action, requests are taken from Q, which both devices have.
    let (rows, about) = load("tracepoints", text);
    assert!(rows.len() == 3 && !about.warnings.iter().any(|said| said.contains("no events")), "{:?}", about.warnings);
    assert_eq!(rows[0].latency, Some(Nanos(1000)));
}

/// Each request is one row, also if it was requeued. On devices without requests (only bios), a row has a latency too.
#[test]
fn the_events_recorded_by_the_documented_programs_suffice() {
    let programs = include_str!("../../../../../docs/block.bt");
    let guide = include_str!("../../../../../docs/recording.md");
    for event in ["bio_queue", "rq_issue", "rq_requeue", "rq_complete", "bio_complete"] {
        assert_eq!(programs.matches(&format!("\ntracepoint:block:block_{event}\n")).count(), 1, "{event}");
        // Once for perf and once for trace-cmd.
        assert_eq!(guide.matches(&format!("block:block_{event}")).count(), 2, "{event}");
    }
    let text = b"\
fio-9 [000] 10.000000000: block_bio_queue: 7,0 W 100 + 8 [fio]
fio-9 [000] 10.000001000: block_rq_issue: 7,0 W 4096 () 100 + 8 [fio]
fio-9 [000] 10.000002000: block_rq_requeue: 7,0 W () 100 + 8 [0]
fio-9 [000] 10.000003000: block_rq_issue: 7,0 W 4096 () 100 + 8 [fio]
fio-9 [000] 10.000004000: block_rq_complete: 7,0 W () 100 + 8 [0]
fio-9 [001] 11.000000000: block_bio_queue: 253,0 FWS 0 + 0 [fio]
fio-9 [001] 11.000005000: block_bio_complete: 253,0 FWS 0 + 0 [0]
fio-9 [001] 12.000000000: block_bio_queue: 253,0 W 8 + 8 [fio]
fio-9 [001] 12.000006000: block_bio_complete: 253,0 W 8 + 8 [0]
";
    let latencies = |action| {
        let (rows, about) = load_with("tracepoints", text, &Options { action: Some(action), ..Options::default() });
        assert_eq!((about.counts.bad_lines, about.counts.unmatched), (0, 0));
        rows.iter().map(|row| row.latency.unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(latencies(Action::Queue), [1000, 5000, 6000]);
    assert_eq!(latencies(Action::Issue), [1000]);
}

#[test]
fn a_request_refused_with_eagain_is_left_out() {
    let text = b"\
io 9 [000] 1.000000: block:block_bio_queue: 8,0 R 100 + 8 [io]
io 9 [000] 1.000001: block:block_bio_complete: 8,0 R 100 + 8 [-11]
io 9 [000] 1.000050: block:block_bio_queue: 8,0 R 100 + 8 [io]
io 9 [000] 1.000060: block:block_rq_issue: 8,0 R 4096 () 100 + 8 [io]
io 9 [000] 1.000090: block:block_rq_complete: 8,0 R () 100 + 8 [-11]
";
    for action in [Action::Queue, Action::Issue] {
        let (rows, _) = load_with("tracepoints", text, &Options { action: Some(action), ..Options::default() });
        let found: Vec<_> = rows.iter().map(|row| (row.queued, row.latency)).collect();
        assert_eq!(found, [(Some(Nanos(10_000)), Some(Nanos(30_000)))]);
    }
}

#[test]
fn the_rest_of_a_split_request_is_not_another_request() {
    let text = b"\
a 9 [000] 1.000000: block:block_bio_queue: 8,0 R 0 + 2048 [a]
a 9 [000] 1.000001: block:block_split: 8,0 R 0 / 1024 [a]
a 9 [000] 1.000002: block:block_bio_queue: 8,0 R 1024 + 1024 [a]
a 9 [000] 1.000003: block:block_rq_complete: 8,0 R () 0 + 2048 [0]
";
    let (rows, about) = load("tracepoints", text);
    assert_eq!((rows.len(), rows[0].sectors.0, about.counts.bad_lines), (1, 2048, 0));
}
