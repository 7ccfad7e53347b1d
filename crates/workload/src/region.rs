//! Sizes and regions: bytes, or shares of a device.

use iosonar_trace::Sectors;
use iosonar_trace::params::{parse_sectors, parse_share};

/// A length, or a share of a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// A length.
    Fixed(Sectors),
    /// From 0 to 1.
    Share(f64),
}

impl Extent {
    /// `4G`, `10%`.
    ///
    /// # Errors
    /// If it is neither a length nor a share.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with('%') {
            return Ok(Self::Share(parse_share(text.trim())?));
        }
        let wrong = |why| format!("{why}; or a share: 10%");
        parse_sectors(text.trim()).map(Self::Fixed).map_err(wrong)
    }

    /// A size above zero.
    ///
    /// # Errors
    /// If it is zero, or neither a length nor a share.
    pub fn parse_size(text: &str) -> Result<Self, String> {
        match Self::parse(text)? {
            Self::Fixed(Sectors(0)) => Err("the size is 0; set it to 1M or more".into()),
            Self::Share(0.0) => Err("the share is 0%; set it above zero".into()),
            size => Ok(size),
        }
    }

    /// In sectors. Shares are rounded down to 4 KiB, except all of it.
    pub fn of(self, whole: Sectors) -> u64 {
        match self {
            Self::Fixed(length) => length.0,
            Self::Share(1.0..) => whole.0,
            Self::Share(share) => (whole.0 as f64 * share) as u64 / 8 * 8,
        }
    }
}

/// A part of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    from: Extent,
    to: Extent,
}

impl Region {
    /// All of it.
    pub const ALL: Self = Self { from: Extent::Fixed(Sectors(0)), to: Extent::Share(1.0) };

    /// `20%`, `10%..30%`, `4G..8G`, `4G..`.
    ///
    /// # Errors
    /// If an end is neither a length nor a share.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Ok(Self { to: Extent::parse_size(text)?, ..Self::ALL });
        };
        let extent = |text: &str, default| if text.trim().is_empty() { Ok(default) } else { Extent::parse(text) };
        Ok(Self { from: extent(from, Self::ALL.from)?, to: extent(to, Self::ALL.to)? })
    }

    /// The first sector, and the length.
    ///
    /// # Errors
    /// If it is empty, or ends beyond the device.
    pub fn of(self, device: Sectors) -> Result<(u64, u64), String> {
        let (from, to) = (self.from.of(device), self.to.of(device));
        if to > device.0 {
            return Err(format!("it ends at sector {to}, but the device has {}; use a smaller region", device.0));
        }
        if from >= to {
            return Err(format!("it is empty: it starts at sector {from} and ends at sector {to}"));
        }
        Ok((from, to - from))
    }
}
