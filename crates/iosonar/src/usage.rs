//! Errors in the command line, which have a separate exit code.

use std::fmt;

/// The command line is wrong; the text says how to correct it.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Like `bail!`, for an error in the command line.
macro_rules! misuse {
    ($($words:tt)*) => {
        return ::std::result::Result::Err($crate::usage::Usage(::std::format!($($words)*)).into())
    };
}

pub(crate) use misuse;

/// Whether the command line was wrong.
pub fn is_usage(error: &anyhow::Error) -> bool {
    use iosonar_files::replay::error::Error as OfFiles;
    use iosonar_replay::Error::{Trace, Usage as OfReplay};
    use iosonar_trace::Error::Usage as OfTrace;
    error.chain().any(|cause| {
        cause.is::<Usage>()
            || matches!(cause.downcast_ref(), Some(OfTrace(_)))
            || matches!(cause.downcast_ref(), Some(OfReplay(_) | Trace(OfTrace(_))))
            || matches!(cause.downcast_ref(), Some(OfFiles::Usage(_)))
    })
}
