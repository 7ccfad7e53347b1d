//! The settings of the machine, of which there is one set for all tests.

use std::env;
use std::fs::File;

/// Tests that change settings of the machine, or compare them before and after, run one after the other: while the file
/// that this returns is open, no other test does.
pub fn settings_of_the_machine() -> File {
    let file = File::create(env::temp_dir().join("iosonar-tests-settings.lock")).expect("a file for temporary use");
    file.lock().expect("a lock");
    file
}
