//! What an instance of a stream sends to itself and to others, and what it tags requests with: the numbers that the runtime
//! carries.

use iosonar_trace::DeviceId;

/// A message to an instance, sent with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Go on with the transaction of this number.
    Continue,
    /// This transaction begins for the first time, and the next one after it.
    First,
    /// The next transaction of an open stream arrives.
    Arrival,
    /// The instance starts.
    Start,
    /// The streams before this one have ended.
    Release,
    /// Release the streams that follow, from this one on.
    Follower,
}

impl Message {
    const ALL: [Self; 6] = [Self::Continue, Self::First, Self::Arrival, Self::Start, Self::Release, Self::Follower];

    /// The message with its number.
    pub fn with(self, number: u32) -> u64 {
        (self as u64) << 32 | u64::from(number)
    }

    /// A message with its number.
    pub fn of(value: u64) -> (Self, u32) {
        (Self::ALL[(value >> 32) as usize], value as u32)
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

impl Tag {
    /// Tags from here on are devices: an instance has fewer transactions at a time.
    const DEVICES: u32 = u32::MAX - u16::MAX as u32;

    pub fn number(self) -> u32 {
        match self {
            Self::Of(transaction) => transaction,
            Self::BeforeFlush(device) => Self::DEVICES + u32::from(device.0),
        }
    }

    pub fn of(number: u32) -> Self {
        let device = number.checked_sub(Self::DEVICES);
        device.map_or(Self::Of(number), |device| Self::BeforeFlush(DeviceId(device as u16)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_tags_survive_being_numbers() {
        for message in Message::ALL {
            assert_eq!([0, u32::MAX].map(|n| Message::of(message.with(n))), [(message, 0), (message, u32::MAX)]);
        }
        for tag in [Tag::Of(0), Tag::Of(1 << 30), Tag::BeforeFlush(DeviceId(0)), Tag::BeforeFlush(DeviceId(u16::MAX))] {
            assert_eq!(Tag::of(tag.number()), tag);
        }
    }
}
