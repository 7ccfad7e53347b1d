//! Common code of the fuzz targets.

use std::panic::{set_hook, take_hook};

/// Suppresses panics of libraries that readers catch and turn into errors. Only other panics are findings.
pub fn ignore_guarded_panics() {
    let default = take_hook();
    set_hook(Box::new(move |panic| {
        if !iosonar_trace::is_guarded() {
            default(panic);
        }
    }));
}
