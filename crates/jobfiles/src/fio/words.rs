//! What a job means, in words.

use std::collections::BTreeSet;

use super::job_end::Limits;
use super::requests::{DISCARD, Part, READ, WRITE};
use super::streams::Described;
use super::values::time_text;
use crate::conversion::bytes_text;

impl Described<'_> {
    /// Operations, sizes, places and ends in words.
    pub(super) fn requests(&self, parts: &[Part]) -> String {
        let total: f64 = parts.iter().map(|part| part.weight).sum();
        let of = |direction| parts.iter().filter(move |part: &&Part| part.direction == direction);
        let mut what = Vec::new();
        for (direction, name) in [(READ, "reads"), (WRITE, "writes"), (DISCARD, "discards")] {
            let Some(first) = of(direction).next() else { continue };
            let share = of(direction).map(|part| part.weight).sum::<f64>() / total;
            let share = if share < 0.999 && !self.directions.is_trimwrite {
                format!("{} % ", (share * 100.0).round())
            } else {
                String::new()
            };
            let order = match &first.positions[..] {
                "sequential" => "sequential ".to_owned(),
                "shuffled" | "random-map" => "random (each block once) ".to_owned(),
                files if files.starts_with("files") => {
                    let (files, kind) = files.split_once(" of=").unwrap_or((files, "sequential"));
                    let count = files.split_once("count=").map_or("", |(_, count)| count).split(' ').next();
                    format!("{kind} (in {} files) ", count.unwrap_or_default())
                }
                "uniform" if of(direction).count() > 1 && of(direction).any(|part| part.region != first.region) => {
                    "random (by zones or devices) ".to_owned()
                }
                "uniform" => "random ".to_owned(),
                other => format!("`{other}` "),
            };
            what.push(format!("{share}{order}{name} of {}", first.sizes.phrase()));
        }
        let mut text = what.join(if self.directions.is_trimwrite { ", then the same as " } else { " and " });
        if let Some(every) = self.flushes {
            text += &match every {
                1 => ", a flush after each write".to_owned(),
                _ => format!(", a flush after each {every} writes"),
            };
        }
        let mut names: Vec<&str> = parts.iter().map(|part| self.devices.name(part.region.device)).collect();
        names.dedup();
        let names: BTreeSet<&str> = names.into_iter().collect();
        text += &format!("; on {}", names.into_iter().collect::<Vec<_>>().join(", "));
        let Limits { start, end, requests, bytes, passes, span: _ } = self.limits;
        if start > 0 {
            text += &format!("; from {}", time_text(start));
        }
        if let Some(requests) = requests {
            text += &format!("; {requests} requests");
        }
        if let Some(bytes) = bytes {
            text += &format!("; {} in all", bytes_text(bytes));
        }
        if let Some(passes) = passes {
            text += &if passes == 1 { "; once over it".to_owned() } else { format!("; {passes} times over it") };
        }
        if let Some(end) = end {
            text += &format!("; until {}", time_text(end));
        }
        text
    }
}
