//! What `state` could not follow, counted, and the warnings that say so.

use std::collections::BTreeMap;

use iosonar_trace::human;

use crate::{CallKind, list_unreplayable};

/// Numbers of calls and files that could not be followed completely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls on descriptors whose file the trace does not show.
    pub unknown_descriptors: u64,
    /// Descriptors whose opening the trace does not show, but whose path it does.
    pub inferred_opens: u64,
    /// Descriptors that were not searched in other threads, because there are too many threads of unknown origin.
    pub unsearched: u64,
    /// Processes whose inherited descriptors are not followed, because there are too many.
    pub uninherited: u64,
    /// Relative paths of threads whose working directory the trace does not show.
    pub assumed_cwds: u64,
    /// Paths that are too long for a system call.
    pub long_paths: u64,
    /// Paths that start in a directory that was removed.
    pub removed_starts: u64,
    /// Paths that start in a directory of which nothing is known.
    pub unknown_starts: u64,
    /// Names that exist although the trace shows that they were absent.
    pub appeared: u64,
    /// Calls of io_uring on registered files.
    pub fixed_files: u64,
    /// Messages that may have carried descriptors.
    pub messages: u64,
    /// Calls that `state` does not follow, by kind: `mount`, `chroot`, `io_submit`.
    pub not_followed: BTreeMap<CallKind, u64>,
    /// Calls that contradict what the trace showed before.
    pub contradictions: u64,
    /// Calls that change files, and are not replayed, by what they do.
    pub unreplayable: BTreeMap<String, u64>,
    /// Mapped files, with the number of mappings; no more than [`Self::MAPPED`].
    pub mapped: BTreeMap<String, u64>,
    /// All mappings of files.
    pub mappings: u64,
}

/// A sentence about changes of files that are not replayed, by what they do.
pub fn warning_of_unreplayable(unreplayable: &BTreeMap<String, u64>) -> Option<String> {
    let calls = unreplayable.values().sum::<u64>();
    let (they, change) = if calls == 1 { ("call changes", "is") } else { ("calls change", "are") };
    (calls > 0).then(|| {
        format!("{} {they} files, and {change} not replayed: {}", human::count(calls), list_unreplayable(unreplayable))
    })
}

impl Counts {
    /// How many mapped files are named.
    pub const MAPPED: usize = 1000;

    pub(super) fn mapping(&mut self, path: Option<String>) {
        self.mappings += 1;
        if let Some(path) = path
            && (self.mapped.len() < Self::MAPPED || self.mapped.contains_key(&path))
        {
            *self.mapped.entry(path).or_default() += 1;
        }
    }

    /// Sentences for users.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut say = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(human::agreed(count, text));
            }
        };
        say(
            self.inferred_opens,
            "descriptors were open before the recording began; their opens were inferred from their paths",
        );
        say(
            self.unknown_descriptors,
            "calls use descriptors whose opening was not recorded and whose path is unknown; they are not replayed \
             (strace -y records paths)",
        );
        say(
            self.unsearched,
            "descriptors may be of another thread: the trace has too many threads whose start it does not show to search \
             them all (record with -e trace=%process)",
        );
        say(
            self.uninherited,
            "processes inherited descriptors that are not followed: more than 8 million were inherited at once",
        );
        say(
            self.assumed_cwds,
            "relative paths of threads with an unknown working directory; the directory given, or /, was assumed (--cwd)",
        );
        say(self.long_paths, "paths are longer than 4095 bytes; their calls are not replayed");
        say(self.removed_starts, "paths start in a removed directory; their calls are not replayed");
        say(self.unknown_starts, "paths start in an unknown directory; their calls are not replayed");
        say(self.appeared, "names appeared without a recorded call; a program that was not recorded made them");
        say(self.contradictions, "calls contradict earlier ones; a program that was not recorded changed the files");
        say(self.fixed_files, "io_uring calls use registered files, which are unknown; they are not replayed");
        say(self.messages, "messages may have carried descriptors (SCM_RIGHTS); these are not followed");
        warnings.extend(self.lost_warning());
        for (kind, count) in &self.not_followed {
            warnings.push(human::agreed(*count, &format!("calls of {} are not followed", kind.name())));
        }
        warnings
    }

    /// A sentence about changes of files that are not replayed.
    fn lost_warning(&self) -> Option<String> {
        warning_of_unreplayable(&self.unreplayable)
    }

    /// A sentence about mapped files; a replay has one of its own, about its window.
    pub fn mapping_warning(&self) -> Option<String> {
        let mappings = human::counted(self.mappings, "mapping");
        (self.mappings > 0).then(|| {
            format!(
                "{mappings} of files: accesses through them are not recorded (`files check --verbose` names the files)"
            )
        })
    }
}
