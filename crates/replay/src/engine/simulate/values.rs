//! Values in the description of a simulated device: times, sizes, counts and factors.

use std::ops::RangeInclusive;

use iosonar_trace::Nanos;
use iosonar_trace::params::{
    parse_bytes, parse_count, parse_duration, parse_positive, parse_positive_duration, parse_speed,
};

/// A time of zero or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub Nanos);

impl Time {
    /// Parses it; a number needs a unit, because devices take microseconds, and a number alone would be seconds.
    pub fn parse(text: &str) -> Result<Self, String> {
        with_unit(text)?;
        parse_duration(text).map(Self)
    }
}

/// A time above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period(pub Nanos);

impl Period {
    /// Parses it; a number needs a unit.
    pub fn parse(text: &str) -> Result<Self, String> {
        with_unit(text)?;
        parse_positive_duration(text).map(Self)
    }
}

fn with_unit(text: &str) -> Result<(), String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number != 0.0 => Err(format!("`{text}` has no unit; say for example \"200us\" or \"10s\"")),
        _ => Ok(()),
    }
}

/// A number of bytes above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size(pub u64);

impl Size {
    const MOST: u64 = 1 << 62;

    /// Parses it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match parse_bytes(text)? {
            bytes @ 1..=Self::MOST => Ok(Self(bytes)),
            _ => Err(format!("`{text}` is not above zero and below 4 EiB; say for example \"64K\" or \"1G\"")),
        }
    }
}

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(pub f64);

impl Speed {
    /// Parses it.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse_speed(text).map(|bytes| Self(bytes as f64))
    }

    /// The time to move so many bytes.
    pub fn time(self, bytes: u64) -> Nanos {
        Nanos((bytes as f64 * (1e9 / self.0)).round() as i64)
    }
}

/// A number above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

impl Factor {
    /// Parses it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = parse_positive(text)?;
        if number <= 1e12 { Ok(Self(number)) } else { Err(format!("`{text}` is above 1e12; choose a smaller number")) }
    }
}

/// A number of requests of 1 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst(pub f64);

impl Burst {
    /// Parses it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match Factor::parse(text)?.0 {
            number if number >= 1.0 => Ok(Self(number)),
            _ => Err(format!("`{text}` is below 1: no request would pass; set it to 1 or more")),
        }
    }
}

/// A whole number from 1 to 65536.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count(pub u32);

impl Count {
    /// Parses it.
    pub fn parse(text: &str) -> Result<Self, String> {
        whole(text, 1..=65_536).map(Self)
    }
}

/// A whole number in this range, which ends below 2^32.
pub fn whole(text: &str, range: RangeInclusive<u64>) -> Result<u32, String> {
    let number = parse_count(text)?;
    if range.contains(&number) {
        Ok(number as u32)
    } else {
        Err(format!("{number} is out of range; give a whole number from {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_needs_a_unit_unless_it_is_zero() {
        assert_eq!((Time::parse("0"), Time::parse("20us")), (Ok(Time(Nanos::ZERO)), Ok(Time(Nanos(20_000)))));
        for text in ["5", "1e-3", "-3ms", "soon"] {
            assert!(Time::parse(text).is_err(), "{text}");
        }
        assert!(Period::parse("0").is_err());
    }

    #[test]
    fn sizes_speeds_and_numbers_have_bounds() {
        assert_eq!(Size::parse("64K"), Ok(Size(65_536)));
        assert!(Size::parse("0").is_err());
        assert_eq!(Speed::parse("2M/s"), Ok(Speed(2_097_152.0)));
        assert!(Speed::parse("0/s").is_err() && Factor::parse("0").is_err() && Burst::parse("0.5").is_err());
        assert_eq!((Count::parse("65536"), whole("0", 0..=3)), (Ok(Count(65_536)), Ok(0)));
        assert!(Count::parse("0").is_err() && Count::parse("65537").is_err() && Count::parse("1.5").is_err());
    }
}
