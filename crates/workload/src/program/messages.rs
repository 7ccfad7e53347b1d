//! What an instance of a stream sends to itself and to others, and what it tags requests with: the numbers that the runtime
//! carries.

use iosonar_trace::DeviceId;

/// A message to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Go on with this transaction.
    Continue(u32),
    /// This transaction begins for the first time, and the next one after it.
    First(u32),
    /// The next request or transaction of an open stream arrives.
    Arrival,
    /// The instance starts.
    Start,
    /// The streams before this one have ended.
    Release,
    /// Release the streams that follow, from this one on.
    Follower(u32),
}

impl From<Message> for u64 {
    fn from(message: Message) -> Self {
        let (kind, number) = match message {
            Message::Continue(number) => (0, number),
            Message::First(number) => (1, number),
            Message::Arrival => (2, 0),
            Message::Start => (3, 0),
            Message::Release => (4, 0),
            Message::Follower(index) => (5, index),
        };
        kind << 32 | Self::from(number)
    }
}

impl From<u64> for Message {
    fn from(value: u64) -> Self {
        let number = value as u32;
        match value >> 32 {
            0 => Self::Continue(number),
            1 => Self::First(number),
            2 => Self::Arrival,
            3 => Self::Start,
            4 => Self::Release,
            _ => Self::Follower(number),
        }
    }
}

/// What a completed request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// A transaction.
    Of(u32),
    /// A write of a stream that waits for nothing else; then this device is flushed.
    BeforeFlush(DeviceId),
}

/// Tags from here on are devices: an instance has fewer transactions at a time.
const DEVICES: u32 = u32::MAX - u16::MAX as u32;

impl From<Tag> for u32 {
    fn from(tag: Tag) -> Self {
        match tag {
            Tag::Of(transaction) => transaction,
            Tag::BeforeFlush(device) => DEVICES + Self::from(device.0),
        }
    }
}

impl From<u32> for Tag {
    fn from(tag: u32) -> Self {
        if tag < DEVICES { Self::Of(tag) } else { Self::BeforeFlush(DeviceId((tag - DEVICES) as u16)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_tags_survive_being_numbers() {
        use Message::{Arrival, Continue, First, Follower, Release, Start};
        for message in [Continue(0), Continue(u32::MAX), First(7), Arrival, Start, Release, Follower(40)] {
            assert_eq!(Message::from(u64::from(message)), message);
        }
        for tag in [Tag::Of(0), Tag::Of(1 << 30), Tag::BeforeFlush(DeviceId(0)), Tag::BeforeFlush(DeviceId(u16::MAX))] {
            assert_eq!(Tag::from(u32::from(tag)), tag);
        }
    }
}
