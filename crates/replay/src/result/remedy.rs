//! Something to try where a run was not faithful.

use serde::{Deserialize, Serialize};

/// Something to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// What, as it would be typed or said.
    #[serde(rename = "try")]
    pub what: String,
    /// What it takes.
    pub costs: String,
}
