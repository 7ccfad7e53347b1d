//! What people are told while something runs. Nobody may be listening any more (a closed terminal, the end of a pipe): that
//! is no reason to end a replay, as the standard library's macros would by panicking.

/// A line on standard error.
macro_rules! tell {
    ($($words:tt)*) => {{
        use ::std::io::Write as _;
        let _ = ::std::writeln!(::std::io::stderr(), $($words)*);
    }};
}

/// A line on standard output.
macro_rules! answer {
    ($($words:tt)*) => {{
        use ::std::io::Write as _;
        let _ = ::std::writeln!(::std::io::stdout(), $($words)*);
    }};
}

pub(crate) use {answer, tell};
