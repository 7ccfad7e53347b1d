//! The order of jobs.

use std::collections::BTreeSet;

use super::job::Job;

/// The order of jobs: `stonewall` waits for all jobs before, `wait_for` for one of them.
#[derive(Debug, Default)]
pub struct Phases {
    /// The streams that ended before this phase.
    before: Vec<String>,
    /// The streams of this phase.
    now: Vec<String>,
    /// Each job above, with its streams and whether it ends.
    jobs: Vec<(String, Vec<String>, bool)>,
    names: BTreeSet<String>,
}

impl Phases {
    /// The streams after which a job begins.
    pub(super) fn after(&mut self, job: &Job) -> Result<Vec<String>, String> {
        if job.flag("stonewall")? && !self.now.is_empty() {
            if let Some((endless, ..)) = self.jobs.iter().find(|(.., ends)| !ends) {
                return Err(job.error("stonewall", &format!("{endless} never ends; set its size, or its runtime")));
            }
            self.before = std::mem::take(&mut self.now);
        }
        let mut after = self.before.clone();
        if let Some(name) = job.text("wait_for").filter(|name| *name != "none") {
            let Some((_, streams, ends)) = self.jobs.iter().rev().find(|(known, ..)| known == name) else {
                return Err(job.error("wait_for", &format!("no job above this one has the name {name}")));
            };
            if !ends {
                return Err(job.error("wait_for", &format!("{name} never ends; set its size, or its runtime")));
            }
            after.extend(streams.iter().filter(|stream| !self.before.contains(stream)).cloned());
        }
        Ok(after)
    }

    /// These streams of a job are of this phase.
    pub(super) fn add(&mut self, job: &str, streams: Vec<String>, ends: bool) {
        self.now.extend(streams.iter().cloned());
        self.jobs.push((job.to_owned(), streams, ends));
    }

    /// A name for a stream that no other one has.
    pub(super) fn unique(&mut self, name: &str) -> String {
        // Names are separated by commas.
        let name = name.replace([',', '$', '"', '\\'], "_");
        let mut unique = name.trim().to_owned();
        for number in 2.. {
            if self.names.insert(unique.clone()) {
                break;
            }
            unique = format!("{name}-{number}");
        }
        unique
    }
}
