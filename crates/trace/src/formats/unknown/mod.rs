//! What a file is that no format recognises: its kind by its first bytes or lines, with what to do about it.

mod magic;
mod text;

use super::format::Format;
use crate::io::input::Input;
use crate::rows::excerpt;

/// The message for a file that no format recognises.
pub fn message(input: &Input, formats: &[&Format]) -> String {
    let head = input.head();
    if head.is_empty() {
        let damage = input.damage().map(str::to_owned);
        return damage.unwrap_or_else(|| "it is empty: there is no load or run in it".to_owned());
    }
    if let Some(kind) = magic::kind(head).or_else(|| text::kind(head)) {
        return format!("not a trace of requests: {kind}");
    }
    let names: Vec<&str> = formats.iter().filter(|format| !format.is_for_viewers).map(|format| format.name).collect();
    let begins = match std::str::from_utf8(&head[..head.len().min(64)]) {
        // The last character may be cut.
        Err(error) if error.error_len().is_some() || error.valid_up_to() == 0 => {
            let bytes: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!("the bytes {}", bytes.join(" "))
        }
        _ if head.contains(&0) => "text with zero bytes".to_owned(),
        _ => format!("`{}`", excerpt(head.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or(head))),
    };
    format!(
        "not recognised as a trace of any known format ({}; for calls to files strace): it begins with {begins}; if it has \
         one of these formats, name it: `iosonar convert FILE x.load.parquet --from FORMAT`; else describe its --columns",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests;
