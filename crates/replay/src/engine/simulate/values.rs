//! Values in the description of a simulated device: times, sizes, counts and factors.

use std::fmt;
use std::marker::PhantomData;

use iosonar_trace::Nanos;
use iosonar_trace::params::{parse_bytes, parse_duration, parse_positive_duration};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A value that is written as text with a unit, or as a number where no unit is needed.
trait FromValue: Sized {
    /// The values that are accepted, for errors.
    const EXPECTED: &'static str;

    fn from_text(text: &str) -> Result<Self, String>;

    fn from_number(number: f64) -> Result<Self, String> {
        Err(format!("{number} has no unit: expected {}", Self::EXPECTED))
    }
}

struct ValueVisitor<T>(PhantomData<T>);

impl<T: FromValue> Visitor<'_> for ValueVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::from_number(number as f64).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::from_number(number).map_err(E::custom)
    }
}

macro_rules! value {
    ($name:ident) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ValueVisitor(PhantomData))
            }
        }
    };
}

/// A time of zero or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub Nanos);

impl FromValue for Time {
    const EXPECTED: &'static str = "a time such as \"200us\"";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_duration(text).map(Self)
    }
}
value!(Time);

/// A time above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period(pub Nanos);

impl FromValue for Period {
    const EXPECTED: &'static str = "a time above zero, such as \"10s\"";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_positive_duration(text).map(Self)
    }
}
value!(Period);

/// A number of bytes above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size(pub u64);

impl FromValue for Size {
    const EXPECTED: &'static str = "bytes above zero, such as \"64K\" or \"1G\"";

    fn from_text(text: &str) -> Result<Self, String> {
        parse_bytes(text).and_then(|bytes| Self::from_number(bytes as f64))
    }

    fn from_number(number: f64) -> Result<Self, String> {
        let is_whole = number >= 1.0 && number <= (1_u64 << 62) as f64 && number.fract() == 0.0;
        if is_whole { Ok(Self(number as u64)) } else { Err(format!("{number} bytes: expected {}", Self::EXPECTED)) }
    }
}
value!(Size);

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(pub f64);

impl Speed {
    /// The time to move so many bytes.
    pub fn time(self, bytes: u64) -> Nanos {
        Nanos((bytes as f64 * (1e9 / self.0)).round() as i64)
    }
}

impl FromValue for Speed {
    const EXPECTED: &'static str = "bytes per second above zero, such as \"200M/s\"";

    fn from_text(text: &str) -> Result<Self, String> {
        let bytes = parse_bytes(text.strip_suffix("/s").unwrap_or(text))?;
        if bytes > 0 { Ok(Self(bytes as f64)) } else { Err(format!("`{text}`: expected {}", Self::EXPECTED)) }
    }
}
value!(Speed);

/// A number above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

impl FromValue for Factor {
    const EXPECTED: &'static str = "a number above zero";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("\"{text}\" is text: expected {}", Self::EXPECTED))
    }

    fn from_number(number: f64) -> Result<Self, String> {
        let is_valid = number > 0.0 && number <= 1e12;
        if is_valid { Ok(Self(number)) } else { Err(format!("{number}: expected {} up to 1e12", Self::EXPECTED)) }
    }
}
value!(Factor);

/// A whole number from 1 to 65536.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count(pub u32);

impl FromValue for Count {
    const EXPECTED: &'static str = "a whole number from 1 to 65536";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("\"{text}\" is text: expected {}", Self::EXPECTED))
    }

    fn from_number(number: f64) -> Result<Self, String> {
        let is_valid = (1.0..=65_536.0).contains(&number) && number.fract() == 0.0;
        if is_valid { Ok(Self(number as u32)) } else { Err(format!("{number}: expected {}", Self::EXPECTED)) }
    }
}
value!(Count);
