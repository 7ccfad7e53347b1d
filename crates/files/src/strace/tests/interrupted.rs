//! Calls that other lines interrupt, and their order.

use proptest::prelude::*;

use super::{brief, read, try_read};

#[test]
fn a_resumed_call_keeps_its_begin() {
    let (calls, about) = read(
        "8 1795464429.000000 read(5,  <unfinished ...>\n\
         7 1795464429.000100 write(6, \"\"..., 5) = 5 <0.000161>\n\
         8 1795464429.000300 <... read resumed>\"\"..., 5) = 5 <0.000290>\n",
    );
    assert_eq!(brief(&calls), ["0 290 8 read 5", "100 161 7 write 5"]);
    assert_eq!((calls[0].fd, calls[0].length), (Some(5), Some(5)));
    assert_eq!(about.warnings, [""; 0]);
}

#[test]
fn without_durations_the_end_of_a_resumed_call_is_known() {
    let (calls, _) = read(
        "8 10:00:00.5 read(5,  <unfinished ...>\n7 10:00:00.6 sync( <unfinished ...>\n\
         8 10:00:00.7 <... read resumed> \"\", 5) = 0\n7 10:00:01.0 <... sync resumed> ) = 0\n7 10:00:02 close(3) = 0\n",
    );
    assert_eq!(brief(&calls), ["0 200000 8 read 0", "100000 400000 7 sync 0", "1500000 0 7 close 0"]);
}

#[test]
fn calls_that_do_not_return() {
    let (calls, about) = read(
        "7 1795464429.000000 wait4(-1,  <unfinished ...>\n\
         8 1795464429.000001 read(3, 0x7ffe, 100) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.5>\n\
         8 1795464429.000002 --- SIGINT {si_signo=SIGINT} ---\n\
         8 1795464429.000003 restart_syscall(<... resuming interrupted read ...>) = 0\n\
         9 1795464429.000004 read(4</a>,  <unfinished ...>\n\
         9 1795464429.000005 +++ killed by SIGKILL +++\n\
         10 1795464429.000006 exit_group(0 <unfinished ...>\n\
         7 1795464429.000007 <... wait4 resumed> <unfinished ...>) = ?\n\
         10 1795464429.000008 <... exit_group resumed>) = ?\n\
         11 1795464429.000009 read(5 <detached ...>\n\
         12 1795464429.000010 fsync(6 <unfinished ...>\n",
    );
    let expected =
        ["0 - 7 wait4 ?", "1 - 8 read ?", "4 - 9 read ?", "6 - 10 exit_group ?", "9 - 11 read ?", "10 - 12 fsync ?"];
    assert_eq!(brief(&calls), expected);
    assert_eq!((calls[2].fd, calls[2].length, calls[5].fd), (Some(4), None, Some(6)));
    assert_eq!((about.counts.unfinished, about.counts.bad_lines), (6, 0), "{:?}", about.warnings);
    assert_eq!(about.counts.other_calls["restart_syscall"], 1);
}

#[test]
fn a_resumed_call_without_its_begin_is_a_bad_line() {
    let (calls, about) = read("7 1795464429.0 <... read resumed>\"\", 5) = 0 <0.1>\n7 1795464429.1 sync() = 0 <0.1>\n");
    assert_eq!((calls.len(), about.counts.bad_lines), (1, 1));
    assert!(about.warnings[0].starts_with("line 1: the start of this call was not recorded"));
}

#[test]
fn execve_of_another_thread_resumes_under_the_process_id() {
    for text in [
        "7 1.0 clone(child_stack=NULL, flags=CLONE_THREAD) = 8\n7 1.1 pause( <unfinished ...>\n\
         8 1.2 execve(\"/bin/a\", [\"a\"], NULL <unfinished ...>\n7 1.3 +++ superseded by execve in pid 8 +++\n\
         7 1.4 <... execve resumed>) = 0\n",
        "7 1.0 clone(child_stack=NULL, flags=CLONE_THREAD) = 8\n7 1.1 pause( <unfinished ...>\n\
         8 1.2 execve(\"/bin/a\", [\"a\"], NULL <pid changed to 7 ...>\n7 1.4 <... execve resumed>) = 0\n",
    ] {
        let (calls, about) = read(&text.replace(" 1.", " 1795464429."));
        assert_eq!(brief(&calls), ["0 0 7 clone 8", "200000 200000 8 execve 0"], "{:?}", about.warnings);
        assert_eq!(about.counts.bad_lines, 0);
    }
}

#[test]
fn output_of_several_processes_on_standard_error() {
    let (calls, about) = read(
        "execve(\"/bin/a\", [\"a\"], NULL) = 0\n\
         clone(child_stack=NULL, flags=SIGCHLDstrace: Process 8 attached\n\
         , child_tidptr=0x7f) = 8\n\
         [pid     7] close(3 <unfinished ...>\n\
         [pid     8] close(4)                  = 0\n\
         [pid     7] <... close resumed>)      = 0\n\
         [pid     8] exit_group(0)             = ?\n\
         [pid     8] +++ exited with 0 +++\n\
         --- SIGCHLD {si_signo=SIGCHLD} ---\n\
         close(5)                              = 0\n",
    );
    let threads: Vec<_> = calls.iter().map(|call| (call.thread, call.kind.name(), call.fd)).collect();
    let expected = [
        (0, "execve", None),
        (0, "clone", None),
        (0, "close", Some(3)),
        (8, "close", Some(4)),
        (8, "exit_group", None),
        (0, "close", Some(5)),
    ];
    assert_eq!(threads, expected, "{:?}", about.warnings);
}

#[test]
fn a_thread_belongs_to_the_process_that_cloned_it() {
    let (calls, _) = read(
        "7 1795464429.0 execve(\"/bin/a\", [\"a\"], NULL) = 0 <0.1>\n\
         7 1795464429.2 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} <unfinished ...>\n\
         8 1795464429.3 clone(child_stack=NULL, flags=SIGCHLD) = 9 <0.1>\n\
         9 1795464429.4 sync() = 0 <0.1>\n\
         7 1795464429.5 <... clone3 resumed> => {parent_tid=[8]}, 88) = 8 <0.3>\n\
         8 1795464429.6 sync() = 0 <0.1>\n3 1795464429.7 sync() = 0 <0.1>\n",
    );
    let processes: Vec<_> = calls.iter().map(|call| (call.thread, call.process)).collect();
    assert_eq!(processes, [(7, 7), (7, 7), (8, 7), (9, 9), (8, 7), (3, 0)]);
}

#[test]
fn calls_behind_one_that_spans_the_trace_need_bounded_memory() {
    let mut text = "1 1795464429.000000 wait4(-1,  <unfinished ...>\n".to_owned();
    for number in 0..5000 {
        text += &format!("2 1795464430.{number:06} pread64(3</file{number}>, \"\", 1, {number}) = 0 <0.000001>\n");
    }
    text += "1 1795464431.000000 <... wait4 resumed>NULL, 0, NULL) = 2 <2.0>\n";
    for memory in [None, Some(0), Some(100), Some(100_000)] {
        let (calls, about) = try_read(text.as_bytes(), memory).unwrap();
        assert_eq!((calls.len(), calls[0].thread, about.counts.bad_lines), (5001, 1, 0));
        for (number, call) in calls[1..].iter().enumerate() {
            assert_eq!(call.offset, Some(number as i64));
            assert_eq!(call.fd_path.as_ref().unwrap().as_bytes(), format!("/file{number}").as_bytes());
        }
    }
}

#[test]
fn parts_of_calls_without_end_do_not_fill_the_memory() {
    let held = "x".repeat(1000) + "(strace: Process 8 attached\n";
    let (calls, about) = read(&held.repeat(500));
    assert_eq!(calls.len(), 0);
    assert!(about.counts.bad_lines > 2, "{}", about.counts.bad_lines);
    let resumed = "7 <... read resumed>".to_owned() + &"x".repeat(60_000) + " <unfinished ...>\n";
    let (calls, about) = read(&("7 read(3, <unfinished ...>\n".to_owned() + &resumed.repeat(300)));
    assert_eq!((calls.len(), calls[0].result), (1, None));
    assert!(about.warnings.iter().any(|warning| warning.contains("too many were unfinished")), "{:?}", about.warnings);
}

/// A step of a trace: the thread, and whether its next call is interrupted by others.
fn steps() -> impl Strategy<Value = Vec<(u8, bool, u8)>> {
    prop::collection::vec((0_u8..6, any::<bool>(), 0_u8..20), 0..200)
}

proptest! {
    #[test]
    fn calls_come_in_the_order_of_their_begin(steps in steps(), memory in prop::option::of(0_usize..5000)) {
        let (mut text, mut open, mut expected) = (String::new(), [None; 6], Vec::new());
        for (number, (thread, is_interrupted, what)) in steps.into_iter().enumerate() {
            let slot = &mut open[usize::from(thread)];
            let at = format!("{} 1795464429.{number:06}", thread + 1);
            if let Some((begun, is_bad)) = slot.take() {
                if is_bad {
                    text += &format!("{at} <... read resumed>garbage\n");
                    expected[begun] = None;
                } else {
                    text += &format!("{at} <... read resumed>\"\", {begun}) = 0 <0.000001>\n");
                }
            } else if is_interrupted {
                text += &format!("{at} read(3,  <unfinished ...>\n");
                *slot = Some((expected.len(), what == 0));
                expected.push(Some(number));
            } else {
                text += &format!("{at} read(3, \"\", 1) = 0 <0.000001>\n");
                expected.push(Some(number));
            }
        }
        let (calls, about) = try_read(text.as_bytes(), memory).unwrap();
        let begins: Vec<_> = calls.iter().map(|call| about.epoch_unix_ns.unwrap() + call.begin.0).collect();
        let expected: Vec<_> = expected.into_iter().flatten().map(|number| 1_795_464_429_000_000_000 + number as i64 * 1000).collect();
        prop_assert_eq!(begins, expected);
    }
}
