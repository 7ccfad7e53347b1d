//! Common code of the fuzz targets.

use std::io::Cursor;
use std::panic::{set_hook, take_hook};
use std::path::Path;

use iosonar_trace::input::Input;
use iosonar_trace::{Reader, Request, Result};

/// Suppresses panics of libraries that readers catch and turn into errors. Only other panics are findings.
pub fn ignore_guarded_panics() {
    let default = take_hook();
    set_hook(Box::new(move |panic| {
        if !iosonar_trace::is_guarded() {
            default(panic);
        }
    }));
}

/// Bytes as a file.
pub fn input(bytes: &[u8]) -> Result<Input> {
    Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64))
}

/// Reads a load to its end, or to its first error, and checks what every reader must keep.
pub fn read_load(rows: &mut dyn Reader<Request>) {
    let mut last = None;
    while let Ok(Some(row)) = rows.next() {
        assert!(last.is_none_or(|last| last <= row.at), "a time decreases");
        assert!(row.end().0 <= iosonar_trace::MAX_END_SECTOR, "a request ends beyond the limit");
        assert!(usize::from(row.device.0) < rows.metadata().devices.len(), "a device is not in the metadata");
        last = Some(row.at);
    }
}
