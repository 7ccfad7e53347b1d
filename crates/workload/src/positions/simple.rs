//! The kinds of positions that need no other kind.

use super::kind::Kind;
use super::{
    hotspots, measured, normal, random_map, random_walk, runs, self_similar, sequential, shuffled, streams, strided,
    uniform, zipf,
};

/// Every simple kind of positions.
pub static SIMPLE: &[&Kind] = &[
    &uniform::KIND,
    &shuffled::KIND,
    &random_map::KIND,
    &sequential::KIND,
    &strided::KIND,
    &zipf::KIND,
    &self_similar::KIND,
    &hotspots::KIND,
    &normal::KIND,
    &random_walk::KIND,
    &runs::KIND,
    &streams::KIND,
    &measured::KIND,
];
