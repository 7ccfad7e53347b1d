//! What streams of all kinds are made of.

use iosonar_trace::params::{Section, parse_count, parse_duration};
use iosonar_trace::{DeviceId, Nanos, Sectors};

use crate::Rng;

/// A device with its place.
pub(super) struct Placed {
    pub name: String,
    pub id: DeviceId,
    /// Its first sector on the target.
    pub first: u64,
    pub size: Sectors,
}

/// The generator of a part of a filament. The first filament of the first stream draws the numbers of `iosonar generate`.
pub(super) fn generator(seed: u64, stream: u16, filament: u32, part: u128) -> Rng {
    // The finaliser of splitmix64, which maps 0 to 0 and changes half of the bits for each changed bit.
    let mixed = |x: u64| {
        let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let id = u64::from(stream) << 32 | u64::from(filament);
    let (high, low) = (mixed(id.wrapping_mul(0x9e37_79b9_7f4a_7c15)), mixed(id.wrapping_mul(0xd1b5_4a32_d192_ed03)));
    Rng::new(u128::from(seed) ^ (u128::from(high) << 64 | u128::from(low)), part)
}

pub(super) fn above_zero(parse: fn(&str) -> Result<u64, String>) -> impl Fn(&str) -> Result<u64, String> {
    move |text| match parse(text)? {
        0 => Err("it is 0; set it to 1 or more, or leave it out".into()),
        number => Ok(number),
    }
}

/// When the first instance of a stream starts, how long until the last one does, and when the stream ends.
pub(super) fn times(section: &Section<'_, '_>) -> Result<(Nanos, Nanos, Nanos), String> {
    let time = |key, default| Ok::<_, String>(section.parsed(key, parse_duration)?.unwrap_or(default));
    let (start, ramp_up, end) = (time("start", Nanos::ZERO)?, time("ramp_up", Nanos::ZERO)?, time("end", Nanos::MAX)?);
    if end <= start {
        return Err(section.error("end", "the stream ends before it starts; set a later end"));
    }
    Ok((start, ramp_up, end))
}

/// The number of instances at this scale.
pub(super) fn instances(section: &Section<'_, '_>, scale: u64) -> Result<u64, String> {
    let is_per_scale = section.flag("per_scale")?.unwrap_or(true);
    let count = section.parsed("instances", above_zero(parse_count))?.unwrap_or(1);
    Ok(count.saturating_mul(if is_per_scale { scale } else { 1 }))
}
