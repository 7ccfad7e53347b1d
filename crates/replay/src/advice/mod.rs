//! The manual's advice on how not to be fooled by a device, checked instead of only written down. Each module takes what
//! is known at its time and returns sentences for the user.

mod after;
pub mod before;

pub use after::{after, mean_in_flight, seen};

/// A share for people: `62 %`, and more digits where they matter.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = if percent > 0.0 && percent < 1.0 || percent > 99.0 && percent < 100.0 { 2 } else { 0 };
    format!("{percent:.digits$} %")
}
