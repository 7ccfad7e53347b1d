//! Whole percentages.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A percentage from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Percent(u8);

impl Percent {
    /// 0 %.
    pub const NONE: Self = Self(0);
    /// 100 %.
    pub const ALL: Self = Self(100);

    /// `None` above 100.
    pub fn new(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self(percent))
    }

    /// The number, from 0 to 100.
    pub fn get(self) -> u8 {
        self.0
    }

    /// The difference to 100 %.
    pub const fn rest(self) -> Self {
        Self(100 - self.0)
    }

    /// This share of `whole`, rounded.
    pub fn of(self, whole: usize) -> usize {
        (whole * usize::from(self.0) + 50) / 100
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl FromStr for Percent {
    type Err = String;

    /// Parses `50` or `50%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        number.parse().ok().and_then(Self::new).ok_or_else(|| "give a whole percentage from 0 to 100".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded() {
        let share = |percent, whole| Percent::new(percent).unwrap().of(whole);
        assert_eq!(
            [share(0, 512), share(1, 512), share(50, 512), share(99, 4096), share(100, 512)],
            [0, 5, 256, 4055, 512]
        );
    }

    #[test]
    fn invalid_percentages_are_refused() {
        assert_eq!("50".parse(), Ok(Percent(50)));
        assert_eq!("100%".parse(), Ok(Percent::ALL));
        for wrong in ["101", "-1", "", "%", "0.5", "300", "50%%"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
    }
}
