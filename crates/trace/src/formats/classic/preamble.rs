//! Text that is not rows.

pub const NAME: &str = "classic";

/// Whether a line is a message of the replayer, which may be between rows.
pub fn is_replayer_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    [&b"INFO"[..], b"WARN", b"ERROR", b"VERIFY"].iter().any(|word| line.starts_with(word))
}

/// The text in front of the rows, up to [`MAX_PREAMBLE_BYTES`].
#[derive(Default)]
pub struct Preamble(String);

const MAX_PREAMBLE_BYTES: usize = 64 * 1024;

impl Preamble {
    pub fn push(&mut self, line: &[u8]) {
        if self.0.len() + line.len() < MAX_PREAMBLE_BYTES {
            self.0.push_str(&String::from_utf8_lossy(line));
            self.0.push('\n');
        }
    }

    pub fn finish(self) -> String {
        self.0.trim_end().to_owned()
    }
}
