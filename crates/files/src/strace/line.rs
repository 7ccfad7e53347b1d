//! Splits a line into its parts: who, when, and the text of the call.

use memchr::memmem;

use super::split::Problem;

/// The largest number of a process that Linux gives. A larger number at the start of a line is a time.
const MAX_PID: u64 = 1 << 22;

/// Times below this are times since the line before, as of `strace -r`: no trace is from 1970.
const MIN_UNIX_SECONDS: u64 = 100_000_000;

/// A line. Times are as they are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The thread, if the line names it.
    pub thread: Option<u32>,
    /// Whether the thread was named as `[pid 123]`.
    pub has_pid_prefix: bool,
    /// The time, if the line has one.
    pub time: Option<Time>,
    pub body: Body<'a>,
}

/// A time in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Nanoseconds since 1970.
    Unix(i64),
    /// Nanoseconds since midnight.
    OfDay(i64),
    /// Since the line before.
    Relative,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// `name(text`, which has the arguments and the result.
    Call {
        name: &'a [u8],
        /// What follows the opening bracket.
        text: &'a [u8],
    },
    /// `name(text <unfinished ...>`.
    Unfinished {
        name: &'a [u8],
        /// The arguments so far.
        text: &'a [u8],
    },
    /// `name(text <detached ...>`, or the thread vanished: the call's result is not recorded.
    Cut {
        name: &'a [u8],
        /// The arguments so far.
        text: &'a [u8],
    },
    /// `<... name resumed>text`.
    Resumed {
        name: &'a [u8],
        /// The further arguments and the result.
        text: &'a [u8],
        /// Whether the line ends with `<unfinished ...>` again.
        is_unfinished: bool,
    },
    /// `+++ exited with 0 +++`, `+++ killed by SIGKILL +++`.
    Exited,
    /// `+++ superseded by execve in pid 123 +++`: the thread 123 goes on under the number of this one.
    Superseded(u32),
    /// `name(text <pid changed to 123 ...>`: the same, from the other side.
    PidChanged {
        name: &'a [u8],
        /// The arguments so far.
        text: &'a [u8],
        to: u32,
    },
    /// `strace: Process 123 attached`, and what was printed of a call in the same line.
    Attached {
        thread: u32,
        /// How many bytes of the line precede the message.
        before: usize,
    },
    /// `[ Process PID=123 runs in 32 bit mode. ]`
    Personality,
    /// A signal, a stop, another message, or an empty line.
    Nothing,
}

/// Splits a line.
pub fn parse(line: &[u8]) -> Result<Line<'_>, Problem> {
    let mut rest = line.trim_ascii();
    if rest.is_empty() {
        return Ok(Line { thread: None, has_pid_prefix: false, time: None, body: Body::Nothing });
    }
    if let Some((thread, before)) = attached(line) {
        return Ok(Line { thread: None, has_pid_prefix: false, time: None, body: Body::Attached { thread, before } });
    }
    let (thread, has_pid_prefix);
    (thread, has_pid_prefix, rest) = pid(rest)?;
    let time;
    (time, rest) = self::time(rest)?;
    rest = skip_groups(rest);
    Ok(Line { thread, has_pid_prefix, time, body: body(rest)? })
}

/// The thread at the start of a line: `123 `, `123<comm> `, `[pid   123] `.
fn pid(text: &[u8]) -> Result<(Option<u32>, bool, &[u8]), Problem> {
    if let Some(rest) = text.strip_prefix(b"[pid ") {
        let rest = rest.trim_ascii_start();
        let (number, length) = digits(rest).ok_or("the number of the process cannot be read")?;
        let rest = behind_comm(&rest[length..]).strip_prefix(b"]").ok_or("the number of the process cannot be read")?;
        let pid =
            u32::try_from(number).ok().filter(|_| number <= MAX_PID).ok_or("the number of the process is too large")?;
        return Ok((Some(pid), true, rest.trim_ascii_start()));
    }
    let Some((number, length)) = digits(text) else { return Ok((None, false, text)) };
    let behind = behind_comm(&text[length..]);
    if number <= MAX_PID && behind.first() == Some(&b' ') {
        return Ok((Some(number as u32), false, behind.trim_ascii_start()));
    }
    Ok((None, false, text))
}

/// What follows the name of a program: `<comm>`, in which strace escapes angle brackets.
fn behind_comm(text: &[u8]) -> &[u8] {
    if text.first() != Some(&b'<') {
        return text;
    }
    memchr::memchr(b'>', text).map_or(text, |end| &text[end + 1..])
}

/// The digits at the start of a text as a number, and how many they are. At most 18.
fn digits(text: &[u8]) -> Option<(u64, usize)> {
    let (mut value, mut length) = (0_u64, 0);
    while let Some(digit @ b'0'..=b'9') = text.get(length) {
        value = value * 10 + u64::from(digit - b'0');
        length += 1;
        if length > 18 {
            return None;
        }
    }
    (length > 0).then_some((value, length))
}

/// The time at the start of a text.
fn time(text: &[u8]) -> Result<(Option<Time>, &[u8]), Problem> {
    let Some((first, length)) = digits(text) else { return Ok((None, text)) };
    let rest = &text[length..];
    let (time, rest) = match rest.first() {
        Some(b':') => {
            let too_short = "the time cannot be read";
            let (minutes, length) = digits(&rest[1..]).ok_or(too_short)?;
            let rest = rest[1 + length..].strip_prefix(b":").ok_or(too_short)?;
            let (seconds, length) = digits(rest).ok_or(too_short)?;
            if first > 23 || minutes > 59 || seconds > 60 {
                return Err("the time is none of a day");
            }
            let (nanos, rest) = fraction(&rest[length..])?;
            (Time::OfDay(((first * 60 + minutes) * 60 + seconds) as i64 * 1_000_000_000 + nanos), rest)
        }
        Some(b'.' | b' ') | None => {
            let (nanos, behind) = fraction(rest)?;
            if first < MIN_UNIX_SECONDS {
                (Time::Relative, behind)
            } else {
                let seconds = i64::try_from(first).ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
                let time = seconds.and_then(|seconds| seconds.checked_add(nanos)).ok_or("the time is too large")?;
                (Time::Unix(time), behind)
            }
        }
        Some(_) => return Err("neither a process, nor a time, nor a call begins the line"),
    };
    if !matches!(rest.first(), Some(b' ') | None) {
        return Err("the time cannot be read");
    }
    Ok((Some(time), rest.trim_ascii_start()))
}

/// The nanoseconds of `.123456`, and the rest.
fn fraction(text: &[u8]) -> Result<(i64, &[u8]), Problem> {
    let Some(text) = text.strip_prefix(b".") else { return Ok((0, text)) };
    let (value, length) = digits(text).filter(|(_, length)| *length <= 9).ok_or("the time cannot be read")?;
    Ok((value as i64 * 10_i64.pow(9 - length as u32), &text[length..]))
}

/// Skips `(+     0.000123) ` of `-r` beside `-ttt`, `[00007f12345678] ` of `-i` and `[   0] ` of `-n`.
fn skip_groups(mut text: &[u8]) -> &[u8] {
    loop {
        let close = match text {
            [b'(', b'+', ..] => b')',
            [b'[', b' ' | b'0'..=b'9' | b'a'..=b'f' | b'?', ..] if !text.starts_with(b"[ Process ") => b']',
            _ => return text,
        };
        let Some(end) = memchr::memchr(close, text) else { return text };
        text = text[end + 1..].trim_ascii_start();
    }
}

fn body(text: &[u8]) -> Result<Body<'_>, Problem> {
    match text.first() {
        None => Ok(Body::Nothing),
        Some(b'<') => resumed(text).ok_or("neither a call nor a message of strace"),
        Some(b'+') if text.starts_with(b"+++ ") => Ok(ended(text)),
        Some(b'-') if text.starts_with(b"--- ") => Ok(Body::Nothing),
        Some(b'[') if text.starts_with(b"[ Process ") => Ok(Body::Personality),
        Some(_) if text.starts_with(b"strace: ") => {
            Ok(if text.starts_with(b"strace: [ Process ") { Body::Personality } else { Body::Nothing })
        }
        Some(_) if text.starts_with(b"Process ") => Ok(Body::Nothing),
        Some(_) => call(text),
    }
}

fn call(text: &[u8]) -> Result<Body<'_>, Problem> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.iter().position(|byte| !is_name(byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    let Some(rest) = rest.strip_prefix(b"(").filter(|_| length > 0) else {
        return Err("neither a call nor a message of strace");
    };
    // Most lines end with the duration, whose begin is no letter.
    if let [.., b'>'] = rest
        && let Some(from) = memchr::memrchr(b'<', rest)
        && !rest[from + 1].is_ascii_digit()
    {
        let (before, last) = rest.split_at(from);
        if is_unfinished(last) {
            return Ok(Body::Unfinished { name, text: before });
        }
        if last == b"<detached ...>" || last.starts_with(b"<ptrace(") {
            return Ok(Body::Cut { name, text: before });
        }
        let changed = last.strip_prefix(b"<pid changed to ").and_then(digits);
        if let Some((to, _)) = changed.filter(|(to, _)| *to <= MAX_PID) {
            return Ok(Body::PidChanged { name, text: before, to: to as u32 });
        }
    }
    Ok(Body::Call { name, text: rest })
}

/// `<unfinished ...>`, or with the number of the call, `<unfinished #1 ...>`.
fn is_unfinished(last: &[u8]) -> bool {
    last.strip_prefix(b"<unfinished").is_some_and(|rest| behind_mark(rest) == b" ...>")
}

/// What follows ` #1`, the number of an unfinished call.
fn behind_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b" #").and_then(|rest| digits(rest).map(|(_, length)| &rest[length..])).unwrap_or(text)
}

/// `<... read resumed>"", 5) = 5`; before 5.0: `<... read resumed> "", 5) = 5`.
fn resumed(text: &[u8]) -> Option<Body<'_>> {
    let rest = text.strip_prefix(b"<... ")?;
    let length = memchr::memchr(b' ', rest)?;
    let (name, rest) = rest.split_at(length);
    let rest = behind_mark(rest).strip_prefix(b" resumed")?;
    let text = behind_mark(rest).strip_prefix(b">")?;
    let last = memchr::memrchr(b'<', text).filter(|&from| is_unfinished(&text[from..]));
    Some(Body::Resumed { name, text: &text[..last.unwrap_or(text.len())], is_unfinished: last.is_some() })
}

fn ended(text: &[u8]) -> Body<'_> {
    let superseded = text.strip_prefix(b"+++ superseded by execve in pid ").and_then(digits);
    match superseded {
        Some((pid, _)) if pid <= MAX_PID => Body::Superseded(pid as u32),
        _ => Body::Exited,
    }
}

/// `Process 123 attached` at the end of a line, with or without `strace: `. strace writes it into the middle of a call.
fn attached(line: &[u8]) -> Option<(u32, usize)> {
    let line = line.trim_ascii_end();
    let before = line.strip_suffix(b" attached")?;
    let from = memmem::rfind(before, b"Process ")?;
    let (pid, length) = digits(&before[from + 8..])?;
    if length != before.len() - from - 8 || pid > MAX_PID {
        return None;
    }
    let from = if before[..from].ends_with(b"strace: ") { from - 8 } else { from };
    Some((pid as u32, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (Option<u32>, Option<Time>, Body<'_>) {
        let Line { thread, time, body, .. } =
            parse(line.as_bytes()).unwrap_or_else(|problem| panic!("{line}: {problem}"));
        (thread, time, body)
    }

    const SYNC: Body<'_> = Body::Call { name: b"sync", text: b") = 0" };

    #[test]
    fn a_prefix_has_the_thread_and_the_time() {
        let at = |nanos| Some(Time::Unix(nanos));
        for (line, thread, time) in [
            ("sync() = 0", None, None),
            ("25227 sync() = 0", Some(25227), None),
            ("25227 1795464429.376993 sync() = 0", Some(25227), at(1_795_464_429_376_993_000)),
            ("1795464429.376993 sync() = 0", None, at(1_795_464_429_376_993_000)),
            ("1795464429.376993123 sync() = 0", None, at(1_795_464_429_376_993_123)),
            ("1795464429 sync() = 0", None, at(1_795_464_429_000_000_000)),
            ("12    1795464429 sync() = 0", Some(12), at(1_795_464_429_000_000_000)),
            ("00:00:07 sync() = 0", None, Some(Time::OfDay(7_000_000_000))),
            ("12 01:02:07.5 sync() = 0", Some(12), Some(Time::OfDay(3_727_500_000_000))),
            ("[pid   12] 1795464429.0 sync() = 0", Some(12), at(1_795_464_429_000_000_000)),
            ("[pid 12<a b>] sync() = 0", Some(12), None),
            ("12<a b> sync() = 0", Some(12), None),
            ("12 1795464429.0 (+     0.001188) sync() = 0", Some(12), at(1_795_464_429_000_000_000)),
            ("12 [00007f3c1b0a2f47] sync() = 0", Some(12), None),
            ("12 [ 162] sync() = 0", Some(12), None),
            ("     0.000690 sync() = 0", None, Some(Time::Relative)),
            ("12      0.000690 sync() = 0", Some(12), Some(Time::Relative)),
        ] {
            assert_eq!(of(line), (thread, time, SYNC), "{line}");
        }
    }

    #[test]
    fn a_body_is_a_call_a_part_of_one_or_an_event() {
        for (line, body) in [
            ("read(3,  <unfinished ...>", Body::Unfinished { name: b"read", text: b"3,  " }),
            ("read(3 <detached ...>", Body::Cut { name: b"read", text: b"3 " }),
            ("close(3 <ptrace(SYSCALL):No such process>", Body::Cut { name: b"close", text: b"3 " }),
            ("execve(\"/a\" <pid changed to 12 ...>", Body::PidChanged { name: b"execve", text: b"\"/a\" ", to: 12 }),
            (
                "<... read resumed>\"\", 5) = 5 <0.1>",
                Body::Resumed { name: b"read", text: b"\"\", 5) = 5 <0.1>", is_unfinished: false },
            ),
            (
                "<... wait4 resumed> <unfinished ...>) = ?",
                Body::Resumed { name: b"wait4", text: b" <unfinished ...>) = ?", is_unfinished: false },
            ),
            ("read(3,  <unfinished #12 ...>", Body::Unfinished { name: b"read", text: b"3,  " }),
            ("<... read resumed #12>5) = 5", Body::Resumed { name: b"read", text: b"5) = 5", is_unfinished: false }),
            (
                "<... read #12 resumed>5 <unfinished #13 ...>",
                Body::Resumed { name: b"read", text: b"5 ", is_unfinished: true },
            ),
            ("+++ exited with 0 +++", Body::Exited),
            ("+++ killed by SIGKILL (core dumped) +++", Body::Exited),
            ("+++ superseded by execve in pid 12 +++", Body::Superseded(12)),
            ("--- SIGCHLD {si_signo=SIGCHLD} ---", Body::Nothing),
            ("strace: Process 26372 attached", Body::Attached { thread: 26372, before: 0 }),
            ("clone(SIGCHLDstrace: Process 26372 attached", Body::Attached { thread: 26372, before: 13 }),
            ("clone(Process 26372 attached", Body::Attached { thread: 26372, before: 6 }),
            ("strace: Process 26372 attached with 3 threads", Body::Nothing),
            ("Process 26372 detached", Body::Nothing),
            ("[ Process PID=7 runs in 32 bit mode. ]", Body::Personality),
            ("strace: [ Process PID=7 runs in 32 bit mode. ]", Body::Personality),
            ("", Body::Nothing),
        ] {
            assert_eq!(of(line).2, body, "{line}");
        }
    }

    #[test]
    fn other_lines_are_problems() {
        for line in
            ["hello world", "12 hello", "[pid 12 sync() = 0", "12a sync() = 0", "25:00:00 sync() = 0", "<... read", "="]
        {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
