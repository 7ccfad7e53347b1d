//! Feeds any bytes to the reader of text that `IOSONAR_FORMAT` names (strace, gvisor, nfsdump), and its calls to what
//! follows descriptors and names. It must not panic, hang or exhaust the memory.
//!
//! The number of bytes selects how many calls are held back in memory before they go to a temporary file.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use iosonar_files::state::{Options, State};
use iosonar_files::{Call, nfsdump, strace};
use iosonar_trace::Reader;
use iosonar_trace::input::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: iosonar_fuzz::ignore_guarded_panics(), |bytes: &[u8]| {
    let length = bytes.len() as u64;
    let Ok(input) = Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), Some(length)) else { return };
    strace::recognise(input.head());
    let memory_bytes = [None, Some(0), Some(1000)][bytes.len() % 3];
    let mut calls: Box<dyn Reader<Call>> = if std::env::var("IOSONAR_FORMAT").is_ok_and(|format| format == "nfsdump") {
        nfsdump::recognise(input.head());
        Box::new(nfsdump::Reader::open(input))
    } else {
        let Ok(calls) = strace::Reader::open(input, &strace::Options { memory_bytes }) else { return };
        Box::new(calls)
    };
    let mut state = State::new(calls.metadata(), Options { with_needs: true, ..Options::default() });
    let (mut last, mut count) = (None, 0);
    while let Ok(Some(call)) = calls.next() {
        // Invariants of every reader of calls.
        assert!(last.is_none_or(|last| last <= call.begin), "a time decreases");
        assert!(call.duration.is_none_or(|duration| duration.0 >= 0), "a duration is negative");
        assert!(call.result.is_some() || call.duration.is_none(), "a call that did not return has a duration");
        state.next(&call);
        (last, count) = (Some(call.begin), count + 1);
    }
    assert_eq!(calls.metadata().counts.calls, count);
});
