//! Traces of known access patterns, generated: one file for each group, and one line in [`PATTERNS`].

mod calls;
mod generated;
mod high_energy_physics;
mod pattern;
mod postmark;
mod reading;

pub use calls::Calls;
pub use generated::Generated;
pub use pattern::{Pattern, Program, Settings};

/// Every pattern.
pub static PATTERNS: &[&Pattern] = &[
    &high_energy_physics::ATLAS_OLD,
    &high_energy_physics::ATLAS_NEW,
    &high_energy_physics::CMS_ANALYSIS,
    &high_energy_physics::CMS_RECONSTRUCTION,
    &postmark::POSTMARK,
];

/// The pattern of this name.
pub fn named(name: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().copied().find(|pattern| pattern.name == name)
}
