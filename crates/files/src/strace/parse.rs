//! Parses a complete call: its arguments and its result.

use iosonar_trace::Nanos;

use super::arguments::fill;
use super::errno;
use super::names::Names;
use super::split::{Problem, split};
use super::values::{number, unsigned};
use crate::model::times::MAX_TIME;
use crate::{Call, CallKind};

/// What strace writes behind the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnValue {
    /// `None` for `?`.
    pub result: Option<i64>,
    /// 0 without an error.
    pub errno: i32,
    /// The duration of `-T`.
    pub duration: Option<Nanos>,
}

/// Fills in a call from the text behind its opening bracket: `3, "", 5) = 5 <0.000012>`. A call that did not return has no
/// text behind the arguments.
///
/// Returns what strace wrote behind the arguments; `None` if there is nothing.
pub fn parse(call: &mut Call, text: &[u8], names: &mut Names) -> Result<Option<ReturnValue>, Problem> {
    let (arguments, rest) = split(text)?;
    let returned = match rest {
        Some(rest) => Some(self::returned(rest, call.kind)?),
        None => None,
    };
    match returned {
        Some(ReturnValue { result, errno, .. }) => (call.result, call.errno) = (result, errno),
        None => call.result = None,
    }
    fill(call, &arguments, names)?;
    Ok(returned)
}

/// Parses ` = -1 ENOENT (No such file or directory) <0.000012>`.
fn returned(text: &[u8], kind: CallKind) -> Result<ReturnValue, Problem> {
    let text = text.trim_ascii();
    let Some(text) = text.strip_prefix(b"=") else { return Err("no result follows the arguments") };
    let (text, duration) = split_duration(text.trim_ascii())?;
    if let Some(rest) = text.strip_prefix(b"?") {
        // `?`, or `? ERESTARTSYS (To be restarted if SA_RESTART is set)`: a signal interrupted it.
        return if matches!(rest.first(), None | Some(b' ')) {
            Ok(ReturnValue { result: None, errno: 0, duration })
        } else {
            Err("the result is not a number")
        };
    }
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'<')).unwrap_or(text.len());
    let mut result = number(&text[..end]).ok_or("the result is not a number")?;
    let behind = text[end..].trim_ascii_start();
    let mut errno = 0;
    if result == -1 && behind.first() == Some(&b'E') {
        let name = &behind[..behind.iter().position(|&byte| byte == b' ').unwrap_or(behind.len())];
        errno = errno::number(name).ok_or("the name of the error is unknown")?;
    } else if result == -1 && behind.starts_with(b"(errno ") {
        errno = unsigned(&behind[7..]).and_then(|(errno, _)| i32::try_from(errno).ok()).unwrap_or(0);
    } else if let Some(comment) = behind.strip_prefix(b"/* ")
        && kind.family() == crate::Family::Process
        && let Some((pid, length)) = unsigned(comment)
        && comment[length..].starts_with(b" in strace's PID NS")
    {
        // The other number is that within the container; lines begin with this one.
        result = i64::try_from(pid).map_err(|_| "the result is not a number")?;
    }
    Ok(ReturnValue { result: Some(result), errno, duration })
}

/// Splits ` <0.000012>` from the end.
fn split_duration(text: &[u8]) -> Result<(&[u8], Option<Nanos>), Problem> {
    let [before @ .., b'>'] = text else { return Ok((text, None)) };
    let Some(from) = memchr::memrchr(b'<', before) else { return Ok((text, None)) };
    let digits = &before[from + 1..];
    // The annotation of a result, `3</path>`, follows it immediately.
    if from == 0 || before[from - 1] != b' ' {
        return Ok((text, None));
    }
    if digits == b"unavailable" {
        return Ok((before[..from].trim_ascii_end(), None));
    }
    let nanos = iosonar_trace::text::number::decimal(digits, 9).map_err(|_| "the duration is not a number")?;
    if nanos > MAX_TIME {
        return Err("the duration is longer than 73 years");
    }
    if nanos < 0 {
        return Err("the duration is not a number");
    }
    Ok((before[..from].trim_ascii_end(), Some(Nanos(nanos))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<ReturnValue, Problem> {
        returned(text.as_bytes(), CallKind::Clone)
    }

    #[test]
    fn a_result_has_its_errno_and_duration() {
        let some =
            |result, errno, duration: Option<i64>| Ok(ReturnValue { result, errno, duration: duration.map(Nanos) });
        for (text, expected) in [
            (" = 0", some(Some(0), 0, None)),
            ("        = 3 <0.000012>", some(Some(3), 0, Some(12_000))),
            (" = 3</a b> <1.000000047>", some(Some(3), 0, Some(1_000_000_047))),
            (" = 3</a b>", some(Some(3), 0, None)),
            (" = 3</a>(deleted) <0.5>", some(Some(3), 0, Some(500_000_000))),
            (" = -1 ENOENT (No such file or directory) <0.1>", some(Some(-1), libc::ENOENT, Some(100_000_000))),
            (" = -1 ENOENT (No such file or directory) (INJECTED)", some(Some(-1), libc::ENOENT, None)),
            (" = -1 ERRNO_530 (Unknown error 530)", some(Some(-1), 530, None)),
            (" = -1 (errno 530)", some(Some(-1), 530, None)),
            (" = ?", some(None, 0, None)),
            (" = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.5>", some(None, 0, Some(500_000_000))),
            (" = ? <unavailable>", some(None, 0, None)),
            (" = 0x7fa142a94000 <0.000049>", some(Some(0x7fa1_42a9_4000), 0, Some(49_000))),
            (" = 0x8000 (flags O_RDONLY|O_LARGEFILE)", some(Some(0x8000), 0, None)),
            (" = 1 (in [5], left {tv_sec=0, tv_nsec=0}) <0.1>", some(Some(1), 0, Some(100_000_000))),
            (" = 12 /* 26372 in strace's PID NS */ <0.1>", some(Some(26372), 0, Some(100_000_000))),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        for bad in ["", " 0", " = ", " = x", " = -1 EWHAT (?)", " = 0 <x>", " = ?x"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
