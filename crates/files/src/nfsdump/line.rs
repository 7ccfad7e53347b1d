//! A line: a request or a reply.

/// A request or a reply. Numbers are hexadecimal, times decimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Microseconds since 1970.
    pub at_us: i64,
    pub source: &'a [u8],
    pub destination: &'a [u8],
    pub is_request: bool,
    /// Of NFS: 2 or 3.
    pub version: u8,
    /// What joins a reply to its request.
    pub id: u64,
    pub operation: &'a str,
    /// Of a reply: 0 for success.
    pub status: u64,
    pairs: Vec<(&'a [u8], &'a [u8])>,
}

/// Why a line is none.
pub type Problem = &'static str;

/// Parses a line.
pub fn parse(line: &[u8]) -> Result<Message<'_>, Problem> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut next = |missing: Problem| words.next().ok_or(missing);
    let at_us = microseconds(next("it is empty")?).ok_or("it does not begin with SECONDS.MICROSECONDS")?;
    let source = next("the source is missing")?;
    let destination = next("the destination is missing")?;
    let is_address =
        |text: &[u8]| text.contains(&b'.') && text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'.');
    if !is_address(source) || !is_address(destination) {
        return Err("source and destination are not of the form ADDRESS.PORT");
    }
    if !matches!(next("the protocol is missing")?, b"U" | b"T") {
        return Err("the protocol is neither U nor T");
    }
    let (is_request, version) = match next("the direction is missing")? {
        b"C2" => (true, 2),
        b"C3" => (true, 3),
        b"R2" => (false, 2),
        b"R3" => (false, 3),
        _ => return Err("the direction is not C2, C3, R2 or R3"),
    };
    let id = hex(next("the ID of the request is missing")?).ok_or("the ID of the request is not a number")?;
    hex(next("the number of the operation is missing")?).ok_or("the number of the operation is not a number")?;
    let operation = next("the operation is missing")?;
    let operation = std::str::from_utf8(operation).map_err(|_| "the operation is not a word")?;
    let status = match is_request {
        true => 0,
        false => match next("the status is missing")? {
            b"OK" => 0,
            status => hex(status).ok_or("the status is neither OK nor a number")?,
        },
    };
    let rest: Vec<&[u8]> = words.collect();
    if rest.contains(&b"SHORT".as_slice()) {
        return Err("the packet is cut short");
    }
    let mut pairs = Vec::new();
    let mut rest = &rest[..];
    while let [name, after @ ..] = rest {
        // What follows concerns the packet.
        if matches!(*name, b"con" | b"pl" | b"=") || name.starts_with(b"status=") {
            break;
        }
        // A field may lack its value: then the next field follows.
        rest = match after {
            [value, after @ ..] if is_value(value) => {
                pairs.push((*name, *value));
                after
            }
            after => after,
        };
    }
    Ok(Message { at_us, source, destination, is_request, version, id, operation, status, pairs })
}

impl<'a> Message<'a> {
    /// The value of the first field that has one of the names.
    fn field(&self, names: &[&str]) -> Option<&'a [u8]> {
        self.pairs.iter().find(|(name, _)| names.iter().any(|known| known.as_bytes() == *name)).map(|(_, value)| *value)
    }

    /// A number.
    pub fn number(&self, names: &[&str]) -> Option<u64> {
        self.field(names).and_then(hex)
    }

    /// A letter or word.
    pub fn word(&self, name: &str) -> Option<&'a [u8]> {
        self.field(&[name])
    }

    /// Whether it has the field.
    pub fn has(&self, name: &str) -> bool {
        self.field(&[name]).is_some()
    }

    /// A handle.
    pub fn handle(&self, name: &str) -> Option<&'a [u8]> {
        self.field(&[name]).filter(|handle| !handle.is_empty() && handle.iter().all(u8::is_ascii_hexdigit))
    }

    /// A name or another text: in quotes, with `\NN` for quotes, backslashes and blanks.
    pub fn text(&self, names: &[&str]) -> Option<Vec<u8>> {
        let quoted = self.field(names)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let mut text = Vec::with_capacity(quoted.len());
        let mut rest = quoted.iter();
        while let Some(&byte) = rest.next() {
            let escaped = (byte == b'\\').then(|| rest.as_slice().get(..2).and_then(hex)).flatten();
            match escaped {
                Some(escaped) => {
                    text.push(escaped as u8);
                    rest.nth(1);
                }
                None => text.push(byte),
            }
        }
        (!text.is_empty() && !text.contains(&0)).then_some(text)
    }
}

/// Numbers, handles, times, texts in quotes, letters.
fn is_value(word: &[u8]) -> bool {
    matches!(word, [b'"', ..] | [_] | b"SERVER")
        || word.iter().all(u8::is_ascii_hexdigit)
        || word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

fn hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 || !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

fn microseconds(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, rest) = text.split_once('.')?;
    if seconds.is_empty() || seconds.len() > 11 || rest.len() != 6 {
        return None;
    }
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(seconds) && is_number(rest)).then_some(())?;
    Some(seconds.parse::<i64>().ok()? * 1_000_000 + rest.parse::<i64>().ok()?)
}
