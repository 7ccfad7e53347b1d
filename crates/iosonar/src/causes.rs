//! An error with its causes, for a message.

use std::io;

use iosonar_trace::system_text;

/// The error with its causes, without a cause that the message before it ends in.
pub fn without_repetition(error: &anyhow::Error) -> String {
    error.chain().map(text).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        _ if text.ends_with(&cause) => text,
        _ => format!("{text}: {cause}"),
    })
}

fn text(cause: &(dyn std::error::Error + 'static)) -> String {
    match (cause.downcast_ref::<io::Error>(), cause.downcast_ref::<rustix::io::Errno>()) {
        (Some(error), _) => system_text(error),
        (_, Some(&error)) => system_text(&error.into()),
        _ => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_repeated_cause_is_printed_once() {
        let cause = || io::Error::from(io::ErrorKind::NotFound);
        let named = Err::<(), _>(cause()).context("a.load.gz").unwrap_err();
        assert_eq!(without_repetition(&named), "a.load.gz: entity not found");
        let repeated = Err::<(), _>(cause()).context("a.load.gz: entity not found").unwrap_err();
        assert_eq!(without_repetition(&repeated), "a.load.gz: entity not found");
    }
}
