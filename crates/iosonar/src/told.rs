//! What people are told while something runs. Nobody may be listening any more (a closed terminal, the end of a pipe): that
//! is no reason to end a replay, as the standard library's macros would by panicking.

use std::io::{self, Write};
use std::sync::Mutex;

/// Why an answer did not get to where it was sent, the first time.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// A line on standard error.
macro_rules! tell {
    ($($words:tt)*) => {{
        use ::std::io::Write as _;
        let _ = ::std::writeln!(::std::io::stderr(), $($words)*);
    }};
}

/// A line on standard output. What could not be written is told at the end, by [`lost`]: what runs is not ended by it.
macro_rules! answer {
    ($($words:tt)*) => {
        $crate::told::line(::std::format_args!($($words)*))
    };
}

pub(crate) use {answer, tell};

/// For [`answer!`].
pub fn line(words: std::fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout(), "{words}") {
        LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
    }
}

/// Why a line of standard output is missing, if one is and its reader wanted it: whoever closed a pipe, `head` for example, has
/// had enough.
pub fn lost() -> Option<io::Error> {
    let lost = LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    lost.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}
