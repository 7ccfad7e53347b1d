//! Command lines that are wrong, as opposed to work that failed: the exit code tells the two apart.

use std::fmt;

/// The command line is wrong; the text says how to mend it.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Ends a function as `bail!` does, because of the command line.
macro_rules! misuse {
    ($($words:tt)*) => {
        return ::std::result::Result::Err($crate::usage::Usage(::std::format!($($words)*)).into())
    };
}

pub(crate) use misuse;

/// Whether it is the command line that was wrong.
pub fn is_usage(error: &anyhow::Error) -> bool {
    use iosonar_replay::Error::{Trace, Usage as OfReplay};
    use iosonar_trace::Error::Usage as OfTrace;
    error.chain().any(|cause| {
        cause.is::<Usage>()
            || matches!(cause.downcast_ref(), Some(OfTrace(_)))
            || matches!(cause.downcast_ref(), Some(OfReplay(_) | Trace(OfTrace(_))))
    })
}
