//! Changes to a load on its way: one file for each, and one line in [`TRANSFORMS`].
//!
//! A [`Pipeline`] is parsed once, from text like `select from=0 to=300 | slip every=32768 increase=256`, and applied to
//! readers of requests: what comes out is a reader again. Most transforms look at one request after the other; those
//! that need the load as a whole keep it in a temporary file ([`Needs::Whole`]), never in memory.

mod adjacent;
mod anonymise;
mod append;
mod clip;
mod cmd;
mod counted;
mod dense;
mod derived;
mod documentation;
mod factor;
mod held;
mod merge;
mod pipeline;
mod ramped;
mod remap;
mod repeat;
mod resize;
mod reverse;
mod sample;
mod scale;
mod select;
mod slip;
mod spread;
mod subst;
mod transform;
mod until;

pub use documentation::documentation;
pub use pipeline::{Pipeline, parse};
pub use transform::{Needs, Rows, Transform};
pub use until::{IsOver, until};

use transform::{Built, Length, Stage, kept};

/// Every transform, in the order in which they are documented.
pub static TRANSFORMS: &[&Transform] = &[
    // which requests
    &select::TRANSFORM,
    &clip::TRANSFORM,
    &sample::TRANSFORM,
    // when
    &scale::TRANSFORM,
    &ramped::TRANSFORM,
    &derived::TRANSFORM,
    &repeat::TRANSFORM,
    // where
    &slip::TRANSFORM,
    &spread::TRANSFORM,
    &dense::TRANSFORM,
    &reverse::TRANSFORM,
    &remap::TRANSFORM,
    // what
    &subst::TRANSFORM,
    &resize::TRANSFORM,
    &anonymise::TRANSFORM,
    &cmd::TRANSFORM,
    // several loads
    &merge::TRANSFORM,
    &append::TRANSFORM,
    &adjacent::TRANSFORM,
];

#[cfg(test)]
mod tests;
