//! Transforms of traces of calls: one file for each, and one line in [`TRANSFORMS`]. Each handles one call at a time.

mod anonymise;
mod conditions;
mod drop;
mod gap;
mod map;
mod select;
mod timeline;
mod transform;

use iosonar_trace::transforms::{self, Transformed};

pub use transform::Transform;

use crate::Call;

/// A parsed and checked sequence of transforms of calls.
pub type Pipeline = transforms::Pipeline<Call>;

/// All transforms, in the order of their documentation.
pub static TRANSFORMS: &[&Transform] =
    &[&select::TRANSFORM, &drop::TRANSFORM, &gap::TRANSFORM, &anonymise::TRANSFORM, &map::TRANSFORM];

impl Transformed for Call {
    const TRANSFORM: &'static str = "transform of calls";

    fn transforms() -> &'static [&'static Transform] {
        TRANSFORMS
    }
}

#[cfg(test)]
mod tests;
