//! Feeds any bytes to the reader of one format. It must not panic, hang or exhaust the memory.
//!
//! The environment names the format: `IOSONAR_FORMAT=blktrace cargo fuzz run -s none reader`; `fuzz/run.py` fuzzes all. The
//! number of bytes selects the options of the caller: the action, and one file or two.

#![no_main]

use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

use iosonar_trace::formats::{Action, Format, Opened, by_name};
use iosonar_trace::input::Input;
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
            let mut last = None;
            while let Ok(Some(row)) = rows.next() {
                // Invariants of every reader: times never decrease, and offsets of requests fit into 63 bits.
                assert!(last.is_none_or(|last| last <= row.at), "a time decreases");
                assert!(row.end().0 <= iosonar_trace::MAX_END_SECTOR, "a request ends beyond the limit");
                assert!(usize::from(row.device.0) < rows.metadata().devices.len(), "a device is not in the metadata");
                last = Some(row.at);
            }
            iosonar_trace::plausibility_warnings(rows.metadata());
        }
        Ok(Opened::Run(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Err(_) => {}
    }
});

fn input(bytes: &[u8]) -> Result<Input> {
    Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64))
}
