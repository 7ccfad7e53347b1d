//! Messages of protocol buffers, as far as a trace needs them: numbers, texts and messages in messages.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding>.

/// Wire types.
const VARINT: u64 = 0;
const LENGTH: u64 = 2;

/// A message, or a part of one.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// The encoded message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a number.
    pub fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | VARINT);
        self.varint(value)
    }

    /// Adds a text.
    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.part(field, text.as_bytes())
    }

    /// Adds a message.
    pub fn message(&mut self, field: u64, message: &Self) -> &mut Self {
        self.part(field, &message.0)
    }

    /// Adds the fields of a part.
    pub fn append(&mut self, part: &Self) -> &mut Self {
        self.0.extend_from_slice(&part.0);
        self
    }

    fn part(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn numbers_and_texts_are_encoded_as_the_guide_shows() {
        // The guide's own examples: field 1 is 150, field 2 is "testing", field 3 is the first message.
        let mut first = Message::default();
        first.number(1, 150);
        assert_eq!(first.bytes(), b"\x08\x96\x01");
        let mut second = Message::default();
        second.text(2, "testing").message(3, &first);
        assert_eq!(second.bytes(), b"\x12\x07testing\x1a\x03\x08\x96\x01");
    }
}
