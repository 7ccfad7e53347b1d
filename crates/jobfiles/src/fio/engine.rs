//! The I/O engine of a job: ignored, but for what it says about the page cache.

use super::job::{Job, shown};
use crate::conversion::Ignored;

/// Whether the job uses the page cache in fio.
pub fn is_buffered(job: &Job) -> bool {
    let is_on = |option: &'static str| job.text(option).map(|text| text != "0");
    match (is_on("direct"), is_on("buffered")) {
        (Some(direct), Some(buffered)) => {
            if job.is_later("buffered", "direct") {
                buffered
            } else {
                !direct
            }
        }
        (Some(direct), None) => !direct,
        (None, Some(buffered)) => buffered,
        // Engines that have no page cache above them.
        (None, None) => !matches!(
            job.text("ioengine"),
            Some("null" | "cpp_null" | "rbd" | "rados" | "sg" | "io_uring_cmd" | "nbd" | "libiscsi" | "xnvme")
        ),
    }
}

/// The engine is ignored, except for the depth that it can have.
pub fn engine(job: &Job) -> Option<Ignored> {
    let (place, option) = job.setting("ioengine").map(|setting| (setting.place.clone(), shown(setting)))?;
    let reason = "how requests are issued; the run has --engine".to_owned();
    Some(Ignored { place, option, reason })
}
