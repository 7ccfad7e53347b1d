//! The run whose numbers are served.

use std::sync::{Arc, OnceLock};

use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;

/// Names and values.
pub type Labels = Vec<(&'static str, String)>;

/// A run that is shown.
pub struct Run {
    pub progress: Arc<Progress>,
    /// Its expected duration, once it is known.
    pub expected: Arc<OnceLock<Nanos>>,
    /// What it is.
    pub about: Labels,
}
