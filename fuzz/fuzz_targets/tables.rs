//! Feeds any bytes to the readers of the tables of calls and of their results. They must not panic, hang or exhaust the
//! memory, and what they return must be as the code after them expects it.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use iosonar_files::{Call, CallResult, table};
use iosonar_trace::Reader;
use iosonar_trace::input::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: iosonar_fuzz::ignore_guarded_panics(), |bytes: &[u8]| {
    let input = || Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), None).ok();
    if let Some(calls) = input().and_then(|input| table::open(input).ok()) {
        read_calls(calls);
    }
    if let Some(results) = input().and_then(|input| table::open_run_in(input).ok()) {
        read_results(results);
    }
});

fn read_calls(mut calls: Box<dyn Reader<Call>>) {
    let mut files = table::Locator::new(calls.metadata());
    let mut last = None;
    while let Ok(Some(call)) = calls.next() {
        assert!(last.is_none_or(|last| last <= call.begin), "a time decreases");
        last = Some(call.begin);
        files.next(&call);
    }
}

fn read_results(mut results: Box<dyn Reader<CallResult>>) {
    while let Ok(Some(result)) = results.next() {
        assert!(result.completed.is_none() || result.issued.is_some(), "a call that was not issued has completed");
    }
}
