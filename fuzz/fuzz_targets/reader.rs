//! Any bytes into the reader of one format: it must neither panic nor hang nor fill the memory.
//!
//! The environment names the format: `IOSONAR_FORMAT=blktrace cargo fuzz run -s none reader`; `fuzz/run` goes through all.

#![no_main]

use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

use iosonar_trace::formats::{Format, Opened, by_name};
use iosonar_trace::input::Input;
use iosonar_trace::Options;
use libfuzzer_sys::fuzz_target;

static FORMAT: LazyLock<&'static Format> = LazyLock::new(|| {
    let name = std::env::var("IOSONAR_FORMAT").expect("IOSONAR_FORMAT names the format");
    by_name(&name).expect("IOSONAR_FORMAT names a format")
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64))
    else {
        return;
    };
    match (FORMAT.open)(input, &Options::default()) {
        Ok(Opened::Load(mut rows)) => {
            let mut last = None;
            while let Ok(Some(row)) = rows.next() {
                // What every reader promises: time never goes back, and a request ends where an offset can point.
                assert!(last.is_none_or(|last| last <= row.at), "time goes back");
                assert!(row.end().0 <= iosonar_trace::MAX_END_SECTOR, "too far");
                assert!(usize::from(row.device.0) < rows.metadata().devices.len(), "a device that is not in the table");
                last = Some(row.at);
            }
            iosonar_trace::questions(rows.metadata());
        }
        Ok(Opened::Run(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Err(_) => {}
    }
});
