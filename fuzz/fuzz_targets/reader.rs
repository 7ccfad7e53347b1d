//! Feeds any bytes to the reader of one format. It must not panic, hang or exhaust the memory.
//!
//! The environment names the format: `IOSONAR_FORMAT=blktrace cargo fuzz run -s none reader`; `fuzz/run.py` fuzzes all. The
//! number of bytes selects the options of the caller: the action, and one file or two.

#![no_main]

use std::sync::LazyLock;

use iosonar_fuzz::input;
use iosonar_trace::formats::{Action, Format, Opened, by_name};
use iosonar_trace::{Options, Result};
use libfuzzer_sys::fuzz_target;

static FORMAT: LazyLock<&'static Format> = LazyLock::new(|| {
    let name = std::env::var("IOSONAR_FORMAT").expect("IOSONAR_FORMAT names the format");
    by_name(&name).expect("IOSONAR_FORMAT names a format")
});

fuzz_target!(init: iosonar_fuzz::ignore_guarded_panics(), |bytes: &[u8]| {
    let actions = [None, Action::from_letter('Q'), Action::from_letter('I'), Action::from_letter('D')];
    let action = if FORMAT.has_actions { actions[bytes.len() % 4] } else { None };
    let options = Options { action, ..Options::default() };
    let opened = match FORMAT.open_parts {
        // Two halves, as two files of one trace.
        Some(open_parts) if bytes.len() % 8 >= 4 => {
            let (one, other) = bytes.split_at(bytes.len() / 2);
            let inputs: Result<Vec<_>> = [one, other].into_iter().map(input).collect();
            inputs.and_then(|inputs| open_parts(inputs, &options))
        }
        _ => input(bytes).and_then(|input| (FORMAT.open)(input, &options)),
    };
    match opened {
        Ok(Opened::Load(mut rows)) => {
            iosonar_fuzz::read_load(rows.as_mut());
            iosonar_trace::plausibility_warnings(rows.metadata());
        }
        Ok(Opened::Run(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Err(_) => {}
    }
});
